package loop

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Size limits of text in a document, in characters, of which a loop of 10,000
// iterations may have as many.
const (
	maxStateOutput = 1000 // the end of what a check printed; of the last check all
	maxStateError  = 1000
	maxStateFails  = 20 // names of failing tests an iteration
	maxStateTitle  = 500
)

// Document makes the state of a loop from its rows. Records that cannot be read
// are left out, as is everything that is not known.
func Document(in Input) State {
	d := NewDraft(in)
	return d.State()
}

// Draft is a state that is given the iterations a page at a time, so that not
// all rows of a long loop are in memory at once. It is not safe for use from
// several goroutines at once.
type Draft struct {
	s *Summary
	d State
}

// NewDraft begins a state with the iterations of the input.
func NewDraft(in Input) *Draft {
	s := newSummary(in)
	d := State{
		Version: "2.0.0", LoopID: s.ID(), TreeID: string(in.Tree.ID), Status: s.Status(), Step: in.Loop.Step,
		Iteration: in.Loop.Iteration,
		Reason:    s.standing.Reason, StartedAt: instant(in.Tree.CreatedAt), LastUpdated: instant(in.Loop.UpdatedAt),
		CompletedAt: s.ended(),
		History:     []Iteration{}, Errors: []AgentError{}, Before: string(s.standing.Run.Before),
		Withheld: s.standing.Withheld, ReportPath: in.Report, HeldOut: in.HeldOut,
		Detecting: !in.Loop.Status.Ended() && !s.cfg.Plain,
	}
	if in.Loop.Status.Ended() {
		d.Step = ""
	}
	if at := s.standing.Branch; at != nil {
		d.Branch, d.Commit = at.Branch, at.Head
	}
	d.configure(&s.cfg)
	if p := s.standing.Past; p != nil && in.Document != nil {
		if doc, ok := readObject(in.Document); ok {
			d.past = &past{*p, doc}
		}
	}
	s.in.Iterations = nil
	t := &Draft{s, d}
	t.Add(in.Iterations)
	return t
}

// Add goes on with the iterations that follow. It keeps none of the slice.
func (t *Draft) Add(list []record.Iteration) {
	for i := range list {
		o, known := outcomeOf(&list[i])
		t.s.add(&list[i], &o, known)
		if n := list[i].Number; n == 0 || n > t.s.in.Omitted {
			t.d.record(t.s, &list[i], &o, known)
		}
	}
}

// State is the document of what was given. Nothing may be added afterwards.
func (t *Draft) State() State {
	t.d.conclude(t.s)
	return t.d
}

// Summary is the summary of the same iterations.
func (t *Draft) Summary() *Summary { return t.s }

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// configure adds the configuration of the loop. A configuration that cannot be read is
// the zero one.
func (d *State) configure(c *config.Config) {
	if c.Task == "" {
		return
	}
	d.Task, d.Criteria, d.Directory = c.Task, c.Until, c.Workspace
	minutes := func(t time.Duration) *float64 {
		if t <= 0 {
			return nil
		}
		return new(t.Minutes())
	}
	d.Configuration = &Configuration{
		MaxIterations: c.MaxIterations, TimeoutMinutes: minutes(c.Timeout), IdleMinutes: minutes(c.IdleTimeout),
		CheckMinutes: minutes(c.CheckTimeout),
		GateMinutes:  minutes(c.GateTimeout), Agent: c.Agent, Fallback: c.Fallback, MaxRetries: max(0, c.MaxRetries),
		Scorer:           c.Scorer,
		QualityThreshold: max(0, c.QualityThreshold), Selection: c.Selection, KeepLast: c.KeepLast,
		Unattended: c.Unattended, Own: own(c),
	}
}

// own is a configuration as perdure has it: what is otherwise than by default. The
// task and the folder stand in the document anyway.
func own(c *config.Config) map[string]json.RawMessage {
	usual, err := config.Parse(json.RawMessage(`{"task":"-","until":"-","workspace":"/","agent":"-"}`))
	if err != nil {
		return nil
	}
	fields, standard := fieldsOf(c), fieldsOf(&usual)
	for name, value := range fields {
		if bytes.Equal(value, standard[name]) || slices.Contains([]string{"task", "workspace", "given"}, name) {
			delete(fields, name)
		}
	}
	return fields
}

func fieldsOf(c *config.Config) (fields map[string]json.RawMessage) {
	raw, err := json.Marshal(c)
	if err != nil || json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

func (d *State) record(s *Summary, it *record.Iteration, o *state.Outcome, known bool) {
	at := instant(o.Timestamp)
	if known {
		d.check(it.Number, at, &o.Check)
	}
	if it.Number == 0 {
		if known {
			d.Baseline = metrics(at, o)
		}
		return
	}
	h := Iteration{Iteration: it.Number, Timestamp: at, Status: it.Status, Quality: it.Quality, Void: o.Void(),
		Scorer: o.Scorer, Commit: o.Commit,
		Artifacts: o.Artifacts, Changed: o.Changed,
		Agent: o.Agent, Input: o.InputTokens, Output: o.OutputTokens, CostUSD: o.CostUSD, Measured: o.Measured}
	if h.Artifacts == nil {
		h.Artifacts = []string{}
	}
	if o.After != "" {
		h.Snapshot = new(string(o.After))
	}
	if known {
		h.Parts, h.Tests, h.Metrics, h.Times = o.Parts, results(&o.Check), metrics(at, o), new(o.Times)
		h.NewTests, h.Deciders = o.NewTests, o.Deciders
		h.Regressed = new(len(o.Regressions) > 0)
		d.LastQuality, d.LastVoid, d.RegressionNow = it.Quality, h.Void, h.Regressed
	}
	if p := s.points[len(s.points)-1]; p.delta != unmeasured {
		h.Delta = &p.delta
	}
	d.History = append(d.History, h)
	for i := range o.Risky {
		d.Risky = append(d.Risky, action(it.Number, &o.Risky[i]))
		d.LastRisky = &d.Risky[len(d.Risky)-1]
	}
	for i := range o.Calls {
		d.Calls = append(d.Calls, action(it.Number, &o.Calls[i]))
	}
	d.Calls = d.Calls[max(0, len(d.Calls)-maxCalls):]
	for _, e := range agentErrors(it.Number, o) {
		d.Errors, d.LastError = append(d.Errors, e), &e
	}
}

// agentErrors lists the errors of the agent in an iteration: those that a retry followed, and
// that of the last turn.
func agentErrors(number int, o *state.Outcome) (list []AgentError) {
	for _, e := range o.Retried {
		list = append(list, agentError(number, e.At, e.Message))
	}
	if o.AgentError != "" {
		list = append(list, agentError(number, o.Timestamp, o.AgentError))
	}
	return list
}

func agentError(number int, at time.Time, text string) AgentError {
	e := AgentError{Iteration: number, Timestamp: instant(at), Message: clip.Runes(text, maxStateError)}
	if kind, _, ok := strings.Cut(text, ":"); ok && kind != "" &&
		strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz_") == "" {
		e.Type = kind
	}
	return e
}

// maxCalls is how many calls of tools a document lists.
const maxCalls = 1000

func action(iteration int, c *policy.Risky) Action {
	verdict := map[risk.Answer]string{risk.Allow: "ALLOW", risk.Warn: "WARN", risk.Gate: "BLOCK",
		risk.Block: "BLOCK"}[c.Answer]
	return Action{Tool: c.Tool, Target: c.Target, Level: string(c.Level), Pattern: string(c.Pattern), Timestamp: c.At,
		Iteration: iteration,
		Verdict:   verdict, Snapshot: string(c.Snapshot)}
}

// check adds a run of the completion command.
func (d *State) check(number int, at *time.Time, c *state.Check) {
	if d.Progress == nil {
		d.Progress = &Checks{}
	}
	run := CheckRun{Iteration: number, Timestamp: at, Passed: c.Passed, Exit: c.Exit, Output: c.Output}
	d.Progress.Last = &run
	short := run
	short.Output = clip.End(c.Output, maxStateOutput)
	d.Progress.All = append(d.Progress.All, short)
}

func metrics(at *time.Time, o *state.Outcome) *Metrics {
	m := Metrics{at, metricsOf(o)}
	if m.CapturedAt == nil && m.Tests == nil && o.Metrics == nil {
		return nil
	}
	return &m
}

func verification(c *state.Check) string {
	if c.Passed {
		return "passed"
	}
	return "failed"
}

func results(c *state.Check) *TestResults {
	r := &TestResults{Verification: verification(c)}
	if !c.Weak {
		n := c.Counts
		r.Total, r.Passed, r.Failed, r.Skipped = &n.Tests, &n.Passed, &n.Failed, &n.Skipped
		r.Failing = cutAll(c.Failing, maxStateFails, maxTestName, clip.Runes)
	}
	return r
}

// conclude adds what follows from all iterations.
func (d *State) conclude(s *Summary) {
	d.Omitted, d.Regressions = s.in.Omitted, []Event{}
	for i := range s.events {
		if s.events[i].Iteration > d.Omitted {
			d.Regressions = append(d.Regressions, s.events[i])
		}
	}
	d.ErrorCount, d.Attempts = s.sum.AgentErrors, s.sum.Recoveries
	d.single(s)
	if s.Whole() && s.best != nil {
		d.Best = choice(s.best, s.bestReason())
	}
	if n := s.standing.Selected; n > 0 && d.Selected == nil {
		d.Selected = &Choice{Iteration: n, Reason: s.standing.SelectedReason}
		if at := slices.IndexFunc(d.History, func(h Iteration) bool { return h.Iteration == n }); at >= 0 {
			h := &d.History[at]
			d.Selected.Quality = h.Quality
			if h.Snapshot != nil {
				d.Selected.Snapshot = *h.Snapshot
			}
		}
	}
	d.Recoveries = make([]Recovery, 0, len(s.recovery))
	for i := range s.recovery {
		if s.recovery[i].Iteration <= d.Omitted {
			continue
		}
		d.Recoveries = append(d.Recoveries, recoveryOf(&s.recovery[i].Recovery, s.recovery[i].Event))
	}
	if v := s.standing.Recovery; v != nil {
		d.Attempts++
		d.Recoveries = append(d.Recoveries, recoveryOf(v, ""))
	}
	d.Recovering, d.Stuck = s.recovering(), s.gates.any(perdure.GateStuck)
	d.Levels, d.Level = s.standing.Levels, s.level()
	d.Patterns = []string{}
	for _, t := range s.sum.Regressions {
		if kind := t.Type; !slices.Contains(d.Patterns, kind) {
			d.Patterns = append(d.Patterns, kind)
		}
	}
	d.PersistenceTotals, d.Metrics = s.measures(), s.totals()
	d.Gates = make([]Gate, 0, len(s.gates.all))
	for i := range s.gates.all {
		d.Gates = append(d.Gates, gateOf(&s.gates.all[i]))
	}
}

// single adds single iterations that are not in the histories.
func (d *State) single(s *Summary) {
	for i := range s.in.Single {
		it := &s.in.Single[i]
		o, _ := outcomeOf(it)
		if it.Number == s.standing.Selected {
			d.Selected = choice(&o, s.standing.SelectedReason)
		}
		if all := agentErrors(it.Number, &o); it.Number == s.sum.LastError && d.LastError == nil && len(all) > 0 {
			d.LastError = &all[len(all)-1]
		}
	}
}

func choice(o *state.Outcome, reason string) *Choice {
	return &Choice{Iteration: o.Iteration, Quality: o.Quality, Snapshot: string(o.After), Reason: reason}
}

// recovering reports whether something is being done about a regression now, which is not so
// when the loop has ended.
func (s *Summary) recovering() bool {
	if s.in.Loop.Status.Ended() {
		return false
	}
	g := s.gates.waiting()
	return s.standing.Recovery != nil || g != nil && g.Kind == perdure.GateRecovery
}

// level returns the reinforcement level; before the first iteration, the one that it will have
// unless a handler asks for another.
func (s *Summary) level() string {
	if n := len(s.standing.Levels); n > 0 {
		return string(s.standing.Levels[n-1].To)
	}
	if s.cfg.Plain || s.cfg.Task == "" || s.in.Loop.Iteration > 0 {
		return ""
	}
	cfg := reinforce.Config{Default: s.cfg.Reinforcement, StandardFrom: s.cfg.StandardFrom,
		AggressiveFrom: s.cfg.AggressiveFrom, PlateauPercent: s.cfg.PlateauPercent}
	level, _ := cfg.Level(&reinforce.Facts{Iteration: 1})
	return string(level)
}

func recoveryOf(v *state.Recovery, event string) Recovery {
	out := Recovery{Event: event, Iteration: v.Iteration, Attempt: v.Attempt, Outcome: v.Outcome,
		Steps: make(map[string]Step, len(v.Steps))}
	for i, done := range v.Steps {
		step := Step{ExecutedAt: done.ExecutedAt.UTC(), Text: clip.Runes(done.Text, maxText)}
		if i == 0 {
			out.Timestamp = &step.ExecutedAt
		}
		name := strings.ToUpper(done.Step)
		if name == "DIAGNOSE" {
			step.Text, step.Diagnosis, step.Cause = "", string(v.Diagnosis), clip.Runes(v.Why, maxText)
			step.Confidence = new(float64(v.Confidence) / 100)
		}
		out.Steps[name] = step
	}
	return out
}

func gateOf(g *gate) Gate {
	out := Gate{Gate: g.Number, Iteration: g.Iteration, Kind: g.Kind, Title: clip.Runes(g.asked.Title, maxStateTitle),
		Options:  make([]string, 0, len(g.asked.Options)),
		OpenedAt: g.OpenedAt, ExpiresAt: g.ExpiresAt, Answer: g.Answer, AnsweredBy: g.AnsweredBy, Reason: g.Reason,
		AnsweredAt: g.AnsweredAt}
	for _, o := range g.asked.Options {
		out.Options = append(out.Options, o.Answer)
	}
	return out
}

// falseAlarms counts the regressions of which a person marked something as a false
// alarm, those included that were marked where the loop came from.
func (s *Summary) falseAlarms() int {
	events := make(map[string]bool)
	for i := range s.in.FalseAlarms {
		if id := s.in.FalseAlarms[i].Event; id != "" {
			events[id] = true
		}
	}
	n := len(events)
	if p := s.standing.Past; p != nil {
		n += p.FalseAlarms
	}
	return n
}

// measures are those of the supervision.
func (s *Summary) measures() *LayerMeasures {
	m := &LayerMeasures{Detections: s.sum.Total()}
	if s.in.FalseAlarms != nil {
		m.FalseAlarms = new(s.falseAlarms())
		if m.Detections > 0 {
			m.FalseAlarmRate = new(min(1, float64(*m.FalseAlarms)/float64(m.Detections)))
		}
	}
	if percent, ok := overheadOf(s.sum.AddedMS, s.sum.WorkMS); ok {
		m.Overhead = &percent
	}
	return m
}

// totals sum up what is over.
func (s *Summary) totals() *Totals {
	h := &s.sum
	t := &Totals{Seconds: s.elapsed().Seconds(), Iterations: h.Iterations - h.Running, Successful: h.Kept}
	t.Failed = t.Iterations - t.Successful
	took := time.Duration(h.TookMicros) * time.Microsecond
	if t.Iterations > 0 {
		t.Mean = new(took.Seconds() / float64(t.Iterations))
	}
	if u, known := s.usage(); known {
		t.Tokens = new(u.InputTokens + u.OutputTokens)
		if u.UnpricedCalls == 0 {
			t.CostUSD = &u.CostUSD
		}
	}
	return t
}

// usage is what the calls of the loop took; false when that is not known.
func (s *Summary) usage() (perdure.Usage, bool) {
	return s.in.Progress.Usage, s.in.Progress.Tree != ""
}
