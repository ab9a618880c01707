// Package loop shows loops: as the document of their state that other
// programs read, on the terminal, and as a report. It reads the rows of loops and
// nothing else.
//
// Everything comes from an [Input]. [Document] makes the document of it; the
// views for people are methods of a [Summary], which keeps little of each
// iteration and may be given them a page at a time.
package loop

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/heldout"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Input is what is known of a loop.
type Input struct {
	Tree perdure.Tree
	Loop record.Loop
	// Iterations are in their order; number 0 is the baseline. They need not be
	// all: what follows from the others is then left out, but for what the History
	// tells. See [Input.Load].
	Iterations []record.Iteration
	// History is what all iterations came to; nil when Iterations alone say it.
	History *record.History
	// Single are other iterations that are shown: the one that was selected, the last with a
	// warning, the last with an error of the agent.
	Single []record.Iteration
	// Omitted is how many iterations, the first ones, are not in the histories of a
	// document.
	Omitted int
	// Gates are in their order.
	Gates []perdure.Gate
	// Progress is the tree's; without a tree it is not known.
	Progress perdure.Progress
	// FalseAlarms are findings that a person marked as none; nil where that is not
	// kept.
	FalseAlarms []record.FalseAlarm
	// Document is what a loop came in as that began elsewhere; nil for others, and
	// where that is not needed.
	Document json.RawMessage
	// HeldOut is the held-out check; nil if there is none, and for agents.
	HeldOut *HeldOut
	// Report is the file with the report of an ended loop, empty if there is none.
	Report string
	// Crashed reports that the loop is running and no process executes it.
	Crashed bool
	// Now is when this is looked at.
	Now time.Time
}

// point is what a summary keeps of an iteration, a few hundred bytes.
type point struct {
	number   int
	status   record.IterationStatus
	judged   bool // it is over and its record can be read
	quality  int  // unmeasured when there is none
	delta    int  // to the measured iteration before; unmeasured without one
	check    state.Check
	metrics  *metric.Metrics // without what is long; nil when none were taken
	cost     float64         // NaN when it is not known
	input    int64
	output   int64
	measured state.Measured
	times    state.Times
	facts    int // how many regressions
	worst    string
	agent    string
	sight    agent.Sight
	denied   int
	// unpermitted are the calls that the agent's own permissions denied.
	unpermitted state.Unpermitted
	risky       int
	void        bool
	changed     int
	diff        string // of the changed files; empty if it was not given
	ended       time.Time
	took        time.Duration
}

// unmeasured stands for a number that is not known.
const unmeasured = math.MinInt

func (p *point) reverted() bool { return p.status == record.IterationReverted }

// Summary is what the views show of a loop. It is not safe for use from several
// goroutines at once.
type Summary struct {
	in       Input
	cfg      config.Config
	standing *state.State
	points   []point
	baseline *point
	// gap tells that there are iterations that were not given.
	gap      bool
	events   []Event
	best     *state.Outcome
	last     *state.Outcome // of the last one that is over
	recovery []recovered
	sum      record.History // without its single iterations
	warnings []string       // the last maxWarnings
	sealed   string         // what the last clean copy came to; empty without one
	deciders []string       // the changed files that decide what the check runs, of the last iteration
	gates    gates
	accepted map[int]bool // iterations that a person approved
	marked   map[string]bool
	// noted are findings of the last iteration that warn and do not count as regressions.
	noted []detect.Finding
}

// recovered is what was done about an iteration's regressions.
type recovered struct {
	state.Recovery
	Event string
}

// New begins a summary with the iterations of the input.
func New(in Input) *Summary {
	s := newSummary(in)
	s.Add(in.Iterations)
	s.in.Iterations = nil
	return s
}

func newSummary(in Input) *Summary {
	s := &Summary{in: in, standing: &state.State{}, gates: readGates(in.Gates), accepted: make(map[int]bool),
		marked: make(map[string]bool)}
	for i := range in.FalseAlarms {
		s.marked[in.FalseAlarms[i].Fingerprint] = true
	}
	if cfg, err := config.Of(&in.Tree, &in.Loop); err == nil {
		s.cfg = cfg
	}
	if standing, err := state.Read(in.Loop.State); err == nil {
		s.standing = standing
	}
	s.in.Gates = nil
	if in.History != nil {
		s.addHistory()
	}
	return s
}

// Add goes on with the iterations that follow. It keeps none of the slice.
func (s *Summary) Add(list []record.Iteration) {
	for i := range list {
		o, known := outcomeOf(&list[i])
		s.add(&list[i], &o, known)
	}
}

// outcomeOf reads the record of an iteration; what cannot be read is as if it
// were not there.
func outcomeOf(it *record.Iteration) (o state.Outcome, known bool) {
	o, err := state.ReadOutcome(it)
	if err != nil {
		o = state.Outcome{}
	}
	o.Iteration, o.Quality = it.Number, it.Quality
	return o, err == nil && it.EndedAt != nil
}

func (s *Summary) add(it *record.Iteration, o *state.Outcome, known bool) {
	p := point{number: it.Number, status: it.Status, judged: known, quality: unmeasured, delta: unmeasured,
		cost: math.NaN(), agent: clip.Runes(o.Agent, maxName), sight: o.Sight, denied: o.Denied, risky: len(o.Risky),
		unpermitted: o.Unpermitted, void: o.Void(), changed: o.Changed,
		diff: o.FileDiff}
	if it.Quality != nil {
		p.quality = *it.Quality
	}
	if o.CostUSD != nil {
		p.cost = *o.CostUSD
	}
	p.measured = o.Measured
	p.input, p.output, p.times, p.facts = o.InputTokens, o.OutputTokens, o.Times, len(o.Regressions)
	p.check, p.metrics = o.Check, kept(o.Metrics)
	p.check.Output, p.check.Failing, p.check.Command, p.check.Results = "", nil, "", ""
	if it.EndedAt != nil {
		p.ended, p.took = *it.EndedAt, it.EndedAt.Sub(it.StartedAt)
	}
	if it.Number == 0 {
		s.baseline = &p
		return
	}
	s.gap = s.gap || it.Number != s.number()+1 && it.Number > s.elsewhere()+1
	p.delta = s.delta(&p)
	events := s.eventsOf(o)
	if len(events) > 0 {
		p.worst = worst(events)
	}
	s.events = append(s.events, events...)
	s.points = append(s.points, p)
	s.recoveries(o, events)
	if o.Accepted {
		s.accepted[o.Iteration] = true
	}
	s.warn(o)
	if s.in.History == nil {
		s.count(&p, o, events)
	}
	s.seal(o)
	s.decide(o)
	if !known || o.Imported { // what an iteration elsewhere left is not known here
		return
	}
	s.last, s.noted = o, s.warns(o)
	if s.in.History == nil && o.Eligible(it) &&
		heldout.Prefers(&s.cfg, s.in.HeldOut.byIteration(), o, s.best) {
		s.best = o
	}
}

// warn keeps the warnings of an iteration.
func (s *Summary) warn(o *state.Outcome) {
	for _, w := range o.Warnings {
		s.warnings = append(s.warnings, fmt.Sprintf("iteration %d: %s", o.Iteration, oneLine(w, maxText)))
		s.warnings = s.warnings[max(0, len(s.warnings)-maxWarnings):]
	}
}

// seal keeps what a clean copy of an iteration came to.
func (s *Summary) seal(o *state.Outcome) {
	if o.CleanCopy != nil {
		s.sealed = fmt.Sprintf("iteration %d: %s", o.Iteration, oneLine(sealedText(o.CleanCopy), maxText))
	}
}

// maxDeciders is how many files that decide what the check runs are shown.
const maxDeciders = 10

// decide keeps the changed files that decide what the check runs.
func (s *Summary) decide(o *state.Outcome) {
	s.deciders = nil
	for i := range o.Deciders {
		if i == maxDeciders {
			s.deciders = append(s.deciders, fmt.Sprintf("%d more files", len(o.Deciders)-i))
			return
		}
		s.deciders = append(s.deciders, oneLine(o.Deciders[i].String(), maxText))
	}
}

// lastWarning says how many warnings there were, and the last; empty without any.
func (s *Summary) lastWarning() string {
	if s.sum.Warnings == 0 || len(s.warnings) == 0 {
		return ""
	}
	return fmt.Sprintf("%d, the last: %s", s.sum.Warnings, s.warnings[len(s.warnings)-1])
}

// maxWarnings is how many warnings are shown in words.
const maxWarnings = 3

// elsewhere is the highest number that was given elsewhere, before the loop came in.
// Of iterations of then not all need be known.
func (s *Summary) elsewhere() int {
	if s.standing.Past == nil {
		return 0
	}
	return s.standing.Past.Iteration
}

// number is the highest one so far.
func (s *Summary) number() int {
	if n := len(s.points); n > 0 {
		return s.points[n-1].number
	}
	return 0
}

// delta is how much better an iteration is than the one before.
func (s *Summary) delta(p *point) int {
	if p.quality == unmeasured {
		return unmeasured
	}
	before := s.baseline
	for i := len(s.points) - 1; i >= 0; i-- {
		if s.points[i].quality != unmeasured {
			before = &s.points[i]
			break
		}
	}
	if before == nil || before.quality == unmeasured || s.gap && len(s.points) == 0 {
		return unmeasured
	}
	return p.quality - before.quality
}

func (s *Summary) recoveries(o *state.Outcome, events []Event) {
	event := ""
	if len(events) > 0 {
		event = events[0].ID
	}
	for _, v := range o.Recoveries {
		v.Why = clip.Runes(v.Why, maxText)
		for i := range v.Steps {
			v.Steps[i].Text = clip.Runes(v.Steps[i].Text, maxText)
		}
		s.recovery = append(s.recovery, recovered{v, event})
	}
}

// Whole reports whether what all iterations came to was given. Only then the best one
// is known, and how many regressions there are.
func (s *Summary) Whole() bool {
	return s.in.History != nil || !s.gap && max(s.number(), s.elsewhere()) >= s.in.Loop.Iteration-1
}

// ID is what people call the loop.
func (s *Summary) ID() string { return oneLine(loop.ID(&s.in.Tree), maxID) }

// maxID is the longest ID that documents may have, in characters.
const maxID = 200

// Status is the loop's, or crashed.
func (s *Summary) Status() string {
	switch {
	case s.stopped():
		return string(record.Paused)
	case !s.in.Loop.Status.Ended() && (s.in.Crashed || s.in.Tree.State.Terminal()):
		return statusCrashed
	}
	return string(s.in.Loop.Status)
}

// stopped reports whether the user stopped the process that ran the loop (Ctrl-C), which asks
// for a pause that no process carries out any more.
func (s *Summary) stopped() bool {
	return s.in.Crashed && (s.in.Loop.Control == record.Pause || s.in.Loop.Control == record.PauseNow)
}

// endedByOthers reports whether the tree of the loop was completed or cancelled although the loop
// has not ended. A tree that failed can continue.
func (s *Summary) endedByOthers() bool {
	state := s.in.Tree.State
	return !s.in.Loop.Status.Ended() && state.Terminal() && state != perdure.Failed
}

// statusCrashed is not among those that rows have.
const statusCrashed = "crashed"

// judged is the last iteration that is over; nil before the first.
func (s *Summary) judged() *point {
	for i := len(s.points) - 1; i >= 0; i-- {
		if s.points[i].judged {
			return &s.points[i]
		}
	}
	return nil
}

func (s *Summary) times() (t state.Times) {
	for i := range s.points {
		t = added(t, s.points[i].times)
	}
	return t
}

// added sums up what two iterations took.
func added(t, u state.Times) state.Times {
	return state.Times{Agent: t.Agent + u.Agent, Check: t.Check + u.Check, Metrics: t.Metrics + u.Metrics,
		CleanCopy: t.CleanCopy + u.CleanCopy, Mutations: t.Mutations + u.Mutations, Snapshot: t.Snapshot + u.Snapshot,
		Hooks: t.Hooks + u.Hooks, Engine: t.Engine + u.Engine}
}

// overhead is what perdure adds to the time of agent and check, in percent; false
// when that took no time.
func overhead(t state.Times) (float64, bool) {
	return overheadOf(t.Snapshot+t.Hooks+t.Engine, t.Agent+t.Check+t.Metrics)
}

func overheadOf(added, work int64) (float64, bool) {
	if work <= 0 {
		return 0, false
	}
	return 100 * float64(added) / float64(work), true
}

// ended is when the loop ended; nil before.
func (s *Summary) ended() *time.Time {
	if !s.in.Loop.Status.Ended() {
		return nil
	}
	if t := s.in.Tree.CompletedAt; t != nil {
		return t
	}
	return new(s.in.Loop.UpdatedAt)
}

// elapsed is how long the loop took, or takes so far.
func (s *Summary) elapsed() time.Duration {
	end := s.in.Now
	if t := s.ended(); t != nil {
		end = *t
	}
	return max(0, end.Sub(s.in.Tree.CreatedAt))
}

// agent is the name of the agent that works now.
func (s *Summary) agent() string {
	if s.cfg.Agent == "" {
		return ""
	}
	return s.cfg.AgentAt(s.standing.Agent)
}
