package record

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// FalseAlarm is a finding that a person marked as wrong. Its loop does not report it
// again.
type FalseAlarm struct {
	// Fingerprint identifies the finding.
	Fingerprint string `json:"fingerprint"`
	// Iteration is where it was found, Event the ID of the regression that reported
	// it, and What the text of the report; all may be empty.
	Iteration int       `json:"iteration"`
	Event     string    `json:"event_id,omitempty"`
	What      string    `json:"what,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	At        time.Time `json:"marked_at"`
}

// Limits of false alarms.
const (
	// MaxFalseAlarms bounds those of a loop.
	MaxFalseAlarms = 10_000
	// MaxMarked bounds those that are marked at once, MaxWhatBytes the field What.
	MaxMarked    = 500
	MaxWhatBytes = 1 << 10
)

// EventFalseAlarm is appended when a person marked findings as false alarms.
const EventFalseAlarm perdure.EventKind = "loop.false_alarm"

const (
	sqlMarkFalse = `INSERT INTO false_alarm (tree, fingerprint, iteration, event, what, marked_by, reason, marked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tree, fingerprint) DO NOTHING`
	sqlCountFalse  = `SELECT COUNT(*) FROM false_alarm WHERE tree = $1`
	sqlFalseAlarms = `SELECT f.fingerprint, f.iteration, f.event, f.what, f.marked_by, f.reason, f.marked_at FROM tree t
		JOIN false_alarm f ON f.tree = t.id
		WHERE t.name = $1 ORDER BY f.marked_at, f.fingerprint LIMIT $2 + 0`
)

var fingerprint = lazyregexp.New(`^[0-9a-f]{16}$`)

// MarkFalse marks findings as false alarms, also in a loop that has ended, and returns
// how many are new. Earlier marks stay as they are.
func (r *Records) MarkFalse(ctx context.Context, tree perdure.TreeID, marks []FalseAlarm) (fresh int, err error) {
	const op = "mark false alarm"
	if len(marks) == 0 || len(marks) > MaxMarked {
		return 0, refuse(perdure.CodeInvalid, op, "", "%d findings are given; 1 to %d are allowed", len(marks), MaxMarked)
	}
	for i := range marks {
		m := &marks[i]
		if !fingerprint().MatchString(m.Fingerprint) {
			return 0, refuse(perdure.CodeInvalid, op, "", "%.80q is not the fingerprint of a finding, 16 hexadecimal digits",
				m.Fingerprint)
		}
		if len(m.Reason) > MaxReasonBytes || len(m.What) > MaxWhatBytes || len(m.By)+len(m.Event) > MaxWhatBytes ||
			m.Iteration < 0 {
			return 0, refuse(perdure.CodeInvalid, op, "", "a reason is longer than %d bytes, or another text longer than %d",
				MaxReasonBytes, MaxWhatBytes)
		}
	}
	if _, err := r.Loop(ctx, tree); err != nil {
		return 0, err
	}
	err = r.write(ctx, tree, func(ctx context.Context, tx *perdure.WriteTx, key int64) (err error) {
		fresh, err = markFalse(ctx, tx, key, marks)
		return err
	})
	return fresh, err
}

func markFalse(ctx context.Context, tx *perdure.WriteTx, key int64, marks []FalseAlarm) (fresh int, err error) {
	if len(marks) == 0 {
		return 0, nil
	}
	var had int
	if err := tx.QueryRow(ctx, sqlCountFalse, key).Scan(&had); err != nil {
		return 0, err
	}
	if had+len(marks) > MaxFalseAlarms {
		return 0, refuse(perdure.CodeInvalid, "mark false alarm", "a waiver suppresses whole patterns (docs/check.md)",
			"the loop has %d false alarms, at most %d are kept", had, MaxFalseAlarms)
	}
	for i := range marks {
		m := &marks[i]
		n, err := tx.Exec(ctx, sqlMarkFalse, key, m.Fingerprint, m.Iteration, m.Event, m.What, m.By, m.Reason,
			tx.Now().UnixMicro())
		if err != nil {
			return 0, err
		}
		fresh += int(n)
	}
	if fresh == 0 {
		return 0, nil
	}
	tx.LogRow(key, perdure.RowFalseAlarms, 0)
	return fresh, tx.AppendEvent(key, 0, EventFalseAlarm, map[string]any{"findings": fresh, "event": marks[0].Event,
		"what": marks[0].What, "by": marks[0].By, "reason": marks[0].Reason})
}

// FalseAlarms lists the false alarms of a loop, the earliest first.
func (r *Records) FalseAlarms(ctx context.Context, tree perdure.TreeID) ([]FalseAlarm, error) {
	list := []FalseAlarm{}
	err := perdure.EachRow(ctx, r.store.Reader(), func(row perdure.Row) error {
		var m FalseAlarm
		err := row.Scan(&m.Fingerprint, &m.Iteration, &m.Event, &m.What, &m.By, &m.Reason, (*micros)(&m.At))
		list = append(list, m)
		return err
	}, sqlFalseAlarms, string(tree), MaxFalseAlarms)
	return list, wrap("list false alarms", err)
}
