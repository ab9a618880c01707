package perdure

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// MaxImportID is the highest ID that an imported task keeps.
const MaxImportID TaskID = 1<<44 - 1

// TaskRange is a range of task IDs, both ends included.
type TaskRange struct{ First, Last TaskID }

// has reports whether the ID is in the range.
func (r *TaskRange) has(id TaskID) bool { return r.First <= id && id <= r.Last }

// UnusedTasks returns the IDs that no task of the store ever had, in order. The last range
// ends at [MaxImportID].
func (s *Store) UnusedTasks(ctx context.Context) ([]TaskRange, error) {
	var last int64
	if err := s.db.QueryRow(ctx, sqlLastTask, nil, &last); err != nil {
		return nil, wrap("read task IDs", err)
	}
	list, err := readUnused(ctx, s.db.Query, 0, last)
	if TaskID(last) < MaxImportID {
		list = append(list, TaskRange{TaskID(last) + 1, MaxImportID})
	}
	return list, wrap("read task IDs", err)
}

// ReserveTasks moves the counter of tasks past an ID, so that new tasks get higher ones.
// The IDs in between stay unused until imported tasks keep them. An ID of more than
// MaxImportID is an error with CodeInvalid.
func (s *Store) ReserveTasks(ctx context.Context, highest TaskID) error {
	if highest > MaxImportID {
		return invalidf("reserve task IDs", "%q is more than the limit of %q", highest, MaxImportID)
	}
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		next := TaskID(b.cache.seq.task) + 1
		if highest < next {
			return nil
		}
		b.cache.seq.task = int64(highest)
		_, err := b.tx.Exec(ctx, sqlAddUnused, int64(next), int64(highest))
		return undoing(err)
	}))
	return wrap("reserve task IDs", err)
}

const (
	sqlLastTask    = `SELECT task FROM seq WHERE id = 1`
	sqlUnusedTasks = `SELECT first, last FROM unused_task WHERE first <= $2 AND last >= $1 ORDER BY first`
	sqlAddUnused   = `INSERT INTO unused_task (first, last) VALUES ($1, $2)`
	sqlDropUnused  = `DELETE FROM unused_task WHERE first <= $2 AND last >= $1`
	headUnused     = `INSERT INTO unused_task (first, last)`
)

func readUnused(ctx context.Context, query sqldb.QueryFunc, low, high int64) ([]TaskRange, error) {
	return sqldb.Collect(ctx, query, func(scan sqldb.Scan) (r TaskRange, err error) {
		err = scan((*int64)(&r.First), (*int64)(&r.Last))
		return r, err
	}, sqlUnusedTasks, low, high)
}

// unusedIDs are the unused IDs among which those of the records of one call are.
type unusedIDs struct {
	low, high TaskID
	ranges    []TaskRange
	changed   bool
}

// unused reads the unused IDs for records.
func (b *batch) unused(ctx context.Context, list iter.Seq[recordTask]) (*unusedIDs, error) {
	u := &unusedIDs{}
	for t := range list {
		if id := t.rec.ID; id > 0 {
			u.low, u.high = min(cmp.Or(u.low, id), id), max(u.high, id)
		}
	}
	if u.low == 0 {
		return u, nil
	}
	var err error
	u.ranges, err = readUnused(ctx, b.tx.Query, int64(u.low), int64(u.high))
	return u, err
}

// allTasks returns the tasks of trees.
func allTasks(trees []*importTree) iter.Seq[recordTask] {
	return func(yield func(recordTask) bool) {
		for _, t := range trees {
			for _, task := range t.tasks {
				if !yield(task) {
					return
				}
			}
		}
	}
}

// take takes an ID, and reports whether it was unused.
func (u *unusedIDs) take(id TaskID) bool {
	i, _ := slices.BinarySearchFunc(u.ranges, id, func(r TaskRange, id TaskID) int { return cmp.Compare(r.Last, id) })
	if id <= 0 || i == len(u.ranges) || !u.ranges[i].has(id) {
		return false
	}
	u.changed = true
	r := &u.ranges[i]
	switch {
	case r.First == id:
		r.First++ // the range can be empty now
	case r.Last == id:
		r.Last--
	default:
		above := TaskRange{id + 1, r.Last}
		r.Last = id - 1
		u.ranges = slices.Insert(u.ranges, i+1, above)
	}
	return true
}

// save writes the ranges that are left.
func (u *unusedIDs) save(ctx context.Context, b *batch) error {
	if !u.changed {
		return nil
	}
	if _, err := b.tx.Exec(ctx, sqlDropUnused, int64(u.low), int64(u.high)); err != nil {
		return err
	}
	var rows []any
	for _, r := range u.ranges {
		if r.First <= r.Last {
			rows = append(rows, int64(r.First), int64(r.Last))
		}
	}
	return sqldb.NewInsertion(headUnused, 2, "").Exec(ctx, b.tx, rows)
}

// idOf returns the ID of a new record: the one it asks for if that was never used and is
// higher than its parent's, since parents have lower IDs than their children.
func (b *batch) idOf(u *unusedIDs, t *recordTask) int64 {
	if want := t.rec.ID; int64(want) > t.parent && u.take(want) {
		return int64(want)
	}
	b.cache.seq.task++
	return b.cache.seq.task
}
