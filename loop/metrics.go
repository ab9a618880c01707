package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// meter takes the metrics of this loop.
func (r *run) meter() (*metric.Meter, error) {
	run, err := r.runner()
	return &metric.Meter{Measures: &r.cfg.Measures, Files: r.files, Plan: &r.state.Metering, Scratch: run.Scratch,
		Limit: r.cfg.CheckTimeout,
		Run:   run.Run, Save: r.saveBlob, Load: r.loadBlob}, err
}

// firstCheck runs the check before the agent does anything, and takes the metrics
// that later ones are compared with; none where nothing is watched.
func (r *run) firstCheck(ctx context.Context) (*checked, *metric.Metrics, error) {
	if r.cfg.Plain {
		c, err := r.checkWork(ctx, nil, false)
		return c, nil, err
	}
	m, err := r.meter()
	if err != nil {
		return nil, nil, err
	}
	if err := m.Begin(ctx, r.state.Baseline); err != nil {
		return nil, nil, refusal(err)
	}
	c, err := r.inspect(ctx, nil)
	if err != nil || c.Exit == metric.StatusNotFound || c.Exit == metric.StatusNotRunnable {
		return c, nil, err
	}
	if err := r.repeatFirst(ctx, c); err != nil {
		return nil, nil, err
	}
	if err := r.learnCheckFiles(ctx); err != nil {
		return nil, nil, err
	}
	taken, err := m.Take(ctx, c.forMetrics(), r.trusted())
	if err != nil {
		return nil, nil, refusal(err)
	}
	return c, taken, refusal(m.Trust(ctx, taken, r.trusted()))
}

// laterCheck runs the check after an iteration, and takes the metrics.
func (r *run) laterCheck(ctx context.Context) (*checked, *metric.Metrics, error) {
	if r.cfg.Plain {
		c, err := r.checkWork(ctx, nil, false)
		return c, nil, err
	}
	m, err := r.meter()
	if err != nil {
		return nil, nil, err
	}
	if m.Plan.First == "" { // nothing was watched until the loop was resumed
		if err := m.Begin(ctx, r.state.Baseline); err != nil {
			return nil, nil, refusal(err)
		}
	}
	baseline, err := r.baselineResults(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := r.inspect(ctx, baseline)
	if err != nil {
		return nil, nil, err
	}
	taken, err := m.Take(ctx, c.forMetrics(), r.state.Run.After)
	return c, taken, refusal(err)
}

// trustMetrics makes metrics the ones that later ones are compared with.
func (r *run) trustMetrics(ctx context.Context, taken *metric.Metrics, at workspace.ID) error {
	m, err := r.meter()
	if err != nil {
		return err
	}
	return refusal(m.Trust(ctx, taken, at))
}

// compareCoverage lists regressions of the coverage.
func (r *run) compareCoverage(ctx context.Context, out *state.Outcome, report *testreport.Report) (
	[]regression.Regression, error) {
	m, err := r.meter()
	if err != nil {
		return nil, err
	}
	found, err := m.Compare(ctx, out.Metrics, out.After, r.unknown(out, report))
	var all []regression.Regression
	for _, g := range found {
		all = append(all, regression.Regression{Type: string(hook.CoverageRegression), Severity: string(g.Severity),
			Text:  g.Text,
			Files: g.Files})
	}
	return all, refusal(err)
}

// unknown returns the files whose coverage is unknown because a test that may have
// covered them fails: with go test, which covers the package of the test, the files of
// that package; with other runners all files. Whether the failing test is a regression
// is decided separately.
func (r *run) unknown(out *state.Outcome, report *testreport.Report) metric.Unknown {
	if report == nil {
		return metric.Unknown{All: !out.Check.Passed}
	}
	failing := report.Failing()
	if len(failing) == 0 && len(report.Broken) == 0 && report.Complete {
		return metric.Unknown{}
	}
	if r.cfg.Coverage != config.Auto || strings.Contains(r.cfg.Until, "-coverpkg") ||
		project.Measure(r.cfg.Until, project.Config{}).Kind != project.Go {
		return metric.Unknown{All: true}
	}
	var packages []string
	for i := range failing {
		packages = append(packages, failing[i].Suite)
	}
	for i := range report.Broken {
		packages = append(packages, report.Broken[i].Suite)
	}
	return metric.Unknown{Packages: packages, All: len(packages) == 0}
}

// forMetrics is what of a run is a metric.
func (c *checked) forMetrics() *metric.Checked {
	m := &metric.Checked{Profile: c.profile, Lacks: c.lacks}
	if c.report != nil {
		m.Tests = new(c.Counts.Tests)
	}
	return m
}

// inspect runs the check, with coverage where it is taken in the same run. Until
// a run has shown that coverage does not change how the command ends, one that
// looks broken is repeated as the user wrote it; if that does better, coverage is
// not taken any more.
func (r *run) inspect(ctx context.Context, baseline *testreport.Report) (*checked, error) {
	m := &r.state.Metering
	off := m.Why[metric.NameCoverage]
	c, err := r.checkWork(ctx, baseline, r.cfg.Coverage == config.Auto && off == "")
	if err != nil {
		return nil, err
	}
	if off != "" {
		c.lacks = off
	}
	if !c.command.Covers() || m.Proven {
		return c, nil
	}
	if c.Exit == 0 || (c.profile != nil && !c.broken() && len(c.report.Failing()) > 0) {
		m.Proven = c.profile != nil
		return c, nil
	}
	plain, err := r.checkWork(ctx, baseline, false)
	if err != nil || !plain.better(c) {
		return c, err
	}
	m.Off(metric.NameCoverage, "the command fails when coverage is taken with it: "+lastLine(c.Output)+
		" (--coverage COMMAND takes it apart)")
	plain.lacks = m.Why[metric.NameCoverage]
	return plain, nil
}

// broken reports whether a run has no results, or not those of all suites.
func (c *checked) broken() bool {
	return c.report == nil || !c.report.Complete || len(c.report.Broken) > 0
}

// better reports whether a run came to more than another one.
func (c *checked) better(other *checked) bool {
	switch {
	case c.Exit == 0 && other.Exit != 0:
		return true
	case c.report == nil || other.report == nil:
		return c.report != nil
	}
	return c.report.Complete && !other.report.Complete || len(c.report.Broken) < len(other.report.Broken)
}

// maxSuspects is how many failing tests are run again without coverage.
const maxSuspects = 20

// suspects are tests that may fail because coverage is taken (some count
// allocations, or time): the few that fail, when the same ones failed an iteration
// ago.
func (r *run) suspects(ctx context.Context, c *checked) ([]string, error) {
	failing := c.report.Failing()
	if !c.command.Covers() || len(failing) == 0 || len(failing) > maxSuspects {
		return nil, nil
	}
	last, err := r.e.records.LastIterations(ctx, r.l.Tree.ID, r.state.Run.Number, 1)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	before, err := state.ReadOutcome(&last[0])
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(failing))
	for i := range failing {
		ids[i] = failing[i].ID
	}
	if !slices.Equal(ids, before.Check.Failing) {
		return nil, nil
	}
	return ids, nil
}

// lostCoverage returns the part of the next prompt that lists the lines that lost
// their coverage in the last iteration that was not reverted; empty when none did.
func lostCoverage(last []record.Iteration) string {
	for i := range last {
		if last[i].Status == record.IterationReverted {
			continue
		}
		out, err := state.ReadOutcome(&last[i])
		if err != nil || out.Metrics == nil || out.Metrics.Loss == nil || len(out.Metrics.Loss.Files) == 0 {
			return ""
		}
		var b strings.Builder
		b.WriteString("\n# Lines that no test covers any more\n\nTests covered them in the beginning. Cover them again:\n\n")
		for _, f := range out.Metrics.Loss.Files[:min(len(out.Metrics.Loss.Files), shownMessages)] {
			fmt.Fprintf(&b, "- %s: %s\n", f.File, f.Lines)
		}
		return b.String()
	}
	return ""
}

// tellMetrics adds the known metrics to the input of handlers.
func (r *run) tellMetrics(inputs map[string]any, baseline, current string, now *metric.Metrics) {
	if base := r.state.Metering.Base; base != nil {
		inputs[baseline] = base.Told()
	}
	if now != nil {
		inputs[current] = now.Told()
	}
}
