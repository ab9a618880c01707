package endpoint

import (
	"cmp"
	"path/filepath"
	"runtime"
)

// varClaude is the variable with the address of Claude Code's provider.
const varClaude = "ANTHROPIC_BASE_URL"

// claudeSettings are the settings of Claude Code that choose its provider.
type claudeSettings struct {
	Env map[string]string `json:"env"`
}

// ofClaude returns the address of Claude Code, or of its adapter for the Agent Client Protocol. The
// variables in its settings override its environment.
func ofClaude(p Place) (map[string]string, error) {
	env := map[string]string{}
	home := p.folder("CLAUDE_CONFIG_DIR", ".claude")
	for _, file := range []string{filepath.Join(home, "settings.json"), filepath.Join(p.Dir, ".claude", "settings.json"),
		filepath.Join(p.Dir, ".claude", "settings.local.json"), managedClaude()} {
		var s claudeSettings
		if err := readJSON(file, &s); err != nil {
			return nil, err
		}
		for name, value := range s.Env {
			env[name] = value
			if name == varClaude && file == managedClaude() {
				return nil, unknown("the managed settings in %s fix the address of the provider", file)
			}
		}
	}
	for _, v := range []struct{ name, service string }{{"CLAUDE_CODE_USE_BEDROCK", "Amazon Bedrock"},
		{"CLAUDE_CODE_USE_VERTEX", "Google Vertex"}, {"CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry"}} {
		if value := cmp.Or(env[v.name], p.value(v.name)); value != "" && value != "0" && value != "false" {
			return nil, unknown("Claude Code asks %s, which meters do not read (%s)", v.service, v.name)
		}
	}
	return map[string]string{Anthropic: cmp.Or(env[varClaude], p.value(varClaude), "https://api.anthropic.com")}, nil
}

// managedClaude is the file with settings of an administrator.
func managedClaude() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	}
	return "/etc/claude-code/managed-settings.json"
}

// ClaudeVariables returns the variables, and the settings of its environment, with which Claude
// Code uses other addresses.
func ClaudeVariables(to map[string]string) map[string]string {
	if to[Anthropic] == "" {
		return nil
	}
	return map[string]string{varClaude: to[Anthropic]}
}
