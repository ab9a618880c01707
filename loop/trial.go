package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/verify/machine"
	"github.com/perdure/perdure/internal/verify/trial"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// tryNewTests tries the tests that the iteration added or changed against mutations of the lines
// that it changed.
func (r *run) tryNewTests(ctx context.Context, out *state.Outcome, report *testreport.Report,
	changes []workspace.Change) error {
	t := &r.state.Run
	budget := time.Duration(float64(t.AgentMS+t.Check.TookMS) * r.cfg.MutationPercent / 100 * float64(time.Millisecond))
	if r.cfg.Plain || report == nil || t.Check.Skipped || budget <= 0 || r.cfg.Detection == config.DetectionOff ||
		r.cfg.Detection == config.DetectionMinimal {
		return nil
	}
	began := time.Now()
	watched, stop := r.watchedFor(ctx, record.Abort, record.Revert)
	defer stop()
	trials, err := trial.Do(watched, &trial.Config{Files: r.files, Report: report,
		Between: &evidence.Between{From: t.Before, To: t.After, Changes: changes},
		Copy:    func(ctx context.Context) (*cleancheck.Place, error) { return r.trialCopy(ctx, t.After) },
		Run:     r.runTests, Budget: min(budget, config.MaxMutationTime)})
	if _, ok := errors.AsType[*controlError](context.Cause(watched)); ok { // the trial is not waited for
		return nil
	}
	if err != nil {
		return refusal(err)
	}
	out.NewTests, out.Times.Mutations = trials, time.Since(began).Milliseconds()
	return nil
}

// trialCopy makes the copy for trials. Without a sandbox there is none: mutated code can do what its
// author prevented.
func (r *run) trialCopy(ctx context.Context, of workspace.ID) (*cleancheck.Place, error) {
	if r.state.NoSandbox != "" {
		return nil, &sandbox.Error{Op: "run tests", Err: errors.New(r.state.NoSandbox)}
	}
	cfg, err := r.cleanCopyConfig(ctx)
	if err != nil {
		return nil, err
	}
	if cache := goCache(cfg.Env); cache != "" { // the copy would compile everything again
		cfg.Env = append(slices.Clip(cfg.Env), "GOCACHE="+cache)
		cfg.Pass = append(slices.Clip(cfg.Pass), "GOCACHE")
	}
	return cleancheck.Copy(ctx, *cfg, of)
}

// runTests runs some tests of the check in a copy.
func (r *run) runTests(ctx context.Context, at *cleancheck.Place, tests []testreport.Test, limit time.Duration) (
	*testreport.Report, error) {
	in := r.runnerIn(at)
	command := r.command(in, false)
	if again, ok := command.Again(tests); ok {
		command = again
	}
	if err := command.Clear(in.Root); err != nil {
		return nil, err
	}
	ran, err := in.Run(ctx, &command, limit)
	if err != nil {
		return nil, err
	}
	defer ran.Close()
	found, err := command.Collect(in.Root, ran.Began)
	if err != nil {
		return nil, nil //nolint:nilerr // there are no results
	}
	report, err := ran.Results(in.Root, &command, found)
	if err != nil {
		return nil, nil //nolint:nilerr // they cannot be read
	}
	return report, nil
}

// goCache returns the folder of Go's compiled packages; empty if there is none.
func goCache(env []string) string {
	dir := machine.Get(env, "GOCACHE")
	if base, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(base, "go-build")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// withoutSurvivors returns a report without the tests that survived their trial: they do not count
// for the quality.
func withoutSurvivors(report *testreport.Report, trials []trial.Trial) *testreport.Report {
	survived := make(map[string]bool)
	for i := range trials {
		if trials[i].Result == trial.Survived {
			survived[trials[i].Test] = true
		}
	}
	if len(survived) == 0 {
		return report
	}
	rest := *report
	rest.Tests = slices.DeleteFunc(slices.Clone(report.Tests), func(t testreport.Test) bool { return survived[t.ID] })
	return &rest
}

// survived returns the part of the next prompt that lists the new tests that survived; empty if there
// are none.
func survived(trials []trial.Trial) string {
	texts := trial.Survivors(trials)
	if len(texts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# New tests that cannot fail\n\nThese tests pass whatever the changed code does. Make each one " +
		"check what the code is for, or remove it.\n\n")
	for _, text := range texts[:min(len(texts), shownMessages)] {
		b.WriteString("- " + text + "\n")
	}
	return b.String()
}
