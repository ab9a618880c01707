package loopimport

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Limits of the rows of the iterations; the document has all.
const (
	maxArtifacts = 200
	maxListed    = 50      // of tests, files and recoveries
	maxText      = 600     // bytes of a text
	maxOutput    = 8 << 10 // bytes
)

// pastLoop has the members of a loop-state document that become rows.
type pastLoop struct {
	LoopID        string          `json:"loop_id"`
	Status        string          `json:"status"`
	Iteration     whole           `json:"iteration"`
	Task          string          `json:"task"`
	Criteria      string          `json:"completion_criteria"`
	StartedAt     time.Time       `json:"started_at"`
	Owner         string          `json:"owner"`
	PID           *whole          `json:"pid"`
	Directory     string          `json:"working_directory"`
	Configuration *pastConfig     `json:"configuration"`
	Progress      *pastProgress   `json:"progress"`
	History       []pastIteration `json:"iteration_history"`
	Omitted       whole           `json:"omitted_iterations"`
	Best          *pastChoice     `json:"best_iteration"`
	Events        []pastEvent     `json:"regression_events"`
	Recoveries    []pastRecovery  `json:"recovery_history"`
	Errors        []pastError     `json:"error_history"`
	Watched       *pastWatched    `json:"persistence_metrics"`
}

type pastWatched struct {
	FalseAlarms whole `json:"false_positives"`
}

type pastConfig struct {
	MaxIterations whole                      `json:"max_iterations"`
	Minutes       json.RawMessage            `json:"timeout_minutes"`
	Own           map[string]json.RawMessage `json:"perdure"`
}

type pastProgress struct {
	Checks []pastCheck `json:"completion_checks"`
}

type pastCheck struct {
	Iteration whole  `json:"iteration"`
	Passed    bool   `json:"passed"`
	Output    string `json:"output"`
	// Exit is written by perdure; other documents can have any value.
	Exit json.RawMessage `json:"exit_status"`
}

type pastIteration struct {
	Iteration whole     `json:"iteration"`
	Timestamp time.Time `json:"timestamp"`
	// Status is written by perdure; other documents can have any value.
	Status    json.RawMessage     `json:"status"`
	Quality   *float64            `json:"quality_score"`
	Parts     map[string]*float64 `json:"quality_breakdown"`
	Delta     *float64            `json:"quality_delta"`
	Artifacts []pastArtifact      `json:"artifacts"`
	Tests     *pastTests          `json:"test_results"`
}

type pastTests struct {
	Verification string `json:"verification_status"`
	Total        *whole `json:"total"`
	Passed       whole  `json:"passed"`
	Failed       whole  `json:"failed"`
	Skipped      whole  `json:"skipped"`
}

type pastChoice struct {
	Iteration whole    `json:"iteration"`
	Quality   *float64 `json:"quality_score"`
}

type pastEvent struct {
	ID        string       `json:"event_id"`
	Iteration whole        `json:"iteration"`
	Type      string       `json:"regression_type"`
	Severity  string       `json:"severity"`
	Details   *pastDetails `json:"details"`
	Outcome   string       `json:"recovery_outcome"`
	Decision  string       `json:"human_decision"`
	// FalseAlarm is set if a person marked all findings as false alarms.
	FalseAlarm bool `json:"false_positive"`
}

type pastDetails struct {
	Text     json.RawMessage `json:"text"`
	Baseline json.RawMessage `json:"baseline_value"`
	Current  json.RawMessage `json:"current_value"`
	Diff     json.RawMessage `json:"diff"`
}

type pastRecovery struct {
	Event     string              `json:"event_id"`
	Iteration *whole              `json:"iteration"`
	Attempt   whole               `json:"attempt"`
	Outcome   string              `json:"outcome"`
	Steps     map[string]pastStep `json:"steps"`
	// Protocol are the steps in the form of other programs, by their names in small letters.
	Protocol map[string]pastStep `json:"protocol_steps"`
}

type pastStep struct {
	ExecutedAt time.Time       `json:"executed_at"`
	Text       json.RawMessage `json:"text"`
	Strategy   json.RawMessage `json:"strategy"`
	Message    json.RawMessage `json:"message"`
	Diagnosis  json.RawMessage `json:"diagnosis"`
	Cause      json.RawMessage `json:"root_cause"`
	Confidence json.RawMessage `json:"confidence"`
}

type pastError struct {
	Iteration whole  `json:"iteration"`
	Error     string `json:"error"`
	Type      string `json:"error_type"`
	Message   string `json:"error_message"`
}

// pastArtifact is a path, or an object with one.
type pastArtifact string

// UnmarshalJSON reads a path or an object with a path.
func (a *pastArtifact) UnmarshalJSON(raw []byte) error {
	var o struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(raw, (*string)(a)) == nil {
		return nil
	}
	err := json.Unmarshal(raw, &o)
	*a = pastArtifact(o.Path)
	return err
}

// whole is an integer of the schema: 7.0 is one, too.
type whole int

// UnmarshalJSON reads an integer; null is 0.
func (w *whole) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<31 {
		return fmt.Errorf("%.40s is not an integer of 32 bits", raw)
	}
	*w = whole(f)
	return nil
}

// stringOf returns the content of a JSON string, "" for any other value.
func stringOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text) // leaves other values ""
	return text
}

// readPast reads a document that its schema allows.
func readPast(doc json.RawMessage) (*pastLoop, error) {
	p := &pastLoop{}
	err := json.Unmarshal(doc, p)
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s is %s", typed.Field, typed.Value)
	}
	return p, err
}

// numbers returns the numbers of all iterations in the document, in order, and the
// highest number that was used.
func (p *pastLoop) numbers() (known []int, highest int) {
	seen := make(map[int]bool)
	add := func(n whole) {
		if n > 0 {
			seen[int(n)] = true
		}
	}
	for i := range p.History {
		add(p.History[i].Iteration)
	}
	for i := range p.Events {
		add(p.Events[i].Iteration)
	}
	for i := range p.Errors {
		add(p.Errors[i].Iteration)
	}
	if p.Progress != nil {
		for i := range p.Progress.Checks {
			add(p.Progress.Checks[i].Iteration)
		}
	}
	known = slices.Sorted(maps.Keys(seen))
	if p.Best != nil {
		highest = int(p.Best.Iteration)
	}
	return known, slices.Max(append(known, highest, int(p.Iteration)))
}

// outcomes returns the records of the iterations and their status. Of several records of
// one number the last is used.
func (p *pastLoop) outcomes(until string) ([]*state.Outcome, map[int]record.IterationStatus) {
	known, _ := p.numbers()
	list, byNumber := make([]*state.Outcome, 0, len(known)), make(map[int]*state.Outcome, len(known))
	status := make(map[int]record.IterationStatus, len(known))
	for _, n := range known {
		o := &state.Outcome{Iteration: n, Imported: true,
			Check: state.Check{Command: until, Exit: -1, Weak: true, Skipped: true}}
		list, byNumber[n], status[n] = append(list, o), o, record.IterationKept
	}
	for i := range p.History {
		h := &p.History[i]
		if o := byNumber[int(h.Iteration)]; o != nil {
			h.into(o)
			status[o.Iteration] = h.status()
		}
	}
	if p.Progress != nil {
		for i := range p.Progress.Checks {
			c := &p.Progress.Checks[i]
			if o := byNumber[int(c.Iteration)]; o != nil {
				o.Check.Passed, o.Check.Skipped, o.Check.Output = c.Passed, false, clip.Bytes(c.Output, maxOutput)
				if exit, err := strconv.ParseUint(string(c.Exit), 10, 8); err == nil {
					o.Check.Exit = int(exit)
				}
			}
		}
	}
	for i := range p.Errors {
		e := &p.Errors[i]
		if o := byNumber[int(e.Iteration)]; o != nil {
			o.AgentError = clip.Bytes(e.text(), maxOutput/2)
		}
	}
	p.regressions(byNumber, status)
	p.recoveries(byNumber)
	return list, status
}

// text returns an error with its type first, as the errors of agents.
func (e *pastError) text() string {
	text := firstOf(e.Message, e.Error, "no message")
	if e.Type == "" || strings.HasPrefix(text, e.Type+":") {
		return text
	}
	return e.Type + ": " + text
}

// into copies a record of the history into an outcome.
func (h *pastIteration) into(o *state.Outcome) {
	o.Timestamp, o.Quality, o.Delta = h.Timestamp.UTC(), percentOf(h.Quality), percentOf(h.Delta)
	o.Parts = make(map[string]int, len(h.Parts))
	for name, part := range h.Parts {
		if part != nil {
			o.Parts[clip.Bytes(name, 80)] = int(math.Round(*part))
		}
	}
	o.Artifacts, o.Changed = nil, len(h.Artifacts) // without those of a repeated record
	for _, a := range h.Artifacts[:min(len(h.Artifacts), maxArtifacts)] {
		o.Artifacts = append(o.Artifacts, clip.Bytes(string(a), maxText))
	}
	if t := h.Tests; t != nil {
		o.Check.Passed, o.Check.Skipped = t.Verification == "passed", t.Verification != "passed" && t.Verification != "failed"
		if o.Check.Weak = t.Total == nil; !o.Check.Weak {
			o.Check.Counts = testreport.Counts{Tests: int(*t.Total), Passed: int(t.Passed), Failed: int(t.Failed),
				Skipped: int(t.Skipped), Executed: int(t.Passed + t.Failed)}
		}
	}
}

func percentOf(f *float64) *int {
	if f == nil {
		return nil
	}
	return new(int(math.Round(*f)))
}

// status returns the status of an iteration, kept for documents of other programs.
func (h *pastIteration) status() record.IterationStatus {
	s := record.IterationStatus(stringOf(h.Status))
	if s == record.IterationReverted || s == record.IterationFailed {
		return s
	}
	return record.IterationKept
}

// regressions adds the events to the outcomes. A rejected iteration was reverted.
func (p *pastLoop) regressions(byNumber map[int]*state.Outcome, status map[int]record.IterationStatus) {
	for i := range p.Events {
		e := &p.Events[i]
		o := byNumber[int(e.Iteration)]
		if o == nil || len(o.Regressions) >= maxListed {
			continue
		}
		g := regression.Regression{Type: e.Type, Severity: e.Severity, Text: e.Type}
		if d := e.Details; d != nil {
			g.Text = clip.Bytes(firstOf(stringOf(d.Text), changeOf(d), e.Type), maxText)
			g.Tests, g.Files = named(d.Diff)
		}
		o.Regressions = append(o.Regressions, g)
		o.Accepted = o.Accepted || e.Decision == "approve"
		if e.Decision == "reject" || e.Outcome == "reverted" {
			status[o.Iteration] = record.IterationReverted
		}
	}
}

// falseAlarms returns the number of regressions that a person marked as false alarms. The
// document can count more than it lists.
func (p *pastLoop) falseAlarms() int {
	n := 0
	for i := range p.Events {
		if p.Events[i].FalseAlarm {
			n++
		}
	}
	if p.Watched != nil {
		n = max(n, int(p.Watched.FalseAlarms))
	}
	return n
}

// changeOf describes the values that an event compares.
func changeOf(d *pastDetails) string {
	if len(d.Baseline) == 0 || len(d.Current) == 0 {
		return ""
	}
	return fmt.Sprintf("changed from %.40s to %.40s", d.Baseline, d.Current)
}

// named returns the tests and files of the diff of an event, shortened.
func named(diff json.RawMessage) (tests, files []string) {
	var lists map[string]json.RawMessage
	if json.Unmarshal(diff, &lists) != nil {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		var names []string
		if json.Unmarshal(lists[key], &names) != nil {
			continue
		}
		to := &tests
		if key == "files" {
			to = &files
		}
		for _, name := range names {
			if len(*to) < maxListed {
				*to = append(*to, clip.Bytes(name, maxText))
			}
		}
	}
	return tests, files
}

// recoveries adds the recoveries from regressions to the outcomes.
func (p *pastLoop) recoveries(byNumber map[int]*state.Outcome) {
	of := make(map[string]whole, len(p.Events))
	for i := range p.Events {
		of[p.Events[i].ID] = p.Events[i].Iteration
	}
	for i := range p.Recoveries {
		v := &p.Recoveries[i]
		n := of[v.Event]
		if v.Iteration != nil {
			n = *v.Iteration
		}
		if o := byNumber[int(n)]; o != nil && len(o.Recoveries) < maxListed {
			o.Recoveries = append(o.Recoveries, v.recovery(o.Iteration))
		}
	}
}

func (v *pastRecovery) recovery(iteration int) state.Recovery {
	out := state.Recovery{Iteration: iteration, Attempt: int(v.Attempt), Outcome: clip.Bytes(v.Outcome, maxText)}
	for _, name := range []string{"PAUSE", "DIAGNOSE", "ADAPT", "RETRY", "ESCALATE"} {
		s, done := v.Steps[name]
		if !done {
			s, done = v.Protocol[strings.ToLower(name)]
		}
		if !done {
			continue
		}
		text := firstOf(stringOf(s.Text), stringOf(s.Strategy), stringOf(s.Message), stringOf(s.Cause))
		if name == "DIAGNOSE" {
			out.Diagnosis = state.Diagnosis(clip.Bytes(stringOf(s.Diagnosis), maxText))
			out.Why = clip.Bytes(firstOf(stringOf(s.Cause), stringOf(s.Text)), maxText)
			if c, err := strconv.ParseFloat(string(s.Confidence), 64); err == nil && c >= 0 && c <= 1 {
				out.Confidence = int(math.Round(100 * c))
			}
		}
		out.Steps = append(out.Steps, state.RecoveryStep{Step: strings.ToLower(name), ExecutedAt: s.ExecutedAt.UTC(),
			Text: clip.Bytes(text, maxText)})
	}
	return out
}

// config sets the fields of a configuration that the document has. It returns their
// names, and notes about those that could not be set.
func (p *pastLoop) config(c *config.Config) (fields, notes []string) {
	c.Task, fields = p.Task, []string{"task"}
	given := p.Configuration
	if given == nil {
		return fields, nil
	}
	for _, name := range slices.Sorted(maps.Keys(given.Own)) {
		if slices.Contains([]string{"given", "workspace", "task"}, name) {
			continue
		}
		field, err := json.Marshal(map[string]json.RawMessage{name: given.Own[name]})
		if err == nil {
			_, err = c.Overlay(field)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("configuration.perdure.%s was not imported: %s", clip.Bytes(name, 80), err))
			continue
		}
		fields = append(fields, name)
	}
	if n := int(given.MaxIterations); n > 0 {
		c.MaxIterations, fields = n, append(fields, "max_iterations")
	}
	switch minutes, err := strconv.ParseFloat(string(given.Minutes), 64); {
	case len(given.Minutes) == 0:
		return fields, notes
	case err != nil || minutes <= 0: // null means no limit
		c.Timeout = -1
	default:
		c.Timeout = time.Duration(min(minutes*float64(time.Minute), math.MaxInt64/2))
	}
	return append(fields, "timeout"), notes
}

// firstOf returns the first string that is not blank.
func firstOf(list ...string) string {
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return cmp.Or(list...)
}
