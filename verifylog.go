package perdure

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/heads"
)

// LogReport is the result of [Store.VerifyLog].
type LogReport struct {
	// Intact is set if no tree has a fault.
	Intact bool      `json:"intact"`
	Trees  []TreeLog `json:"trees"`
	// Heads is the file with the heads that were recorded outside of the store, empty
	// without [Config.Heads].
	Heads string `json:"heads,omitempty"`
	// Accepted is set after [Store.AcceptLog].
	Accepted bool `json:"accepted,omitempty"`
}

// TreeLog is the result for the log of one tree.
type TreeLog struct {
	// Tree is empty for the events that belong to no tree.
	Tree   TreeID `json:"tree_id,omitempty"`
	Intact bool   `json:"intact"`
	// Events is the number of events in the chain, First the number of the first one.
	Events int64 `json:"events"`
	First  int64 `json:"first_event,omitempty"`
	// Unchained is the number of the last event from before the store had a chain: it
	// and earlier ones are not verified.
	Unchained int64 `json:"unchained_to,omitempty"`
	// Recorded is how many events match a head recorded outside, RecordedAt its time.
	Recorded   int64      `json:"recorded_events"`
	RecordedAt *time.Time `json:"recorded_at,omitempty"`
	Faults     []LogFault `json:"faults"`

	found *chain.Tree
}

// LogFault is a difference between the log and what is recorded of it.
type LogFault struct {
	// Kind is for programs, Detail for people.
	Kind string `json:"kind"`
	// Event is the number of the first event that differs, 0 if no event does.
	Event  int64  `json:"event,omitempty"`
	Detail string `json:"detail"`
}

// VerifyLog compares the events of trees, all if none is named, with the hash chain, with
// the heads recorded in [Config.Heads], and the rows whose digests are in the log with
// these. It reads all events on one snapshot; other processes can use the store meanwhile.
// The events that belong to no tree are always verified.
func (s *Store) VerifyLog(ctx context.Context, trees ...TreeID) (LogReport, error) {
	const op = "verify log"
	report := LogReport{Intact: true, Trees: []TreeLog{}}
	var recorded []heads.Line
	if s.cfg.Heads != "" {
		report.Heads = heads.Path(s.cfg.Heads, s.location())
		var err error
		// Read before the snapshot: lines of later events are not in it.
		if recorded, err = heads.Read(report.Heads); err != nil {
			return report, &Error{Code: CodeUnavailable, Op: op, Err: err}
		}
	}
	var found []*chain.Tree
	err := s.db.View(ctx, func(tx *sql.Tx) (err error) {
		found, err = chain.Verify(ctx, tx, recorded)
		return err
	})
	if err != nil {
		return report, wrap(op, err)
	}
	seen := make(map[TreeID]bool)
	for _, t := range found {
		id := TreeID(t.Name)
		seen[id] = true
		if len(trees) > 0 && t.Key != 0 && !slices.Contains(trees, id) || t.Key == 0 && t.Events == 0 && len(t.Faults) == 0 {
			continue
		}
		log := TreeLog{Tree: id, Intact: len(t.Faults) == 0, Events: t.Events, First: t.First, Unchained: t.Unchained,
			Recorded: t.Recorded, Faults: []LogFault{}, found: t}
		if t.Recorded > 0 {
			log.RecordedAt = &t.RecordedAt
		}
		for _, f := range t.Faults {
			log.Faults = append(log.Faults, LogFault(f))
		}
		report.Trees = append(report.Trees, log)
		report.Intact = report.Intact && log.Intact
	}
	for _, id := range trees {
		if !seen[id] {
			return report, noTree(op, id)
		}
	}
	return report, nil
}

// AcceptLog records the state of the trees of a report with faults as the right one, because
// the user restored a backup, or imported trees into a new store in the place of the one that
// had them. It fails if this does not cause all faults of the report: it causes log_shorter,
// recorded_head, tree_missing and store_replaced.
func (s *Store) AcceptLog(ctx context.Context, r *LogReport) error {
	const op = "accept log"
	id, err := s.newID(ctx)
	if err != nil {
		return wrap(op, err)
	}
	var lines []heads.Line
	for _, t := range r.Trees {
		if t.Intact || t.found == nil {
			continue
		}
		line, ok := t.found.Accepted(id, time.Now().UTC())
		if !ok {
			return &Error{Code: CodeConflict, Op: op,
				Msg: "neither a restored backup nor a new store causes all of these faults",
				Hint: "only log_shorter, recorded_head, tree_missing and store_replaced can be accepted; restore " +
					"another backup, or keep the store as evidence and begin a new one"}
		}
		lines = append(lines, line)
	}
	if err := heads.Append(r.Heads, lines); err != nil {
		return &Error{Code: CodeUnavailable, Op: op, Err: err}
	}
	r.Accepted = len(lines) > 0
	return nil
}
