package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent/internal/endpoint"
	"github.com/perdure/perdure/internal/agenthook"
	"github.com/perdure/perdure/internal/text/jsonc"
)

// hooking is a turn for which an agent runs a command line as its hook, or sends its requests to
// other addresses.
type hooking struct {
	// words are the command line of the hook, nil without one, args the user's options, env the
	// agent's environment.
	words, args, env []string
	// to are the addresses.
	to map[string]string
	// write makes a file for the turn and returns its name.
	write func(pattern, text string) (string, error)
}

// hooked is how the agent is started for that: options, what is left of those of the user,
// and variables.
type hooked struct{ options, rest, env []string }

// value returns the value of a variable of the agent.
func (h *hooking) value(name string) string {
	for _, v := range slices.Backward(h.env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// claudeHooks has Claude Code run a hook in addition to those of its settings and of the
// user's own --settings.
func claudeHooks(h *hooking) (out hooked, err error) {
	settings := map[string]any{}
	rest := slices.Clone(h.args)
	for i := 0; i < len(rest); i++ {
		given, whole := strings.CutPrefix(rest[i], "--settings=")
		n := 1
		if !whole {
			if rest[i] != "--settings" || i+1 == len(rest) {
				continue
			}
			given, n = rest[i+1], 2
		}
		if settings, err = readSettings(given); err != nil {
			return out, err
		}
		rest = slices.Delete(rest, i, i+n)
		i--
	}
	if h.words != nil {
		addHooks(settings, "claude-code", h.words)
	}
	var env []string
	for name, value := range endpoint.ClaudeVariables(h.to) { // its settings override its environment
		set, _ := settings["env"].(map[string]any)
		if set == nil {
			set = map[string]any{}
		}
		set[name] = value
		settings["env"], env = set, append(env, name+"="+value)
	}
	doc, err := json.Marshal(settings)
	return hooked{options: []string{"--settings", string(doc)}, rest: rest, env: env}, err
}

// addHooks adds a hook to an agent's settings.
func addHooks(settings map[string]any, name string, words []string) {
	hooks, ok := settings["hooks"].(map[string]any)
	if !ok {
		hooks = map[string]any{}
	}
	for _, event := range agenthook.Events(name) {
		groups, _ := hooks[event].([]any)
		hooks[event] = append(groups, agenthook.GroupOf(name, agenthook.Line(words, name)))
	}
	settings["hooks"] = hooks
}

// readSettings reads what --settings takes: JSON, or the path of a file with it.
func readSettings(given string) (map[string]any, error) {
	text := []byte(given)
	if !strings.HasPrefix(strings.TrimSpace(given), "{") {
		var err error
		if text, err = os.ReadFile(given); err != nil {
			return nil, fmt.Errorf("read the agent's settings: %w", err)
		}
	}
	settings := map[string]any{}
	if err := json.Unmarshal(text, &settings); err != nil {
		return nil, fmt.Errorf("read the agent's settings: %w", err)
	}
	return settings, nil
}

// codexHooks has Codex run a hook. It skips hooks that no user trusted, without a word; trust
// for one run is trust in all hooks that are configured.
func codexHooks(h *hooking) (hooked, error) {
	options := endpoint.CodexOptions(h.to)
	if h.words == nil {
		return hooked{options: options, rest: h.args}, nil
	}
	line, err := json.Marshal(agenthook.Line(h.words, "codex")) // a string of JSON is one of TOML
	if err != nil {
		return hooked{}, err
	}
	options = append(options, "--dangerously-bypass-hook-trust")
	for _, event := range agenthook.Events("codex") {
		options = append(options, "-c", fmt.Sprintf(`hooks.%s=[{hooks=[{type="command",command=%s,timeout=%d}]}]`, event,
			line, agenthook.Seconds))
	}
	return hooked{options: options, rest: h.args}, nil
}

// opencodeHooks has OpenCode run a hook by a plugin in addition to those of its settings.
func opencodeHooks(h *hooking) (hooked, error) {
	file := ""
	if h.words != nil {
		text, err := agenthook.Plugin(h.words)
		if err == nil {
			file, err = h.write("perdure-hooks-*.js", text)
		}
		if err != nil {
			return hooked{}, err
		}
	}
	doc, err := endpoint.OpencodeConfig(h.value(endpoint.VarOpencodeConfig), file, h.to)
	return hooked{rest: h.args, env: []string{endpoint.VarOpencodeConfig + "=" + doc}}, err
}

// varGeminiSystem is the variable with the file of Gemini CLI's settings for the system, and
// geminiSystem the file without it.
const (
	varGeminiSystem = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
	geminiSystem    = "/etc/gemini-cli/settings.json"
)

// geminiHooks has Gemini CLI run a hook, by settings for the system in addition to those there are.
func geminiHooks(h *hooking) (hooked, error) {
	out := hooked{rest: h.args, env: endpoint.GeminiVariables(h.to)}
	if h.words == nil {
		return out, nil
	}
	settings := map[string]any{}
	if text, err := os.ReadFile(cmp.Or(h.value(varGeminiSystem), geminiSystem)); err == nil {
		root, err := jsonc.Parse(text)
		if err == nil {
			err = root.Decode(text, &settings)
		}
		if err != nil {
			return hooked{}, fmt.Errorf("read the agent's settings for the system: %w", err)
		}
	}
	addHooks(settings, "gemini", h.words)
	doc, err := json.Marshal(settings)
	if err != nil {
		return hooked{}, err
	}
	file, err := h.write("perdure-settings-*.json", string(doc))
	out.env = append(out.env, varGeminiSystem+"="+file)
	return out, err
}
