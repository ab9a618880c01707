package ledger

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure"
)

// ID identifies a ledger in its store: "handoff-" and 8 hexadecimal digits.
type ID int64

const idPrefix = "handoff-"

// String returns the written form.
func (id ID) String() string { return fmt.Sprintf("%s%08x", idPrefix, int64(id)) }

// MarshalText writes the form of String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String.
func (id *ID) UnmarshalText(b []byte) error {
	digits, ok := strings.CutPrefix(string(b), idPrefix)
	n, err := strconv.ParseInt(digits, 16, 64)
	if !ok || err != nil || n <= 0 || ID(n).String() != string(b) {
		return refuse(perdure.CodeInvalid, "parse ID", "", "%q is not of the form %s1a2b3c4d", b, idPrefix)
	}
	*id = ID(n)
	return nil
}

// Ref names the work that a ledger is about.
type Ref struct {
	// Place is the file that shows the checkpoint of the work, relative to the
	// folder of the store, or absolute.
	Place string `json:"place"`
	// Task is one of the tasks of that file: "prd:US-003", "adhoc:a1".
	Task string `json:"task"`
}

// Handoff is the row of a ledger: what was recorded about the work on one
// task, from which another agent can continue. Entries are only ever added. Of all ledgers of
// a reference at most the last one is open.
type Handoff struct {
	ID ID `json:"handoff_id"`
	Ref
	// Version counts the entries.
	Version int64 `json:"version"`
	// Agent has the claim until ExpiresAt; Fence counts the claims so far.
	Agent     string     `json:"agent,omitempty"`
	Fence     int64      `json:"fence,omitempty"`
	ExpiresAt *time.Time `json:"claim_expires_at,omitempty"`
	// Projected is the checkpoint that was written into the file last; it is
	// recorded before that. Previous is the one that the file had before. Both may
	// be nil.
	Projected json.RawMessage `json:"projected,omitempty"`
	Previous  json.RawMessage `json:"previous,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
}

// Entry is a line of a ledger.
type Entry struct {
	// Number counts from 1.
	Number int64 `json:"number"`
	// Kind is a word for what Data, a JSON object, holds: "step", "decide".
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
	// Source is who recorded it.
	Source string    `json:"source,omitempty"`
	Time   time.Time `json:"time"`
}

// Write adds to a ledger.
type Write struct {
	Ref
	// IfVersion is the version that the writer has read, 0 for a ledger that is to
	// be created. The write is refused (CodeConflict) when the ledger has another.
	IfVersion int64 `json:"if_version"`
	// Token is that of a claim, which a write under it renews; without one the
	// write is refused while another agent has a claim.
	Token string `json:"token,omitempty"`
	// Entries are added; the store sets their numbers and times.
	Entries []Entry `json:"entries"`
	// Projected and Previous replace those of the ledger; nil leaves them.
	Projected json.RawMessage `json:"projected,omitempty"`
	Previous  json.RawMessage `json:"previous,omitempty"`
	// End ends the ledger, and any claim on it.
	End bool `json:"end,omitempty"`
}

// ClaimSpec asks for a claim on open work.
type ClaimSpec struct {
	Ref
	// Agent is the name of the agent that will continue.
	Agent string `json:"agent,omitempty"`
	// TTL is how long the claim lasts without a write. Defaults to DefaultTTL.
	TTL time.Duration `json:"-"`
	// TakeOver ends the claim of another agent.
	TakeOver bool `json:"take_over,omitempty"`
}

// Claim is a ledger with the token for writes under the claim.
type Claim struct {
	Handoff
	Token string `json:"token"`
}

// Filter selects ledgers.
type Filter struct {
	// Before continues a listing behind this ledger.
	Before ID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
}

// Limits of ledgers.
const (
	// MaxEntries bounds a ledger, MaxBatch what one write adds.
	MaxEntries = 100_000
	MaxBatch   = 1000
	// MaxEntryBytes bounds the data of an entry and a projection.
	MaxEntryBytes = perdure.MaxPayloadBytes
	// DefaultTTL is the TTL of claims, counted from the last write under one, where
	// no other is given; MaxTTL is the longest.
	DefaultTTL = 30 * time.Minute
	MaxTTL     = 7 * 24 * time.Hour

	maxTextBytes = 4 << 10
	maxNameBytes = 256
)

// The kinds of events about ledgers.
const (
	EventStarted  perdure.EventKind = "handoff.started"
	EventUpdated  perdure.EventKind = "handoff.updated"
	EventClaimed  perdure.EventKind = "handoff.claimed"
	EventReleased perdure.EventKind = "handoff.released"
	EventEnded    perdure.EventKind = "handoff.ended"
)

// fitsText reports whether both databases can hold a text of at most so many bytes.
func fitsText(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

func (r *Ref) check(op string) error {
	for _, text := range []string{r.Place, r.Task} {
		if text == "" || !fitsText(text, maxTextBytes) {
			return refuse(perdure.CodeInvalid, op, "", "a place and a task are text of 1 to %d bytes", maxTextBytes)
		}
	}
	return nil
}

func (w *Write) check(op string) error {
	bad := func(format string, args ...any) error { return refuse(perdure.CodeInvalid, op, "", format, args...) }
	if err := w.Ref.check(op); err != nil {
		return err
	}
	if len(w.Entries) > MaxBatch {
		return bad("the write has %d entries, the limit is %d", len(w.Entries), MaxBatch)
	}
	for i := range w.Entries {
		e := &w.Entries[i]
		if e.Kind == "" || !fitsText(e.Kind, maxNameBytes) || !fitsText(e.Source, maxTextBytes) {
			return bad("entry %d has no kind, or a kind or source that is too long or not text", i+1)
		}
		if len(e.Data) > 0 && !isObject(e.Data) {
			return bad("the data of entry %d is not a JSON object of at most %d bytes", i+1, MaxEntryBytes)
		}
	}
	for _, raw := range []json.RawMessage{w.Projected, w.Previous} {
		if len(raw) > 0 && (!json.Valid(raw) || !fitsText(string(raw), MaxEntryBytes)) {
			return bad("a projection is longer than %d bytes or not JSON", MaxEntryBytes)
		}
	}
	return nil
}

func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return fitsText(string(raw), MaxEntryBytes) && json.Unmarshal(raw, &object) == nil && object != nil
}

func refuse(code perdure.Code, op, hint, format string, args ...any) *perdure.Error {
	return &perdure.Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...), Hint: hint}
}
