package cli

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/rlm"
)

// qualityFlags holds the flags of run and batch on samples, scores and the quality
// gate.
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
	fl.IntVar(&q.samples, "samples", 0, "`N` answers to the same prompt, if the context is not split; default: 1, or 3 "+
		"for vote and best-of-n")
	fl.StringVar(&q.criteria, "criteria", "",
		"`TEXT` criteria of a judge model; default: correct, then complete, then clear")
	fl.Float64Var(&q.minScore, "min-score", 0, "`POINTS` minimum score of an answer, or it is rewritten; judge models "+
		"score 0 to 100")
	fl.IntVar(&q.gateRounds, "gate-rounds", 0, "`N` maximum versions of an answer; default: 3")
	fl.StringVar(&q.gateFallback, "gate-fallback", "", "`ACTION` what to do if no version passes: return_best (the "+
		"default), fail, or escalate (ask --escalate-model once)")
	fl.StringVar(&q.gateAt, "gate-at", "", "`TASKS` tasks whose answers are judged: all (the default) or root")
	fl.StringVar(&q.escalate, "escalate-model", "",
		"`MODEL` model of --gate-fallback escalate; default: the model, for answers of the sub-model")
}

// apply sets the flags in the configuration of a tree. A judge from the settings is used
// only if answers are scored.
func (q *qualityFlags) apply(a *app, cmd *cobra.Command, l *config.Loaded, c *rlm.Config) error {
	c.Samples, c.Criteria = q.samples, q.criteria
	c.GateRounds, c.GateFallback, c.GateAt = q.gateRounds, q.gateFallback, q.gateAt
	c.EscalateModel = a.anchor(q.escalate)
	if math.IsNaN(q.minScore) || math.IsInf(q.minScore, 0) { // not valid in JSON
		return env.UsageError("write a number from 0 to 100", "--min-score: %v is not a number", q.minScore)
	}
	if cmd.Flags().Changed("min-score") {
		c.MinScore = &q.minScore
	}
	if c.Merge == rlm.MergeBest || c.MinScore != nil || cmd.Flags().Changed("judge") {
		c.Judge = a.anchor(l.Judge)
	}
	return nil
}
