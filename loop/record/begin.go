package record

import (
	"context"
	"strings"

	"github.com/perdure/perdure"
)

// Beginning is the first rows of a loop: also the earlier iterations of one that is
// imported.
type Beginning struct {
	Loop Loop
	// Iterations are those of the imported loop. Their task is the root.
	Iterations []Iteration
	// Blobs are those that the rows refer to.
	Blobs  []perdure.BlobRef
	Events []Event
}

// InTx inserts the rows in the transaction that creates the tree: use it as the InTx
// of a [perdure.TreeSpec]. It fails with CodeConflict when a loop that has not ended
// works in the same folder, in a folder above it or in one below it.
func (b *Beginning) InTx(ctx context.Context, tx *perdure.WriteTx, tree *perdure.Tree) error {
	l := *b
	l.Loop.Tree = tree.ID
	for i := range l.Iterations {
		l.Iterations[i].Task = tree.Root
	}
	return l.write(ctx, tx)
}

func (b *Beginning) write(ctx context.Context, tx *perdure.WriteTx) error {
	const op = "start loop"
	l := &b.Loop
	if err := fits(op, "state", l.State, MaxStateBytes); err != nil {
		return err
	}
	key, err := tx.TreeKey(ctx, l.Tree)
	if err != nil {
		return err
	}
	if err := alone(ctx, tx, l); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlAddLoop, key, l.Place, string(l.Status), l.Step, l.Iteration, string(l.State),
		tx.Now().UnixMicro(), briefForm); err != nil {
		return err
	}
	tx.LogRow(key, perdure.RowLoop, 0)
	if err := addBlobs(ctx, tx, key, b.Blobs); err != nil {
		return err
	}
	for i := range b.Iterations {
		if err := fits(op, "iteration", b.Iterations[i].Data, MaxIterationBytes); err != nil {
			return err
		}
		if err := saveIteration(ctx, tx, key, &b.Iterations[i]); err != nil {
			return err
		}
	}
	return appendEvents(tx, key, 0, b.Events)
}

// sqlOpenPlaces lists the places of loops that have not ended, and whether their trees were
// completed (4) or cancelled (6) without them.
const sqlOpenPlaces = `SELECT t.id, t.name, t.title, l.place, CASE WHEN s.state IN (4, 6) THEN 1 ELSE 0 END
	FROM loop l JOIN tree t ON t.id = l.tree LEFT JOIN tree_stat s ON s.tree = t.id WHERE l.status IN ` + dbOpen

// alone refuses a loop in a place where another one works: each would revert the
// changes of the other. A loop whose tree was ended without it is ended.
func alone(ctx context.Context, tx *perdure.WriteTx, l *Loop) error {
	var dead []int64
	err := perdure.EachRow(ctx, tx, func(row perdure.Row) error {
		var key, ended int64
		var other, title, place string
		if err := row.Scan(&key, &other, &title, &place, &ended); err != nil {
			return err
		}
		if other == string(l.Tree) || !holds(place, l.Place) && !holds(l.Place, place) {
			return nil
		}
		if ended == 1 {
			dead = append(dead, key)
			return nil
		}
		where := "this folder"
		if place != l.Place {
			_, where, _ = strings.Cut(place, ":")
		}
		if _, digits, _ := strings.Cut(other, "-"); title != "" {
			other = title + "-" + digits // the loop's ID
		}
		return refuse(perdure.CodeConflict, "start loop",
			"`perdure loop resume "+other+"` continues it, `perdure loop abort "+other+"` ends it",
			"the loop %s works in %s and has not ended", other, where)
	}, sqlOpenPlaces)
	for _, key := range dead {
		if err != nil {
			return err
		}
		err = closeLoop(ctx, tx, key)
	}
	return err
}

// holds reports whether a place is the same as another one or a folder above it.
func holds(place, other string) bool {
	rest, ok := strings.CutPrefix(other, strings.TrimRight(place, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}
