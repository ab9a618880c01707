package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// tuning are the flags of what may also be changed when a loop is resumed.
type tuning struct {
	config.Config
	selection string
}

// register adds the flags.
func (t *tuning) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&t.Agent, "agent", "", "who works (default: the setting loop.agent)")
	fl.StringSliceVar(&t.Fallback, "fallback", nil, "who stands in, in this order")
	fl.IntVar(&t.MaxIterations, "max-iterations", config.DefaultMaxIterations, "how many iterations there are at most")
	fl.DurationVar(&t.Timeout, "timeout", config.DefaultTimeout, "the agent's time in one iteration; -1s: no limit")
	fl.DurationVar(&t.IdleTimeout, "idle-timeout", config.DefaultIdleTimeout,
		"how long the agent may be silent; -1s: no limit")
	fl.DurationVar(&t.CheckTimeout, "check-timeout", config.DefaultCheckTimeout,
		"the time of one run of the completion command; -1s: no limit")
	fl.IntVar(&t.MaxRetries, "max-retries", config.DefaultMaxRetries,
		"how often a turn that failed is repeated, and a regression is recovered from without asking")
	fl.StringVar(&t.Coverage, "coverage", config.Auto, "coverage by line: auto (in the run of the check, where that is "+
		"possible), off, or a `COMMAND` that writes it to $PERDURE_COVERAGE")
	fl.StringVar(&t.Types, "types", config.Auto, "type errors: auto (what the project is configured for), off, or a "+
		"`COMMAND` that prints them")
	fl.StringVar(&t.Lint, "lint", config.Auto, "what linters say: auto, off, or a `COMMAND` that prints it")
	fl.Var(metricFlag{&t.Metrics}, "metric", "a number of your own: `NAME=COMMAND`, or NAME:up=COMMAND, "+
		"NAME:down=COMMAND to say what is better; may be repeated")
	fl.Float64Var(&t.CoverageThreshold, "coverage-threshold", config.DefaultCoverageThreshold,
		"how many `percent` of the covered lines that are still there may lose their coverage; -1: any")
	fl.Float64Var(&t.SensitiveThreshold, "sensitive-coverage-threshold", config.DefaultSensitiveThreshold,
		"the same, in `percent`, for sensitive paths; -1: any")
	fl.StringSliceVar(&t.SensitivePaths, "sensitive-paths", nil,
		"`words` of paths and patterns where little coverage may be lost (default: auth, security, payment …)")
	fl.IntVar(&t.QualityThreshold, "quality-threshold", config.DefaultQualityThreshold,
		"the quality in percent that the best iteration should reach")
	fl.StringVar(&t.selection, "select", string(config.HighestQualityVerified),
		"which iteration is left: highest_quality_verified, highest_quality, most_recent_above_threshold")
	fl.BoolVar(&t.RequireVerification, "require-verification", false, "leave only an iteration whose check passed")
	fl.StringVar((*string)(&t.Sealed), "sealed", string(config.SealCompletion), "when the check is repeated in a clean "+
		"copy of the workspace: off, completion (before the loop is called completed), always (after each iteration)")
	fl.StringVar(&t.SealedSetup, "sealed-setup", "", "a `COMMAND` that makes in a clean copy what the check needs "+
		"(default: ignored files are copied that are as they were)")
	fl.BoolVar(&t.KeepLast, "keep-last", false, "leave the files as the last iteration left them")
	fl.StringVar((*string)(&t.Reinforcement), "reinforcement", string(hook.LevelMinimal),
		"how firmly the agent is reminded of the rules: OFF, MINIMAL, STANDARD, AGGRESSIVE, ADAPTIVE")
	fl.StringVar((*string)(&t.Detection), "detection", string(detect.Standard),
		"which signs of regressions in changed files act: off, minimal, standard, aggressive")
	fl.BoolVar(&t.Plain, "plain", false, "do not watch: compare with no baseline, recover from nothing, ask nobody, "+
		"choose no best iteration")
	fl.BoolVar(&t.RetryCritical, "retry-critical", false,
		"recover from critical regressions as from others, before a person is asked")
	fl.BoolVar(&t.Unattended, "unattended", false, "restore deleted tests the first time instead of asking")
	fl.DurationVar(&t.GateTimeout, "gate-timeout", 0, "how long a person is waited for (default: for ever)")
	fl.Float64Var(&t.BudgetUSD, "budget-usd", 0, "stop before more is spent (default: no limit)")
	fl.Int64Var(&t.BudgetTokens, "budget-tokens", 0, "stop before more tokens are used (default: no limit)")
}

// metricFlag collects the user's metrics.
type metricFlag struct{ list *[]config.Metric }

// Set adds one.
func (f metricFlag) Set(text string) error {
	m, err := config.ParseMetric(text)
	*f.list = append(*f.list, m)
	return err
}

// String is what help shows as the default: nothing.
func (f metricFlag) String() string { return "" }

// Type is what help calls the value.
func (f metricFlag) Type() string { return "NAME=COMMAND" }

// given names the fields of the flags that were given.
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

// flagOf is the flag of a field of the configuration.
func flagOf(field string) string {
	switch field {
	case "selection":
		return "select"
	case "metrics":
		return "metric"
	}
	return strings.ReplaceAll(field, "_", "-")
}

// settable are the fields that the settings say something of.
func settable(set *config.Config) []string {
	names := []string{"max_iterations", "timeout", "idle_timeout", "check_timeout", "max_retries", "quality_threshold",
		"gate_timeout", "plain",
		"keep_last", "sealed", "sealed_setup", "require_verification", "retry_critical", "detection_budget",
		"overhead_percent",
		"detection", "detection_rules", "waivers", "risk_answers", "snapshot_risky", "reinforcement", "standard_from",
		"aggressive_from", "plateau_percent",
		"coverage", "types", "lint", "metrics", "coverage_threshold", "sensitive_coverage_threshold", "sensitive_paths"}
	if set.Agent != "" {
		names = append(names, "agent", "fallback")
	}
	return names
}

// literal makes what a person writes what a configuration means by it, where 0
// stands for the default: a person who writes 0 means none.
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
	if c.OverheadPercent == 0 {
		c.OverheadPercent = -1
	}
	const nothing = 1e-6 // percent
	for _, x := range []*float64{&c.CoverageThreshold, &c.SensitiveThreshold} {
		if *x == 0 {
			*x = nothing // of coverage, 0 means that none may be lost
		}
	}
}

// fill takes over the settings for what the flags leave open.
func (t *tuning) fill(cmd *cobra.Command, set *config.Config) {
	t.Given = t.given(cmd)
	if slices.Contains(t.Given, "agent") { // its own stand-ins, or none
		t.Given = append(t.Given, "fallback")
	}
	open := slices.DeleteFunc(settable(set), func(field string) bool { return slices.Contains(t.Given, field) })
	t.Take(set, open...)
	if t.TaskType != "" { // the type has chosen them for good
		t.Given = append(t.Given, "agent", "fallback")
	}
	literal(&t.Config)
}
