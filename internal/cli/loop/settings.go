package loop

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/cli/env"
	settings "github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/notify"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// execute opens a backend for do. When the command stops, it does not wait for the end of
// the agent's turn.
func (c *commands) execute(cmd *cobra.Command, why env.Purpose, do func(*env.Backend) error) error {
	l, err := c.Load(cmd)
	if err != nil {
		return err
	}
	l.DrainTimeout = -1
	return c.With(cmd.Context(), l, why, do)
}

// settings returns the settings of loops for a type of task; "" is the default
// type.
func (c *commands) settings(cmd *cobra.Command, kind string) (config.Config, error) {
	if err := checkFlags(cmd); err != nil {
		return config.Config{}, err
	}
	l, err := c.Load(cmd)
	if err != nil {
		return config.Config{}, err
	}
	return c.settingsIn(l, kind)
}

// checkFlags returns an error for flags whose value means something else than the user expects.
func checkFlags(cmd *cobra.Command) error {
	// A configuration with 0 has the default, which a user who writes 0 does not expect.
	if f := cmd.Flags().Lookup("max-iterations"); f != nil && f.Changed && f.Value.String() == "0" {
		return env.UsageError("", "--max-iterations is 0, must be 1 to %d", config.MaxIterationsCap)
	}
	return checkTimes(cmd)
}

// settingsIn returns the settings of loops among the loaded ones.
func (c *commands) settingsIn(l *settings.Loaded, kind string) (config.Config, error) {
	chain, err := l.Loop.Chain(kind)
	set := settingsOf(&l.Loop)
	if len(chain) > 0 {
		if chain[0] != set.Agent {
			set.Model = "" // it is one of the other agent
		}
		set.Agent, set.Fallback = chain[0], chain[1:]
	}
	if err == nil {
		err = l.Loop.Rules.To(&set.Rules)
	}
	if err != nil {
		return set, err
	}
	waivers, err := rules.Own(c.Getenv, c.Root(l))
	for _, w := range waivers {
		set.Waivers = append(set.Waivers, config.Waiver(w))
	}
	return set, err
}

// checkTimes returns an error if a flag is a negative time other than the one for no limit.
func checkTimes(cmd *cobra.Command) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		t, notTime := time.ParseDuration(f.Value.String())
		if f.Value.Type() != "duration" || notTime != nil || t >= 0 || err != nil {
			return
		}
		none := "-1s" // as the help says
		if f.Name == "gate-timeout" {
			none = "0"
		}
		if t.String() != none {
			err = env.UsageError(fmt.Sprintf("--%s %s stands for no limit", f.Name, none),
				"--%s is %s, which is not longer than 0", f.Name, t)
		}
	})
	return err
}

// settingsOf returns the settings of the section loop as a configuration.
func settingsOf(l *settings.Loop) config.Config {
	return config.Config{Agent: l.Agent, Model: l.Model, Permission: agent.Permission(l.Permission),
		Env: l.EnvNames(), Allow: l.Allowed(), Meter: l.Meter, MaxIterations: l.MaxIterations, Timeout: l.Timeout,
		IdleTimeout: l.IdleTimeout, CheckTimeout: l.CheckTimeout, GateTimeout: l.GateTimeout,
		Approver: perdure.Approver(l.Approver),
		Plain:    !l.Enabled, MaxRetries: l.MaxRetries, RetryCritical: !l.AutoEscalateCritical, KeepLast: !l.BestOutput,
		Commit: l.Commit, Worktree: l.Worktree,
		Detection: config.Detection(l.Detection), RiskAnswers: riskAnswers(l.Risks),
		SnapshotRisky: config.SnapshotRisky(l.SnapshotRisky),
		Reinforcement: hook.Level(l.Reinforcement), StandardFrom: orNever(l.StandardFrom),
		AggressiveFrom: orNever(l.AggressiveFrom), PlateauPercent: l.PlateauPercent,
		QualityThreshold: l.QualityThreshold, Measures: l.Measures(), RequireVerification: l.RequireVerification,
		Sealed: config.Sealing(l.Sealed), SealedSetup: l.SealedSetup, DetectionBudget: l.DetectionBudget,
		OverheadPercent: l.OverheadPercent, MutationPercent: l.MutationPercent, HeldOut: l.HeldOut, HeldOutGap: l.HeldOutGap}
}

func riskAnswers(set map[risk.Pattern]risk.Answer) map[string]config.RiskAnswer {
	if len(set) == 0 {
		return nil
	}
	to := make(map[string]config.RiskAnswer, len(set))
	for pattern, answer := range set {
		to[string(pattern)] = config.RiskAnswer(answer)
	}
	return to
}

// orNever returns the iteration n of a setting, in which 0 means never.
func orNever(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// bell returns a function that rings the terminal's bell, if the settings ask for
// desktop notifications and the system has none.
func (c *commands) bell(l *settings.Loaded) func() {
	if !l.Loop.NotifyDesktop {
		return func() {}
	}
	_, err := notify.NewDesktop(c.Getenv)
	if err == nil {
		return func() {}
	}
	if !c.Err.Terminal {
		c.Note("%s; no desktop notifications", err)
		return func() {}
	}
	c.Note("%s; the terminal's bell rings instead", err)
	return func() { _, _ = c.Err.Write([]byte{'\a'}) }
}
