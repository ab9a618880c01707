package record

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// FalseAlarm is a finding that a person marked as none. It does not alarm again in
// its loop.
type FalseAlarm struct {
	// Fingerprint is by what the finding is known again.
	Fingerprint string `json:"fingerprint"`
	// Iteration is where it was found, Event the regression that lists it, and
	// What its description; all may be empty.
	Iteration int       `json:"iteration"`
	Event     string    `json:"event_id,omitempty"`
	What      string    `json:"what,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	At        time.Time `json:"marked_at"`
}

// Limits of false alarms.
const (
	// MaxFalseAlarms is how many a loop has at most.
	MaxFalseAlarms = 10_000
	// MaxMarked is how many are marked at once, MaxWhatBytes how long What is.
	MaxMarked    = 500
	MaxWhatBytes = 1 << 10
)

// EventFalseAlarm tells that a person marked findings as false alarms.
const EventFalseAlarm perdure.EventKind = "loop.false_alarm"

const (
	sqlMarkFalse = `INSERT INTO false_alarm (tree, fingerprint, iteration, event, what, marked_by, reason, marked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tree, fingerprint) DO NOTHING`
	sqlCountFalse  = `SELECT COUNT(*) FROM false_alarm WHERE tree = $1`
	sqlFalseAlarms = `SELECT f.fingerprint, f.iteration, f.event, f.what, f.marked_by, f.reason, f.marked_at FROM tree t JOIN false_alarm f ON f.tree = t.id
		WHERE t.name = $1 ORDER BY f.marked_at, f.fingerprint LIMIT $2 + 0`
)

var fingerprint = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{16}$`) })

// MarkFalse marks findings as false alarms, in a loop that has ended, too, and
// returns how many are new. What was marked before stays as it is.
func (r *Records) MarkFalse(ctx context.Context, tree perdure.TreeID, marks []FalseAlarm) (fresh int, err error) {
	const op = "mark false alarm"
	if len(marks) == 0 || len(marks) > MaxMarked {
		return 0, &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%d findings are given, 1 to %d are taken", len(marks), MaxMarked)}
	}
	for i := range marks {
		m := &marks[i]
		if !fingerprint().MatchString(m.Fingerprint) {
			return 0, &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%.80q is no fingerprint of a finding; 16 digits are wanted", m.Fingerprint)}
		}
		if len(m.Reason) > MaxReasonBytes || len(m.What) > MaxWhatBytes || len(m.By)+len(m.Event) > MaxWhatBytes || m.Iteration < 0 {
			return 0, &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("a reason has at most %d bytes, other fields have %d", MaxReasonBytes, MaxWhatBytes)}
		}
	}
	if _, err := r.Loop(ctx, tree); err != nil {
		return 0, err
	}
	err = r.store.WriteTx(ctx, func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
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
		return 0, &perdure.Error{Code: perdure.CodeInvalid, Op: "mark false alarm", Msg: fmt.Sprintf("the loop has %d false alarms, at most %d are kept", had, MaxFalseAlarms),
			Hint: "a waiver takes away whole patterns (docs/check.md)"}
	}
	for i := range marks {
		m := &marks[i]
		n, err := tx.Exec(ctx, sqlMarkFalse, key, m.Fingerprint, m.Iteration, m.Event, m.What, m.By, m.Reason, tx.Now().UnixMicro())
		if err != nil {
			return 0, err
		}
		fresh += int(n)
	}
	if fresh == 0 {
		return 0, nil
	}
	return fresh, tx.AppendEvent(key, 0, EventFalseAlarm, map[string]any{"findings": fresh, "event": marks[0].Event, "what": marks[0].What, "by": marks[0].By, "reason": marks[0].Reason})
}

// FalseAlarms lists what a person marked in a loop, in the order of that.
func (r *Records) FalseAlarms(ctx context.Context, tree perdure.TreeID) ([]FalseAlarm, error) {
	list := []FalseAlarm{}
	err := each(ctx, r.store.Reader(), func(scan scanFunc) error {
		var m FalseAlarm
		err := scan(&m.Fingerprint, &m.Iteration, &m.Event, &m.What, &m.By, &m.Reason, (*micros)(&m.At))
		list = append(list, m)
		return err
	}, sqlFalseAlarms, string(tree), MaxFalseAlarms)
	return list, wrap("list false alarms", err)
}
