package acp

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/opencode"
)

// Preset is what is known of an agent. Agents change weekly: a preset is a
// beginning, and every part of it can be configured otherwise.
type Preset struct {
	// Name is what users call the agent.
	Name string
	// Command starts it so that it speaks the protocol. Programs of adapters
	// have to be installed; nothing is downloaded.
	Command []string
	// Env are variables it is given.
	Env []string
	// AskEnv are further ones with [Config.Ask], for an agent that asks only when
	// it is instructed to.
	AskEnv []string
	// Mode is set when none is configured and the agent offers it; Modes are other ones for
	// some permissions. With PermissionOwn none is set.
	Mode  string
	Modes map[agent.Permission]string
	// Sight is how its tool calls are seen in this mode, and, with AskEnv, with
	// [Config.Ask]. Otherwise they are only observed.
	Sight agent.Sight
	// Asks says in words before what it asks.
	Asks string
	// OverflowIsMaxTokens: it says "max_tokens" when its context is full.
	OverflowIsMaxTokens bool
	// Costs: it reports what a turn costs. PricesOwn matches the names of the models whose
	// price it knows; of others it makes one up. Empty: it knows all of which it reports a cost.
	Costs     bool
	PricesOwn string
	// UsageIsLast: the tokens it reports at the end of a prompt are those of the
	// last answer of its model only.
	UsageIsLast bool
	// Hooks: it runs a turn's hook.
	Hooks bool
	// TitleIsName: the title with which a tool call begins is the tool's name.
	TitleIsName bool
}

// Presets returns the agents that are known, in the order of their names.
func Presets() []Preset {
	return []Preset{
		{
			Name: "claude", Command: []string{"claude-agent-acp"}, Mode: "default", Sight: agent.SightNative, Costs: true,
			Hooks:     true,
			PricesOwn: `^(default|best|opus|sonnet|haiku|opusplan|claude-[a-z0-9.-]+)(\[[0-9a-z]+\])?$`,
			Asks: "before writes and before commands it does not take for read-only; in other modes than \"default\" before " +
				"less or nothing",
		},
		{
			Name: "codex", Command: []string{"codex-acp"}, Env: []string{"NO_BROWSER=1"}, Sight: agent.SightObserved,
			Modes: map[agent.Permission]string{agent.PermissionRead: "read-only", agent.PermissionEdits: "workspace-write",
				agent.PermissionAll: "agent-full-access"},
			Asks: "only when the model wants to leave the sandbox; calls that a hook of its own blocks are not shown at all",
		},
		{
			Name: "copilot", Command: []string{"copilot", "--acp"}, Sight: agent.SightObserved,
			Asks: "not tried",
		},
		{
			Name: "cursor", Command: []string{"cursor-agent", "acp"}, Sight: agent.SightObserved,
			Asks: "not tried",
		},
		{
			Name: "gemini", Command: []string{"gemini", "--acp"}, Mode: "default", Sight: agent.SightNative,
			OverflowIsMaxTokens: true,
			Asks:                "before writes and commands in mode \"default\", not before reads",
		},
		{
			Name: "goose", Command: []string{"goose", "acp"}, Sight: agent.SightObserved,
			Asks: "depends on its own configuration",
		},
		{
			Name: "kimi", Command: []string{"kimi", "acp"}, Sight: agent.SightObserved,
			Asks: "not tried",
		},
		{
			Name: "opencode", Command: []string{"opencode", "acp"}, Sight: agent.SightNative, TitleIsName: true,
			UsageIsLast: true, Costs: true, Hooks: true,
			AskEnv: []string{`OPENCODE_PERMISSION={"*":"ask"}`},
			Asks: "before tool calls for which its configuration says \"ask\", all of them with Config.Ask, else none; a " +
				"denied call ends its turn",
		},
		{
			Name: "qwen", Command: []string{"qwen", "--acp"}, Mode: "default", Sight: agent.SightNative,
			Asks: "before writes and commands that change something, in mode \"default\"",
		},
	}
}

// presetNamed returns the preset of this name; an empty name is that of an
// agent of which nothing is known.
func presetNamed(name string) (Preset, bool) {
	if name == "" {
		return Preset{Sight: agent.SightObserved}, true
	}
	list := Presets()
	i := slices.IndexFunc(list, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return list[i], true
}

func presetNames() []string { return each(Presets(), func(p Preset) string { return p.Name }) }

// each returns a field of every element.
func each[T any](list []T, field func(T) string) []string {
	var out []string
	for _, v := range list {
		out = append(out, field(v))
	}
	return out
}

// sight is how tool calls are seen in a mode, the preset's when it is empty,
// by an agent that was instructed to ask or not.
func (p *Preset) sight(mode string, ask bool) agent.Sight {
	otherMode := mode != "" && p.Mode != "" && mode != p.Mode
	if p.Sight == agent.SightNative && (otherMode || len(p.AskEnv) > 0 && !ask) {
		return agent.SightObserved
	}
	return p.Sight
}

// mode is the mode to set for a permission; empty for none.
func (p *Preset) mode(permission agent.Permission) string {
	if permission == agent.PermissionOwn {
		return ""
	}
	return cmp.Or(p.Modes[permission], p.Mode)
}

// env returns the variables of the preset for a turn.
func (p *Preset) env(cfg *Config, turn *agent.Turn) []string {
	switch {
	case cfg.Ask:
		return slices.Concat(p.Env, p.AskEnv)
	case p.Name == nameOpencode:
		return slices.Concat(p.Env, opencode.Permission(cfg.Permission, turn.Commands))
	}
	return p.Env
}

// nameOpencode is the preset of opencode, whose server reports more than the protocol.
const nameOpencode = "opencode"

// prices reports whether the agent knows the price of a model.
func (p *Preset) prices(model string) bool {
	return p.PricesOwn == "" || regexp.MustCompile(p.PricesOwn).MatchString(model)
}
