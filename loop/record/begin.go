package record

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// Beginning is the first record of a loop, and of one that began elsewhere what
// is known of that.
type Beginning struct {
	Loop Loop
	// Iterations are earlier iterations. Their tasks are the root's.
	Iterations []Iteration
	// Blobs are what the records refer to.
	Blobs  []perdure.BlobRef
	Events []Event
}

// InTx writes it in the transaction that creates the tree: use it as the InTx of a
// [perdure.TreeSpec]. It fails with CodeConflict when a loop that has not ended
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
	if _, err := tx.Exec(ctx, sqlAddLoop, key, l.Place, string(l.Status), l.Step, l.Iteration, string(l.State), tx.Now().UnixMicro(), briefForm); err != nil {
		return err
	}
	for _, ref := range b.Blobs {
		if err := tx.AddBlobRef(ctx, key, ref); err != nil {
			return err
		}
	}
	for i := range b.Iterations {
		if err := fits(op, "iteration", b.Iterations[i].Data, MaxIterationBytes); err != nil {
			return err
		}
		if err := saveIteration(ctx, tx, key, &b.Iterations[i]); err != nil {
			return err
		}
	}
	for _, e := range b.Events {
		if err := tx.AppendEvent(key, 0, e.Kind, e.Data); err != nil {
			return err
		}
	}
	return nil
}

// sqlOpenPlaces lists where loops are that have not ended.
const sqlOpenPlaces = `SELECT t.name, l.place FROM loop l JOIN tree t ON t.id = l.tree
	WHERE l.status IN ` + dbOpen

// alone refuses a loop where another one works: each would take back what the
// other one does.
func alone(ctx context.Context, tx *perdure.WriteTx, l *Loop) error {
	return each(ctx, tx, func(scan scanFunc) error {
		var other, place string
		if err := scan(&other, &place); err != nil {
			return err
		}
		if other == string(l.Tree) || !holds(place, l.Place) && !holds(l.Place, place) {
			return nil
		}
		where := "this folder"
		if place != l.Place {
			_, where, _ = strings.Cut(place, ":")
		}
		return &perdure.Error{Code: perdure.CodeConflict, Op: "start loop", Msg: fmt.Sprintf("the loop of %s works in %s and has not ended", other, where),
			Hint: "`perdure loop resume " + other + "` continues it, `perdure loop abort " + other + "` ends it"}
	}, sqlOpenPlaces)
}

// holds reports whether a place is another one or a folder above it.
func holds(place, other string) bool {
	rest, ok := strings.CutPrefix(other, strings.TrimRight(place, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}
