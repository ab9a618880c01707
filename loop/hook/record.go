package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// LogRotated is the hook_name of the line that begins a hook-log.jsonl after
// the one before it had grown to its limit; it is not a hook.
const LogRotated Name = "log_rotated"

// maxStateBytes is the longest state_changes that is written to the log. A
// line has room for it and all messages even if each of their bytes takes six.
const maxStateBytes = 24 << 10

// Record is one invocation of a handler: a line of hook-log.jsonl.
type Record struct {
	// Time is when it began, in UTC, in microseconds.
	Time time.Time
	// Hook, LoopID and Iteration are those of the message.
	Hook      Name
	LoopID    string
	Iteration int
	// Handler is its name, Kind where it runs.
	Handler string
	Kind    Kind
	// Duration is how long it took, in microseconds.
	Duration time.Duration
	// Verdict is what counted: the handler's, or what its fault came to. It is
	// empty for a fault after which the loop went on.
	Verdict Verdict
	// Fault is why there was no reply; nil when there was one.
	Fault *RecordedFault
	// StateChanges are the changes of the loop's state that the handler reported;
	// nil for none. In a log, changes of more than 24 KiB are replaced by their
	// size.
	StateChanges map[string]any
}

// RecordedFault is a [FaultError] as it is logged.
type RecordedFault struct {
	Kind FaultKind `json:"kind,omitempty"`
	// Message is one line of at most 2 KiB.
	Message string `json:"message"`
	// Detail is the output of the handler, at most 2 KiB of it: the end of its
	// standard error, the beginning of a stack or body; may be empty.
	Detail string `json:"detail,omitempty"`
}

// line is a Record in JSON: an entry of the schema persistence-hooks.
type line struct {
	Timestamp    string          `json:"timestamp"`
	HookName     Name            `json:"hook_name"`
	LoopID       string          `json:"loop_id,omitempty"`
	Iteration    int             `json:"iteration"`
	Handler      string          `json:"handler,omitempty"`
	Kind         Kind            `json:"kind,omitempty"`
	DurationMS   float64         `json:"duration_ms"`
	Verdict      *Verdict        `json:"verdict"`
	StateChanges json.RawMessage `json:"state_changes,omitempty"`
	Error        *RecordedFault  `json:"error,omitempty"`
}

// timeForm is RFC 3339 with microseconds.
const timeForm = "2006-01-02T15:04:05.000000Z07:00"

// MarshalJSON returns the record as one line of the log, without its end; at
// most [MaxLineBytes].
func (r Record) MarshalJSON() ([]byte, error) {
	l := line{
		Timestamp: r.Time.UTC().Format(timeForm), HookName: Name(clip.Bytes(string(r.Hook), MaxNameBytes)),
		LoopID:    clip.Bytes(r.LoopID, MaxLoopIDBytes),
		Iteration: max(0, r.Iteration), Handler: clip.Bytes(r.Handler, MaxNameBytes),
		Kind:       Kind(clip.Bytes(string(r.Kind), MaxNameBytes)),
		DurationMS: float64(r.Duration.Microseconds()) / 1000,
	}
	if r.Verdict.rank() > 0 {
		l.Verdict = &r.Verdict
	}
	if r.Fault != nil {
		l.Error = &RecordedFault{
			Kind: FaultKind(clip.Bytes(string(r.Fault.Kind), MaxNameBytes)), Message: clip.Bytes(r.Fault.Message, maxFaultBytes),
			Detail: clip.Bytes(r.Fault.Detail, maxFaultBytes),
		}
	}
	if r.StateChanges != nil {
		l.StateChanges = stateJSON(r.StateChanges)
	}
	return marshal(l)
}

// stateJSON never fails: a log that lacks a line because of a detail in it is
// worse than one that lacks the detail.
func stateJSON(changes map[string]any) json.RawMessage {
	doc, err := marshal(changes)
	switch {
	case err != nil:
		return json.RawMessage(`{"omitted":"not JSON"}`)
	case len(doc) > maxStateBytes:
		return json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(doc)))
	}
	return doc
}

// UnmarshalJSON reads a line of the log. Members it does not know are ignored,
// those it knows may be missing or null, but for the time and the hook.
func (r *Record) UnmarshalJSON(text []byte) error {
	if err := within("line", MaxLineBytes, len(text)); err != nil {
		return err
	}
	o, err := parseObject(text)
	if err != nil {
		return err
	}
	rec := Record{
		Time: o.time("timestamp").UTC().Truncate(time.Microsecond), Hook: Name(o.string("hook_name", MaxNameBytes)),
		LoopID: o.string("loop_id", MaxLoopIDBytes), Iteration: o.count("iteration"),
		Handler: o.string("handler", MaxNameBytes), Kind: Kind(o.string("kind", MaxNameBytes)),
		Duration: o.milliseconds("duration_ms"), Verdict: Verdict(o.word("verdict", verdictWords())),
		StateChanges: o.free("state_changes", MaxLineBytes), Fault: o.recordedFault("error"),
	}
	if rec.Hook == "" || rec.Time.IsZero() {
		*o.errs = append(*o.errs, errors.New("timestamp or hook_name: is missing"))
	}
	if err := errors.Join(*o.errs...); err != nil {
		return err
	}
	*r = rec
	return nil
}

// milliseconds are rounded to microseconds.
func (o object) milliseconds(name string) time.Duration {
	const most = float64(math.MaxInt64 / int64(time.Millisecond) / 2)
	var ms float64
	if o.read(name, "a number", &ms) && (ms < 0 || ms > most) {
		o.fault(name, "want milliseconds from 0 to %.0f, found %v", most, ms)
		return 0
	}
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

// recordedFault is an object of kind and message, or, as others write it, a
// text.
func (o object) recordedFault(name string) *RecordedFault {
	if o.value.Get(name).Is(jsontree.String) {
		return &RecordedFault{Message: clip.Bytes(o.string(name, MaxLineBytes), maxFaultBytes)}
	}
	var free map[string]any
	if !o.read(name, "an object or a string", &free) {
		return nil
	}
	kind, _ := free["kind"].(string)
	message, _ := free["message"].(string)
	detail, _ := free["detail"].(string)
	return &RecordedFault{Kind: FaultKind(clip.Bytes(kind, MaxNameBytes)), Message: clip.Bytes(message, maxFaultBytes),
		Detail: clip.Bytes(detail, maxFaultBytes)}
}
