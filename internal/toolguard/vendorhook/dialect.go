package vendorhook

import "strings"

// Dialect is the form in which an agent sends events to its hooks and takes their answers.
type Dialect struct {
	// Agent is the name of the agent on the command line, Title the one for people.
	Agent, Title string

	// events are the agent's names of the events of this package.
	events map[string]string
	// asks reports whether the agent asks its user if a hook answers Leave; nil if it never
	// does.
	asks func(getenv func(string) string) bool
	// late is set if the model receives a text about a call only after the call.
	late bool
	// folders are the members of a command's input with the folder in which it runs.
	folders []string
	// reply returns the JSON that answers an event; nil for nothing.
	reply func(event string, a Answer) any
}

// Dialects returns the dialects of all supported agents.
func Dialects() []*Dialect {
	shared := map[string]string{PreToolUse: PreToolUse, PostToolUse: PostToolUse, PostToolUseFailure: PostToolUseFailure}
	return []*Dialect{
		// Without a person, Claude Code denies a call that it should ask about.
		{Agent: "claude-code", Title: "Claude Code", events: shared, asks: attended, reply: specificReply},
		// Codex makes a call that it should ask about.
		{Agent: "codex", Title: "Codex", events: shared, folders: []string{"workdir"}, reply: codexReply},
		// A plugin has no question to the user; perdure's plugin sends the events.
		{Agent: "opencode", Title: "OpenCode", events: shared, folders: []string{"workdir"}, reply: pluginReply},
		// Without a person, Gemini CLI waits for ever if it should ask about a call.
		{Agent: "gemini", Title: "Gemini CLI", events: map[string]string{"BeforeTool": PreToolUse, "AfterTool": PostToolUse},
			late: true, folders: []string{"dir_path", "directory"}, reply: geminiReply},
	}
}

// DialectOf returns the dialect of an agent, and false if there is none.
func DialectOf(agent string) (*Dialect, bool) {
	for _, d := range Dialects() {
		if d.Agent == agent {
			return d, true
		}
	}
	return nil, false
}

// attended reports whether a person is at Claude Code, which says so to its hooks.
func attended(getenv func(string) string) bool {
	return getenv("CLAUDE_CODE_SESSION_ATTENDED") == "1" && getenv("CLAUDE_CODE_ENTRYPOINT") == "cli"
}

// specific is the JSON that Claude Code and Codex receive in hookSpecificOutput.
type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
}

func specificReply(event string, a Answer) any {
	out := specific{Event: event}
	switch {
	case event == PreToolUse && a.Verdict != Pass:
		out.Decision, out.Reason = string(a.Verdict), a.Text
	case a.Text == "":
		return nil
	default:
		out.Context = a.Text
	}
	return map[string]specific{"hookSpecificOutput": out}
}

// codexReply answers Codex, which shows a reason as one sentence of several.
func codexReply(event string, a Answer) any {
	if a.Verdict != Pass {
		a.Text = strings.TrimSuffix(a.Text, ".")
	}
	return specificReply(event, a)
}

// pluginReply answers perdure's plugin in OpenCode, which takes no output as a failure.
func pluginReply(_ string, a Answer) any { return a }

// geminiReply answers Gemini CLI, which has no text for the model before a call.
func geminiReply(event string, a Answer) any {
	switch {
	case event == PreToolUse && a.Verdict != Pass:
		return map[string]string{"decision": "deny", "reason": a.Text}
	case event == PreToolUse || a.Text == "":
		return nil
	}
	return map[string]specific{"hookSpecificOutput": {Event: "AfterTool", Context: a.Text}}
}
