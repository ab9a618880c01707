// Package agenthook is what agents need to run a hook: the command line, the groups of hooks
// in settings, and a plugin.
package agenthook

import (
	_ "embed" // the plugin
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Seconds is how long an agent waits for its hook: longer than the hook takes, because the
// agent treats a hook that it stops waiting for as consent.
const Seconds = 15 * 60

// Mark is a part of each command line of [Line] by which it is recognised.
const Mark = "perdure: the hook refused this call, or failed"

// failed refuses a call when the hook fails: agents take a killed or missing program as
// permission, and Codex also exit status 2 without output.
const failed = ` || { echo "` + Mark + `" >&2; exit 2; }`

// Line returns the shell's command line of a hook of an agent.
func Line(words []string, agent string) string {
	quoted := make([]string, 0, len(words)+1)
	for _, w := range append(slices.Clone(words), agent) {
		if runtime.GOOS == "windows" {
			w = `"` + strings.ReplaceAll(filepath.ToSlash(w), `"`, `\"`) + `"`
		} else {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted = append(quoted, w)
	}
	return strings.Join(quoted, " ") + failed
}

// Events returns the events at which an agent runs the hook.
func Events(agent string) []string {
	switch agent {
	case "claude-code":
		return []string{"PreToolUse", "PostToolUse", "PostToolUseFailure"}
	case "codex":
		return []string{"PreToolUse", "PostToolUse"}
	case "gemini":
		return []string{"BeforeTool", "AfterTool"}
	}
	return nil
}

// Group is what an agent runs at one event.
type Group struct {
	Matcher string    `json:"matcher,omitempty"`
	Hooks   []Handler `json:"hooks"`
}

// Handler is a hook in a group.
type Handler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	// Timeout is in the unit of the agent.
	Timeout int `json:"timeout"`
}

// GroupOf returns the group that runs a command line at each event of an agent.
func GroupOf(agent, line string) Group {
	timeout := Seconds
	if agent == "gemini" {
		timeout *= 1000
	}
	return Group{Matcher: "*", Hooks: []Handler{{"command", line, timeout}}}
}

//go:embed plugin.js
var plugin string

// placeholder is the command in the text of the plugin.
const placeholder = `["perdure", "hook", "opencode"]`

// commandPrefix is the beginning of the line of the plugin with the command.
const commandPrefix = "const command = "

// Plugin returns the plugin with which OpenCode runs a hook.
func Plugin(words []string) (string, error) {
	command, err := json.Marshal(append(slices.Clone(words), "opencode"))
	return strings.Replace(plugin, placeholder, string(command), 1), err
}

// PluginCommand returns the command in a plugin that [Plugin] returned, and false if there is
// none.
func PluginCommand(text string) ([]string, bool) {
	for line := range strings.Lines(text) {
		if raw, ok := strings.CutPrefix(strings.TrimSpace(line), commandPrefix); ok {
			var words []string
			err := json.Unmarshal([]byte(raw), &words)
			return words, err == nil && len(words) > 0
		}
	}
	return nil, false
}

// Before returns the agent's name of the event before a call.
func Before(agent string) string {
	if events := Events(agent); len(events) > 0 {
		return events[0]
	}
	return "PreToolUse" // of the plugin
}
