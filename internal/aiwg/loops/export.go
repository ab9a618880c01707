package loops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// Exported counts the written records.
type Exported struct {
	Loops      int `json:"loops"`
	Iterations int `json:"iterations"`
	// Settings counts the sections agent_persistence in the store. Only the last
	// imported one is written.
	Settings int `json:"settings"`
}

// Belongs reports whether a tree is a record of this package.
func Belongs(t *perdure.Tree) bool {
	kind := markOf(t).Kind
	return kind == kindLoop || kind == kindSettings
}

func markOf(t *perdure.Tree) mark {
	if t.Kind != perdure.KindRecord || !bytes.Contains(t.Config, []byte(`"`+importKey+`":{"kind"`)) {
		return mark{}
	}
	var c struct {
		Mark mark `json:"perdure_import"`
	}
	if json.Unmarshal(t.Config, &c) != nil || c.Mark.Kind == kindLoop && c.Mark.Loop == "" ||
		c.Mark.Kind == kindSettings && c.Mark.Key != section {
		return mark{} // another tree with the same member
	}
	return c.Mark
}

// Own is a loop that runs or ran in this store.
type Own struct {
	ID string
	// Write calls add with the documents of the loop as JSON (checkpoints unpacked, the
	// log as a list) and its reports, each with its place in the folder of the loop. It
	// returns the number of iterations.
	Write func(ctx context.Context, add func(place string, text []byte) error) (iterations int, err error)
}

// Export writes the loops of this store, then the imported loops among trees, and the
// section of settings that was imported last. write writes a file of the layout.
func Export(ctx context.Context, store *perdure.Store, own []Own, trees []perdure.Tree,
	write func(name string, content []byte) error) (Exported, error) {
	var out Exported
	shapes, err := loadShapes()
	if err != nil {
		return out, err
	}
	x := &exporter{store: store, write: write, shapes: shapes, taken: make(map[string]bool), out: &out}
	var loops []perdure.Tree
	var newest *perdure.Tree
	for i := range trees {
		t := &trees[i]
		switch markOf(t).Kind {
		case kindLoop:
			loops = append(loops, *t)
		case kindSettings:
			out.Settings++
			if newest == nil || cmp.Or(newest.CreatedAt.Compare(t.CreatedAt), cmp.Compare(newest.ID, t.ID)) < 0 {
				newest = t
			}
		}
	}
	// The oldest loop of a name keeps it, whatever the IDs of the trees are.
	slices.SortStableFunc(loops, func(a, b perdure.Tree) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for i := range loops {
		x.taken[LayoutID(markOf(&loops[i]).Loop)] = true
	}
	given := make(map[string]bool)
	for i := range own {
		id := LayoutID(own[i].ID)
		given[id], x.taken[id] = true, true
		if err := x.own(ctx, &own[i]); err != nil {
			return out, fmt.Errorf("export loop %q: %w", own[i].ID, err)
		}
	}
	for i := range loops {
		if err := x.loop(ctx, &loops[i], given); err != nil {
			return out, fmt.Errorf("export loop %q: %w", loops[i].ID, err)
		}
	}
	if newest == nil {
		return out, nil
	}
	root, err := store.Task(ctx, newest.Root)
	if err != nil {
		return out, err
	}
	return out, write(SettingsFile, []byte(root.Result))
}

type exporter struct {
	store  *perdure.Store
	write  func(name string, content []byte) error
	shapes *shapes
	taken  map[string]bool // IDs that loops have, or were given
	out    *Exported
}

// name returns the ID of a loop in this export.
func (x *exporter) name(id string, root *perdure.Task, given map[string]bool) string {
	if id = LayoutID(id); !given[id] {
		given[id] = true
		return id
	}
	seed := id + "\x00" + root.Prompt + "\x00" + root.CreatedAt.String()
	name := newID(id, seed)
	for ; x.taken[name]; name = newID(id, seed) {
		seed += "+"
	}
	x.taken[name] = true
	return name
}

// own writes a loop of this store, formatted as an import keeps it.
func (x *exporter) own(ctx context.Context, l *Own) error {
	x.out.Loops++
	n, err := l.Write(ctx, func(place string, text []byte) error {
		if !slices.Contains(reports(), place) {
			v, err := jsontree.Parse(text, jsontree.Options{File: place})
			if err != nil {
				return err
			}
			ownForReaders(place, v, l.ID)
			text = v.Append(nil)
		}
		return x.file(place, text, l.ID, LayoutID(l.ID))
	})
	x.out.Iterations += n
	return err
}

func (x *exporter) loop(ctx context.Context, t *perdure.Tree, given map[string]bool) error {
	tree, root, meta, err := readRoot(ctx, x.store, t.ID)
	if err != nil {
		return err
	}
	id := meta.Mark.Loop
	name := x.name(id, &root, given)
	x.out.Loops++
	for _, place := range append([]string{stateFile, analyticsFile, hookFile}, reports()...) {
		text, err := meta.text(ctx, x.store, place)
		if err != nil {
			return err
		}
		_, isBlob := meta.Mark.Blobs[place] // possibly empty
		if text == nil && !isBlob {
			continue
		}
		if place == stateFile && root.State == perdure.Cancelled {
			if text, err = aborted(text); err != nil {
				return err
			}
		}
		if err := x.file(place, text, id, name); err != nil {
			return err
		}
	}
	return eachIteration(ctx, x.store, &tree, func(it *perdure.Task, meta *iterMeta) error {
		x.out.Iterations++
		return x.iteration(it, meta, id, name)
	})
}

// aborted sets the status of a loop that was cancelled in this store, unless it had ended
// before.
func aborted(text []byte) ([]byte, error) {
	v, err := jsontree.Parse(text, jsontree.Options{})
	if err != nil {
		return nil, fmt.Errorf("read the state in the store: %w", err)
	}
	status := v.Get("status")
	if status == nil || slices.Contains([]string{"completed", "failed", "aborted"}, status.Text()) {
		return text, nil
	}
	*status = *jsontree.NewString("aborted")
	return v.Append(nil), nil
}

// file writes a document of the store.
func (x *exporter) file(place string, text []byte, id, name string) error {
	content, err := x.render(place, text, id, name)
	if err == nil && strings.HasSuffix(place, packed) {
		content, err = pack(content)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	return x.write(Folder+name+"/"+place, content)
}

func (x *exporter) iteration(it *perdure.Task, meta *iterMeta, id, name string) error {
	if len(it.Data) == 0 {
		return nil
	}
	var docs map[string]json.RawMessage
	if err := json.Unmarshal(it.Data, &docs); err != nil {
		return fmt.Errorf("read task %q: %w", it.ID, err)
	}
	for doc, place := range map[string]string{iterationDoc: itersFolder + fileOf(meta.Number) + ".json",
		checkpointDoc: checksFolder + fileOf(meta.Number) + packed} {
		if docs[doc] == nil {
			continue
		}
		if err := x.file(place, docs[doc], id, name); err != nil {
			return err
		}
	}
	return nil
}

// render returns the content of a document's file, with the loop's name instead of id.
func (x *exporter) render(place string, text []byte, id, name string) ([]byte, error) {
	if slices.Contains(reports(), place) {
		return text, nil
	}
	if id != name || place == stateFile {
		v, err := jsontree.Parse(text, jsontree.Options{})
		if err != nil {
			return nil, fmt.Errorf("read the document in the store: %w", err)
		}
		if id != name {
			v = x.renamed(place, v, id, name)
		}
		if place == stateFile {
			forReaders(v)
		}
		text = v.Append(nil)
	}
	var out bytes.Buffer
	if place == hookFile {
		var lines []json.RawMessage
		if err := json.Unmarshal(text, &lines); err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		for _, line := range lines {
			out.Write(append(line, '\n'))
		}
		return out.Bytes(), nil
	}
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// renamed replaces the ID of the loop in a document.
func (x *exporter) renamed(place string, v *jsontree.Value, id, name string) *jsontree.Value {
	fit := func(s *shape, v *jsontree.Value) *jsontree.Value {
		f := &fitter{shape: s, given: id, loop: name, note: func(string, *jsontree.Value, string, ...any) {}}
		if out := f.document(v); out != nil {
			return out
		}
		return v
	}
	switch {
	case place == hookFile:
		for i, line := range v.Items {
			v.Items[i] = fit(x.shapes.forLine(line), line)
		}
		return v
	case place == stateFile:
		return fit(x.shapes.state, v)
	case place == analyticsFile:
		return fit(x.shapes.analytics, v)
	case strings.HasPrefix(place, itersFolder):
		return fit(x.shapes.iteration, v)
	}
	return fit(x.shapes.checkpoint, v)
}
