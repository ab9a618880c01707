package loop

import (
	"math"
	"time"

	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
)

// Analytics is what the iterations of a loop came to: a document of
// iteration-analytics, with what each took.
type Analytics struct {
	Version    string              `json:"version"`
	LoopID     string              `json:"loop_id"`
	Task       string              `json:"task_description,omitempty"`
	Start      *time.Time          `json:"start_time"`
	End        *time.Time          `json:"end_time"`
	Iterations []AnalyzedIteration `json:"iterations"`
	Total      int                 `json:"total_iterations"`
	// Optimal is the best iteration, nil when none can be kept or not all were
	// looked at; Final the last one that is over.
	Optimal      *int            `json:"optimal_iteration"`
	Final        *int            `json:"final_iteration"`
	Selected     *int            `json:"selected_iteration"`
	Reason       string          `json:"selection_reason,omitempty"`
	Tokens       *int64          `json:"total_tokens"`
	CostUSD      *float64        `json:"total_cost_usd"`
	TookMS       int64           `json:"total_time_ms"`
	Diminishing  *bool           `json:"diminishing_returns_detected"`
	Diminished   *int            `json:"diminishing_returns_iteration"`
	Trajectory   *string         `json:"quality_trajectory"`
	Regressions  []Event         `json:"regression_events"`
	Attempts     int             `json:"recovery_attempts"`
	LayerTotals  *LayerMeasures  `json:"persistence_metrics,omitempty"`
	Baseline     *metric.Metrics `json:"baseline_metrics,omitempty"`
	Times        state.Times     `json:"times"`
	OverheadPart *float64        `json:"overhead_percentage"`
}

// AnalyzedIteration is one of them. Tokens and cost are those that the agent told.
type AnalyzedIteration struct {
	Iteration    int             `json:"iteration_number"`
	Timestamp    *time.Time      `json:"timestamp"`
	Quality      *int            `json:"quality_score"`
	Void         bool            `json:"quality_void,omitempty"`
	Delta        *int            `json:"quality_delta"`
	Tokens       *int64          `json:"tokens_used"`
	CostUSD      *float64        `json:"token_cost_usd"`
	TookMS       *int64          `json:"execution_time_ms"`
	Verification *string         `json:"verification_status"`
	Regressed    *bool           `json:"regression_detected"`
	Metrics      *metric.Metrics `json:"metrics_snapshot,omitempty"`
	Times        *state.Times    `json:"times,omitempty"`
	Overhead     *float64        `json:"overhead_percentage,omitempty"`
}

// Analytics makes the document of what the iterations came to.
func (s *Summary) Analytics() Analytics {
	a := Analytics{Version: "1.0.0", LoopID: s.ID(), Task: s.cfg.Task, Start: instant(s.in.Tree.CreatedAt),
		End: s.ended(), Total: len(s.points),
		Iterations: make([]AnalyzedIteration, 0, len(s.points)), TookMS: s.elapsed().Milliseconds(), Trajectory: s.course(),
		Regressions: append([]Event{}, s.events...), Attempts: s.sum.Recoveries, LayerTotals: s.measures(), Times: s.times()}
	for i := range s.points {
		a.Iterations = append(a.Iterations, s.points[i].analyzed())
	}
	if s.baseline != nil {
		a.Baseline = s.baseline.metrics
	}
	if s.best != nil && s.Whole() {
		a.Optimal = &s.best.Iteration
	}
	if p := s.judged(); p != nil {
		a.Final = &p.number
	}
	if n := s.standing.Selected; n > 0 {
		a.Selected, a.Reason = &n, s.standing.SelectedReason
	}
	if t := s.totals(); t.Tokens != nil {
		a.Tokens, a.CostUSD = t.Tokens, t.CostUSD
	}
	if part, ok := overhead(a.Times); ok {
		a.OverheadPart = &part
	}
	if at, known := s.plateau(); known {
		a.Diminishing = new(at > 0)
		if at > 0 {
			a.Diminished = &at
		}
	}
	return a
}

func (p *point) analyzed() AnalyzedIteration {
	a := AnalyzedIteration{Iteration: p.number, Timestamp: instant(p.ended), Void: p.void}
	if p.quality != unmeasured {
		a.Quality = &p.quality
	}
	if p.delta != unmeasured {
		a.Delta = &p.delta
	}
	if n := p.input + p.output; n > 0 {
		a.Tokens = &n
	}
	if !math.IsNaN(p.cost) {
		a.CostUSD = &p.cost
	}
	if !p.judged {
		return a
	}
	a.TookMS, a.Regressed, a.Times, a.Metrics = new(p.took.Milliseconds()), new(p.facts > 0), &p.times, p.metrics
	a.Verification = new(verification(&p.check))
	if part, ok := overhead(p.times); ok {
		a.Overhead = &part
	}
	return a
}

// flat is how much the quality may change, in percent of the score, to count as
// the same.
const flat = 5

// plateauOf is how many changes in a row that are flat make a plateau.
const plateauOf = 3

// plateau is the iteration after which the quality did not change any more, as
// far as was looked; 0 when there is none, false when there are too few.
func (s *Summary) plateau() (iteration int, known bool) {
	run, changes := 0, 0
	for i := range s.points {
		p := &s.points[i]
		if p.delta == unmeasured {
			continue
		}
		changes++
		if p.delta > flat || p.delta < -flat {
			run, iteration = 0, 0
			continue
		}
		if run++; run == plateauOf {
			iteration = p.number
		}
	}
	return iteration, changes >= plateauOf
}

// course says in a word where the quality goes; nil when there are too few
// iterations to say.
func (s *Summary) course() *string {
	first, last, up, down, n := unmeasured, unmeasured, 0, 0, 0
	for i := range s.points {
		p := &s.points[i]
		if p.quality == unmeasured {
			continue
		}
		if n++; n == 1 {
			first = p.quality
		} else {
			change := p.quality - last
			up, down = up+max(change, 0), down+max(-change, 0)
		}
		last = p.quality
	}
	if n < 2 {
		return nil
	}
	word := "fluctuating"
	switch total := last - first; {
	case up <= flat && down <= flat:
		word = "stable"
	case total > flat && total >= 2*down:
		word = "improving"
	case total < -flat && -total >= 2*up:
		word = "declining"
	}
	return &word
}
