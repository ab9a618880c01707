package loops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/perdure/perdure"
)

// again compares a loop with what the store has of it, and adds the iterations
// that are missing. What is there stays as it is.
func (m *importer) again(ctx context.Context, l *loop, id perdure.TreeID) error {
	tree, root, meta, err := readRoot(ctx, m.store, id)
	if err != nil {
		return err
	}
	m.counts.PresentLoops++
	for _, place := range sortedKeys(l.docs) {
		text, _ := l.docs[place].stored()
		old, err := meta.text(ctx, m.store, place)
		if err != nil {
			return err
		}
		if !bytes.Equal(text, old) {
			l.docs[place].file.note(Differs, -1, "is otherwise in the store, or not there; the store's stays")
		}
	}
	have := make(map[string]json.RawMessage)
	at := 0
	err = eachIteration(ctx, m.store, &tree, func(t *perdure.Task, meta *iterMeta) error {
		have[meta.Mark.Key] = t.Data
		at = max(at, t.Position+1)
		return nil
	})
	if err != nil {
		return err
	}
	var missing []perdure.TaskRecord
	for _, it := range l.iters {
		data, there := have[it.key()]
		if !there {
			rec := m.iteration(l, it)
			rec.Position = at
			at++
			missing = append(missing, rec)
			continue
		}
		m.counts.PresentIterations++
		if !bytes.Equal(data, m.data(it)) {
			for _, name := range sortedKeys(it.files) {
				it.files[name].file.note(Differs, -1, "what the store has of iteration %d is otherwise, and stays", it.number)
			}
		}
	}
	if _, there := have[fmt.Sprint(l.under)]; l.under > 0 && there {
		m.counts.PresentIterations++
	} else if l.under > 0 && !root.State.Terminal() {
		rec := m.underWay(l)
		rec.Position = at
		missing = append(missing, rec)
	}
	if m.DryRun || len(missing) == 0 {
		return nil
	}
	return m.add(ctx, id, root.ID, missing)
}

// readRoot reads what the store has of a loop.
func readRoot(ctx context.Context, store *perdure.Store, id perdure.TreeID) (tree perdure.Tree, root perdure.Task,
	meta rootMeta, err error) {
	if tree, err = store.Tree(ctx, id); err != nil {
		return tree, root, meta, err
	}
	if root, err = store.Task(ctx, tree.Root); err != nil {
		return tree, root, meta, err
	}
	if err := json.Unmarshal(root.Metadata, &meta); err != nil {
		return tree, root, meta, fmt.Errorf("read the documents of tree %q: %w", id, err)
	}
	return tree, root, meta, nil
}

// text is a document as the store has it, nil when there is none.
func (r *rootMeta) text(ctx context.Context, store *perdure.Store, place string) ([]byte, error) {
	if ref, ok := r.Mark.Blobs[place]; ok {
		blob, err := store.OpenBlob(ctx, ref.Hash)
		if err != nil {
			return nil, err
		}
		defer blob.Close()
		return io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	}
	return r.Documents[place], nil
}

// eachIteration goes along the iterations of a loop in their order.
func eachIteration(ctx context.Context, store *perdure.Store, tree *perdure.Tree,
	do func(t *perdure.Task, meta *iterMeta) error) error {
	filter := perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root, Limit: 100}
	for {
		tasks, err := store.Tasks(ctx, filter)
		if err != nil {
			return err
		}
		for i := range tasks {
			var meta iterMeta
			if err := json.Unmarshal(tasks[i].Metadata, &meta); err != nil {
				return fmt.Errorf("read task %q: %w", tasks[i].ID, err)
			}
			if meta.Mark.Kind != kindIteration {
				continue // somebody else's
			}
			if err := do(&tasks[i], &meta); err != nil {
				return err
			}
		}
		if len(tasks) < filter.Limit {
			return nil
		}
		filter.After = tasks[len(tasks)-1].ID
	}
}
