package rlm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
	"github.com/perdure/perdure/rlm/internal/score"
)

// What happens to an answer that the quality gate did not let pass.
const (
	// GateReturnBest takes the best try; the result counts as incomplete.
	GateReturnBest = "return_best"
	// GateFail fails the task.
	GateFail = "fail"
	// GateEscalate asks a stronger model, and takes the best try when that does
	// not pass either.
	GateEscalate = "escalate"
)

// The results that the quality gate checks.
const (
	// GateAtAll judges every answer that a model writes for a task.
	GateAtAll = "all"
	// GateAtRoot judges the result of the tree only.
	GateAtRoot = "root"
)

// Defaults and limits of the quality gate.
const (
	DefaultGateRounds = 3
	MaxGateRounds     = 100
	// feedbackShare of the window is kept for an earlier try and its critique.
	feedbackShare = 8
)

// EventGateScored records that a judge scored an answer: its data has round,
// rounds, score (null without one), min_score, passed, model, judge and
// critique. When a crash comes between a score and its event, the event is
// missing; the data of the result has each round.
const EventGateScored perdure.EventKind = "gate.scored"

// GateReport is the record of an answer at the quality gate.
type GateReport struct {
	// Score is that of the answer; nil when it has none.
	Score    *float64 `json:"score"`
	MinScore float64  `json:"min_score"`
	Passed   bool     `json:"passed"`
	// Rounds are the tries in their order.
	Rounds []GateRound `json:"rounds"`
}

// GateRound is one try.
type GateRound struct {
	Round int    `json:"round"`
	Model string `json:"model"`
	// Score is nil when the judge returned none; Note has the reason.
	Score    *float64 `json:"score"`
	Critique string   `json:"critique,omitempty"`
	Note     string   `json:"note,omitempty"`
	Chosen   bool     `json:"chosen,omitempty"`
}

// writing is an answer that can be tried again.
type writing struct {
	by *asked
	// prompt is the question, documents its context.
	prompt    string
	documents []model.Document
	// write makes a try by at most exchangeCalls calls from a position on.
	// feedback goes to the end of the prompt; it is empty in the first round.
	write func(ctx context.Context, by *asked, position int, feedback string) (string, Data, error)
}

// try is one answer and what the judge says of it.
type try struct {
	text string
	data Data
	by   *asked
	score.Verdict
}

// gated has an answer written. Where there is a quality gate it is judged, and
// written again with the critique until its score is enough or the rounds are
// over.
func (a *attempt) gated(ctx context.Context, w *writing) (string, Data, error) {
	g := &gate{a: a, w: w}
	if err := g.try(ctx, w.by, ""); err != nil {
		return "", Data{}, err
	}
	first := g.tries[0]
	if !a.gateStands(w.by) || strings.TrimSpace(first.text) == nothingHere {
		return first.text, first.data, nil
	}
	if err := g.judge(ctx); err != nil {
		return g.stop(err)
	}
	for !g.passed() && g.last().Scored && len(g.tries) < a.run.cfg.GateRounds {
		if err := g.round(ctx, w.by); err != nil {
			return g.stop(err)
		}
	}
	if g.passed() {
		return g.result()
	}
	return g.fallBack(ctx)
}

// gateStands reports whether answers of a model are judged here.
func (a *attempt) gateStands(by *asked) bool {
	cfg := &a.run.cfg
	return cfg.MinScore != nil && !by.ranked && (cfg.GateAt == GateAtAll || a.l.Task.Parent == 0)
}

// gate is one answer on its way through the rounds.
type gate struct {
	a     *attempt
	w     *writing
	tries []try
	best  int   // of the tries
	sent  int64 // requests of the attempt before the last try
}

func (g *gate) last() *try { return &g.tries[len(g.tries)-1] }

func (g *gate) passed() bool {
	t := g.tries[g.best]
	return t.Scored && t.Score >= *g.a.run.cfg.MinScore
}

// try has one more answer written.
func (g *gate) try(ctx context.Context, by *asked, feedback string) error {
	g.sent = g.a.asked.Load()
	text, data, err := g.w.write(ctx, by, g.a.positions(exchangeCalls), feedback)
	if err == nil {
		g.tries = append(g.tries, try{text: text, data: data, by: by})
	}
	return err
}

// round is one more try with the critique of the last one.
func (g *gate) round(ctx context.Context, by *asked) error {
	if err := g.try(ctx, by, g.feedback()); err != nil {
		return err
	}
	return g.judge(ctx)
}

// judge scores the last try and reports the score.
func (g *gate) judge(ctx context.Context) (err error) {
	t, n := g.last(), len(g.tries)
	p := &part{task: g.a.l.Task.ID, text: t.text, data: t.data}
	t.Verdict, err = g.a.judged(ctx, g.a.positions(exchangeCalls),
		&candidate{part: p, prompt: g.w.prompt, title: fmt.Sprintf("answer %d", n),
			documents: func() ([]model.Document, error) { return g.w.documents, nil }})
	if err != nil {
		return err
	}
	if best := &g.tries[g.best]; t.Scored && (!best.Scored || t.Score > best.Score) {
		g.best = n - 1
	}
	if g.a.asked.Load() == g.sent {
		return nil // all of it is from the journal: it was reported
	}
	r := g.describe(n - 1)
	last, done := lastWrite(ctx)
	defer done()
	return g.a.l.AppendEvent(last, EventGateScored, map[string]any{"round": n, "rounds": g.a.run.cfg.GateRounds,
		"score":     r.Score,
		"min_score": *g.a.run.cfg.MinScore, "passed": g.passed(), "model": r.Model, "judge": g.a.run.judge.name,
		"critique": clip.Bytes(r.Critique, keptCritique), "note": r.Note})
}

func (g *gate) describe(i int) GateRound {
	t := g.tries[i]
	r := GateRound{Round: i + 1, Model: t.by.name, Critique: t.Critique, Note: t.Note, Chosen: i == g.best}
	if t.Scored {
		r.Score = &t.Score
	}
	return r
}

// feedback returns the text that shows the model its last answer and the judge's critique.
func (g *gate) feedback() string {
	t := g.last()
	most := int(4 * g.a.run.plan.Window / feedbackShare)
	critique := cmp.Or(dedupe.WithoutMiddle(t.Critique, most/4), "(no critique)")
	return "\n\n=== an earlier answer ===\n" + dedupe.WithoutMiddle(t.text, most/2) +
		"\n=== end of the earlier answer ===\n\n" +
		fmt.Sprintf("A judge gave it %s points; at least %s are needed. Its critique:\n", score.Text(t.Score),
			score.Text(*g.a.run.cfg.MinScore)) +
		critique + "\n\nWrite a better answer to the task. Reply with the answer only."
}

// result returns the best try with the report.
func (g *gate) result() (string, Data, error) {
	t := g.tries[g.best]
	report := &GateReport{MinScore: *g.a.run.cfg.MinScore, Passed: g.passed()}
	for i := range g.tries {
		report.Rounds = append(report.Rounds, g.describe(i))
		if note := g.tries[i].Note; note != "" {
			t.data.addNotes([]string{note})
		}
	}
	report.Score = report.Rounds[g.best].Score
	t.data.Gate = report
	if !report.Passed {
		t.data.Incomplete = true
		t.data.addNotes([]string{g.shortfall()})
	}
	return t.text, t.data, nil
}

// shortfall says in one sentence why the gate did not let the answer pass.
func (g *gate) shortfall() string {
	least := score.Text(*g.a.run.cfg.MinScore)
	if t := g.tries[g.best]; t.Scored {
		return fmt.Sprintf("the best of %d answers has the score %s, and at least %s is needed", len(g.tries),
			score.Text(t.Score), least)
	}
	return fmt.Sprintf("no answer was scored, and a score of at least %s is needed", least)
}

// fallBack is what happens when the rounds are over.
func (g *gate) fallBack(ctx context.Context) (string, Data, error) {
	switch g.a.run.cfg.GateFallback {
	case GateFail:
		return "", Data{}, failf(KindQuality, "the quality gate of task %q: %s", g.a.l.Task.ID, g.shortfall())
	case GateEscalate:
		stronger := g.a.stronger(g.w.by)
		if stronger == nil {
			break
		}
		feedback := ""
		if g.last().Scored {
			feedback = g.feedback()
		}
		err := g.try(ctx, stronger, feedback)
		if err == nil {
			err = g.judge(ctx)
		}
		if err != nil {
			return g.stop(err)
		}
		if t := g.last(); !t.Scored && !g.tries[g.best].Scored {
			g.best = len(g.tries) - 1 // of those without a score the stronger model's counts
		}
	}
	g.a.short = !g.passed()
	return g.result()
}

// stronger is the model that is asked last: the one that was named, else the
// root's, else the next in the chain of the root's; nil when there is none.
func (a *attempt) stronger(by *asked) *asked {
	for _, m := range []*asked{a.run.escalate.named, a.run.models[0], a.run.escalate.next} {
		if m != nil && m.name != by.name && !m.ranked {
			return m
		}
	}
	return nil
}

// stop keeps the best try when what comes after it cannot be done: the budget
// ended, or the last attempt failed.
func (g *gate) stop(err error) (string, Data, error) {
	f, ok := errors.AsType[*attemptError](err)
	if !ok || len(g.tries) == 0 {
		return "", Data{}, err
	}
	final := g.a.l.Task.Attempts >= g.a.l.Task.MaxAttempts || !f.retry
	if f.kind != KindBudget && !final || g.a.run.cfg.GateFallback == GateFail {
		return "", Data{}, err
	}
	text, data, _ := g.result() // which does not fail
	data.addNotes([]string{"the quality gate stopped: " + err.Error()})
	return text, data, nil
}

// feedbackTokens is the part of a window that is kept for earlier tries.
func (c *Config) feedbackTokens(window int64) int64 {
	if c.MinScore == nil {
		return 0
	}
	return window / feedbackShare
}

// escalation are the models that GateEscalate may ask in addition to the root's; nil
// where there is none.
type escalation struct{ named, next *asked }

// models lists those that there are.
func (e *escalation) models() []*asked {
	return slices.DeleteFunc([]*asked{e.named, e.next}, func(m *asked) bool { return m == nil })
}

// nextInChain is the rest of the chain of the root's model; "" when it is one.
func (c *Config) nextInChain() string { return strings.Join(model.ChainNames(c.Model)[1:], ", ") }

func findEscalation(res Resolver, cfg *Config) (e escalation, err error) {
	if cfg.GateFallback != GateEscalate {
		return e, nil
	}
	if cfg.EscalateModel != "" {
		e.named, err = resolveModel(res, cfg.EscalateModel, cfg.modelOptions())
	} else if next := cfg.nextInChain(); next != "" {
		e.next, err = resolveModel(res, next, cfg.modelOptions())
	}
	return e, err
}

// checkGate refuses a quality gate that would have nothing to judge.
func (p *planning) checkGate(root *node) error {
	if p.cfg.MinScore == nil {
		return nil
	}
	written := root.leaf() || p.cfg.Merge == MergeSummarize || p.cfg.Planner == PlannerModel
	if p.cfg.GateAt == GateAtRoot && !written {
		return invalid(fmt.Sprintf("gate_at: the result of the root is put together by %s, and the gate judges what a "+
			"model writes", p.cfg.Merge),
			"use --merge summarize, or --gate-at all")
	}
	for _, m := range p.escalate.models() {
		if p.cfg.windowOf(m) < root.Window {
			return invalid(fmt.Sprintf("gate_fallback: model %q reads %d tokens at once, and the requests are made for %d",
				m.name, p.cfg.windowOf(m), root.Window), "name a model with a larger window, or use a smaller --context-window")
		}
	}
	return nil
}

// checkGate finds what is wrong with the settings of the quality gate.
func (c *Config) checkGate(bad func(field, format string, args ...any)) {
	if c.MinScore == nil {
		for _, f := range []struct{ field, value string }{{"gate_fallback", c.GateFallback}, {"gate_at", c.GateAt},
			{"escalate_model", c.EscalateModel}} {
			if f.value != "" {
				bad(f.field, "the quality gate is off; set min_score to enable it")
			}
		}
		if c.GateRounds != 0 {
			bad("gate_rounds", "the quality gate is off; set min_score to enable it")
		}
		return
	}
	if math.IsNaN(*c.MinScore) || math.IsInf(*c.MinScore, 0) {
		bad("min_score", "%g is not a number", *c.MinScore)
	}
	if c.Judge == "" || !strings.HasPrefix(c.Judge, programScheme) && !strings.HasPrefix(c.Judge, judgeRule) {
		if !(*c.MinScore >= 0 && *c.MinScore <= maxScore) {
			bad("min_score", "%s is not between 0 and %d, the scores that a judge model gives", score.Text(*c.MinScore),
				maxScore)
		}
	}
	if deterministic(c.Model) && deterministic(c.SubModel) && strings.HasPrefix(c.Model, "builtin:") &&
		strings.HasPrefix(c.SubModel, "builtin:") {
		bad("min_score", "%s answers the same each time, so further rounds cannot score better", c.Model)
	}
	if c.GateFallback == GateEscalate && c.EscalateModel == "" && c.Model == c.SubModel && c.nextInChain() == "" {
		bad("gate_fallback", "there is no stronger model to escalate to; name one with escalate_model, another sub_model, "+
			"or a chain of models")
	}
	if c.EscalateModel != "" && c.GateFallback != GateEscalate {
		bad("escalate_model", "it needs gate_fallback %s", GateEscalate)
	}
	if strings.HasPrefix(c.EscalateModel, "builtin:") {
		bad("escalate_model", "%q only quotes passages", c.EscalateModel)
	}
}
