package endpoint

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// codexSettings are the settings of Codex that choose its provider.
type codexSettings struct {
	Provider  string `toml:"model_provider" json:"model_provider"`
	Profile   string `toml:"profile" json:"profile"`
	BaseURL   string `toml:"openai_base_url" json:"openai_base_url"`
	Providers map[string]struct {
		BaseURL string `toml:"base_url" json:"base_url"`
	} `toml:"model_providers" json:"model_providers"`
	Profiles map[string]struct {
		Provider string `toml:"model_provider" json:"model_provider"`
	} `toml:"profiles" json:"profiles"`
}

// VarCodexConfig is the variable with further settings for the adapter of Codex.
const VarCodexConfig = "CODEX_CONFIG"

// codexOwn is the name of Codex's own provider in the result of [Of].
const codexOwn = OpenAI

// ofCodex returns the address of Codex, or of its adapter for the Agent Client Protocol.
func ofCodex(p Place) (map[string]string, error) {
	var s codexSettings
	home := p.folder("CODEX_HOME", ".codex")
	if text, err := os.ReadFile(filepath.Join(home, "config.toml")); err == nil {
		if _, err := toml.Decode(string(text), &s); err != nil {
			return nil, unknown("the settings in %s cannot be read: %s", filepath.Join(home, "config.toml"), err)
		}
	}
	if given := p.value(VarCodexConfig); given != "" {
		if err := json.Unmarshal([]byte(given), &s); err != nil {
			return nil, unknown("%s cannot be read: %s", VarCodexConfig, err)
		}
	}
	for _, arg := range p.Args {
		if strings.Contains(arg, "model_provider") || arg == "--oss" || arg == "--profile" || arg == "-p" {
			return nil, unknown("the provider of Codex is chosen by its option %q: choose it in its settings", arg)
		}
	}
	name := cmp.Or(p.value("MODEL_PROVIDER"), s.Profiles[s.Profile].Provider, s.Provider)
	if name == "" || name == codexOwn {
		return map[string]string{codexOwn: cmp.Or(s.BaseURL, p.value("OPENAI_BASE_URL"), codexDefault(p, home))}, nil
	}
	address := s.Providers[name].BaseURL
	if address == "" {
		return nil, unknown("the settings of Codex name no base_url of its provider %q", name)
	}
	return map[string]string{codexName + name: address}, nil
}

// codexName is the prefix of the names of providers that the user chose.
const codexName = "codex-"

// codexDefault returns the address of Codex's own provider, which depends on the login.
func codexDefault(p Place, home string) string {
	var login struct {
		Mode   string          `json:"auth_mode"`
		Tokens json.RawMessage `json:"tokens"`
	}
	text, err := os.ReadFile(filepath.Join(home, "auth.json"))
	if err == nil && json.Unmarshal(text, &login) == nil && p.value("CODEX_API_KEY") == "" &&
		(login.Mode == "chatgpt" || login.Mode == "" && len(login.Tokens) > len("null")) {
		return "https://chatgpt.com/backend-api/codex"
	}
	return "https://api.openai.com/v1"
}

// codexSetting is a setting of Codex: its name, by parts, and its value.
type codexSetting struct {
	path  []string
	value any
}

// codexSettingsFor returns the settings with which Codex uses other addresses. In place of its own
// provider they define one with the user's login, because Codex asks its own one over WebSockets,
// which meters do not read.
func codexSettingsFor(to map[string]string) []codexSetting {
	var all []codexSetting
	for name, address := range to {
		chosen, ok := strings.CutPrefix(name, codexName)
		if ok {
			all = append(all, codexSetting{[]string{"model_providers", chosen, "base_url"}, address})
			continue
		}
		const own = "perdure"
		all = append(all, codexSetting{[]string{"model_provider"}, own},
			codexSetting{[]string{"model_providers", own, "name"}, "OpenAI"},
			codexSetting{[]string{"model_providers", own, "base_url"}, address},
			codexSetting{[]string{"model_providers", own, "wire_api"}, "responses"},
			codexSetting{[]string{"model_providers", own, "requires_openai_auth"}, true})
	}
	return all
}

// CodexOptions returns the options with which Codex uses other addresses.
func CodexOptions(to map[string]string) []string {
	var options []string
	for _, s := range codexSettingsFor(to) {
		text := "true"
		if value, ok := s.value.(string); ok {
			text = strconv.Quote(value)
		}
		options = append(options, "-c", strings.Join(s.path, ".")+"="+text)
	}
	return options
}

// CodexConfig returns the value of the adapter's variable with further settings: given, with other
// addresses and with more settings.
func CodexConfig(given string, to map[string]string, more map[string]any) (string, error) {
	all := map[string]any{}
	if given != "" {
		if err := json.Unmarshal([]byte(given), &all); err != nil {
			return "", unknown("%s cannot be read: %s", VarCodexConfig, err)
		}
	}
	for _, s := range codexSettingsFor(to) {
		set(all, s.path, s.value)
	}
	for name, value := range more {
		all[name] = value
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// set sets a member of nested objects.
func set(in map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		next, ok := in[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			in[name] = next
		}
		in = next
	}
	in[path[len(path)-1]] = value
}
