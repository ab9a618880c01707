package endpoint

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// VarOpencodeConfig is the variable with further settings of OpenCode.
const VarOpencodeConfig = "OPENCODE_CONFIG_CONTENT"

// opencodeSettings are the settings of OpenCode that choose its providers.
type opencodeSettings struct {
	Model     string `json:"model"`
	Small     string `json:"small_model"`
	Providers map[string]struct {
		Options struct {
			BaseURL string `json:"baseURL"`
		} `json:"options"`
	} `json:"provider"`
}

// reName matches the names of providers that can be a part of an address.
var reName = lazyregexp.New(`^[A-Za-z0-9._-]+$`)

var reEnv = lazyregexp.New(`\{env:([^}]*)\}`)

// knownProvider is a provider that OpenCode knows without settings.
type knownProvider struct {
	address string
	// keys are the variables with its key.
	keys []string
}

func knownProviders() map[string]knownProvider {
	return map[string]knownProvider{
		Anthropic: {"https://api.anthropic.com/v1", []string{"ANTHROPIC_API_KEY"}},
		OpenAI:    {"https://api.openai.com/v1", []string{"OPENAI_API_KEY"}},
		"google": {"https://generativelanguage.googleapis.com/v1beta",
			[]string{"GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"}},
		"openrouter": {"https://openrouter.ai/api/v1", []string{"OPENROUTER_API_KEY"}},
	}
}

// ofOpencode returns the addresses of OpenCode's providers by their names: those in its settings, and
// those of known providers that a model or a key in the environment selects.
func ofOpencode(p Place) (map[string]string, error) {
	all := map[string]string{}
	model, small := "", ""
	take := func(s *opencodeSettings) {
		model, small = cmp.Or(s.Model, model), cmp.Or(s.Small, small)
		for name, provider := range s.Providers {
			if address := reEnv().ReplaceAllStringFunc(provider.Options.BaseURL, func(found string) string {
				return p.value(strings.TrimSuffix(strings.TrimPrefix(found, "{env:"), "}"))
			}); address != "" {
				all[name] = address
			}
		}
	}
	for _, file := range opencodeFiles(p) {
		var s opencodeSettings
		if err := readJSON(file, &s); err != nil {
			return nil, err
		}
		take(&s)
	}
	if given := p.value(VarOpencodeConfig); given != "" {
		var s opencodeSettings
		if err := decode([]byte(given), &s, VarOpencodeConfig); err != nil {
			return nil, err
		}
		take(&s)
	}
	main, _, _ := strings.Cut(cmp.Or(p.Model, model), "/")
	title, _, _ := strings.Cut(small, "/")
	for name, known := range knownProviders() {
		hasKey := slices.ContainsFunc(known.keys, func(key string) bool { return p.value(key) != "" })
		if all[name] == "" && (name == main || name == title || hasKey) {
			all[name] = known.address
		}
	}
	for _, provider := range []string{main, title} {
		if provider != "" && all[provider] == "" {
			return nil, unknown("the settings of OpenCode name no baseURL of its provider %q", provider)
		}
	}
	for name := range all {
		if !reName().MatchString(name) {
			delete(all, name)
		}
	}
	return all, nil
}

// opencodeFiles returns the files with the settings of OpenCode, in the order in which they are read.
func opencodeFiles(p Place) []string {
	var files []string
	names := []string{"config.json", "opencode.json", "opencode.jsonc"}
	for _, name := range names {
		files = append(files, filepath.Join(p.folder("XDG_CONFIG_HOME", ".config"), "opencode", name))
	}
	files = append(files, p.value("OPENCODE_CONFIG"))
	for _, name := range names[1:] {
		files = append(files, upward(p.Dir, name)...)
		files = append(files, upward(p.Dir, filepath.Join(".opencode", name))...)
	}
	return slices.DeleteFunc(files, func(name string) bool { return name == "" })
}

// OpencodeConfig returns the value of the variable with further settings: given, with a plugin, which
// may be empty, and other addresses.
func OpencodeConfig(given, plugin string, to map[string]string) (string, error) {
	config := map[string]any{}
	if given != "" {
		if err := decode([]byte(given), &config, VarOpencodeConfig); err != nil {
			return "", err
		}
	}
	if plugin != "" {
		plugins, _ := config["plugin"].([]any)
		config["plugin"] = append(plugins, "file://"+plugin)
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		set(config, []string{"provider", name, "options", "baseURL"}, to[name])
	}
	text, err := json.Marshal(config)
	return string(text), err
}
