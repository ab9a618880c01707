package perdure

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// HandoffID identifies a ledger of handoff in its store: "handoff-" and 8
// hexadecimal digits.
type HandoffID int64

const handoffPrefix = "handoff-"

// String returns the written form.
func (id HandoffID) String() string { return hexID(handoffPrefix, int64(id)) }

// MarshalText writes the form of String.
func (id HandoffID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String.
func (id *HandoffID) UnmarshalText(b []byte) error {
	n, err := parseHexID(handoffPrefix, string(b))
	*id = HandoffID(n)
	return err
}

// HandoffRef names the work that a ledger is about.
type HandoffRef struct {
	// Place is the file that shows the work checkpoint, relative to the folder
	// that the store is in, or absolute.
	Place string `json:"place"`
	// Task is which of the tasks of that file: "prd:US-003", "adhoc:a1".
	Task string `json:"task"`
}

// Handoff is the ledger of one piece of work, from which another agent can
// continue: entries that are only ever added, and what the file that shows them
// holds. Only one ledger of a reference is open; the ones before it are ended.
type Handoff struct {
	ID HandoffID `json:"handoff_id"`
	HandoffRef
	// Version counts the entries.
	Version int64 `json:"version"`
	// Agent has the claim until ExpiresAt; Fence counts the claims there were.
	Agent     string     `json:"agent,omitempty"`
	Fence     int64      `json:"fence,omitempty"`
	ExpiresAt *time.Time `json:"claim_expires_at,omitempty"`
	// Projected is the checkpoint that the file was last to be given, noted
	// before it was; Previous is what was in the file then. Both may be nil.
	Projected json.RawMessage `json:"projected,omitempty"`
	Previous  json.RawMessage `json:"previous,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
}

// HandoffEntry is a line of a ledger.
type HandoffEntry struct {
	// Number counts from 1.
	Number int64 `json:"number"`
	// Kind is a word for what Data, a JSON object, holds: "step", "decide".
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
	// Source is who recorded it.
	Source string    `json:"source,omitempty"`
	Time   time.Time `json:"time"`
}

// HandoffWrite adds to a ledger.
type HandoffWrite struct {
	HandoffRef
	// IfVersion is the version that the writer has seen, 0 for a ledger that is
	// to be made. The write is refused (CodeConflict) when there is another.
	IfVersion int64 `json:"if_version"`
	// Token is that of a claim; without one the write is refused while somebody
	// has a claim. A right one renews the claim.
	Token string `json:"token,omitempty"`
	// Entries are added; their numbers and times are set by the store.
	Entries []HandoffEntry `json:"entries"`
	// Projected and Previous replace those of the ledger; nil leaves them.
	Projected json.RawMessage `json:"projected,omitempty"`
	Previous  json.RawMessage `json:"previous,omitempty"`
	// End ends the ledger, and any claim on it.
	End bool `json:"end,omitempty"`
}

// HandoffClaim is what who claimed has to show.
type HandoffClaim struct {
	Handoff
	Token string `json:"token"`
}

// Limits of handoff.
const (
	// MaxHandoffEntries bounds a ledger, MaxHandoffBatch what one write adds.
	MaxHandoffEntries = 100_000
	MaxHandoffBatch   = 1000
	// MaxHandoffEntryBytes bounds the data of an entry and a projection.
	MaxHandoffEntryBytes = MaxPayloadBytes
	// HandoffTTL is how long a claim lasts that was given no time, counted from
	// the last write under it; MaxHandoffTTL is the most it can be given.
	HandoffTTL    = 30 * time.Minute
	MaxHandoffTTL = 7 * 24 * time.Hour
)

const (
	handoffColumns = `id, place, task, version, fence, agent, expires_at, projected, previous, created_at, updated_at, ended_at`

	sqlHandoff       = `SELECT ` + handoffColumns + ` FROM handoff WHERE place = $1 AND task = $2 ORDER BY id DESC LIMIT 1`
	sqlHandoffToken  = `SELECT token, ttl FROM handoff WHERE id = $1` //nolint:gosec // a statement
	sqlHandoffs      = `SELECT ` + handoffColumns + ` FROM handoff WHERE id < $1 ORDER BY id DESC LIMIT $2 + 0`
	sqlInsertHandoff = `INSERT INTO handoff (id, place, task, version, fence, agent, token, ttl, projected, previous, created_at, updated_at)
		VALUES ($1, $2, $3, 0, 0, '', '', 0, '', '', $4, $4)`
	sqlSaveHandoff = `UPDATE handoff SET version = $2, expires_at = $3, projected = $4, previous = $5, updated_at = $6, ended_at = $7 WHERE id = $1`
	sqlClaimWork   = `UPDATE handoff SET fence = $2, agent = $3, token = $4, ttl = $5, expires_at = $6 WHERE id = $1`

	sqlHandoffEntries     = `SELECT number, kind, data, source, at FROM handoff_entry WHERE handoff = $1 AND number > $2 ORDER BY number LIMIT $3 + 0`
	sqlInsertHandoffEntry = `INSERT INTO handoff_entry (handoff, number, kind, data, source, at) VALUES ($1, $2, $3, $4, $5, $6)`
)

func scanHandoff(scan func(dest ...any) error) (Handoff, error) {
	var h Handoff
	var created, updated int64
	var expires, ended *int64
	var projected, previous string
	err := scan((*int64)(&h.ID), &h.Place, &h.Task, &h.Version, &h.Fence, &h.Agent, &expires, &projected, &previous, &created, &updated, &ended)
	h.CreatedAt, h.UpdatedAt, h.ExpiresAt, h.EndedAt = micros(created), micros(updated), timePtr(expires), timePtr(ended)
	h.Projected, h.Previous = json.RawMessage(projected), json.RawMessage(previous)
	return h, err
}

func findHandoff(ctx context.Context, query queryRow, ref HandoffRef) (Handoff, error) {
	return scanHandoff(func(dest ...any) error { return query(ctx, sqlHandoff, []any{ref.Place, ref.Task}, dest...) })
}

func (r *HandoffRef) check(op string) error {
	for _, text := range []string{r.Place, r.Task} {
		if text == "" || len(text) > maxTextBytes || !storable(text) {
			return invalidf(op, "a place and a task are texts of 1 to %d bytes", maxTextBytes)
		}
	}
	return nil
}

// Handoff returns the ledger of a reference: the open one, else the one that
// ended last. It fails with CodeNotFound when there never was one.
func (s *Store) Handoff(ctx context.Context, ref HandoffRef) (Handoff, error) {
	const op = "read handoff"
	if err := ref.check(op); err != nil {
		return Handoff{}, err
	}
	h, err := findHandoff(ctx, s.db.QueryRow, ref)
	if err != nil && ignoreNoRows(err) == nil {
		return h, notFoundf(op, "there is no ledger of %q in %q", ref.Task, ref.Place)
	}
	return h, wrap(op, err)
}

// HandoffFilter selects ledgers.
type HandoffFilter struct {
	// Before continues a listing behind this ledger.
	Before HandoffID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
}

// Handoffs lists ledgers, the newest first.
func (s *Store) Handoffs(ctx context.Context, f HandoffFilter) ([]Handoff, error) {
	before := int64(f.Before)
	if before == 0 {
		before = 1 << 62
	}
	rows, err := s.db.Query(ctx, sqlHandoffs, before, pageLimit(f.Limit, defaultPage)) //nolint:sqlclosecheck // each closes them
	if err != nil {
		return nil, wrap("list handoffs", err)
	}
	list := []Handoff{}
	err = each(rows, func() error {
		h, err := scanHandoff(rows.Scan)
		list = append(list, h)
		return err
	})
	return list, wrap("list handoffs", err)
}

// HandoffEntries lists entries of a ledger behind a number, the oldest first: at
// most limit, 0 means 1,000, which is also the most.
func (s *Store) HandoffEntries(ctx context.Context, id HandoffID, after int64, limit int) ([]HandoffEntry, error) {
	rows, err := s.db.Query(ctx, sqlHandoffEntries, int64(id), after, pageLimit(limit, maxPage))
	if err != nil {
		return nil, wrap("list entries", err)
	}
	list := []HandoffEntry{}
	err = each(rows, func() error {
		var e HandoffEntry
		var at int64
		err := rows.Scan(&e.Number, &e.Kind, (*[]byte)(&e.Data), &e.Source, &at)
		e.Time = micros(at)
		list = append(list, e)
		return err
	})
	return list, wrap("list entries", err)
}

func (w *HandoffWrite) check(op string) error {
	if err := w.HandoffRef.check(op); err != nil {
		return err
	}
	if len(w.Entries) > MaxHandoffBatch {
		return invalidf(op, "the write has %d entries, the limit is %d", len(w.Entries), MaxHandoffBatch)
	}
	for i := range w.Entries {
		e := &w.Entries[i]
		if e.Kind == "" || len(e.Kind) > maxOwnerBytes || !storable(e.Kind) || len(e.Source) > maxTextBytes || !storable(e.Source) {
			return invalidf(op, "entry %d has no kind, or a kind or source that is too long or not text", i+1)
		}
		if err := validateObject(op, "the data of an entry", e.Data, MaxHandoffEntryBytes); err != nil {
			return err
		}
	}
	for _, raw := range []json.RawMessage{w.Projected, w.Previous} {
		if len(raw) > MaxHandoffEntryBytes || len(raw) > 0 && !json.Valid(raw) || !storable(string(raw)) {
			return invalidf(op, "a projection is longer than %d bytes or not JSON", MaxHandoffEntryBytes)
		}
	}
	return nil
}

// WriteHandoff adds entries to a ledger, makes it when there is none that is
// open, and ends it when asked to. When it returns nil all of it is durable.
// It fails with CodeConflict when the ledger has another version, is full, or is
// claimed and no token was given, and with CodeLeaseLost when the token is not
// that of the last claim.
func (s *Store) WriteHandoff(ctx context.Context, w HandoffWrite) (Handoff, error) {
	const op = "write handoff"
	if err := w.check(op); err != nil {
		return Handoff{}, err
	}
	var h Handoff
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) (err error) {
		if h, err = findHandoff(ctx, b.tx.QueryRow, w.HandoffRef); ignoreNoRows(err) != nil {
			return err
		}
		if fresh := err != nil || h.EndedAt != nil; fresh {
			h = Handoff{HandoffRef: w.HandoffRef, CreatedAt: micros(b.now)}
		}
		if err := b.admitHandoff(ctx, op, &h, &w); err != nil {
			return err
		}
		return undoing(b.writeHandoff(ctx, &h, &w))
	}))
	return h, err
}

// admitHandoff checks what could refuse a write, and renews the claim.
func (b *batch) admitHandoff(ctx context.Context, op string, h *Handoff, w *HandoffWrite) error {
	if err := b.checkToken(ctx, op, h, w.Token); err != nil {
		return err
	}
	switch total := h.Version + int64(len(w.Entries)); {
	case w.IfVersion != h.Version:
		return &Error{Code: CodeConflict, Op: op, Msg: "the ledger has " + itoa(h.Version) + " entries, not " + itoa(w.IfVersion),
			Hint: "somebody wrote meanwhile; read it again"}
	case total > MaxHandoffEntries:
		return &Error{Code: CodeConflict, Op: op, Msg: "the ledger would have " + itoa(total) + " entries, the limit is " + itoa(MaxHandoffEntries),
			Hint: "end it and begin another"}
	}
	return nil
}

// checkToken wants the token of the claim, while there is one.
func (b *batch) checkToken(ctx context.Context, op string, h *Handoff, token string) error {
	var own string
	var ttl int64
	if h.ID != 0 {
		if err := b.tx.QueryRow(ctx, sqlHandoffToken, []any{int64(h.ID)}, &own, &ttl); err != nil {
			return err
		}
	}
	claimed := h.ExpiresAt != nil && h.ExpiresAt.UnixMicro() > b.now
	switch {
	case token != "" && token != own:
		return &Error{Code: CodeLeaseLost, Op: op, Msg: "the token is not that of the last claim" + byAgent(h),
			Hint: "another agent continues this work; stop"}
	case token == "" && claimed:
		return &Error{Code: CodeConflict, Op: op, Msg: "the work is claimed" + byAgent(h) + " until " + h.ExpiresAt.Format(time.RFC3339),
			Hint: "give the token that the claim printed; another agent waits until then or takes it over"}
	case token != "":
		at := micros(b.now + ttl)
		h.ExpiresAt = &at
	}
	return nil
}

func byAgent(h *Handoff) string {
	if h.Agent == "" {
		return ""
	}
	return " (by \"" + h.Agent + "\")"
}

func (b *batch) writeHandoff(ctx context.Context, h *Handoff, w *HandoffWrite) error {
	kind := EventHandoffUpdated
	if h.ID == 0 {
		b.cache.seq.mutation++
		h.ID, kind = HandoffID(b.cache.seq.mutation), EventHandoffStarted
		if _, err := b.tx.Exec(ctx, sqlInsertHandoff, int64(h.ID), h.Place, h.Task, b.now); err != nil {
			return err
		}
	}
	for i := range w.Entries {
		e := &w.Entries[i]
		if h.Version++; len(e.Data) == 0 {
			e.Data = json.RawMessage("{}")
		}
		_, err := b.tx.Exec(ctx, sqlInsertHandoffEntry, int64(h.ID), h.Version, e.Kind, string(e.Data), e.Source, b.now)
		if err != nil {
			return err
		}
	}
	if h.UpdatedAt = micros(b.now); w.Projected != nil {
		h.Projected = w.Projected
	}
	if w.Previous != nil {
		h.Previous = w.Previous
	}
	if w.End {
		h.EndedAt, h.ExpiresAt, kind = &h.UpdatedAt, nil, EventHandoffEnded
	}
	_, err := b.tx.Exec(ctx, sqlSaveHandoff, int64(h.ID), h.Version, microsOf(h.ExpiresAt), string(h.Projected), string(h.Previous), b.now,
		microsOf(h.EndedAt))
	b.handoffEvent(h, kind, `,"version":`+itoa(h.Version))
	return err
}

func (b *batch) handoffEvent(h *Handoff, kind EventKind, more string) {
	b.event(0, 0, kind, `{"handoff_id":"`+h.ID.String()+`","place":`+quote(h.Place)+`,"task":`+quote(h.Task)+more+`}`)
}

// HandoffClaimSpec asks for a claim on open work.
type HandoffClaimSpec struct {
	HandoffRef
	// Agent is who will continue, for others to read.
	Agent string `json:"agent,omitempty"`
	// TTL is how long the claim lasts without a write. Defaults to HandoffTTL.
	TTL time.Duration `json:"-"`
	// TakeOver takes the work from who has it now.
	TakeOver bool `json:"take_over,omitempty"`
}

// ClaimHandoff gives work to one successor: until the claim expires nobody else
// gets one, and writes need its token. It fails with CodeConflict when somebody
// has a claim, and with CodeNotFound when no ledger is open.
func (s *Store) ClaimHandoff(ctx context.Context, spec HandoffClaimSpec) (HandoffClaim, error) {
	const op = "claim handoff"
	if err := spec.check(op); err != nil {
		return HandoffClaim{}, err
	}
	if spec.TTL == 0 {
		spec.TTL = HandoffTTL
	}
	if spec.TTL < 0 || spec.TTL > MaxHandoffTTL || len(spec.Agent) > maxOwnerBytes || !storable(spec.Agent) {
		return HandoffClaim{}, invalidf(op, "a claim lasts at most %s, and its agent is a text of at most %d bytes", MaxHandoffTTL, maxOwnerBytes)
	}
	c := HandoffClaim{Token: strings.ToLower(rand.Text()[:10])}
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		h, err := findHandoff(ctx, b.tx.QueryRow, spec.HandoffRef)
		if ignoreNoRows(err) != nil {
			return err
		}
		if err != nil || h.EndedAt != nil {
			return notFoundf(op, "no work on %q in %q is open", spec.Task, spec.Place)
		}
		if err := b.checkToken(ctx, op, &h, ""); err != nil && !spec.TakeOver {
			return err
		}
		at := micros(b.now + spec.TTL.Microseconds())
		h.Fence++
		h.Agent, h.ExpiresAt = spec.Agent, &at
		c.Handoff = h
		b.handoffEvent(&h, EventHandoffClaimed, `,"agent":`+quote(h.Agent)+`,"fence":`+itoa(h.Fence))
		_, err = b.tx.Exec(ctx, sqlClaimWork, int64(h.ID), h.Fence, h.Agent, c.Token, spec.TTL.Microseconds(), at.UnixMicro())
		return err
	}))
	return c, err
}

// ReleaseHandoff gives a claim back, so that the next need not wait until it
// expires. It fails with CodeLeaseLost when the token is not that of the last
// claim.
func (s *Store) ReleaseHandoff(ctx context.Context, ref HandoffRef, token string) error {
	const op = "release handoff"
	if err := ref.check(op); err != nil {
		return err
	}
	if token == "" {
		return invalidf(op, "no token is given")
	}
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		h, err := findHandoff(ctx, b.tx.QueryRow, ref)
		if err != nil {
			if ignoreNoRows(err) == nil {
				return notFoundf(op, "no work on %q in %q is open", ref.Task, ref.Place)
			}
			return err
		}
		if err := b.checkToken(ctx, op, &h, token); err != nil {
			return err
		}
		b.handoffEvent(&h, EventHandoffReleased, "")
		_, err = b.tx.Exec(ctx, sqlClaimWork, int64(h.ID), h.Fence, "", "", 0, nil)
		return err
	}))
}

func microsOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	us := t.UnixMicro()
	return &us
}

const (
	sqlEndedHandoffs   = `SELECT id FROM handoff WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2 + 0`
	sqlForgetHandoff   = `DELETE FROM handoff WHERE id = $1`
	sqlForgetHandoffed = `DELETE FROM handoff_entry WHERE handoff = $1`
	sqlHandoffBytes    = `SELECT COALESCE(SUM(LENGTH(data)), 0) FROM handoff_entry WHERE handoff = $1`
)

// sweepHandoffs removes ledgers that ended before an instant.
func (s *Store) sweepHandoffs(ctx context.Context, report *PruneReport, before int64) error {
	ids, err := s.numbers(ctx, sqlEndedHandoffs, before, pruneChunk)
	if err != nil {
		return err
	}
	for _, id := range ids {
		var size int64
		if err := s.db.QueryRow(ctx, sqlHandoffBytes, []any{id}, &size); err != nil {
			return wrap("sweep handoffs", err)
		}
		report.Handoffs++
		if report.Bytes += size; report.DryRun {
			continue
		}
		err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
			_, err := b.tx.Exec(ctx, sqlForgetHandoff, id)
			_, errEntries := b.tx.Exec(ctx, sqlForgetHandoffed, id)
			return errors.Join(err, errEntries)
		}))
		if err != nil {
			return err
		}
	}
	return nil
}
