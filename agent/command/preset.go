package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
)

// Preset describes an agent whose headless mode is known.
type Preset struct {
	// Name is that of [Config].Preset.
	Name string `json:"name"`
	// Title is the agent's name for people.
	Title string `json:"title"`
	// Program is looked up in PATH.
	Program string `json:"program"`
	// Install says in a line how to get it.
	Install string `json:"install"`
	// Tested is the version whose streams the preset was tested with. Older
	// ones may report less; unknown parts of a stream are not errors.
	Tested string `json:"tested"`
	// Sight is how its tool calls are seen in its stream. A hook of the agent's
	// own may see and refuse more.
	Sight agent.Sight `json:"sight"`
	// Calls says what is not seen of its tool calls.
	Calls string `json:"calls"`
	// Usage and Context say how tokens and the fill of the context are known.
	Usage   string `json:"usage"`
	Context string `json:"context"`
	// Permissions says what each permission is for the agent.
	Permissions map[Permission]string `json:"permissions"`
}

// vendor is a preset with what it takes to run it.
type vendor struct {
	about Preset
	// args makes the command line from the configuration and the session's ID.
	args func(c Config, id string) []string
	// endpoint makes the options with which it uses the provider's address in a turn's
	// environment, if it does not read that by itself.
	endpoint func(env, args []string) []string
	// hooks has it run a command line as its hook; nil when it has no hooks that would do.
	hooks func(h *hooking) (hooked, error)
	// grant makes what lets it run commands without asking under PermissionEdits; nil when
	// its sandbox runs all commands.
	grant func(rules []agent.CommandRule) grant
	// env are variables that all others override.
	env func(c Config) []string
	// unset are variables of this process that the agent does not get.
	unset []string
	// parse makes the parser of its stream.
	parse func(s stream) parser
	// follow follows what it writes in addition to its stream; nil for nothing.
	follow func(rec *record, env []string) *follower
	// totals: what it reports are totals of its session.
	totals bool
	// waits: it waits for its commands in the background before it ends.
	waits bool
	// costs: it reports what a turn costs.
	costs bool
}

// Presets returns what is known of each agent, by name.
func Presets() []Preset {
	var list []Preset
	for _, v := range vendors() {
		list = append(list, v.about)
	}
	return list
}

func vendorOf(name string) (vendor, error) {
	if name == "" {
		return vendor{about: Preset{Sight: agent.SightNone}}, nil
	}
	var names []string
	for _, v := range vendors() {
		if v.about.Name == name {
			return v, nil
		}
		names = append(names, v.about.Name)
	}
	slices.Sort(names)
	return vendor{}, fmt.Errorf("there is no preset %q; there are %s", name, strings.Join(names, ", "))
}

func vendors() []vendor {
	return []vendor{
		{
			about: aboutClaude(), args: claudeArgs, hooks: claudeHooks, grant: grantClaude, totals: true, costs: true,
			waits: true,
			env:   func(Config) []string { return []string{"DISABLE_AUTOUPDATER=1"} },
			// Some versions refuse to start inside another one.
			unset: []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"},
			parse: func(s stream) parser { return &claudeParser{stream: s, open: map[string]tokens{}} },
		},
		{
			about: aboutCodex(), args: codexArgs, hooks: codexHooks, endpoint: codexEndpoint, totals: true,
			parse:  func(s stream) parser { return &codexParser{stream: s} },
			follow: followCodex,
		},
		{
			about: aboutGemini(), args: geminiArgs, hooks: geminiHooks, grant: grantGemini,
			parse: func(s stream) parser { return &geminiParser{stream: s} },
		},
		{
			about: aboutOpencode(), args: opencodeArgs, hooks: opencodeHooks, grant: grantOpencode, env: opencodeEnv,
			costs: true,
			parse: func(s stream) parser { return &opencodeParser{stream: s} },
		},
	}
}

func aboutClaude() Preset {
	return Preset{
		Name: "claude", Title: "Claude Code", Program: "claude",
		Install: "npm install -g @anthropic-ai/claude-code", Tested: "2.1.328",
		Sight: agent.SightObserved,
		Calls: "calls are reported when they begin and end, subagents' only as far as Claude Code forwards them; " +
			"a turn's hook asks before each of them and can refuse it",
		Usage:   "per turn, including subagents; the cost as well, unless the price of the model is a placeholder",
		Context: "after every answer; the size of the window at the end of the turn",
		Permissions: map[Permission]string{
			PermissionRead: "--permission-mode plan",
			PermissionEdits: "--permission-mode acceptEdits: files of the workspace may be edited, created and removed (also " +
				"by simple commands such as mkdir and rm); other commands are denied unless a turn's rules or its settings allow " +
				"them (--allowedTools)",
			PermissionAll: "--permission-mode bypassPermissions; refused to root outside a sandbox",
			PermissionOwn: "no option: its settings",
		},
	}
}

func aboutCodex() Preset {
	return Preset{
		Name: "codex", Title: "Codex CLI", Program: "codex",
		Install: "npm install -g @openai/codex", Tested: "0.169.0",
		Sight: agent.SightObserved,
		Calls: "commands, file changes and MCP calls are reported; a call that its sandbox, its rules or a hook refused is " +
			"not reported; " +
			"a turn's hook asks before each of them and can refuse it",
		Usage: "differences of the totals of its thread; of turns that do not end well from the log of the thread, " +
			"where it can be read",
		Context: "after every answer, from the log of the thread",
		Permissions: map[Permission]string{
			PermissionRead: "--sandbox read-only",
			PermissionEdits: "--sandbox workspace-write: commands run in a sandbox that may write to the workspace and has " +
				"no network",
			PermissionAll: "--dangerously-bypass-approvals-and-sandbox",
			PermissionOwn: "no option: its settings",
		},
	}
}

func aboutGemini() Preset {
	return Preset{
		Name: "gemini", Title: "Gemini CLI", Program: "gemini",
		Install: "npm install -g @google/gemini-cli", Tested: "0.61.0",
		Sight:   agent.SightObserved,
		Calls:   "calls are reported when they begin and end; a turn's hook asks before each of them and can refuse it",
		Usage:   "per turn, at its end",
		Context: "not reported; its AfterModel hook would report it",
		Permissions: map[Permission]string{
			PermissionRead: "--approval-mode plan",
			PermissionEdits: "--approval-mode auto_edit: files may be edited; commands are those that a turn's rules " +
				"allow (--policy). The workspace has to be trusted, here as with the others",
			PermissionAll: "--approval-mode yolo",
			PermissionOwn: "no option: its settings",
		},
	}
}

func aboutOpencode() Preset {
	return Preset{
		Name: "opencode", Title: "OpenCode", Program: "opencode",
		Install: "npm install -g opencode-ai", Tested: "1.18.33",
		Sight:   agent.SightObserved,
		Calls:   "calls are reported when they have ended; a turn's hook asks before each of them and can refuse it",
		Usage:   "per step; the cost as well, where the price of the model is known",
		Context: "after every step, without the size of the window",
		Permissions: map[Permission]string{
			PermissionRead: "OPENCODE_PERMISSION denies edits and commands",
			PermissionEdits: "OPENCODE_PERMISSION denies folders outside the workspace and commands, except those that a " +
				"turn's rules allow; it does not check where their redirections write. A variable of that name that is already " +
				"set overrides it",
			PermissionAll: "--auto",
			PermissionOwn: "no option: its settings",
		},
	}
}
