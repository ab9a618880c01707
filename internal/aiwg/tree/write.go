package tree

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// writing are trees that are being written.
type writing struct {
	trees []*tree
	done  chan struct{} // closed at the end
	out   []perdure.ImportedTree
	err   error
}

// writeTrees begins to write new trees with their first tasks. Their records are made while
// the previous trees are written.
func (r *reader) writeTrees(ctx context.Context, trees []*tree) error {
	if len(trees) == 0 {
		return nil
	}
	records := make([]perdure.TreeRecord, len(trees))
	for i, g := range trees {
		rec, err := r.treeRecord(ctx, g)
		if err != nil {
			return err
		}
		records[i] = rec
		r.report.Trees++
		r.report.Tasks += len(rec.Tasks)
	}
	if r.cfg.DryRun {
		for _, g := range trees {
			r.report.Tasks += len(g.order) - min(len(g.order), importChunk)
			r.placed[g] = &placedTree{}
			for _, t := range g.order {
				r.noteTaken(t)
			}
		}
		return nil
	}
	return r.startTrees(ctx, trees, records)
}

// startTrees begins to write trees when the previous ones are written.
func (r *reader) startTrees(ctx context.Context, trees []*tree, records []perdure.TreeRecord) error {
	prepared, err := r.store.PrepareTrees(ctx, records)
	if err != nil {
		return err
	}
	last := r.waitForTrees()
	if last.err != nil {
		return last.err
	}
	if last.whole() {
		defer r.place(last)
	} else if err := r.completeTrees(ctx, last); err != nil { // new IDs are in the order of the files
		return err
	}
	w := &writing{trees: trees, done: make(chan struct{})}
	r.writing = w
	go func() {
		defer close(w.done)
		w.out, w.err = r.store.ImportPrepared(ctx, prepared)
	}()
	return nil
}

// waitForTrees waits for the trees that are being written and returns them, without trees if
// there are none.
func (r *reader) waitForTrees() *writing {
	w := r.writing
	if w == nil {
		return &writing{}
	}
	<-w.done
	r.writing = nil
	if w.err == nil {
		failpoint.Hit("import.after_trees")
	}
	return w
}

// whole reports whether no tree has more tasks than were written, and another import wrote none.
func (w *writing) whole() bool {
	return !slices.ContainsFunc(w.trees, func(g *tree) bool { return len(g.order) > importChunk }) &&
		!slices.ContainsFunc(w.out, func(t perdure.ImportedTree) bool { return t.Found })
}

// place records where the trees are in the store.
func (r *reader) place(w *writing) {
	for i, g := range w.trees {
		if w.out[i].Found {
			continue
		}
		p := &placedTree{id: w.out[i].ID, byKey: make(map[string]perdure.TaskID, len(g.order))}
		for k, id := range w.out[i].Tasks {
			p.byKey[g.order[k].key] = id
			r.noteID(g.order[k], id)
		}
		r.placed[g] = p
	}
}

// finishTrees waits for the trees that are being written, and writes the other tasks of large
// ones.
func (r *reader) finishTrees(ctx context.Context) error {
	w := r.waitForTrees()
	if w.err != nil {
		return w.err
	}
	return r.completeTrees(ctx, w)
}

// completeTrees writes the other tasks of large trees.
func (r *reader) completeTrees(ctx context.Context, w *writing) error {
	r.place(w)
	for i, g := range w.trees {
		p := r.placed[g]
		if w.out[i].Found { // another import has just written it
			var err error
			if p, err = r.findTree(ctx, g, map[string]perdure.TreeID{g.key: w.out[i].ID}); err != nil {
				return err
			}
			r.placed[g] = p
			r.report.Trees--
			r.report.Tasks -= min(len(g.order), importChunk)
		}
		if p.present || len(p.byKey) < len(g.order) {
			if err := r.completeTree(ctx, g, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// treeRecord is a new tree with its first tasks.
func (r *reader) treeRecord(ctx context.Context, g *tree) (perdure.TreeRecord, error) {
	root := g.order[0]
	rec := perdure.TreeRecord{Key: g.key, Name: g.name, Limits: g.limits}
	if treePattern().MatchString(g.id) {
		rec.ID, g.record.ID = perdure.TreeID(g.id), g.id
	} else {
		g.record.GivenID = g.id
	}
	if g.meta != nil {
		rec.Partial = root.State == perdure.Completed && g.meta.flag("partial")
	}
	if g.report != nil && !r.cfg.DryRun {
		ref, err := r.store.PutBlob(ctx, bytes.NewReader(g.report))
		if err != nil {
			return rec, err
		}
		g.record.Report = &ref
		rec.Blobs = []perdure.BlobRef{ref}
	}
	rec.Config = jsontree.MustMarshal(map[string]any{importKey: g.record})
	if len(rec.Config) > perdure.MaxConfigBytes {
		r.note(NotRead, g.file, -1, "the other members of the tree have %d bytes, the limit is %d; they were left out",
			len(rec.Config), perdure.MaxConfigBytes)
		g.record.Fields, g.record.Metadata, g.record.Configuration = nil, nil, nil
		rec.Config = jsontree.MustMarshal(map[string]any{importKey: g.record})
	}
	at := make(map[*task]int)
	for i, t := range g.order[:min(len(g.order), importChunk)] {
		at[t] = i
		rec.Tasks = append(rec.Tasks, r.taskRecord(t, nil, at))
	}
	return rec, nil
}

// taskRecord returns the record of a task whose parent has an ID or comes before it in
// the same call.
func (r *reader) taskRecord(t *task, ids map[string]perdure.TaskID, at map[*task]int) perdure.TaskRecord {
	rec := perdure.TaskRecord{Task: t.Task}
	rec.ID = t.wanted()
	if t.up != nil {
		if place, here := at[t.up]; here {
			rec.At = place
		} else {
			rec.Parent = ids[t.up.key]
		}
	}
	meta := maps.Clone(t.meta)
	meta[importKey] = jsontree.MustMarshal(t.foreign)
	if rec.Metadata = jsontree.MustMarshal(meta); len(rec.Metadata) > perdure.MaxMetadataBytes {
		r.note(NotRead, t.f, t.n.Start, "the metadata of %s has %d bytes, the limit is %d; it was left out", t.what(),
			len(rec.Metadata), perdure.MaxMetadataBytes)
		rec.Metadata = jsontree.MustMarshal(map[string]any{importKey: t.foreign})
	}
	return rec
}

// completeTree adds the tasks that a tree of the store does not have.
func (r *reader) completeTree(ctx context.Context, g *tree, p *placedTree) error {
	var missing []*task
	for _, t := range g.order {
		id, there := p.byKey[t.key]
		if !there && p.present {
			if id, there = p.byKey[t.id]; !there {
				id, there = p.byKey[t.node]
			}
		}
		if there {
			p.byKey[t.key] = id
			continue
		}
		missing = append(missing, t)
	}
	if p.present {
		r.report.PresentTasks += len(g.order) - len(missing)
	}
	if p.own {
		for _, t := range missing {
			r.note(Differs, t.f, t.n.Start, "%s was not imported: tree %s was created in this store and does not have it",
				t.what(), p.id)
		}
		return nil
	}
	for chunk := range slices.Chunk(missing, importChunk) {
		if err := r.addTasks(ctx, p, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) addTasks(ctx context.Context, p *placedTree, tasks []*task) error {
	at := make(map[*task]int, len(tasks))
	records := make([]perdure.TaskRecord, len(tasks))
	for i, t := range tasks {
		at[t] = i
		records[i] = r.taskRecord(t, p.byKey, at)
	}
	if r.cfg.DryRun {
		r.report.Tasks += len(tasks)
		for _, t := range tasks {
			r.noteTaken(t)
		}
		return nil
	}
	ids, err := r.store.ImportTasks(ctx, p.id, records)
	if errors.Is(err, perdure.ErrConflict) {
		for _, t := range tasks {
			r.note(NotRead, t.f, t.n.Start, "%s was not imported: %v", t.what(), err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	failpoint.Hit("import.after_tasks")
	for i, t := range tasks {
		p.byKey[t.key] = ids[i]
		r.noteID(t, ids[i])
	}
	r.report.Tasks += len(tasks)
	return nil
}
