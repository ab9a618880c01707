package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/loop/hook"
)

// Loop is the section loop: what loops are begun with.
type Loop struct {
	// Agent is who works; Model is the agent's own name for a model, Permission
	// what it may do without asking: edits, read, all or own.
	Agent, Model, Permission string
	MaxIterations            int
	// Timeout bounds the agent's time in one iteration, IdleTimeout how long it may
	// be silent, CheckTimeout a run of the completion command.
	Timeout, IdleTimeout, CheckTimeout time.Duration
	// ContextWindow is the size of the agent's context in tokens, where it does not
	// tell.
	ContextWindow int
	// GateTimeout is how long a person is waited for; 0: for ever.
	GateTimeout time.Duration
	// Reinforcement is the least level of reminders; it rises from the iterations
	// StandardFrom and AggressiveFrom on, 0 for never, and on a plateau of
	// PlateauPercent. Reminders is a folder with templates; may be empty.
	Reinforcement                string
	StandardFrom, AggressiveFrom int
	PlateauPercent               float64
	Reminders                    string
	// Detection says which signs of regressions in changed files act, Rules what is
	// looked for; these exist in the file only.
	Detection string
	Rules     rules.Settings
	// Risks are answers to risky calls of tools other than those of the table, by
	// pattern; they exist in the file only. SnapshotRisky says before which of them a
	// snapshot is taken.
	Risks         map[risk.Pattern]risk.Answer
	SnapshotRisky string
	// Enabled is the whole watching: the baseline, regressions and what is done
	// about them, the best iteration.
	Enabled              bool
	MaxRetries           int
	AutoEscalateCritical bool
	// BestOutput leaves the best iteration in the workspace, not the last.
	BestOutput          bool
	QualityThreshold    int // in percent
	RequireVerification bool
	// Sealed says when the check is repeated in a clean copy, SealedSetup is a command
	// that makes what it needs there.
	Sealed, SealedSetup string
	// LoopMetrics is what is measured besides the tests.
	LoopMetrics
	// Budgets of what is added to an iteration; exceeding them warns. 0: none.
	DetectionBudget time.Duration
	OverheadPercent float64
	// Chains are agents that stand in for each other, by the type of the task, in
	// the order in which they are asked; see DefaultChain. They exist in the file
	// only.
	Chains map[string][]string
	// Who is told of gates, of loops that need somebody and of their end: a command
	// for the shell, an address, the desktop.
	NotifyCommand, NotifyWebhook string
	NotifyDesktop                bool
	// Hooks are the user's handlers, in the order in which they are asked. They
	// exist in the file only.
	Hooks hook.Settings
}

// loopSettings are the section loop of the table.
func loopSettings() []setting {
	return []setting{
		{key: "loop.agent", help: "who works in loops: claude, codex, opencode, gemini, acp:NAME, acp:COMMAND, exec:COMMAND",
			at: func(c *Config) any { return &c.Loop.Agent }},
		{key: "loop.model", help: "the agent's own name for a model; empty: its choice",
			at: func(c *Config) any { return &c.Loop.Model }},
		{key: "loop.permission", def: "edits", help: "what an agent may do without asking: edits, read, all, own",
			at: func(c *Config) any { return &c.Loop.Permission }, check: oneOf("edits", "read", "all", "own")},
		{key: "loop.max_iterations", def: "10", help: "most iterations of a loop",
			at: func(c *Config) any { return &c.Loop.MaxIterations }, check: between(1, 10_000)},
		{key: "loop.timeout", def: "60m", help: "the agent's time in one iteration",
			at: func(c *Config) any { return &c.Loop.Timeout }, check: positive},
		{key: "loop.idle_timeout", def: "10m", help: "how long an agent may be silent",
			at: func(c *Config) any { return &c.Loop.IdleTimeout }, check: positive},
		{key: "loop.context_window", def: "200000", help: "the size of the agent's context in tokens, where it does not tell",
			at: func(c *Config) any { return &c.Loop.ContextWindow }, check: between(1_000, 100_000_000)},
		{key: "loop.check_timeout", def: "30m", help: "the time of one run of the completion command",
			at: func(c *Config) any { return &c.Loop.CheckTimeout }, check: positive},
		{key: "loop.gate_timeout", def: noLimit, none: true,
			help: "how long a person is waited for before the loop is aborted, or none for ever",
			at:   func(c *Config) any { return &c.Loop.GateTimeout }, check: positive},
		{key: "loop.enabled", def: "true", help: "whether iterations are compared with the baseline, regressions " +
			"recovered from and the best iteration left",
			at: func(c *Config) any { return &c.Loop.Enabled }},
		{key: "loop.reinforcement", def: "MINIMAL", help: "how firmly agents are reminded of the rules: OFF, MINIMAL, " +
			"STANDARD or AGGRESSIVE at least, ADAPTIVE (by the risk)",
			at:    func(c *Config) any { return &c.Loop.Reinforcement },
			check: oneOf("OFF", "MINIMAL", "STANDARD", "AGGRESSIVE", "ADAPTIVE")},
		{key: "loop.standard_from", def: "3", help: "the iteration from which reminders are STANDARD at least; 0: none",
			at: func(c *Config) any { return &c.Loop.StandardFrom }, check: between(0, 10_000)},
		{key: "loop.aggressive_from", def: "5", help: "the iteration from which reminders are AGGRESSIVE; 0: none",
			at: func(c *Config) any { return &c.Loop.AggressiveFrom }, check: between(0, 10_000)},
		{key: "loop.plateau_percent", def: "5", help: "how little the quality changes on a plateau, which makes reminders " +
			"AGGRESSIVE",
			at: func(c *Config) any { return &c.Loop.PlateauPercent }, check: percent},
		{key: "loop.reminders", help: "a folder with templates of reminders: minimal.md.tmpl, standard.md.tmpl, " +
			"aggressive.md.tmpl, exit.md.tmpl",
			at: func(c *Config) any { return &c.Loop.Reminders }},
		{key: "loop.detection", def: "standard", help: "which signs of regressions in changed files act: off, minimal " +
			"(none), standard, aggressive (all)",
			at: func(c *Config) any { return &c.Loop.Detection }, check: oneOf("off", "minimal", "standard", "aggressive")},
		{key: "loop.snapshot_risky", def: "all", help: "before which risky calls of tools a snapshot is taken: all, high " +
			"(and critical), none",
			at: func(c *Config) any { return &c.Loop.SnapshotRisky }, check: oneOf("all", "high", "none")},
		{key: "loop.max_retries", def: "3", help: "how often a turn that failed is repeated, and a regression is " +
			"recovered from without asking",
			at: func(c *Config) any { return &c.Loop.MaxRetries }, check: between(0, 100)},
		{key: "loop.auto_escalate_on_critical", def: "true",
			help: "whether a critical regression goes to a person at once; deleted tests do either way",
			at:   func(c *Config) any { return &c.Loop.AutoEscalateCritical }},
		{key: "loop.best_output", def: "true", help: "whether the best iteration is left in the workspace; false: the " +
			"last one",
			at: func(c *Config) any { return &c.Loop.BestOutput }},
		{key: "loop.quality_threshold", def: "70", help: "quality in percent that the best iteration should reach",
			at: func(c *Config) any { return &c.Loop.QualityThreshold }, check: between(0, 100)},
		{key: "loop.require_verification", def: "false", help: "whether only an iteration whose check passed may be the best",
			at: func(c *Config) any { return &c.Loop.RequireVerification }},
		{key: "loop.sealed", def: "completion", help: "when the check is repeated in a clean copy of the workspace: off, " +
			"completion, always",
			at: func(c *Config) any { return &c.Loop.Sealed }, check: oneOf("off", "completion", "always")},
		{key: "loop.sealed_setup", help: "a command that makes in a clean copy what the check needs; empty: ignored files " +
			"are copied that are as they were",
			at: func(c *Config) any { return &c.Loop.SealedSetup }},
		{key: "loop.detection_latency_budget", def: "500ms", none: true,
			help: "how long looking for regressions may take before that is told, or none",
			at:   func(c *Config) any { return &c.Loop.DetectionBudget }, check: positive},
		{key: "loop.max_overhead_percent", def: "10", none: true,
			help: "how much may be added to the time of agent and check before that is told, or none",
			at:   func(c *Config) any { return &c.Loop.OverheadPercent }, check: percent},
		{key: "loop.notify.command", help: "a command that is told of gates, of loops that need somebody and of their " +
			"end: JSON on its standard input",
			at: func(c *Config) any { return &c.Loop.NotifyCommand }},
		{key: "loop.notify.webhook", help: "an address that the same is posted to as JSON",
			at: func(c *Config) any { return &c.Loop.NotifyWebhook }, check: httpURL, secret: withoutPassword},
		{key: "loop.notify.desktop", def: "false", help: "whether the same is shown on the desktop; where there is none, " +
			"the terminal that follows the loop rings",
			at: func(c *Config) any { return &c.Loop.NotifyDesktop }},
	}
}

func percent(value any) string {
	if x := *value.(*float64); math.IsNaN(x) || x < 0 || x > 1000 {
		return fmt.Sprintf("is %v, but must be above 0 and at most 1000", x)
	}
	return ""
}

// RisksKey is the setting of the answers to risky calls.
const RisksKey = "loop.risks"

// riskMap reads the answers to risky calls.
func (p *fileParser) riskMap(n ast.Node) {
	var risks map[risk.Pattern]risk.Answer
	if err := yaml.NodeToValue(n, &risks); err != nil {
		p.add(n, "%s has an answer for each pattern; write git_remove: gate", RisksKey)
		return
	}
	for pattern, answer := range risks {
		if !slices.ContainsFunc(risk.Table(), func(r risk.Rule) bool { return r.Pattern == pattern }) {
			p.add(n, "%s: there is no pattern %q; `perdure loop risks` lists them", RisksKey, pattern)
		}
		if !slices.Contains([]risk.Answer{risk.Allow, risk.Warn, risk.Gate, risk.Block}, answer) {
			p.add(n, "%s.%s: %q is none of allow, warn, gate, block", RisksKey, pattern, answer)
		}
	}
	p.risks = risks
}

// ChainsKey is the setting of the chains of agents.
const ChainsKey = "loop.chains"

// DefaultChain is the type of tasks that name none.
const DefaultChain = "default"

// maxChain bounds the agents of a chain.
const maxChain = 20

// chainMap reads the chains of agents.
func (p *fileParser) chainMap(n ast.Node) {
	var chains map[string][]string
	if err := yaml.NodeToValue(n, &chains); err != nil {
		p.add(n, "%s has a list of agents for each type of task; write tests: [codex, claude]", ChainsKey)
		return
	}
	for kind, agents := range chains {
		if kind == "" || len(agents) == 0 || len(agents) > maxChain || slices.Contains(agents, "") {
			p.add(n, "%s.%s names 1 to %d agents", ChainsKey, kind, maxChain)
		}
	}
	p.chains = chains
}

// Chain returns the agents of a type of task, in the order in which they are
// asked; the empty type is DefaultChain. Nil where the settings name none. An
// error names the types that there are.
func (l *Loop) Chain(kind string) ([]string, error) {
	if kind == "" {
		if chain := l.Chains[DefaultChain]; len(chain) > 0 {
			return chain, nil
		}
		if l.Agent == "" {
			return nil, nil
		}
		return []string{l.Agent}, nil
	}
	chain := l.Chains[kind]
	if len(chain) == 0 {
		known := "there are none in the settings file"
		if len(l.Chains) > 0 {
			known = "there are " + strings.Join(slices.Sorted(maps.Keys(l.Chains)), ", ")
		}
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "choose agents",
			Msg:  fmt.Sprintf("no chain of agents is set for tasks of type %q", kind),
			Hint: known + "; " + ChainsKey + " in the settings file names them"}
	}
	return chain, nil
}

// hookEntry is a handler as the file has it.
type hookEntry struct {
	Hook    string `yaml:"hook"`
	Name    string `yaml:"name"`
	Command string `yaml:"command"`
	URL     string `yaml:"url"`
	Timeout string `yaml:"timeout"`
	OnFault string `yaml:"on_fault"`
}

// hookList reads the list of handlers.
func (p *fileParser) hookList(n ast.Node) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		p.add(n, "%s is a list; write - hook: NAME", hook.SettingsKey)
		return
	}
	var entries []hookEntry
	if err := yaml.NodeToValue(n, &entries, yaml.DisallowUnknownField()); err != nil {
		problem, _, _ := strings.Cut(err.Error(), "\n")
		p.add(n, "%s: %s", hook.SettingsKey, problem)
		return
	}
	for i, e := range entries {
		s := hook.Setting{Hook: hook.Name(e.Hook), Name: e.Name, Command: e.Command, URL: e.URL,
			OnFault: hook.OnFault(e.OnFault)}
		if e.Timeout == noLimit {
			s.Timeout = hook.NoTimeout
		} else if e.Timeout != "" {
			d, err := ParseDuration(e.Timeout)
			if err != nil || d <= 0 {
				p.add(n, "%s[%d].timeout: %q is no time like 5s, or %s", hook.SettingsKey, i, e.Timeout, noLimit)
			}
			s.Timeout = d
		}
		p.hooks = append(p.hooks, s)
	}
	if err := p.hooks.Validate(); err != nil {
		p.add(n, "%s", strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
	}
}

// hookTemplate shows in a new file how handlers are written.
const hookTemplate = `
# Programs and addresses that are asked at the hooks of loops; perdure schema
# hook-message and hook-reply say what they are told and what they answer:
# loop:
#   hooks:
#     - hook: post_iteration
#       command: ./scripts/after-iteration
#       timeout: 10s
#     - hook: gate_opened
#       url: https://example.com/notify
#       on_fault: continue
# Agents that stand in for each other, by the type that loop run --task-type names:
#   chains:
#     default: [claude, codex]
#     tests: [codex, claude]
`
