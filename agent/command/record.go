package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/model"
)

// parser reads one kind of stream into a record. It has no clock and touches no
// files; it is used by one goroutine at a time.
type parser interface {
	// stdout takes a line of standard output, which is gone afterwards.
	stdout(line []byte)
	// stderr takes a line of standard error.
	stderr(line string)
	// finish receives the exit status (-1 after a signal) when all was read.
	finish(exit int)
}

// stream is what the parsers of all streams share.
type stream struct {
	rec *record
	// calls are the tool calls under way, by their IDs.
	calls map[string]agent.ToolCall
	said  []string // the end of standard error
}

func (s *stream) stderr(line string) {
	s.said = lastLines(s.said, line)
	s.rec.say(agent.EventStderr, line)
}

func (s *stream) callBegins(id, name string, input json.RawMessage) {
	call := agent.Describe(id, name, input)
	call.Status = agent.ToolRunning
	s.calls[id] = call
	s.rec.tell(agent.Event{Kind: agent.EventToolCall, Call: &call})
}

// callEnds reports the end of a call; text is why it was denied.
func (s *stream) callEnds(id string, status agent.ToolStatus, text string) {
	call, ok := s.calls[id]
	if !ok {
		call = agent.ToolCall{ID: id, Kind: agent.ToolOther}
	}
	delete(s.calls, id)
	call.Status = status
	s.rec.tell(agent.Event{Kind: agent.EventToolResult, Call: &call, Text: text})
}

// statusOf returns the status of a call that ended.
func statusOf(failed bool) agent.ToolStatus {
	if failed {
		return agent.ToolFailed
	}
	return agent.ToolCompleted
}

// record is the state of a turn as its stream reported it.
type record struct {
	from session
	// totalKnown: from says what the session had used.
	totalKnown bool
	now        func() time.Time
	began      time.Time
	// hear receives all events.
	hear func(agent.Event)
	// abort ends the turn early.
	abort func(*agent.Error)

	id       string // of the session, as the agent reported it
	text     string // the last message
	stop     string
	messages int
	notes    []string
	// over is set if the agent reported the end of its turn, fault if the turn failed.
	over bool
	// left are commands that ran in the background when the agent ended.
	left  string
	ends  int // how often it did
	fault *agent.Error

	// used sums the usage that single requests of this turn reported.
	used tokens
	// reported is set instead if the agent reported the usage of this turn.
	reported *tokens
	// total is the session's running total, if the agent reported one.
	total *total
	cost  *int64
	// model is the agent's name of the model: the configured one, or the one it reported.
	model string
	// context is the size of the last request of the main conversation.
	context int64
	window  int64
	// fixed: the window is what the configuration says.
	fixed bool
	// resets is when a limit that is used up ends.
	resets time.Time

	compactions, inARow int
	limit               *agent.Error
}

// note adds a note once.
func (r *record) note(text string) {
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// tell passes an event on and counts it.
func (r *record) tell(ev agent.Event) {
	switch ev.Kind {
	case agent.EventMessage:
		r.messages++
	case agent.EventToolCall:
		r.inARow = 0
	case agent.EventToolResult: // calls are reported several times, their ends once
		r.messages++
		r.inARow = 0
	case agent.EventCompaction:
		r.compactions++
		r.inARow++
	default:
	}
	ev.Text, _ = model.Clean(ev.Text)
	r.hear(ev)
}

// ended records that the agent reported the end of its turn, without a fault so far.
func (r *record) ended(stop string) {
	r.over, r.fault, r.stop = true, nil, stop
	r.ends++
}

func (r *record) opened(id string) {
	if id == "" || id == r.id {
		return
	}
	r.id = id
	r.tell(agent.Event{Kind: agent.EventSession, Session: id})
}

// sized records the size of the window that the agent reported.
func (r *record) sized(window int64) {
	if !r.fixed && window > 0 {
		r.window = window
	}
}

// message reports a message of the agent; the last one is the text of the result.
func (r *record) message(text string) {
	r.text = text
	r.tell(agent.Event{Kind: agent.EventMessage, Text: text})
}

func (r *record) say(kind agent.EventKind, text string) { r.tell(agent.Event{Kind: kind, Text: text}) }

// waits reports that the agent reached a limit and retries by itself; attempt is which retry
// follows, of so many, 0 when that is not known.
func (r *record) waits(limit *agent.Error, attempt, of int) {
	r.limit = limit
	r.tell(agent.Event{Kind: agent.EventRateLimited, Text: limit.Msg, Until: limit.Until, Attempt: attempt, Of: of})
}

// number reads a number of a retry; 0 for none.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxAttempts {
		return 0
	}
	return n
}

// maxAttempts is more than any agent retries.
const maxAttempts = 1_000_000

// measured reports the usage and how full the context is.
func (r *record) measured() {
	ev := agent.Event{Kind: agent.EventUsage, Context: r.fill(), CostMicros: r.cost, Model: r.model}
	if used, reported := r.usage(); reported {
		ev.Usage = new(used.usage(true))
	}
	r.tell(ev)
}

func (r *record) fill() *agent.Context {
	if r.context <= 0 {
		return nil
	}
	return &agent.Context{Used: r.context, Size: r.window, Source: agent.SourceReported}
}

const noteUnknownTotals = "the agent reports totals of its session, and the totals before this turn are " +
	"unknown: this turn's usage is not counted"

// usage returns what this turn used. With a running total it is the difference to the
// total at the start of the turn. If the total was reset, it is the sum of what single
// requests reported.
func (r *record) usage() (used tokens, reported bool) {
	switch {
	case r.reported != nil:
		return *r.reported, true
	case r.total == nil:
		return r.used, r.used != tokens{}
	case !r.from.known:
		if r.used == (tokens{}) && r.total.tokens != (tokens{}) {
			r.note(noteUnknownTotals)
		}
		return r.used, r.used != tokens{}
	}
	if d := r.total.sub(r.from.base.tokens); d.in >= 0 && d.out >= 0 && d.includes(r.used) {
		return d, true
	}
	return r.used, r.used != tokens{}
}

// next returns the session to continue, with the total to subtract then.
func (r *record) next() session {
	s := session{id: r.id, base: r.from.base, known: r.from.known}
	if r.total != nil {
		s.base, s.known = *r.total, true
	} else if used, ok := r.usage(); ok {
		s.base.tokens = s.base.add(used)
	}
	return s
}

// decode reads a line of JSON into v. Fields of another type than expected are
// left out: agents change.
func decode(line []byte, v any) bool {
	err := json.Unmarshal(line, v)
	_, mismatch := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || mismatch
}

// object reports whether a line looks like an event and not like text.
func object(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 1 && line[0] == '{' && line[len(line)-1] == '}'
}

const noteReplaced = "the output was not valid UTF-8; invalid bytes were replaced by U+FFFD"

// valid makes a line valid UTF-8.
func (r *record) valid(line []byte) []byte {
	if utf8.Valid(line) {
		return line
	}
	r.note(noteReplaced)
	return bytes.ToValidUTF8(line, []byte(string(utf8.RuneError)))
}

// bad sets the fault, from the agent's message and the status of its
// provider's answer (0 when unknown).
func (r *record) bad(text string, status int) {
	r.fault = classify(text, status, r.now())
}

// complete adds the reset time to a limit that ended the turn, from what was reported
// before.
func (r *record) complete() {
	f := r.fault
	if f == nil || f.Class() != agent.ClassWait || !f.Until.IsZero() {
		return
	}
	if r.limit != nil {
		f.Until = r.limit.Until
	}
	if f.Kind == agent.KindRateLimit && f.Until.IsZero() {
		f.Until = r.resets
	}
}

// unfinished sets the fault of a stream without an end, from the limit or the other output.
func (r *record) unfinished(words ...string) {
	if r.limit != nil {
		limit := *r.limit
		r.fault = &limit
		return
	}
	r.bad(cmp.Or(append(words, "the agent ended without a result")...), 0)
}

// another reports a session that is not the one that was asked for.
func (r *record) another(id string) {
	r.abort(&agent.Error{
		Kind: agent.KindSession,
		Msg:  fmt.Sprintf("session %q could not be continued: the agent began %q instead", r.from.id, id),
	})
}
