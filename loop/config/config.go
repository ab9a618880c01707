// Package config says what a loop is to do: the configuration of its tree, its
// defaults and limits, and how it may change while the loop runs.
//
// Experimental: it may change until 1.0.
package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/loop/hook"
)

// Defaults of [Config].
const (
	DefaultMaxIterations    = 10
	DefaultTimeout          = 60 * time.Minute
	DefaultIdleTimeout      = 10 * time.Minute
	DefaultCheckTimeout     = 30 * time.Minute
	DefaultMaxRetries       = 3
	DefaultQualityThreshold = 70
	DefaultStuckAfter       = 3
	DefaultMutationPercent  = 20
	DefaultHeldOutGap       = 20
)

// Limits of [Config].
const (
	MaxTaskBytes     = 256 << 10
	MaxIterationsCap = 10_000
	MaxCommandBytes  = 64 << 10
	MaxEnv           = 100
	MaxAllow         = 100
	MaxMutationTime  = 10 * time.Second
	maxBudgetUSD     = 1_000_000
	maxModelBytes    = 200
)

// Selection says which iteration a loop leaves in the workspace.
type Selection string

// The ways to choose.
const (
	// HighestQualityVerified prefers iterations whose check passed.
	HighestQualityVerified Selection = "highest_quality_verified"
	HighestQuality         Selection = "highest_quality"
	// MostRecentAboveThreshold is the latest whose quality reaches the threshold.
	MostRecentAboveThreshold Selection = "most_recent_above_threshold"
)

// Sealing says when a loop is checked in a clean copy of the workspace.
type Sealing string

// When that is done.
const (
	SealOff Sealing = "off"
	// SealCompletion is before a loop is called completed, and of the iteration that
	// it leaves.
	SealCompletion Sealing = "completion"
	SealAlways     Sealing = "always" // after each iteration
)

// Config is what a loop is to do. It is the configuration of its tree.
type Config struct {
	// Task is what the agent is to do. Required.
	Task string `json:"task"`
	// Until is the completion command, for the shell, in the workspace. The loop
	// is done when it succeeds and nothing got worse. Required.
	Until string `json:"until"`
	// Workspace is the absolute path of the folder. Required.
	Workspace string `json:"workspace"`
	// Agent is a preset or a command that the resolver accepts; Fallback
	// are the fallback agents, in order. Agent is required.
	Agent    string   `json:"agent"`
	Fallback []string `json:"fallback,omitempty"`
	// Model is Agent's own name for a model; empty is its default. Fallbacks use their defaults.
	Model string `json:"model,omitempty"`
	// Permission is what the agents may do without asking; empty is the default of the
	// resolver.
	Permission agent.Permission `json:"permission,omitempty"`
	// TaskType is what kind of task it is, as the settings call it that chose the
	// agents; may be empty.
	TaskType string `json:"task_type,omitempty"`
	// Env are names of variables of the process that runs the loop, NAME* for all that begin
	// so. Agents and checks get them in addition to the variables of the allow-list. At most
	// MaxEnv.
	Env []string `json:"env,omitempty"`
	// Meter passes the agent's requests to its provider through a meter on this machine,
	// which reports their tokens and the context while the agent works.
	Meter bool `json:"meter,omitempty"`
	// MaxIterations ends the loop. 0: DefaultMaxIterations; at most
	// MaxIterationsCap.
	MaxIterations int `json:"max_iterations,omitempty"`
	// Timeout bounds the agent's time in one iteration, IdleTimeout how long it may
	// be silent, CheckTimeout one run of the completion command. In nanoseconds. 0:
	// the defaults; negative: no limit.
	Timeout      time.Duration `json:"timeout,omitempty"`
	IdleTimeout  time.Duration `json:"idle_timeout,omitempty"`
	CheckTimeout time.Duration `json:"check_timeout,omitempty"`
	// MaxRetries is how often a turn of the agent is repeated that failed by its
	// own fault, and how often a regression is recovered from without asking. 0:
	// DefaultMaxRetries; negative: never.
	MaxRetries int `json:"max_retries,omitempty"`
	// Measures are taken at the baseline and after each iteration.
	Measures
	// Scorer, when set, is a command that prints the quality of the workspace: a
	// number from 0 to 100. It replaces the score computed from facts.
	Scorer string `json:"scorer,omitempty"`
	// When the check is repeated in a clean copy of the workspace: empty is
	// SealCompletion. SealedSetup, when set, is a command that creates in a copy what the
	// check needs in addition to tracked files; no ignored file is copied then.
	Sealed      Sealing `json:"sealed,omitempty"`
	SealedSetup string  `json:"sealed_setup,omitempty"`
	// HeldOut is a second check that the agent never sees: a folder or a command outside of the
	// workspace. A loop that was launched has the name of the check here. HeldOutGap is how many
	// points the share of passing tests of Until may be above that of HeldOut in a loop that
	// completes. 0: DefaultHeldOutGap.
	HeldOut    string  `json:"held_out,omitempty"`
	HeldOutGap float64 `json:"held_out_gap,omitempty"`
	// QualityThreshold is what a best iteration should reach, in percent. 0:
	// DefaultQualityThreshold; negative: none.
	QualityThreshold int `json:"quality_threshold,omitempty"`
	// Selection: empty is HighestQualityVerified.
	Selection Selection `json:"selection,omitempty"`
	// KeepLast leaves the files as the last iteration left them.
	KeepLast bool `json:"keep_last,omitempty"`
	// Unattended restores deleted or skipped tests instead of asking, once. At a gate the loop leaves
	// its best iteration and is not run until the gate is answered, unless GateTimeout asks
	// to wait.
	Unattended bool `json:"unattended,omitempty"`
	// EvenIfGreen starts the first iteration also if the check passes before it. Without it
	// the loop asks first.
	EvenIfGreen bool `json:"even_if_green,omitempty"`
	// Commit makes a commit for each iteration on the branch perdure/LOOP. The workspace must
	// be in a git repository.
	Commit bool `json:"commit,omitempty"`
	// Worktree makes the loop work in a git worktree with the files of the last commit,
	// instead of in Workspace, and sets Commit. A loop that was launched has the folder in it as
	// Workspace, and that of the request as WorktreeOf, which requests leave empty.
	Worktree   bool   `json:"worktree,omitempty"`
	WorktreeOf string `json:"worktree_of,omitempty"`
	// BudgetUSD and BudgetTokens limit the whole loop, as far as its agents report
	// their usage. 0: no limit.
	BudgetUSD    float64 `json:"budget_usd,omitempty"`
	BudgetTokens int64   `json:"budget_tokens,omitempty"`
	// BudgetUnmetered accepts budgets that count only what the agents report. Without it a meter
	// counts all requests, and a loop whose requests it cannot count is refused.
	BudgetUnmetered bool `json:"budget_unmetered,omitempty"`
	// Detection says which signs of regressions in the changed files act: empty is
	// DetectionStandard.
	Detection Detection `json:"detection,omitempty"`
	// Allow are globs of files that the agent may change although they decide what the check
	// runs. At most MaxAllow.
	Allow []string `json:"allow,omitempty"`
	// Rules configure the patterns and their actions; Waivers suppress findings.
	// Both override .perdure-check.yaml of the trusted snapshot.
	Rules   DetectionRules `json:"detection_rules,omitzero"`
	Waivers []Waiver       `json:"waivers,omitempty"`
	// Reinforcement is the level of reminders to begin with; StandardFrom,
	// AggressiveFrom and PlateauPercent when it rises. See [reinforce.Config].
	Reinforcement  hook.Level `json:"reinforcement,omitempty"`
	StandardFrom   int        `json:"standard_from,omitempty"`
	AggressiveFrom int        `json:"aggressive_from,omitempty"`
	PlateauPercent float64    `json:"plateau_percent,omitempty"`
	// RiskAnswers are answers to risky calls of tools other than those of the table,
	// by pattern. SnapshotRisky says before which of them a snapshot is taken; empty
	// is before all.
	RiskAnswers   map[string]RiskAnswer `json:"risk_answers,omitempty"`
	SnapshotRisky SnapshotRisky         `json:"snapshot_risky,omitempty"`
	// Planned is how many iterations were thought to be needed: beyond twice that a
	// person is asked, once. 0: unknown.
	Planned int `json:"planned_iterations,omitempty"`
	// GateTimeout is how long a person is waited for, in nanoseconds; a gate that
	// is not answered in time aborts the loop. 0: no limit.
	GateTimeout time.Duration `json:"gate_timeout,omitempty"`
	// Approver is what an answer to a gate needs. Empty: [perdure.ApproverTerminal].
	Approver perdure.Approver `json:"approver,omitempty"`
	// Plain turns the supervision off: nothing is compared with the baseline,
	// recovered from or asked about, and the files stay as the last iteration left
	// them. Snapshots, and going on after a crash, stay.
	Plain bool `json:"plain,omitempty"`
	// RequireVerification leaves only an iteration whose check passed.
	RequireVerification bool `json:"require_verification,omitempty"`
	// RetryCritical recovers from a critical regression as from others; otherwise a
	// person is asked at once. Deleted tests go to a person either way.
	RetryCritical bool `json:"retry_critical,omitempty"`
	// DetectionBudget is how long regression detection may take in an iteration,
	// in nanoseconds, and OverheadPercent how much time may be added to that of agent
	// and check; more is a warning. 0: the defaults of [hook.Config]; negative: any.
	DetectionBudget time.Duration `json:"detection_budget,omitempty"`
	OverheadPercent float64       `json:"overhead_percent,omitempty"`
	// MutationPercent is how much of the time of agent and check the trials of new tests may take,
	// and at most [MaxMutationTime]. 0: [DefaultMutationPercent]; negative: new tests are not tried.
	MutationPercent float64 `json:"mutation_percent,omitempty"`
	// Given names the fields that were given explicitly, as in JSON: settings do
	// not change them when the loop is resumed. Nil: all of them were.
	Given []string `json:"given,omitzero"`
}

// Parse reads a configuration. The error names everything that is wrong.
func Parse(raw json.RawMessage) (Config, error) {
	var c Config
	if err := jsontree.Decode(raw, &c, jsontree.Options{}); err != nil {
		bad := &perdure.Error{Code: perdure.CodeInvalid, Op: "configure loop", Msg: err.Error()}
		if e, ok := errors.AsType[*jsontree.Error](err); ok {
			bad.Hint = e.Hint
		}
		return c, bad
	}
	c = c.WithDefaults()
	if err := c.validate(); err != nil {
		return c, &perdure.Error{Code: perdure.CodeInvalid, Op: "configure loop",
			Msg: strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return c, nil
}

// WithDefaults is the configuration with the defaults where it says nothing.
func (c Config) WithDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.CheckTimeout = cmp.Or(c.CheckTimeout, DefaultCheckTimeout)
	c.DetectionBudget = cmp.Or(c.DetectionBudget, hook.DefaultLatencyBudget)
	c.MaxIterations = cmp.Or(c.MaxIterations, DefaultMaxIterations)
	c.MaxRetries = cmp.Or(c.MaxRetries, DefaultMaxRetries)
	c.QualityThreshold = cmp.Or(c.QualityThreshold, DefaultQualityThreshold)
	c.Selection = cmp.Or(c.Selection, HighestQualityVerified)
	c.Sealed = cmp.Or(c.Sealed, SealCompletion)
	c.Approver = cmp.Or(c.Approver, perdure.ApproverTerminal)
	c.SetDefaults()
	c.OverheadPercent = cmp.Or(c.OverheadPercent, hook.DefaultOverheadPercent)
	c.HeldOutGap = cmp.Or(c.HeldOutGap, DefaultHeldOutGap)
	c.MutationPercent = cmp.Or(c.MutationPercent, DefaultMutationPercent)
	return c
}

// problems collects what is wrong with a configuration.
type problems []error

// check adds a problem unless ok.
func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (c *Config) validate() error {
	p := problems(c.Validate())
	for _, f := range []struct {
		name, value string
		limit       int
	}{{"task", c.Task, MaxTaskBytes}, {"until", c.Until, MaxCommandBytes}, {"agent", c.Agent, MaxCommandBytes},
		{"workspace", c.Workspace, MaxCommandBytes}} {
		p.check(strings.TrimSpace(f.value) != "", "%s is missing", f.name)
		p.check(len(f.value) <= f.limit, "%s has %d bytes, the limit is %d", f.name, len(f.value), f.limit)
		p.check(!strings.ContainsRune(f.value, 0), "%s contains a NUL byte", f.name)
	}
	p.check(len(c.Model) <= maxModelBytes && !strings.ContainsFunc(c.Model, unicode.IsControl) &&
		!strings.HasPrefix(c.Model, "-"), "model is %.40q, must be the agent's name of a model", c.Model)
	p.check(c.Model == "" || !strings.HasPrefix(c.Agent, "exec:"), "model is %q, but the agent is a program, which "+
		"does not receive it: use an argument of exec:", c.Model)
	p.check(slices.Contains([]agent.Permission{"", agent.PermissionEdits, agent.PermissionRead, agent.PermissionAll,
		agent.PermissionOwn}, c.Permission), "permission is %q, must be one of edits, read, all, own", c.Permission)
	p.check(len(c.Env) <= MaxEnv, "env has %d names, the limit is %d", len(c.Env), MaxEnv)
	for _, name := range c.Env {
		err := environ.Check(name)
		p.check(err == nil, "env: %v", err)
	}
	p.check(len(c.Allow) <= MaxAllow, "allow has %d paths, the limit is %d", len(c.Allow), MaxAllow)
	for _, glob := range c.Allow {
		err := CheckAllowed(glob)
		p.check(err == nil, "allow: %v", err)
	}
	p.check(c.WorktreeOf == "" || c.Worktree && filepath.IsAbs(c.WorktreeOf), "worktree_of %q is not the folder of a "+
		"loop with a worktree", c.WorktreeOf)
	p.check(c.Workspace == "" || filepath.IsAbs(c.Workspace), "workspace %q is not an absolute path", c.Workspace)
	p.check(c.MaxIterations >= 1 && c.MaxIterations <= MaxIterationsCap, "max_iterations is %d, must be 1 to %d",
		c.MaxIterations, MaxIterationsCap)
	p.check(slices.Contains([]hook.Level{"", hook.LevelOff, hook.LevelMinimal, hook.LevelStandard, hook.LevelAggressive,
		hook.LevelAdaptive}, c.Reinforcement), "reinforcement is %q, must be one of OFF, MINIMAL, STANDARD, AGGRESSIVE, "+
		"ADAPTIVE", c.Reinforcement)
	p.check(c.PlateauPercent >= 0 && c.PlateauPercent <= 100, "plateau_percent is %v, must be 0 (the default) to 100",
		c.PlateauPercent)
	p.check(slices.Contains([]perdure.Approver{perdure.ApproverTerminal, perdure.ApproverToken, perdure.ApproverUser,
		perdure.ApproverAny}, c.Approver), "approver is %q, must be one of terminal, token, user, any", c.Approver)
	p.check(slices.Contains([]Sealing{SealOff, SealCompletion, SealAlways}, c.Sealed),
		"sealed is %q, must be one of off, completion, always", c.Sealed)
	p.check(len(c.SealedSetup) <= MaxCommandBytes, "sealed_setup has %d bytes, the limit is %d", len(c.SealedSetup),
		MaxCommandBytes)
	p.check(!strings.ContainsRune(c.SealedSetup, 0), "sealed_setup contains a NUL byte")
	p.check(len(c.HeldOut) <= MaxCommandBytes && !strings.ContainsRune(c.HeldOut, 0),
		"held_out contains a NUL byte or is longer than %d bytes", MaxCommandBytes)
	p.check(c.HeldOutGap >= 0 && c.HeldOutGap <= 100, "held_out_gap is %v, must be 0 to 100 points", c.HeldOutGap)
	p.check(slices.Contains([]Detection{"", DetectionOff, DetectionMinimal, DetectionStandard, DetectionAggressive},
		c.Detection), "detection is %q, must be one of off, minimal, standard, aggressive", c.Detection)
	c.checkRisks(&p)
	err := c.Rules.check()
	p.check(err == nil, "detection_rules: %w", err)
	for i := range c.Waivers {
		err := c.Waivers[i].check()
		p.check(err == nil, "waivers[%d]: %w", i, err)
	}
	p.check(c.Planned >= 0 && c.Planned <= MaxIterationsCap, "planned_iterations is %d, must be 0 (unknown) to %d",
		c.Planned, MaxIterationsCap)
	p.check(c.QualityThreshold <= 100, "quality_threshold is %d, must be at most 100", c.QualityThreshold)
	p.check(c.BudgetUSD >= 0 && c.BudgetUSD <= maxBudgetUSD && c.BudgetTokens >= 0,
		"the budgets are %v USD and %d tokens, must be at least 0 (no limit) and at most %d USD",
		c.BudgetUSD, c.BudgetTokens, maxBudgetUSD)
	p.check(!math.IsNaN(c.OverheadPercent), "overhead_percent is NaN, must be a number")
	p.check(!math.IsNaN(c.MutationPercent), "mutation_percent is NaN, must be a number")
	p.check(slices.Contains([]Selection{HighestQualityVerified, HighestQuality, MostRecentAboveThreshold}, c.Selection),
		"selection is %q, must be one of %s, %s, %s", c.Selection, HighestQualityVerified, HighestQuality,
		MostRecentAboveThreshold)
	return errors.Join(p...)
}

// CheckAllowed returns an error if a path of Allow is none: a glob relative to the workspace, with
// slashes.
func CheckAllowed(glob string) error {
	switch {
	case !doublestar.ValidatePattern(glob) || glob == "":
		return fmt.Errorf("%.80q is not a glob, such as go.mod or vendor/**", glob)
	case path.IsAbs(glob) || glob == ".." || strings.HasPrefix(glob, "../") || strings.HasPrefix(glob, "./"):
		return fmt.Errorf("%.80q is not relative to the workspace; write it without ./ or / at its beginning", glob)
	}
	return nil
}

// Agents returns Agent and Fallback, in the order in which they are used.
func (c *Config) Agents() []string { return append([]string{c.Agent}, c.Fallback...) }

// AgentAt returns the agent at index i of Agents; the last one for an i beyond it.
func (c *Config) AgentAt(i int) string {
	all := c.Agents()
	return all[max(0, min(i, len(all)-1))]
}

// EndsAtGates reports whether the loop does not wait at a gate: it leaves its best
// iteration, and continues when the gate is answered and the loop is resumed.
func (c *Config) EndsAtGates() bool { return c.Unattended && c.GateTimeout == 0 }

// MustCount reports whether all requests of the agents must be counted.
func (c *Config) MustCount() bool {
	return (c.BudgetUSD > 0 || c.BudgetTokens > 0) && !c.BudgetUnmetered
}

// Limits returns the budgets in the units of the store.
func (c *Config) Limits() perdure.Limits {
	const microsPerDollar = 1_000_000
	return perdure.Limits{Tokens: c.BudgetTokens, CostMicros: int64(c.BudgetUSD * microsPerDollar)}
}
