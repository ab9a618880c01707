package endpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/perdure/perdure/internal/agenthook"
)

// HooksOff returns why an agent runs no hooks, for users; empty if nothing in its settings and options
// switches them off.
func HooksOff(agent string, p Place) string {
	switch agent {
	case "claude":
		return claudeHooksOff(p)
	case "codex":
		return codexHooksOff(p)
	case "gemini":
		return geminiHooksOff(p)
	case "opencode":
		if slices.Contains(p.Args, "--pure") {
			return "the option --pure switches them off"
		}
	}
	return ""
}

func claudeHooksOff(p Place) string {
	for _, option := range []string{"--bare", "--safe-mode"} {
		if slices.Contains(p.Args, option) {
			return "the option " + option + " switches them off"
		}
	}
	home := p.folder("CLAUDE_CONFIG_DIR", ".claude")
	for _, file := range []string{managedClaude(), filepath.Join(home, "settings.json"),
		filepath.Join(p.Dir, ".claude", "settings.json"), filepath.Join(p.Dir, ".claude", "settings.local.json")} {
		var s struct {
			Off     bool `json:"disableAllHooks"`
			Managed bool `json:"allowManagedHooksOnly"`
		}
		switch err := readJSON(file, &s); {
		case err != nil:
			return err.Error()
		case s.Off:
			return "disableAllHooks is set in " + file
		case s.Managed && file == managedClaude():
			return "allowManagedHooksOnly is set in " + file
		}
	}
	return ""
}

func codexHooksOff(p Place) string {
	for i, arg := range p.Args {
		if arg == "features.hooks=false" || arg == "hooks" && i > 0 && p.Args[i-1] == "--disable" {
			return fmt.Sprintf("the option %q switches them off", arg)
		}
	}
	file := filepath.Join(p.folder("CODEX_HOME", ".codex"), "config.toml")
	var s struct {
		Features map[string]any `toml:"features"`
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	if _, err := toml.Decode(string(text), &s); err != nil {
		return fmt.Sprintf("the settings in %s cannot be read: %s", file, err)
	}
	if on, ok := s.Features["hooks"].(bool); ok && !on {
		return "features.hooks is false in " + file
	}
	return ""
}

// TrustsHook reports whether the settings of Codex have a hook with a mark, and trust in hooks.
func TrustsHook(p Place, mark string) bool {
	text, err := os.ReadFile(filepath.Join(p.folder("CODEX_HOME", ".codex"), "config.toml"))
	return err == nil && bytes.Contains(text, []byte(mark)) && bytes.Contains(text, []byte("trusted_hash"))
}

// geminiHooksOff also asks for an installed hook: Gemini CLI ran none from settings of a turn.
func geminiHooksOff(p Place) string {
	installed := false
	system := cmp.Or(p.value("GEMINI_CLI_SYSTEM_SETTINGS_PATH"), "/etc/gemini-cli/settings.json")
	for _, file := range []string{system, filepath.Join(p.folder("GEMINI_CLI_HOME", ""), ".gemini", "settings.json"),
		filepath.Join(p.Dir, ".gemini", "settings.json")} {
		var s struct {
			Hooks struct {
				Enabled *bool `json:"enabled"`
			} `json:"hooksConfig"`
		}
		if err := readJSON(file, &s); err != nil {
			return err.Error()
		}
		text, err := os.ReadFile(file)
		installed = installed || err == nil && bytes.Contains(text, []byte(agenthook.Mark))
		if s.Hooks.Enabled != nil && !*s.Hooks.Enabled {
			return "hooksConfig.enabled is false in " + file
		}
	}
	if !installed {
		return "none is installed; `perdure install gemini` does"
	}
	return ""
}
