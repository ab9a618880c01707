package cli

import (
	"context"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/aiwg/loopimport"
	checkcmd "github.com/perdure/perdure/internal/cli/check"
	"github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/notify"
	"github.com/perdure/perdure/internal/toolguard/risk"
	loopconfig "github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// loopCommand has the commands of loops.
func (a *app) loopCommand() *cobra.Command {
	bell := func() {}
	with := func(cmd *cobra.Command, why purpose, do func(s loop.Store) error) error {
		l, err := a.load(cmd)
		if err != nil {
			return err
		}
		if why == toExecute {
			l.DrainTimeout = -1 // an agent's turn takes longer than anybody waits
			bell = a.bell(l)
		}
		return a.withBackend(cmd.Context(), l, why, func(b *backend) error {
			s := loop.Store{Client: b.Client, Import: func(ctx context.Context, req loopimport.Request) (loopimport.Imported,
				error) {
				return daemon.ImportLoop(ctx, a.daemonConfig(l), req)
			}}
			if b.local != nil && why == toExecute {
				s.Session, s.Run = b.local.SessionID(), a.runLoop(b)
			}
			return do(s)
		})
	}
	return loop.Command(loop.Config{
		Stdin: a.env.Stdin, Terminal: a.canAsk, Out: a.out, Err: a.err, PrintJSON: a.printJSON, WriteOutput: a.writeOutput,
		Width: a.out.width, Colour: a.out.color, ErrColour: a.err.color,
		Safe: a.out.safe, Bold: a.out.bold, Dim: a.out.dim, Cwd: a.env.Cwd, User: userName, GroupID: groupRun,
		Arguments: arguments,
		Ended: func(as loop.Ending, msg, hint string) error {
			status := map[loop.Ending]int{loop.NotDone: exitFailed, loop.Stopped: exitIncomplete, loop.AtGate: exitGate,
				loop.Interrupted: exitInterrupted}[as]
			return &outcome{status, msg, hint}
		},
		Bell: func() { bell() },
		Settings: func(cmd *cobra.Command, kind string) (loopconfig.Config, error) {
			l, err := a.load(cmd)
			if err != nil {
				return loopconfig.Config{}, err
			}
			chain, err := l.Loop.Chain(kind)
			set := loopSettings(&l.Loop)
			if len(chain) > 0 {
				set.Agent, set.Fallback = chain[0], chain[1:]
			}
			if err == nil {
				err = l.Loop.Rules.To(&set.Rules)
			}
			if err != nil {
				return set, err
			}
			waivers, err := rules.Own(a.env.getenv, a.root(l))
			for _, w := range waivers {
				set.Waivers = append(set.Waivers, loopconfig.Waiver(w))
			}
			return set, err
		},
		Read:    func(cmd *cobra.Command, do func(s loop.Store) error) error { return with(cmd, toRead, do) },
		Execute: func(cmd *cobra.Command, do func(s loop.Store) error) error { return with(cmd, toExecute, do) },
		Detach:  func(cmd *cobra.Command, do func(s loop.Store) error) error { return with(cmd, toDetach, do) },
	})
}

// bell returns what rings for who follows a loop: the terminal, where the desktop
// should tell and cannot. It says so.
func (a *app) bell(l *config.Loaded) func() {
	if !l.Loop.NotifyDesktop {
		return func() {}
	}
	_, err := notify.NewDesktop(a.env.getenv)
	switch {
	case err == nil:
		return func() {}
	case !a.err.terminal:
		a.note("%s; nobody is told on a desktop", err)
		return func() {}
	}
	a.note("%s; the terminal rings instead", err)
	return func() { a.err.Write([]byte{'\a'}) } //nolint:errcheck // the stream keeps its error
}

// loopSettings is what the settings say of a loop.
func loopSettings(l *config.Loop) loopconfig.Config {
	return loopconfig.Config{Agent: l.Agent, MaxIterations: l.MaxIterations, Timeout: l.Timeout,
		IdleTimeout: l.IdleTimeout, CheckTimeout: l.CheckTimeout,
		GateTimeout: l.GateTimeout, Plain: !l.Enabled, MaxRetries: l.MaxRetries, RetryCritical: !l.AutoEscalateCritical,
		KeepLast:  !l.BestOutput,
		Detection: loopconfig.Detection(l.Detection), RiskAnswers: riskAnswers(l.Risks),
		SnapshotRisky: loopconfig.SnapshotRisky(l.SnapshotRisky),
		Reinforcement: hook.Level(l.Reinforcement), StandardFrom: orNever(l.StandardFrom),
		AggressiveFrom: orNever(l.AggressiveFrom), PlateauPercent: l.PlateauPercent,
		QualityThreshold: l.QualityThreshold, Measures: l.Measures(), RequireVerification: l.RequireVerification,
		Sealed: loopconfig.Sealing(l.Sealed), SealedSetup: l.SealedSetup, DetectionBudget: l.DetectionBudget,
		OverheadPercent: l.OverheadPercent}
}

func riskAnswers(set map[risk.Pattern]risk.Answer) map[string]loopconfig.RiskAnswer {
	if len(set) == 0 {
		return nil
	}
	to := make(map[string]loopconfig.RiskAnswer, len(set))
	for pattern, answer := range set {
		to[string(pattern)] = loopconfig.RiskAnswer(answer)
	}
	return to
}

// orNever is an iteration, where 0 stands for none.
func orNever(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// runLoop executes a loop in this process until its follower returns.
func (a *app) runLoop(b *backend) func(ctx context.Context, id perdure.TreeID,
	follow func(context.Context) error) error {
	return func(ctx context.Context, id perdure.TreeID, follow func(context.Context) error) error {
		b.local.Own(id)
		return b.working(ctx, follow)
	}
}

// canAsk tells whether a person sits at both ends.
func (a *app) canAsk() bool {
	if a.env.Terminal == nil || !a.err.terminal {
		return false
	}
	_, ok := a.env.Terminal(a.env.Stdin)
	return ok
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// checkCommand looks for regressions without a loop.
func (a *app) checkCommand() *cobra.Command {
	return checkcmd.Command(checkcmd.Config{Out: a.out, PrintJSON: a.printJSON, Note: a.note, Safe: a.out.safe,
		Bold: a.out.bold, Dim: a.out.dim,
		Cwd: a.env.Cwd, Environ: a.env.Environ, Getenv: a.env.getenv, Version: thisBuild().Version, GroupID: groupSee,
		Arguments: arguments, Load: a.load,
		Found: func() error { return &outcome{status: exitIncomplete} },
		Read: func(ctx context.Context, l *config.Loaded, do func(*client.Client) error) error {
			return a.withBackend(ctx, l, toRead, func(b *backend) error { return do(b.Client) })
		}})
}
