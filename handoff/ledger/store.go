package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// Ledgers keeps ledgers: a [Store] or a client of the API.
type Ledgers interface {
	Handoff(ctx context.Context, ref Ref) (Handoff, error)
	HandoffEntries(ctx context.Context, id ID, after int64, limit int) ([]Entry, error)
	WriteHandoff(ctx context.Context, w Write) (Handoff, error)
	ClaimHandoff(ctx context.Context, spec ClaimSpec) (Claim, error)
	ReleaseHandoff(ctx context.Context, ref Ref, token string) error
}

// Store keeps ledgers in the rows of a [perdure.Store]. Its methods may be called
// from several goroutines at once.
type Store struct{ store *perdure.Store }

// NewStore returns the ledgers of a store.
func NewStore(store *perdure.Store) *Store { return &Store{store} }

const (
	columns = `id, place, task, version, fence, agent, expires_at, projected, previous, created_at, updated_at, ended_at`

	sqlHandoff       = `SELECT ` + columns + ` FROM handoff WHERE place = $1 AND task = $2 ORDER BY id DESC LIMIT 1`
	sqlHandoffToken  = `SELECT token, ttl FROM handoff WHERE id = $1` //nolint:gosec // a statement
	sqlHandoffs      = `SELECT ` + columns + ` FROM handoff WHERE id < $1 ORDER BY id DESC LIMIT $2 + 0`
	sqlInsertHandoff = `INSERT INTO handoff (id, place, task, version, fence, agent, token, ttl, projected, previous,
			created_at, updated_at)
		VALUES ($1, $2, $3, 0, 0, '', '', 0, '', '', $4, $4)`
	sqlSaveHandoff = `UPDATE handoff SET version = $2, expires_at = $3, projected = $4, previous = $5, updated_at = $6,
		ended_at = $7 WHERE id = $1`
	sqlClaimWork = `UPDATE handoff SET fence = $2, agent = $3, token = $4, ttl = $5, expires_at = $6 WHERE id = $1`

	sqlHandoffEntries = `SELECT number, kind, data, source, at FROM handoff_entry
		WHERE handoff = $1 AND number > $2 ORDER BY number LIMIT $3 + 0`
	sqlInsertHandoffEntry = `INSERT INTO handoff_entry (handoff, number, kind, data, source, at)
		VALUES ($1, $2, $3, $4, $5, $6)`
)

// scan copies the columns of a row.
func (h *Handoff) scan(row perdure.Row) error {
	var created, updated int64
	var expires, ended *int64
	var projected, previous string
	err := row.Scan((*int64)(&h.ID), &h.Place, &h.Task, &h.Version, &h.Fence, &h.Agent, &expires, &projected, &previous,
		&created, &updated, &ended)
	h.CreatedAt, h.UpdatedAt, h.ExpiresAt, h.EndedAt = instant(created), instant(updated), maybe(expires), maybe(ended)
	h.Projected, h.Previous = json.RawMessage(projected), json.RawMessage(previous)
	return err
}

// find reads the last ledger of a reference; found is false if there is none.
func find(ctx context.Context, q perdure.Querier, ref Ref) (h Handoff, found bool, err error) {
	err = h.scan(q.QueryRow(ctx, sqlHandoff, ref.Place, ref.Task))
	if errors.Is(err, sql.ErrNoRows) {
		return h, false, nil
	}
	return h, err == nil, err
}

// Handoff returns the ledger of a reference: the open one, else the one that
// ended last. It fails with CodeNotFound if there is none.
func (s *Store) Handoff(ctx context.Context, ref Ref) (Handoff, error) {
	const op = "read handoff"
	if err := ref.check(op); err != nil {
		return Handoff{}, err
	}
	h, found, err := find(ctx, s.store.Reader(), ref)
	if err == nil && !found {
		return h, refuse(perdure.CodeNotFound, op, "", "there is no ledger of %q in %q", ref.Task, ref.Place)
	}
	return h, wrap(op, err)
}

// Handoffs lists ledgers, the newest first.
func (s *Store) Handoffs(ctx context.Context, f Filter) ([]Handoff, error) {
	const page, most = 100, 1000
	before := int64(f.Before)
	if before == 0 {
		before = 1 << 62
	}
	list := []Handoff{}
	err := perdure.EachRow(ctx, s.store.Reader(), func(row perdure.Row) error {
		var h Handoff
		err := h.scan(row)
		list = append(list, h)
		return err
	}, sqlHandoffs, before, bounded(f.Limit, page, most))
	return list, wrap("list handoffs", err)
}

// HandoffEntries lists entries of a ledger behind a number, the oldest first: at
// most limit, 0 means 1,000, which is also the most.
func (s *Store) HandoffEntries(ctx context.Context, id ID, after int64, limit int) ([]Entry, error) {
	const most = 1000
	list := []Entry{}
	err := perdure.EachRow(ctx, s.store.Reader(), func(row perdure.Row) error {
		var e Entry
		var at int64
		err := row.Scan(&e.Number, &e.Kind, (*[]byte)(&e.Data), &e.Source, &at)
		e.Time = instant(at)
		list = append(list, e)
		return err
	}, sqlHandoffEntries, int64(id), after, bounded(limit, most, most))
	return list, wrap("list entries", err)
}

// WriteHandoff adds entries to a ledger, creates it if none is open, and ends it with
// End. When it returns, the changes are durable. It fails with CodeConflict if the
// ledger has another version, is full, or is claimed and there is no token, and with
// CodeLeaseLost if the token is not that of the last claim.
func (s *Store) WriteHandoff(ctx context.Context, w Write) (Handoff, error) {
	const op = "write handoff"
	if err := w.check(op); err != nil {
		return Handoff{}, err
	}
	var h Handoff
	err := s.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) (err error) {
		var found bool
		if h, found, err = find(ctx, tx, w.Ref); err != nil {
			return err
		}
		if !found || h.EndedAt != nil {
			h = Handoff{Ref: w.Ref, CreatedAt: tx.Now()}
		}
		if err := h.admit(ctx, tx, op, &w); err != nil {
			return err
		}
		return h.write(ctx, tx, &w)
	})
	return h, err
}

// admit checks whether a write is allowed, and renews the claim.
func (h *Handoff) admit(ctx context.Context, tx *perdure.WriteTx, op string, w *Write) error {
	if err := h.checkToken(ctx, tx, op, w.Token); err != nil {
		return err
	}
	total := h.Version + int64(len(w.Entries))
	switch {
	case w.IfVersion != h.Version:
		return refuse(perdure.CodeConflict, op, "another process wrote to it; read it again",
			"the ledger has %d entries, not %d", h.Version, w.IfVersion)
	case total > MaxEntries:
		return refuse(perdure.CodeConflict, op, "end it and start another one",
			"the ledger would have %d entries, the limit is %d", total, MaxEntries)
	}
	return nil
}

// checkToken checks the token of the claim, if there is one.
func (h *Handoff) checkToken(ctx context.Context, tx *perdure.WriteTx, op, token string) error {
	var own string
	var ttl int64
	if h.ID != 0 {
		if err := tx.QueryRow(ctx, sqlHandoffToken, int64(h.ID)).Scan(&own, &ttl); err != nil {
			return err
		}
	}
	by := ""
	if h.Agent != "" {
		by = " (by \"" + h.Agent + "\")"
	}
	claimed := h.ExpiresAt != nil && h.ExpiresAt.After(tx.Now())
	switch {
	case token != "" && h.Fence == 0:
		return refuse(perdure.CodeLeaseLost, op, "omit the token; `perdure handoff resume` claims this work",
			"this work was never claimed: the token is that of other work")
	case token != "" && token != own:
		return refuse(perdure.CodeLeaseLost, op, "another agent continues this work; stop",
			"the token is not that of the last claim%s", by)
	case token == "" && claimed:
		return refuse(perdure.CodeConflict, op,
			"pass the token that the claim printed; other agents have to wait or to take the work over",
			"the work is claimed%s until %s", by, h.ExpiresAt.Format(time.RFC3339))
	case token != "":
		h.ExpiresAt = new(tx.Now().Add(time.Duration(ttl) * time.Microsecond))
	}
	return nil
}

func (h *Handoff) write(ctx context.Context, tx *perdure.WriteTx, w *Write) error {
	now, kind := tx.Now(), EventUpdated
	if h.ID == 0 {
		h.ID, kind = ID(tx.NextID()), EventStarted
		if _, err := tx.Exec(ctx, sqlInsertHandoff, int64(h.ID), h.Place, h.Task, now.UnixMicro()); err != nil {
			return err
		}
	}
	for i := range w.Entries {
		e := &w.Entries[i]
		if h.Version++; len(e.Data) == 0 {
			e.Data = json.RawMessage("{}")
		}
		_, err := tx.Exec(ctx, sqlInsertHandoffEntry, int64(h.ID), h.Version, e.Kind, string(e.Data), e.Source,
			now.UnixMicro())
		if err != nil {
			return err
		}
		tx.LogPart(0, perdure.RowHandoffEntry, int(h.ID), int(h.Version))
	}
	if h.UpdatedAt = now; w.Projected != nil {
		h.Projected = w.Projected
	}
	if w.Previous != nil {
		h.Previous = w.Previous
	}
	if w.End {
		h.EndedAt, h.ExpiresAt, kind = &h.UpdatedAt, nil, EventEnded
	}
	_, err := tx.Exec(ctx, sqlSaveHandoff, int64(h.ID), h.Version, micros(h.ExpiresAt), string(h.Projected),
		string(h.Previous), now.UnixMicro(), micros(h.EndedAt))
	if err != nil {
		return err
	}
	return h.event(tx, kind, event{Version: &h.Version})
}

// event is the data of an event about a ledger.
type event struct {
	ID ID `json:"handoff_id"`
	Ref
	Version *int64  `json:"version,omitempty"`
	Agent   *string `json:"agent,omitempty"`
	Fence   int64   `json:"fence,omitempty"`
	// Digested is set if the digests of the ledger and its new entries are in the log.
	Digested bool `json:"digested"`
}

func (h *Handoff) event(tx *perdure.WriteTx, kind perdure.EventKind, e event) error {
	e.ID, e.Ref, e.Digested = h.ID, h.Ref, true
	tx.LogRow(0, perdure.RowHandoff, int(h.ID))
	return tx.AppendEvent(0, 0, kind, e)
}

// ClaimHandoff claims work for one agent: until the claim expires, no other agent can
// claim it, and writes need the token. It fails with CodeConflict if another agent has
// a claim, and with CodeNotFound if no ledger is open.
func (s *Store) ClaimHandoff(ctx context.Context, spec ClaimSpec) (Claim, error) {
	const op = "claim handoff"
	if err := spec.check(op); err != nil {
		return Claim{}, err
	}
	spec.TTL = cmp.Or(spec.TTL, DefaultTTL)
	if spec.TTL < 0 || spec.TTL > MaxTTL || !fitsText(spec.Agent, maxNameBytes) {
		return Claim{}, refuse(perdure.CodeInvalid, op, "",
			"want a TTL of at most %s and an agent of at most %d bytes", MaxTTL, maxNameBytes)
	}
	c := Claim{Token: strings.ToLower(rand.Text()[:10])}
	err := s.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		h, found, err := find(ctx, tx, spec.Ref)
		if err != nil {
			return err
		}
		if !found || h.EndedAt != nil {
			return nothingOpen(op, spec.Ref)
		}
		if err := h.checkToken(ctx, tx, op, ""); err != nil && !spec.TakeOver {
			return err
		}
		at := tx.Now().Add(spec.TTL)
		h.Fence++
		h.Agent, h.ExpiresAt = spec.Agent, &at
		c.Handoff = h
		_, err = tx.Exec(ctx, sqlClaimWork, int64(h.ID), h.Fence, h.Agent, c.Token, spec.TTL.Microseconds(), at.UnixMicro())
		if err != nil {
			return err
		}
		return h.event(tx, EventClaimed, event{Agent: &h.Agent, Fence: h.Fence})
	})
	return c, err
}

// ReleaseHandoff ends a claim before it expires. It fails with CodeLeaseLost if the token
// is not that of the last claim.
func (s *Store) ReleaseHandoff(ctx context.Context, ref Ref, token string) error {
	const op = "release handoff"
	if err := ref.check(op); err != nil {
		return err
	}
	if token == "" {
		return refuse(perdure.CodeInvalid, op, "", "no token is given")
	}
	return s.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		h, found, err := find(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !found {
			return nothingOpen(op, ref)
		}
		if err := h.checkToken(ctx, tx, op, token); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlClaimWork, int64(h.ID), h.Fence, "", "", 0, nil); err != nil {
			return err
		}
		return h.event(tx, EventReleased, event{})
	})
}

func nothingOpen(op string, ref Ref) error {
	return refuse(perdure.CodeNotFound, op, "", "no work on %q in %q is open", ref.Task, ref.Place)
}

func bounded(n, byDefault, most int) int {
	if n <= 0 {
		return byDefault
	}
	return min(n, most)
}

// instant returns the time of a database column; micros is the reverse.
func instant(us int64) time.Time { return time.UnixMicro(us).UTC() }

func micros(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}

func maybe(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	return new(instant(*us))
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeOf(err), Op: op, Err: err}
}
