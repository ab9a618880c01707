package cli

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/rlm"
)

// qualityFlags are the flags of run and batch about choosing and judging
// answers.
type qualityFlags struct {
	samples      int
	criteria     string
	minScore     float64
	gateRounds   int
	gateFallback string
	gateAt       string
	escalate     string
}

func (q *qualityFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.IntVar(&q.samples, "samples", 0, "`times` the same prompt is asked where nothing else breaks the work down; "+
		"default: once, for vote and best-of-n 3")
	fl.StringVar(&q.criteria, "criteria", "", "what a judge model goes by, as `text`; default: correct, then complete, "+
		"then clear")
	fl.Float64Var(&q.minScore, "min-score", 0, "quality gate: an answer that the judge gives fewer `points` is written "+
		"again with its critique; a judge model gives 0 to 100")
	fl.IntVar(&q.gateRounds, "gate-rounds", 0, "most `tries` of an answer at the gate, the first included; default: 3")
	fl.StringVar(&q.gateFallback, "gate-fallback", "", "when none is good enough: `return_best, fail or escalate` (ask "+
		"a stronger model once); default: return_best")
	fl.StringVar(&q.gateAt, "gate-at", "", "whose answers the gate judges: `all or root`; default: all")
	fl.StringVar(&q.escalate, "escalate-model", "",
		"`model` that escalate asks; default: the model, for answers of the sub-model")
}

// apply puts the flags into the configuration of a tree. A judge that only the
// settings name is left out where there is nothing to judge.
func (q *qualityFlags) apply(a *app, cmd *cobra.Command, l *config.Loaded, c *rlm.Config) error {
	c.Samples, c.Criteria = q.samples, q.criteria
	c.GateRounds, c.GateFallback, c.GateAt = q.gateRounds, q.gateFallback, q.gateAt
	c.EscalateModel = a.anchor(q.escalate)
	if math.IsNaN(q.minScore) || math.IsInf(q.minScore, 0) { // which JSON cannot hold
		return env.UsageError("a judge model gives 0 to 100", "--min-score: %v is not a number of points", q.minScore)
	}
	if cmd.Flags().Changed("min-score") {
		c.MinScore = &q.minScore
	}
	if c.Merge == rlm.MergeBest || c.MinScore != nil || cmd.Flags().Changed("judge") {
		c.Judge = a.anchor(l.Judge)
	}
	return nil
}
