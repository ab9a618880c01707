package loop

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// tuning holds the flags that loop run and loop resume share.
type tuning struct {
	config.Config
	selection string
}

// register adds the flags. Those without a group here are the command's own.
func (t *tuning) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&t.Agent, "agent", "", "`AGENT` agent; default: the setting loop.agent")
	fl.StringVar(&t.Model, "model", "", "`MODEL` model of the agent, by its own name; default: the agent's")
	fl.StringVar((*string)(&t.Permission), "permission", string(agent.PermissionEdits), "`LEVEL` what agents can do "+
		"without asking: edits (and run the parts of the check), read, all or own (the agent's settings)")
	fl.StringSliceVar(&t.Fallback, "fallback", nil,
		"`AGENTS` agents that continue if the agent is not available, in order")
	fl.StringSliceVar(&t.Env, "env", nil, "`NAMES` variables that agents and checks get in addition to the allow-list: "+
		"NAME or NAME*")
	fl.StringArrayVar(&t.Allow, "allow", nil, "`PATH` file that the agent may change although it decides what the check "+
		"runs: a glob; repeatable")
	fl.BoolVar(&t.Meter, "meter", false, "measure tokens and context at the agent's requests to its provider; needs an "+
		"API key, a subscription login may not work with it")
	t.registerLimits(fl)
	t.registerMetrics(fl)
	t.registerChoice(fl)
	fl.StringVar((*string)(&t.Reinforcement), "reinforcement", string(hook.LevelMinimal),
		"`LEVEL` minimum level of reminders: OFF, MINIMAL, STANDARD, AGGRESSIVE or ADAPTIVE")
	fl.StringVar((*string)(&t.Detection), "detection", string(config.DetectionStandard),
		"`MODE` which findings block: off, minimal, standard or aggressive")
	fl.BoolVar(&t.Plain, "plain", false, "no comparison with the baseline, no gates, no best iteration")
	fl.BoolVar(&t.RetryCritical, "retry-critical", false, "recover from critical regressions before asking")
	fl.BoolVar(&t.EvenIfGreen, "even-if-green", false, "start the agent also if the check passes already")
	fl.BoolVar(&t.Unattended, "unattended", false, "restore deleted or skipped tests the first time instead of asking, "+
		"and stop at a gate with the best iteration restored; exit status 6")
}

func (t *tuning) registerLimits(fl *pflag.FlagSet) {
	fl.IntVar(&t.MaxIterations, "max-iterations", config.DefaultMaxIterations, "`N` maximum iterations")
	fl.Float64Var(&t.BudgetUSD, "budget-usd", 0, "`USD` maximum cost in US dollars")
	fl.Int64Var(&t.BudgetTokens, "budget-tokens", 0, "`N` maximum tokens")
	fl.BoolVar(&t.BudgetUnmetered, "budget-unmetered", false, "count only what agents report, without the meter that "+
		"budgets use")
	fl.DurationVar(&t.Timeout, "timeout", config.DefaultTimeout, "`TIME` timeout of the agent in one iteration; -1s: none")
	fl.DurationVar(&t.IdleTimeout, "idle-timeout", config.DefaultIdleTimeout,
		"`TIME` timeout of an agent without output; -1s: none")
	fl.DurationVar(&t.CheckTimeout, "check-timeout", config.DefaultCheckTimeout,
		"`TIME` timeout of one run of the completion command; -1s: none")
	fl.DurationVar(&t.GateTimeout, "gate-timeout", 0, "`TIME` time to wait for an answer at a gate before aborting, with "+
		"--unattended too")
	fl.IntVar(&t.MaxRetries, "max-retries", config.DefaultMaxRetries,
		"`N` retries of a failed turn, and recoveries from a regression without asking")
}

func (t *tuning) registerMetrics(fl *pflag.FlagSet) {
	fl.StringVar(&t.Coverage, "coverage", config.Auto, "`COMMAND` coverage by line: auto (measured by the check if "+
		"possible), off, or a command that writes it to $PERDURE_COVERAGE")
	fl.StringVar(&t.Types, "types", config.Auto, "`COMMAND` type errors: auto (the project's own checkers), off, or a "+
		"command that prints them")
	fl.StringVar(&t.Lint, "lint", config.Auto, "`COMMAND` messages of linters: auto, off, or a command that prints them")
	fl.Var(metricFlag{&t.Metrics}, "metric", "`NAME=COMMAND` metric of your own; NAME:up=COMMAND and NAME:down=COMMAND "+
		"say which direction is better; repeatable")
	fl.Float64Var(&t.CoverageThreshold, "coverage-threshold", config.DefaultCoverageThreshold,
		"`PERCENT` share of the remaining covered lines that can lose their coverage; -1: all")
	fl.Float64Var(&t.SensitiveThreshold, "sensitive-coverage-threshold", config.DefaultSensitiveThreshold,
		"`PERCENT` the same share for sensitive paths; -1: all")
	fl.StringSliceVar(&t.SensitivePaths, "sensitive-paths", nil,
		"`WORDS` sensitive paths: words and patterns; default: auth, security, payment …")
}

func (t *tuning) registerChoice(fl *pflag.FlagSet) {
	fl.StringVar(&t.selection, "select", string(config.HighestQualityVerified),
		"`RULE` iteration to leave: highest_quality_verified, highest_quality or most_recent_above_threshold")
	fl.IntVar(&t.QualityThreshold, "quality-threshold", config.DefaultQualityThreshold,
		"`PERCENT` quality that the best iteration should reach")
	fl.BoolVar(&t.RequireVerification, "require-verification", false, "leave only an iteration whose check passed")
	fl.BoolVar(&t.Commit, "commit", false, "commit the files of each iteration to the git branch perdure/LOOP")
	fl.BoolVar(&t.KeepLast, "keep-last", false, "leave the files of the last iteration")
	fl.StringVar((*string)(&t.Sealed), "sealed", string(config.SealCompletion), "`WHEN` when to repeat the check in a "+
		"clean copy of the workspace: off, completion or always")
	fl.StringVar(&t.SealedSetup, "sealed-setup", "",
		"`COMMAND` command that prepares the clean copy; default: unchanged ignored files are copied")
	fl.StringVar(&t.HeldOut, "held-out", "", "`COMMAND` second check that the agent never sees, run in a copy after each "+
		"iteration: a command or a folder of tests outside of the workspace")
	fl.Float64Var(&t.HeldOutGap, "held-out-gap", config.DefaultHeldOutGap, "`POINTS` how much more of the check than of "+
		"the held-out check can pass in a loop that completes, in percent of the tests")
}

// groups returns the groups of a command's flags. Task holds the command's own flags.
func groups(task string) []env.FlagGroup {
	return []env.FlagGroup{
		{Title: "Task", Flags: task},
		{Title: "Limits", Flags: "max-iterations budget-usd budget-tokens budget-unmetered timeout idle-timeout " +
			"check-timeout gate-timeout max-retries"},
		{Title: "Supervision", Flags: "permission env meter unattended even-if-green approver retry-critical detection " +
			"reinforcement plain"},
		{Title: "Best iteration", Flags: "commit keep-last require-verification quality-threshold select"},
		{Title: "Clean-copy check", All: true, Flags: "sealed sealed-setup allow held-out held-out-gap"},
		{Title: "Metrics", All: true, Flags: "metric coverage types lint scorer coverage-threshold " +
			"sensitive-coverage-threshold sensitive-paths"},
	}
}

// metricFlag is a flag that collects metrics.
type metricFlag struct{ list *[]config.Metric }

// Set adds a metric.
func (f metricFlag) Set(text string) error {
	m, err := config.ParseMetric(text)
	*f.list = append(*f.list, m)
	return err
}

// String returns the default for the help.
func (f metricFlag) String() string { return "" }

// Type returns the value's name for the help.
func (f metricFlag) Type() string { return "NAME=COMMAND" }

// given returns the fields of the given flags.
func (t *tuning) given(cmd *cobra.Command) []string {
	t.Selection = config.Selection(t.selection)
	given := []string{}
	for _, field := range config.FieldNames() {
		if f := cmd.Flags().Lookup(flagOf(field)); f != nil && f.Changed {
			given = append(given, field)
		}
	}
	return given
}

// flagOf returns the flag of a field of the configuration.
func flagOf(field string) string {
	switch field {
	case "selection":
		return "select"
	case "metrics":
		return "metric"
	}
	return strings.ReplaceAll(field, "_", "-")
}

// settable returns the fields that settings exist for.
func settable(set *config.Config) []string {
	names := []string{"max_iterations", "timeout", "idle_timeout", "check_timeout", "max_retries",
		"quality_threshold", "gate_timeout", "approver", "plain", "keep_last", "commit", "sealed",
		"sealed_setup", "allow", "require_verification", "retry_critical", "env", "permission", "meter", "detection_budget",
		"overhead_percent", "mutation_percent", "detection", "detection_rules", "waivers", "risk_answers", "snapshot_risky",
		"reinforcement", "standard_from", "aggressive_from", "plateau_percent", "coverage", "types", "lint",
		"metrics", "coverage_threshold", "sensitive_coverage_threshold", "sensitive_paths", "held_out_gap"}
	if set.HeldOut != "" {
		names = append(names, "held_out")
	}
	if set.Agent != "" {
		names = append(names, "agent", "fallback")
	}
	if set.Model != "" {
		names = append(names, "model")
	}
	return names
}

// literal replaces 0 by the value for none, because 0 means the default in a
// configuration, but none in flags and settings.
func literal(c *config.Config) {
	for _, d := range []*time.Duration{&c.Timeout, &c.IdleTimeout, &c.CheckTimeout, &c.DetectionBudget} {
		if *d == 0 {
			*d = -1
		}
	}
	for _, n := range []*int{&c.MaxRetries, &c.QualityThreshold} {
		if *n == 0 {
			*n = -1
		}
	}
	for _, x := range []*float64{&c.OverheadPercent, &c.MutationPercent} {
		if *x == 0 {
			*x = -1
		}
	}
	const none = 1e-6 // percent
	for _, x := range []*float64{&c.CoverageThreshold, &c.SensitiveThreshold, &c.HeldOutGap} {
		if *x == 0 {
			*x = none // nothing can be lost
		}
	}
}

// fill sets the fields without a flag from the settings.
func (t *tuning) fill(cmd *cobra.Command, set *config.Config) {
	t.Given = t.given(cmd)
	if slices.Contains(t.Given, "agent") { // its own fallbacks, or none
		t.Given = append(t.Given, "fallback")
		if set.Agent != "" && set.Agent != t.Agent {
			t.Given = append(t.Given, "model") // that of the settings is one of the other agent
		}
	}
	open := slices.DeleteFunc(settable(set), func(field string) bool { return slices.Contains(t.Given, field) })
	t.Take(set, open...)
	if t.TaskType != "" { // the type has chosen them
		t.Given = append(t.Given, "agent", "fallback")
	}
	literal(&t.Config)
}

// withFlags returns an error of the configuration with the given flags instead of the
// names of their fields.
func (t *tuning) withFlags(err error) error {
	e, ok := errors.AsType[*perdure.Error](err)
	if !ok {
		return err
	}
	with := *e
	msg := "; " + e.Msg
	for _, field := range t.Given {
		msg = strings.ReplaceAll(msg, "; "+field+" is ", "; --"+flagOf(field)+" is ")
	}
	with.Msg = strings.TrimPrefix(msg, "; ")
	return &with
}
