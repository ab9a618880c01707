package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// hookSeconds is how long an agent waits for its hook: longer than the hook takes,
// because the agent treats a hook that it stops waiting for as consent.
const hookSeconds = 15 * 60

// hookEvents are the events of the agents that share Claude Code's hooks at which the
// hook is run.
func hookEvents() []string { return []string{"PreToolUse", "PostToolUse", "PostToolUseFailure"} }

// hookFailed refuses a call when the hook fails: agents take a killed or missing program
// as permission, and Codex also exit status 2 without output.
const hookFailed = ` || { echo "perdure: the hook refused this call, or failed" >&2; exit 2; }`

// hookLine is the shell's command line of a hook of that kind.
func hookLine(words []string, dialect string) string {
	quoted := make([]string, 0, len(words)+1)
	for _, w := range append(slices.Clone(words), dialect) {
		if runtime.GOOS == "windows" {
			w = `"` + strings.ReplaceAll(filepath.ToSlash(w), `"`, `\"`) + `"`
		} else {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted = append(quoted, w)
	}
	return strings.Join(quoted, " ") + hookFailed
}

// hookGroup is what is run at one event.
type hookGroup struct {
	Matcher string        `json:"matcher,omitempty"`
	Hooks   []hookHandler `json:"hooks"`
}

type hookHandler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

// claudeHooks are the options with which Claude Code runs a hook: in addition to those of its
// settings and of the user's own --settings.
func claudeHooks(words, args []string) (options, rest []string, err error) {
	settings := map[string]any{}
	rest = slices.Clone(args)
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
			return nil, nil, err
		}
		rest = slices.Delete(rest, i, i+n)
		i--
	}
	hooks, ok := settings["hooks"].(map[string]any)
	if !ok {
		hooks = map[string]any{}
	}
	for _, event := range hookEvents() {
		groups, _ := hooks[event].([]any)
		hooks[event] = append(groups,
			hookGroup{Matcher: "*", Hooks: []hookHandler{{"command", hookLine(words, "claude-code"), hookSeconds}}})
	}
	settings["hooks"] = hooks
	doc, err := json.Marshal(settings)
	return []string{"--settings", string(doc)}, rest, err
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

// codexHooks are the options with which Codex runs a hook. It skips hooks that no user
// trusted, without a word; trust for one run is trust in all hooks that are configured.
func codexHooks(words, args []string) (options, rest []string, err error) {
	line, err := json.Marshal(hookLine(words, "codex")) // a string of JSON is one of TOML
	if err != nil {
		return nil, nil, err
	}
	options = []string{"--dangerously-bypass-hook-trust"}
	for _, event := range hookEvents()[:2] {
		options = append(options, "-c", fmt.Sprintf(`hooks.%s=[{hooks=[{type="command",command=%s,timeout=%d}]}]`, event,
			line, hookSeconds))
	}
	return options, args, nil
}
