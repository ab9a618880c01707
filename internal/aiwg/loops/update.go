package loops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// update compares a loop with the store and adds missing iterations. It changes nothing
// else.
func (m *importer) update(ctx context.Context, l *loop, id perdure.TreeID) error {
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
		if meta.Mark.Loop != l.id { // an export has a longer ID
			text = bytes.ReplaceAll(text, []byte(l.id), []byte(meta.Mark.Loop))
		}
		if !sameState(place, text, old) {
			l.docs[place].file.note(Differs, -1, "differs from the store, which was not changed")
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
		if !bytes.Equal(bytes.ReplaceAll(data, []byte(meta.Mark.Loop), []byte(l.id)), m.data(it)) &&
			!bytes.Equal(data, m.data(it)) {
			for _, name := range sortedKeys(it.files) {
				it.files[name].file.note(Differs, -1, "iteration %d differs from the store, which was not changed", it.number)
			}
		}
	}
	if _, there := have[fmt.Sprint(l.running)]; l.running > 0 && there {
		m.counts.PresentIterations++
	} else if l.running > 0 && !root.State.Terminal() {
		rec := m.unfinished(l)
		rec.Position = at
		missing = append(missing, rec)
	}
	if m.DryRun || len(missing) == 0 {
		return nil
	}
	return m.add(ctx, id, root.ID, missing)
}

// sameState reports whether a document is equal to that of the store, or to what an export
// makes of it.
func sameState(place string, text, old []byte) bool {
	if bytes.Equal(text, old) || place != stateFile {
		return bytes.Equal(text, old)
	}
	v, err := jsontree.Parse(old, jsontree.Options{})
	if err != nil {
		return false
	}
	forReaders(v)
	return bytes.Equal(text, v.Append(nil))
}

// readRoot reads the tree, the root task and its metadata of a loop in the store.
func readRoot(ctx context.Context, store *perdure.Store, id perdure.TreeID) (tree perdure.Tree, root perdure.Task,
	meta rootMeta, err error) {
	if tree, err = store.Tree(ctx, id); err != nil {
		return tree, root, meta, err
	}
	if root, err = store.Task(ctx, tree.Root); err != nil {
		return tree, root, meta, err
	}
	if err = json.Unmarshal(root.Metadata, &meta); err != nil {
		err = fmt.Errorf("read the documents of tree %q: %w", id, err)
	}
	return tree, root, meta, err
}

// text returns a document of the store, nil if there is none.
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

// eachIteration calls do for the iterations of a loop in their order.
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
				continue // not of an import
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
