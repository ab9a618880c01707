package loop

import (
	"math"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/config"
)

// The weights of the parts of the quality, in percent. What was not measured is
// left out, and the rest counts for all.
const (
	weightValidation   = 30
	weightCompleteness = 25
	weightCorrectness  = 25
	weightReadability  = 10
	weightEfficiency   = 10
)

// What a finding costs of the readability, and how much worse, in percent, a
// metric may be by chance.
const (
	costOfError   = 5
	costOfWarning = 2
	chance        = 5
)

// rate gives the quality from facts:
//
//   - validation: the share of executed tests that pass (of a check without
//     results: whether it passed); half of it when not all suites ran.
//   - completeness: the share of the tests failing in the baseline that pass now,
//     or whether the check passes when there were none.
//   - correctness: the share of the baseline's tests that are there and no worse.
//   - readability: 100, less 5 for each error and 2 for each warning that type
//     checker and linter find beyond those of the baseline.
//   - efficiency: the share of the user's metrics with a direction that are no
//     worse than in the baseline, but for 5 percent.
//
// The comparisons with the baseline are nil where there are none. The baseline is compared with
// itself.
func rate(o *state.Outcome, now *testreport.Report, d *testreport.Diff, m *metricDiff) {
	all := 0
	if o.Check.Passed {
		all = 100
	}
	o.Parts = map[string]int{"validation": all, "completeness": all}
	weights := map[string]int{"validation": weightValidation, "completeness": weightCompleteness}
	if now != nil {
		c := now.Counts()
		o.Parts["validation"] = share(c.Passed, c.Passed+c.Failed)
		if !now.Complete || len(now.Broken) > 0 {
			o.Parts["validation"] /= 2
		}
	}
	if d != nil {
		if before := len(d.Fixed) + len(d.StillFailing); before > 0 {
			o.Parts["completeness"] = share(len(d.Fixed), before)
		}
		worse := len(d.Lost) + len(d.Unrun) + len(d.NewlySkipped) + len(d.NewlyFailing)
		if tests := d.Before.Tests; tests > 0 {
			o.Parts["correctness"], weights["correctness"] = share(tests-worse, tests), weightCorrectness
		}
	}
	if m != nil {
		if part, ok := m.readability(); ok {
			o.Parts["readability"], weights["readability"] = part, weightReadability
		}
		if part, ok := m.efficiency(); ok {
			o.Parts["efficiency"], weights["efficiency"] = part, weightEfficiency
		}
	}
	sum, total := 0, 0
	for name, part := range o.Parts {
		sum, total = sum+part*weights[name], total+weights[name]
	}
	o.Quality = new(int(math.Round(float64(sum) / float64(total))))
}

func share(n, of int) int {
	if of == 0 {
		return 0
	}
	return max(0, n*100/of)
}

// metricDiff are metrics of the baseline and of now.
type metricDiff struct {
	before, now *metric.Metrics
	custom      []config.Metric
}

// ratedMetrics are metrics with those of the baseline; nil where either were
// not taken.
func (r *run) ratedMetrics(now *metric.Metrics) *metricDiff {
	if now == nil || r.state.Metering.Base == nil {
		return nil
	}
	return &metricDiff{r.state.Metering.Base, now, r.cfg.Metrics}
}

// readability is not known where nothing was found by the same tool both times.
func (d *metricDiff) readability() (part int, ok bool) {
	cost := 0
	for _, f := range [...]struct {
		before, now *int
		each        int
	}{
		{d.before.TypeErrors, d.now.TypeErrors, costOfError},
		{d.before.LintErrors, d.now.LintErrors, costOfError},
		{d.before.LintWarnings, d.now.LintWarnings, costOfWarning},
	} {
		if f.before != nil && f.now != nil {
			ok, cost = true, cost+f.each*max(0, *f.now-*f.before)
		}
	}
	return max(0, 100-cost), ok
}

func (d *metricDiff) efficiency() (part int, ok bool) {
	good, all := 0, 0
	for i := range d.custom {
		c := &d.custom[i]
		before, was := d.before.Custom[c.Name]
		now, is := d.now.Custom[c.Name]
		if !was || !is || c.Better == "" {
			continue
		}
		all++
		worse := before - now
		if c.Better == config.BetterDown {
			worse = -worse
		}
		if worse <= math.Abs(before)*chance/100 {
			good++
		}
	}
	return share(good, all), all > 0
}
