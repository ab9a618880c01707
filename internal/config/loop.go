package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/risk"
	loopconfig "github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// Loop is the section loop of the settings.
type Loop struct {
	// Agent is the agent, Model the agent's own name for a model, Permission what
	// the agent can do without asking: edits, read, all or own.
	Agent, Model, Permission string
	// Env are names of variables that agents and checks get in addition to the allow-list,
	// separated by commas.
	Env string
	// Meter measures the agent's requests to its provider.
	Meter         bool
	MaxIterations int
	// Timeout bounds the agent's time in one iteration, IdleTimeout its time without
	// output, CheckTimeout a run of the completion command.
	Timeout, IdleTimeout, CheckTimeout time.Duration
	// ContextWindow is the size of the agent's context in tokens, if the agent does
	// not report it.
	ContextWindow int
	// GateTimeout is the time to wait for an answer at a gate; 0: no limit.
	GateTimeout time.Duration
	// Approver is what an answer to a gate needs: terminal, token, user or any.
	Approver string
	// Reinforcement is the minimum level of reminders. It rises from the iterations
	// StandardFrom and AggressiveFrom (0: never) and on a plateau of PlateauPercent.
	// Reminders is a folder with templates; it can be empty.
	Reinforcement                string
	StandardFrom, AggressiveFrom int
	PlateauPercent               float64
	Reminders                    string
	// Detection says which findings in changed files block, Rules which patterns are
	// detected. Rules exist in the file only.
	Detection string
	Rules     rules.Settings
	// Risks overrides the answers of the table to risky tool calls, by pattern, and adds
	// commands, whose keys begin with risk.CommandPrefix. It exists in the file only.
	// SnapshotRisky says before which of them a snapshot is taken.
	Risks         map[risk.Pattern]risk.Answer
	SnapshotRisky string
	// Enabled turns on the baseline, the detection of regressions and the recovery
	// from them, and the choice of the best iteration.
	Enabled              bool
	MaxRetries           int
	AutoEscalateCritical bool
	// BestOutput leaves the best iteration in the workspace instead of the last.
	BestOutput bool
	// Commit makes a commit for each iteration on a branch of the loop.
	Commit bool
	// Worktree makes loops work in a git worktree of their own.
	Worktree            bool
	QualityThreshold    int // in percent
	RequireVerification bool
	// Sealed says when the check is repeated in a clean copy. SealedSetup is a
	// command that prepares the copy.
	Sealed, SealedSetup string
	// Allow are globs of files that an agent may change although they decide what the check runs,
	// separated by commas.
	Allow string
	// LoopMetrics are the settings on metrics other than the tests.
	LoopMetrics
	// DetectionBudget and OverheadPercent are the limits of the time that is added to
	// an iteration; more causes a warning. 0: no limit.
	DetectionBudget time.Duration
	OverheadPercent float64
	// HeldOut is a second check that agents never see, HeldOutGap how many points more of the check than
	// of it can pass.
	HeldOut    string
	HeldOutGap float64
	// MutationPercent is the share of an iteration for the trials of new tests. 0: none.
	MutationPercent float64
	// Chains are agents with their fallbacks, by the type of task; see defaultChain.
	// They exist in the file only.
	Chains map[string][]string
	// NotifyCommand is a shell command and NotifyWebhook a URL that receive gates,
	// loops that need attention and their end; NotifyDesktop shows them on the
	// desktop.
	NotifyCommand, NotifyWebhook string
	NotifyDesktop                bool
	// Hooks are the user's handlers in the order of their calls. They exist in the
	// file only.
	Hooks hook.Settings
}

// loopSettings are the settings of the section loop.
func loopSettings(c *Config) []setting {
	return []setting{
		{key: "loop.agent", at: &c.Loop.Agent, value: "AGENT", acts: acts("starts this agent"),
			help: "agent of loops: claude, codex, opencode, gemini, acp:NAME, acp:COMMAND or exec:COMMAND"},
		{key: "loop.model", at: &c.Loop.Model, value: "MODEL",
			help: "model of the agent, by the agent's own name, if not its default"},
		{key: "loop.permission", at: &c.Loop.Permission, value: "LEVEL", def: "edits",
			check: oneOf("edits", "read", "all", "own"), acts: actsAs("lets agents do more without asking", "all", "own"),
			help: "what an agent can do without asking: edits, read, all or own"},
		{key: "loop.env", at: &c.Loop.Env, value: "NAMES", check: envNames,
			acts: acts("passes these variables to agents and checks"),
			help: "variables that agents and checks get in addition to the allow-list: names, and beginnings such as " +
				"AWS_*, separated by commas"},
		{key: "loop.meter", at: &c.Loop.Meter, def: "false",
			help: "measure tokens and context at the agent's requests to its provider; agents that are logged in to a " +
				"subscription may not work with it"},
		{key: "loop.max_iterations", at: &c.Loop.MaxIterations, value: "N", def: "10", check: between(1, 10_000),
			help: "maximum iterations of a loop"},
		{key: "loop.timeout", at: &c.Loop.Timeout, value: "TIME", def: "60m", check: positive,
			help: "timeout of the agent in one iteration"},
		{key: "loop.idle_timeout", at: &c.Loop.IdleTimeout, value: "TIME", def: "10m", check: positive,
			help: "timeout of an agent without output"},
		{key: "loop.context_window", at: &c.Loop.ContextWindow, value: "N", def: "200000",
			check: between(1_000, 100_000_000),
			help:  "size of the agent's context in tokens, if the agent does not report it"},
		{key: "loop.check_timeout", at: &c.Loop.CheckTimeout, value: "TIME", def: "30m", check: positive,
			help: "timeout of one run of the completion command"},
		{key: "loop.gate_timeout", at: &c.Loop.GateTimeout, value: "TIME", def: noLimit, none: true, check: positive,
			help: "time to wait for an answer at a gate before the loop is aborted, or none"},
		{key: "loop.approver", at: &c.Loop.Approver, value: "WHO", def: "terminal",
			check: oneOf("terminal", "token", "user", "any"),
			acts:  actsAs("lets every program that no agent started answer gates", "any"),
			help:  "what an answer to a gate needs: terminal (or the token), token, user (another user) or any"},
		{key: "loop.enabled", at: &c.Loop.Enabled, def: "true", acts: actsAs(effectWeakens, "false"),
			help: "compare iterations with the baseline, recover from regressions and leave the best iteration"},
		{key: "loop.reinforcement", at: &c.Loop.Reinforcement, value: "LEVEL", def: "MINIMAL",
			check: oneOf("OFF", "MINIMAL", "STANDARD", "AGGRESSIVE", "ADAPTIVE"),
			help:  "minimum level of reminders: OFF, MINIMAL, STANDARD, AGGRESSIVE, or ADAPTIVE (by risk)"},
		{key: "loop.standard_from", at: &c.Loop.StandardFrom, value: "N", def: "3", check: between(0, 10_000),
			help: "iteration from which reminders are at least STANDARD; 0: never"},
		{key: "loop.aggressive_from", at: &c.Loop.AggressiveFrom, value: "N", def: "5", check: between(0, 10_000),
			help: "iteration from which reminders are AGGRESSIVE; 0: never"},
		{key: "loop.plateau_percent", at: &c.Loop.PlateauPercent, value: "PERCENT", def: "5", check: atMost(1000),
			help: "change of quality below which reminders are AGGRESSIVE"},
		{key: "loop.reminders", at: &c.Loop.Reminders, value: "FOLDER",
			help: "folder with templates of reminders: minimal.md.tmpl, standard.md.tmpl, aggressive.md.tmpl, exit.md.tmpl"},
		{key: "loop.detection", at: &c.Loop.Detection, value: "MODE", def: "standard",
			check: oneOf("off", "minimal", "standard", "aggressive"), acts: actsAs(effectWeakens, "off", "minimal"),
			help: "which findings block: off, minimal (none), standard or aggressive (all)"},
		{key: "loop.snapshot_risky", at: &c.Loop.SnapshotRisky, value: "LEVEL", def: "all",
			check: oneOf("all", "high", "none"), acts: actsAs(effectWeakens, "high", "none"),
			help: "risky tool calls before which a snapshot is taken: all, high (and critical) or none"},
		{key: "loop.max_retries", at: &c.Loop.MaxRetries, value: "N", def: "3", check: between(0, 100),
			help: "retries of a failed turn, and recoveries from a regression without asking"},
		{key: "loop.auto_escalate_on_critical", at: &c.Loop.AutoEscalateCritical, def: "true",
			acts: actsAs(effectWeakens, "false"),
			help: "open a gate at once for a critical regression; a deleted test always opens one"},
		{key: "loop.best_output", at: &c.Loop.BestOutput, def: "true",
			help: "leave the best iteration in the workspace instead of the last"},
		{key: "loop.commit", at: &c.Loop.Commit, def: "false",
			help: "commit the files of each iteration to the git branch perdure/LOOP"},
		{key: "loop.worktree", at: &c.Loop.Worktree, def: "false",
			help: "work in a git worktree of the last commit instead of the folder, and commit as with loop.commit"},
		{key: "loop.quality_threshold", at: &c.Loop.QualityThreshold, value: "PERCENT", def: "70", check: between(0, 100),
			acts: func(text string) string { return weakensUnless(text, func(x float64) bool { return x >= 70 }) },
			help: "quality that the best iteration should reach"},
		{key: "loop.require_verification", at: &c.Loop.RequireVerification, def: "false",
			help: "leave only an iteration whose check passed"},
		{key: "loop.sealed", at: &c.Loop.Sealed, value: "WHEN", def: "completion",
			check: oneOf("off", "completion", "always"), acts: actsAs(effectWeakens, "off"),
			help: "when to repeat the check in a clean copy of the workspace: off, completion or always"},
		{key: "loop.sealed_setup", at: &c.Loop.SealedSetup, value: "COMMAND", acts: acts(effectRuns),
			help: "command that prepares the clean copy instead of copying the unchanged ignored files"},
		{key: "loop.allow", at: &c.Loop.Allow, value: "PATHS", check: allowedPaths, acts: acts(effectWeakens),
			help: "files that agents may change although they decide what the check runs: globs such as go.mod or vendor/**, " +
				"separated by commas"},
		{key: "loop.detection_latency_budget", at: &c.Loop.DetectionBudget, value: "TIME", def: "500ms", none: true,
			check: positive,
			help:  "time of detection beyond which a warning is given, or none"},
		{key: "loop.max_overhead_percent", at: &c.Loop.OverheadPercent, value: "PERCENT", def: "10", none: true,
			check: atMost(1000),
			help:  "time added to agent and check beyond which a warning is given, or none"},
		{key: "loop.mutation_percent", at: &c.Loop.MutationPercent, value: "PERCENT", def: "20", none: true,
			check: atMost(1000),
			acts:  func(text string) string { return weakensUnless(text, func(x float64) bool { return x >= 20 }) },
			help:  "time for mutations that new tests have to notice, of agent and check and at most 10s, or none"},
		{key: "loop.notify.command", at: &c.Loop.NotifyCommand, value: "COMMAND", acts: acts(effectRuns),
			help: "command that receives gates, loops that need attention and their end as JSON on standard input"},
		{key: "loop.notify.webhook", at: &c.Loop.NotifyWebhook, value: "URL",
			check: optional(httpURL), secret: withoutPassword, acts: acts("sends events there"),
			help: "send the same JSON to this URL by POST"},
		{key: "loop.notify.desktop", at: &c.Loop.NotifyDesktop, def: "false",
			help: "show these events on the desktop, or else ring the bell of the terminal that follows the loop"},
	}
}

// heldOutSettings are those of the check that agents do not see.
func heldOutSettings(c *Config) []setting {
	return []setting{
		{key: "loop.held_out", at: &c.Loop.HeldOut, value: "COMMAND", secret: hiddenFromAgents, acts: acts(effectRuns),
			help: "second check that the agent never sees: a command or a folder outside of the workspace; not in the file, " +
				"which agents can read"},
		{key: "loop.held_out_gap", at: &c.Loop.HeldOutGap, value: "POINTS", def: "20", check: atMost(100),
			acts: func(text string) string { return weakensUnless(text, func(x float64) bool { return x <= 20 }) },
			help: "how much more of the check than of the held-out check can pass, in percent of the tests"},
	}
}

// hiddenFromAgents hides a value that no agent may see.
func hiddenFromAgents(text string) string {
	if text == "" {
		return ""
	}
	return "(hidden)"
}

// EnvNames returns the names of the setting loop.env.
func (l *Loop) EnvNames() []string { return words(l.Env) }

// Allowed returns the globs of the setting loop.allow.
func (l *Loop) Allowed() []string { return words(l.Allow) }

// allowedPaths checks the globs of the setting loop.allow.
func allowedPaths(value any) string {
	globs := words(*value.(*string))
	if len(globs) > loopconfig.MaxAllow {
		return fmt.Sprintf("it has %d paths, the limit is %d", len(globs), loopconfig.MaxAllow)
	}
	for _, glob := range globs {
		if err := loopconfig.CheckAllowed(glob); err != nil {
			return err.Error()
		}
	}
	return ""
}

// envNames checks the names of the setting loop.env.
func envNames(value any) string {
	names := words(*value.(*string))
	if len(names) > loopconfig.MaxEnv {
		return fmt.Sprintf("it has %d names, the limit is %d", len(names), loopconfig.MaxEnv)
	}
	for _, name := range names {
		if err := environ.Check(name); err != nil {
			return err.Error()
		}
	}
	return ""
}

// risksKey is the setting of the answers to risky calls.
const risksKey = "loop.risks"

// riskMap parses the answers to risky calls.
func (p *fileParser) riskMap(n ast.Node) {
	var given map[string]any
	if err := yaml.NodeToValue(n, &given); err != nil {
		p.add(n, "%s is not a section of answers; write git_remove: gate", risksKey)
		return
	}
	risks := make(map[risk.Pattern]risk.Answer)
	for pattern, answer := range given {
		commands, isSection := answer.(map[string]any)
		if pattern == risk.CommandsKey && isSection {
			for command, answer := range commands {
				if command = strings.Join(strings.Fields(command), " "); command == "" {
					p.add(n, "%s.%s: a command is empty; write \"make db-wipe\": gate", risksKey, pattern)
				}
				risks[risk.Pattern(risk.CommandPrefix+command)] = p.riskAnswer(n, pattern+"."+command, answer)
			}
			continue
		}
		if !slices.ContainsFunc(risk.Table(), func(r risk.Rule) bool { return string(r.Pattern) == pattern }) {
			p.add(n, "%s: unknown pattern %q; `perdure loop risks` lists the patterns, commands go under %s.%s", risksKey,
				pattern, risksKey, risk.CommandsKey)
		}
		risks[risk.Pattern(pattern)] = p.riskAnswer(n, pattern, answer)
	}
	p.risks = risks
}

// riskAnswer parses the answer to a pattern or a command.
func (p *fileParser) riskAnswer(n ast.Node, key string, given any) risk.Answer {
	answer := risk.Answer(fmt.Sprint(given))
	if !slices.Contains([]risk.Answer{risk.Allow, risk.Warn, risk.Gate, risk.Block}, answer) {
		p.add(n, "%s.%s: %q is not one of allow, warn, gate, block", risksKey, key, answer)
	}
	return answer
}

// chainsKey is the setting of the chains of agents.
const chainsKey = "loop.chains"

// defaultChain is the type of tasks without a type.
const defaultChain = "default"

// maxChain bounds the agents of a chain.
const maxChain = 20

// chainMap parses the chains of agents.
func (p *fileParser) chainMap(n ast.Node) {
	var chains map[string][]string
	if err := yaml.NodeToValue(n, &chains); err != nil {
		p.add(n, "%s is not a section of lists of agents; write tests: [codex, claude]", chainsKey)
		return
	}
	for kind, agents := range chains {
		if kind == "" || len(agents) == 0 || len(agents) > maxChain || slices.Contains(agents, "") {
			p.add(n, "%s.%s: a chain has 1 to %d agents", chainsKey, kind, maxChain)
		}
	}
	p.chains = chains
}

// Chain returns the agents of a type of task, in the order of their use. The empty
// type is defaultChain, for which the result can be nil. The error for another type
// without agents names the known types.
func (l *Loop) Chain(kind string) ([]string, error) {
	chain := l.Chains[cmp.Or(kind, defaultChain)]
	switch {
	case len(chain) > 0 || kind == "" && l.Agent == "":
		return chain, nil
	case kind == "":
		return []string{l.Agent}, nil
	}
	hint := "set " + chainsKey + " in the settings file"
	if len(l.Chains) > 0 {
		hint = "the types in " + chainsKey + " are " + strings.Join(sortedKeys(l.Chains), ", ")
	}
	return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "choose agents",
		Msg: fmt.Sprintf("no agents for tasks of type %q", kind), Hint: hint}
}

// hookEntry is a handler in the file.
type hookEntry struct {
	Hook    string `yaml:"hook"`
	Name    string `yaml:"name"`
	Command string `yaml:"command"`
	URL     string `yaml:"url"`
	Timeout string `yaml:"timeout"`
	OnFault string `yaml:"on_fault"`
}

// hookList parses the list of handlers.
func (p *fileParser) hookList(n ast.Node) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		p.add(n, "%s is not a list; write - hook: NAME", hook.SettingsKey)
		return
	}
	var entries []hookEntry
	if err := yaml.NodeToValue(n, &entries, yaml.DisallowUnknownField()); err != nil {
		p.add(n, "%s: %s", hook.SettingsKey, clip.FirstLine(err.Error()))
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
				p.add(n, "%s[%d].timeout: %q is not a time such as 5s, or %s", hook.SettingsKey, i, e.Timeout, noLimit)
			}
			s.Timeout = d
		}
		p.hooks = append(p.hooks, s)
	}
	if err := p.hooks.Validate(); err != nil {
		p.add(n, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// hookTemplate is the part of a new file on handlers and chains.
const hookTemplate = `
# Commands and URLs that loops call at their hooks; perdure schema hook-message and
# hook-reply print the schemas of message and reply:
# loop:
#   hooks:
#     - hook: post_iteration
#       command: ./scripts/after-iteration
#       timeout: 10s
#     - hook: gate_opened
#       url: https://example.com/notify
#       on_fault: continue
# Agents and their fallbacks, by the type of task (loop run --task-type):
#   chains:
#     default: [claude, codex]
#     tests: [codex, claude]
`
