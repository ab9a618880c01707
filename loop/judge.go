package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// maxArtifacts is how many changed files a record names.
const maxArtifacts = 200

// maxFileDiff is how many bytes of the diff of an iteration its record keeps.
const maxFileDiff = 16 << 10

// measure looks at what the agent left: its files, and what the check says.
func measure(ctx context.Context, r *run) (string, error) {
	t := &r.state.Run
	began := time.Now()
	id, stats, err := r.files.Snapshot(ctx)
	if err != nil {
		return "", refusal(err)
	}
	r.lookedAt(&stats)
	t.After = id
	made, err := r.checkFilesNow(ctx, &stats)
	if err != nil {
		return "", err
	}
	t.SnapshotMS += time.Since(began).Milliseconds()
	ending, err := r.ending(ctx)
	if err != nil {
		return "", err
	}
	if ending { // the check is not waited for
		t.Check = &state.Check{Command: r.cfg.Until, Exit: -1, Skipped: true}
		return stepJudge, nil
	}
	watched, stop := r.watchedFor(ctx, record.Abort, record.Revert)
	settings := r.settings()
	check, metrics, err := r.laterCheck(watched)
	if now := r.settings(); now != settings { // what the check runs, the agent may have written
		t.Left = now
	}
	cause := context.Cause(watched)
	stop()
	if _, ok := errors.AsType[*controlError](cause); ok {
		t.Check = &state.Check{Command: r.cfg.Until, Exit: -1, Skipped: true}
		return stepJudge, nil
	}
	if errors.Is(err, guard.ErrGuardLost) && ctx.Err() == nil { // by code that the agent wrote
		t.Failure = (&agent.Error{Kind: agent.KindGuardLost, Msg: "the check", Err: guard.ErrGuardLost}).Error()
		return stepContain, nil
	}
	if err != nil {
		return "", err
	}
	t.Check, t.Metrics = &check.Check, metrics
	if err := r.tellCheckFiles(ctx, made, stats.Outside); err != nil {
		return "", err
	}
	if r.cfg.Sealed == config.SealAlways {
		r.noteCleanCopy(t.Number)
	}
	if r.holdsOut() {
		return stepHeldOut, nil
	}
	return stepJudge, nil
}

// judge says what the iteration is worth, and what it broke.
func judge(ctx context.Context, r *run) (string, error) {
	began := time.Now()
	t := &r.state.Run
	report, err := r.savedResults(ctx, t.Check.Results)
	if err != nil {
		return "", err
	}
	baseline, err := r.baselineResults(ctx)
	if err != nil {
		return "", err
	}
	changes, err := r.files.Diff(ctx, t.Before, t.After)
	if err != nil {
		return "", refusal(err)
	}
	out := &state.Outcome{Iteration: t.Number, Before: t.Before, After: t.After, Check: *t.Check, Metrics: t.Metrics,
		Agent: r.agentName(), AgentText: t.Text,
		AgentError: t.Failure, Retried: t.Retried, Changed: len(changes),
		Artifacts: names(changes, maxArtifacts), Warnings: t.Warnings}
	var diff *testreport.Diff
	look, err := r.look(ctx, out, t.After)
	if err != nil {
		return "", err
	}
	by, found := look.by, look.found
	out.Deciders = keptDeciders(look.deciders)
	sealing := time.Now()
	v, err := r.sealTurn(ctx, look)
	if err != nil {
		return "", err
	}
	began = began.Add(time.Since(sealing)) // the check's time, and not that of keeping records
	if baseline != nil && report != nil {
		d := testreport.Compare(baseline, report)
		evidence.FindAgain(&d, found, report)
		by.Waive(&d, found)
		diff, out.Diff, out.Regressions = &d, shortened(&d), facts(&d)
	} else if baseline != nil && !t.Check.Skipped {
		out.Regressions = []regression.Regression{{Type: string(hook.RunIncomplete), Severity: string(hook.High),
			Text: "the tests of the baseline did not run, or their results cannot be read"}}
	}
	changed, err := r.protected(ctx, look, found)
	if err != nil {
		return "", err
	}
	lost, err := r.compareCoverage(ctx, out, report)
	if err != nil {
		return "", err
	}
	out.Findings = evidence.Noted(found, maxFindings)
	out.Regressions = slices.Concat(out.Regressions, changed, r.repositoryGone(), r.settingsChanged(), lost,
		regression.Signs(found, baseline, report), r.cleanCopyRegressions(out, v))
	out.Regressions = by.Settle(out.Regressions)
	detection := time.Since(began)
	if err := r.usage(ctx, out); err != nil {
		return "", err
	}
	trying := time.Now()
	if err := r.tryNewTests(ctx, out, report, changes); err != nil {
		return "", err
	}
	began = began.Add(time.Since(trying)) // it has a limit of its own
	rate(out, withoutSurvivors(report, out.NewTests), diff, r.ratedMetrics(out.Metrics))
	scored := time.Now()
	if err := r.score(ctx, out); err != nil {
		return "", err
	}
	r.didJudge(out, detection, time.Since(scored))
	began = began.Add(time.Since(scored)) // a command of the user is not overhead
	if err := r.askPostIteration(ctx, out); err != nil {
		return "", err
	}
	out.Regressions = by.Settle(out.Regressions) // handlers may have reported more
	out.Level, out.Risky, out.Calls = t.Level, t.Risky, t.Calls
	out.Sight, out.Denied, out.Unpermitted = t.Sight, t.Denied, t.Unpermitted
	out.FileDiff = clip.Bytes(r.diff(ctx, out), maxFileDiff)
	out.Handoff = r.endHandoff(ctx, out, changes)
	out.Times = state.Times{Agent: t.AgentMS, Check: t.Check.TookMS, Snapshot: t.SnapshotMS, Hooks: t.HooksMS,
		Engine: time.Since(began).Milliseconds() - t.HooksMS, CleanCopy: out.Times.CleanCopy, Mutations: out.Times.Mutations}
	if t.Metrics != nil {
		out.Times.Metrics = t.Metrics.TookMS
	}
	r.hooks.EndIteration(ID(&r.l.Tree), t.Number,
		time.Duration(t.AgentMS+t.Check.TookMS+out.Times.Metrics+t.SnapshotMS)*time.Millisecond)
	r.overruns(out, detection)
	status := record.IterationKept
	if t.Failure != "" {
		status = record.IterationFailed
	}
	return r.afterIteration(), r.keep(out, status)
}

// keep leaves the record of an iteration.
func (r *run) keep(out *state.Outcome, status record.IterationStatus) error {
	now := time.Now().UTC()
	out.Timestamp = now
	it, err := out.Row(status, r.l.Task.ID)
	if err != nil {
		return err
	}
	it.EndedAt = &now
	r.change.Iteration = it
	data := map[string]any{"iteration": out.Iteration, "passed": out.Check.Passed, "quality": out.Quality,
		"regressions": len(out.Regressions), "failing": len(out.Check.Failing)}
	if out.Void() {
		data["void"] = true
	}
	if out.Check.Skipped {
		data["skipped"] = true
	}
	r.note(EventMeasured, data)
	return nil
}

func names(changes []workspace.Change, most int) []string {
	var list []string
	for _, c := range changes {
		if len(list) < most {
			list = append(list, c.Path)
		}
	}
	return list
}

// shortened is a comparison with lists of at most maxFailing.
func shortened(d *testreport.Diff) *testreport.Diff {
	s := *d
	for _, list := range []*[]testreport.Change{&s.Lost, &s.Unrun, &s.NewlySkipped, &s.NewlyFailing, &s.StillFailing,
		&s.Fixed, &s.Enabled, &s.New, &s.Flaky} {
		*list = slices.Clone((*list)[:min(len(*list), maxFailing)])
		for i := range *list {
			(*list)[i].Message = clip.Bytes((*list)[i].Message, 300)
		}
	}
	s.Broken = s.Broken[:min(len(s.Broken), maxFailing)]
	return &s
}

// facts are what results of tests alone prove.
func facts(d *testreport.Diff) []regression.Regression {
	var all []regression.Regression
	add := func(kind hook.RegressionType, severity hook.Severity, what string, changes []testreport.Change) {
		if len(changes) == 0 {
			return
		}
		g := regression.Regression{Type: string(kind), Severity: string(severity)}
		for _, c := range changes {
			if len(g.Tests) < maxFailing {
				g.Tests = append(g.Tests, c.ID)
			}
			if c.File != "" && !slices.Contains(g.Files, c.File) && len(g.Files) < maxFailing {
				g.Files = append(g.Files, c.File)
			}
		}
		g.Text = fmt.Sprintf("%s %s", human.Count(int64(len(changes)), "test"), what)
		all = append(all, g)
	}
	add(hook.TestDeletion, hook.Critical, "removed", d.Lost)
	add(hook.TestSkipping, hook.High, "newly skipped", d.NewlySkipped)
	add(hook.TestFailure, hook.High, "newly failing", d.NewlyFailing)
	if d.NewlyBroken || len(d.Unrun) > 0 {
		why := "did not run, because their suite does not build or load"
		if d.Incomplete != "" {
			why = "did not run to their end: " + d.Incomplete
		}
		add(hook.RunIncomplete, hook.High, why, d.Unrun)
	}
	if d.Incomplete != "" && d.Verdict == testreport.Regressed && len(all) == 0 {
		all = append(all, regression.Regression{Type: string(hook.RunIncomplete), Severity: string(hook.High),
			Text: "the run ended without the runner's end record: " + d.Incomplete})
	}
	return all
}

// score runs the configured scorer. Its score replaces the one computed from
// measurements.
func (r *run) score(ctx context.Context, out *state.Outcome) error {
	if r.cfg.Scorer == "" {
		return nil
	}
	run, err := r.runner()
	if err != nil {
		return err
	}
	ran, err := run.Run(ctx, &project.Command{Script: r.cfg.Scorer, Dir: "."}, r.cfg.CheckTimeout)
	if err != nil {
		return err
	}
	defer ran.Close()
	score, parseErr := strconv.ParseFloat(strings.TrimSpace(lastLine(ran.Printed())), 64)
	if ran.Exit != 0 || ran.TimedOut || parseErr != nil || math.IsNaN(score) || score < 0 || score > 100 {
		r.note(EventAgentError, map[string]any{"iteration": out.Iteration, "kind": "scorer",
			"message": fmt.Sprintf("%q did not print a number from 0 to 100 (exit status %d); the score is computed without it",
				r.cfg.Scorer, ran.Exit)})
		return nil
	}
	out.Quality, out.Scorer = new(int(math.Round(score))), r.cfg.Scorer
	return nil
}

// usage sums the tokens and the cost of the agent's turns.
func (r *run) usage(ctx context.Context, out *state.Outcome) error {
	calls, err := r.e.cfg.Store.Calls(ctx, r.l.Task.ID)
	if err != nil {
		return err
	}
	for i := range calls {
		var kept keptTurn
		if json.Unmarshal(calls[i].Data, &kept) == nil {
			addMeasured(&out.Measured, kept.Measured)
		}
		out.InputTokens += calls[i].InputTokens
		out.OutputTokens += calls[i].OutputTokens
		if c := calls[i].CostUSD; c != nil {
			if out.CostUSD == nil {
				out.CostUSD = new(float64)
			}
			*out.CostUSD += *c
		}
	}
	return nil
}

// askPostIteration asks the handlers of post_iteration, which may report regressions too.
func (r *run) askPostIteration(ctx context.Context, out *state.Outcome) error {
	began := time.Now()
	inputs := map[string]any{"iteration_number": out.Iteration, "test_results": out.Check, "quality_score": out.Quality,
		"quality_breakdown": out.Parts,
		"artifacts":         out.Artifacts, "regressions": out.Regressions,
		"completion_check": map[string]any{"command": out.Check.Command, "passed": out.Check.Passed,
			"exit_code": out.Check.Exit}}
	r.tellMetrics(inputs, "baseline", "current", out.Metrics)
	answer, err := r.ask(ctx, hook.PostIteration, fmt.Sprintf("iteration %d ended", out.Iteration), inputs)
	if err != nil {
		return err
	}
	if r.cfg.Plain { // what handlers report is in their log only
		answer.Regressions = nil
	}
	for _, g := range answer.Regressions {
		out.Regressions = append(out.Regressions, regression.Regression{Type: string(g.Type), Severity: string(g.Severity),
			Text: g.Handler + ": " + g.Content})
	}
	r.state.Run.HooksMS += time.Since(began).Milliseconds()
	return nil
}
