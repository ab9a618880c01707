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

// sqlOpenPlaces lists the places of loops that have not ended.
const sqlOpenPlaces = `SELECT t.id, t.name, t.title, l.place FROM loop l JOIN tree t ON t.id = l.tree
	WHERE l.status IN ` + dbOpen

// taken is a loop that has not ended, and its place.
type taken struct {
	key               int64
	tree, name, place string
}

// alone refuses a loop in a place where another one works: each would revert the
// changes of the other. A loop whose tree was ended without it is ended.
func alone(ctx context.Context, tx *perdure.WriteTx, l *Loop) error {
	var others []taken
	err := perdure.EachRow(ctx, tx, func(row perdure.Row) error {
		var o taken
		if err := row.Scan(&o.key, &o.tree, &o.name, &o.place); err != nil {
			return err
		}
		if o.tree != string(l.Tree) && (holds(o.place, l.Place) || holds(l.Place, o.place)) {
			others = append(others, o)
		}
		return nil
	}, sqlOpenPlaces)
	if err != nil {
		return err
	}
	for i := range others {
		o := &others[i]
		switch state, err := tx.TreeState(ctx, o.key); {
		case err != nil:
			return err
		case !state.Terminal() || state == perdure.Failed:
			return o.refuse(l.Place)
		}
		if err := closeLoop(ctx, tx, o.key); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns the error for a loop in the place of another one, or above or below it.
func (o *taken) refuse(place string) error {
	where := "this folder"
	if place != o.place {
		_, where, _ = strings.Cut(o.place, ":")
	}
	id := o.tree
	if _, digits, _ := strings.Cut(o.tree, "-"); o.name != "" {
		id = o.name + "-" + digits // the loop's ID
	}
	return refuse(perdure.CodeConflict, "start loop",
		"`perdure loop resume "+id+"` continues it, `perdure loop abort "+id+"` ends it",
		"the loop %s works in %s and has not ended", id, where)
}

// holds reports whether a place is the same as another one or a folder above it.
func holds(place, other string) bool {
	rest, ok := strings.CutPrefix(other, strings.TrimRight(place, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}
