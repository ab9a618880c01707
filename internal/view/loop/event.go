package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/loop/hook"
)

// Bounds of what is kept of a regression.
const (
	maxTests    = 20
	maxTestName = 300 // characters
	maxText     = 500 // characters of a text of the engine or a handler
)

// Event is a regression, as the document has it.
type Event struct {
	// ID is the number of the iteration and the place among its regressions, and
	// so the same each time.
	ID        string        `json:"event_id"`
	Timestamp *time.Time    `json:"timestamp,omitempty"`
	Iteration int           `json:"iteration"`
	Type      string        `json:"regression_type"`
	Severity  string        `json:"severity"`
	Details   *EventDetails `json:"details,omitempty"`
	// Recovery is set when a recovery was attempted, Outcome is its last result.
	Recovery bool   `json:"recovery_protocol_invoked"`
	Outcome  string `json:"recovery_outcome,omitempty"`
	// Gate is set when a person was asked, Decision is the answer.
	Gate     bool    `json:"human_gate_invoked"`
	Decision *string `json:"human_decision,omitempty"`
	// Fingerprints identify it in later iterations; FalseAlarm is set when a person
	// marked all of them as false alarms.
	Fingerprints []string `json:"fingerprints,omitempty"`
	FalseAlarm   bool     `json:"false_positive,omitempty"`

	more int // tests that Details leave out
	gate *gate
}

// EventDetails say what is different. The values count the tests in question.
type EventDetails struct {
	Text     string              `json:"text,omitempty"`
	Baseline *int                `json:"baseline_value,omitempty"`
	Current  *int                `json:"current_value,omitempty"`
	Diff     map[string][]string `json:"diff,omitempty"`
}

// eventsOf are the regressions of an iteration.
func (s *Summary) eventsOf(o *state.Outcome) []Event {
	if len(o.Regressions) == 0 {
		return nil
	}
	list := make([]Event, 0, len(o.Regressions))
	g := s.gates.recovery[o.Iteration]
	for i, r := range o.Regressions {
		e := Event{ID: regression.EventID(o.Iteration, i), Iteration: o.Iteration, Type: r.Type,
			Severity: severity(r.Severity), Details: details(o, &r), Timestamp: instant(o.Timestamp)}
		if n := len(o.Recoveries); n > 0 {
			e.Recovery, e.Outcome = true, o.Recoveries[n-1].Outcome
		} else if v := s.standing.Recovery; v != nil && v.Iteration == o.Iteration {
			e.Recovery = true
		}
		if g != nil {
			e.Gate, e.gate = true, g
			if slices.Contains(decisions(), g.Answer) {
				e.Decision = &g.Answer
			}
		}
		e.Fingerprints = r.Fingerprints
		e.FalseAlarm = len(r.Fingerprints) > 0 &&
			!slices.ContainsFunc(r.Fingerprints, func(name string) bool { return !s.marked[name] })
		e.more = max(0, len(r.Tests)-maxTests)
		list = append(list, e)
	}
	return list
}

// decisions are the answers that the document knows.
func decisions() []string {
	return []string{"approve", "reject", "abort", "retry", "delegate", "conditional", "whitelist"}
}

// severities are in their order, the gravest first.
func severities() []string {
	return []string{string(hook.Critical), string(hook.High), string(hook.Medium), string(hook.Low)}
}

// severity is one of severities; a word that is none counts as the gravest.
func severity(word string) string {
	if slices.Contains(severities(), word) {
		return word
	}
	return string(hook.Critical)
}

// worst is the gravest severity of some events.
func worst(events []Event) string {
	order := severities()
	return slices.MinFunc(events,
		func(a, b Event) int { return slices.Index(order, a.Severity) - slices.Index(order, b.Severity) }).Severity
}

func details(o *state.Outcome, r *regression.Regression) *EventDetails {
	d := &EventDetails{Text: clip.Runes(r.Text, maxText)}
	key := "tests"
	counted := map[hook.RegressionType]struct {
		key string
		of  func(c *testreport.Counts) int
	}{
		hook.TestDeletion:  {"deleted_tests", func(c *testreport.Counts) int { return c.Tests }},
		hook.TestSkipping:  {"skipped_tests", func(c *testreport.Counts) int { return c.Skipped }},
		hook.TestFailure:   {"failing_tests", func(c *testreport.Counts) int { return c.Failed }},
		hook.RunIncomplete: {"unrun_tests", func(c *testreport.Counts) int { return c.Executed }},
	}
	if c, ok := counted[hook.RegressionType(r.Type)]; ok {
		key = c.key
		if o.Diff != nil {
			d.Baseline, d.Current = new(c.of(&o.Diff.Before)), new(c.of(&o.Diff.Now))
		}
	} else if r.Type == string(hook.CoverageRegression) && o.Metrics != nil && o.Metrics.Loss != nil {
		d.Baseline, d.Current = new(o.Metrics.Loss.Still), new(o.Metrics.Loss.Still-o.Metrics.Loss.Lost)
	}
	for key, names := range map[string][]string{key: r.Tests, "files": r.Files} {
		if len(names) == 0 {
			continue
		}
		if d.Diff == nil {
			d.Diff = make(map[string][]string)
		}
		d.Diff[key] = cutAll(names, maxTests, maxTestName, clip.Runes)
	}
	return d
}

// tests returns the first names of the event's tests, and how many more there are in
// words.
func (e *Event) tests(characters int) (list []string, more string) {
	for key, names := range e.Details.Diff {
		if key == "files" {
			continue
		}
		list = cutAll(names, maxEventTests, characters, oneLine)
		if left := len(names) + e.more - maxEventTests; left > 0 {
			more = fmt.Sprintf("and %d more", left)
		}
	}
	return list, more
}

// gate is a question with what was answered.
type gate struct {
	perdure.Gate
	asked perdure.GateQuestion
}

func (g *gate) open() bool { return g.AnsweredAt == nil }

// gates are the questions of a loop, and which was about which iteration.
type gates struct {
	all      []gate
	recovery map[int]*gate
}

func readGates(list []perdure.Gate) gates {
	g := gates{all: make([]gate, len(list)), recovery: make(map[int]*gate)}
	for i := range list {
		one := &g.all[i]
		one.Gate, one.Question = list[i], nil
		if err := json.Unmarshal(list[i].Question, &one.asked); err != nil {
			one.asked = perdure.GateQuestion{Title: "the question cannot be read"}
		}
		if one.Kind == perdure.GateRecovery {
			g.recovery[one.Iteration] = one
		}
	}
	return g
}

// waiting returns the unanswered gate, or nil.
func (g *gates) waiting() *gate {
	for i := len(g.all) - 1; i >= 0; i-- {
		if g.all[i].open() {
			return &g.all[i]
		}
	}
	return nil
}

func (g *gates) any(kind perdure.GateKind) bool {
	return slices.ContainsFunc(g.all, func(one gate) bool { return one.Kind == kind })
}
