package tree

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// ExportConfig says what to write.
type ExportConfig struct {
	// Dir is the folder to write; it must be empty, or not there yet. Required.
	Dir string
	// Trees are those to write; without any everything is written, also the
	// states outside of trees.
	Trees []perdure.TreeID
	// Report writes the report of a tree that came without one; nil leaves
	// reports out.
	Report func(ctx context.Context, id perdure.TreeID, w io.Writer) error
	// Loop describes a tree that is a loop of the store's own; false for others.
	// nil writes loops as trees.
	Loop func(t *perdure.Tree) (loops.Own, bool)
}

// ExportReport counts what was written.
type ExportReport struct {
	Dir    string `json:"dir"`
	Trees  int    `json:"trees"`
	Tasks  int    `json:"tasks"`
	States int    `json:"states"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	// Exported counts loops.
	loops.Exported
}

// Export writes trees in the layout. Records that were imported have the IDs
// they had, where these are of the right form and not taken. The file of tasks
// comes last: a folder without it is not whole.
func Export(ctx context.Context, store *perdure.Store, cfg ExportConfig) (*ExportReport, error) {
	x := newExporter(store)
	x.cfg, x.report = cfg, &ExportReport{Dir: cfg.Dir}
	list, err := x.list(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.prepare(); err != nil {
		return nil, err
	}
	trees, err := x.trees(ctx, list)
	if err != nil {
		return nil, err
	}
	if len(cfg.Trees) == 0 {
		if err := x.ownStates(ctx, ""); err != nil {
			return nil, err
		}
	}
	if err := x.writeTrees(ctx, trees); err != nil {
		return nil, err
	}
	if len(cfg.Trees) == 0 {
		if err := x.outside(ctx); err != nil {
			return nil, err
		}
	}
	return x.report, x.finishTasks()
}

type exporter struct {
	store  *perdure.Store
	cfg    ExportConfig
	report *ExportReport
	tasks  *os.File // the file of tasks under way
	out    *bufio.Writer
	latest time.Time
	// verbatim shows what clients gave although its form is not the layout's.
	verbatim bool

	taskNames, nodeNames, treeNames, stateNames *names
	states                                      map[perdure.StateID]string // that have the ID they had
}

func newExporter(store *perdure.Store) *exporter {
	return &exporter{store: store, taskNames: newNames(), nodeNames: newNames(), treeNames: newNames(),
		stateNames: newNames(),
		states:     make(map[perdure.StateID]string)}
}

func (x *exporter) prepare() error {
	entries, err := os.ReadDir(x.cfg.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("export to %q: %w", x.cfg.Dir, cause(err))
	}
	if len(entries) > 0 {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "export",
			Msg:  fmt.Sprintf("the folder %q is not empty", x.cfg.Dir),
			Hint: "name a new folder: what other programs keep is not overwritten"}
	}
	return atomicfile.MkdirAll(x.cfg.Dir, 0o755)
}

// exportTree is a tree about to be written.
type exportTree struct {
	perdure.Tree
	id     string
	record *treeRecord // nil for one of the store's own
	tasks  []perdure.Task
	names  map[perdure.TaskID]taskName
	states map[perdure.TaskID]*stateExport
	lone   bool // a task that belonged to no tree
}

// list reads the trees to write, each once.
func (x *exporter) list(ctx context.Context) ([]*exportTree, error) {
	var list []*exportTree
	for i, id := range x.cfg.Trees {
		if slices.Contains(x.cfg.Trees[:i], id) {
			continue
		}
		t, err := x.store.Tree(ctx, id)
		if err != nil {
			return nil, err
		}
		list = append(list, &exportTree{Tree: t})
	}
	filter := perdure.TreeFilter{Limit: 1000}
	for len(x.cfg.Trees) == 0 {
		page, err := x.store.Trees(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			list = append(list, &exportTree{Tree: t})
		}
		if len(page) < filter.Limit {
			break
		}
		filter.Before = page[len(page)-1].ID
	}
	return list, nil
}

// trees writes the loops of the list, and returns the other trees, the oldest
// first, with everything named.
func (x *exporter) trees(ctx context.Context, list []*exportTree) ([]*exportTree, error) {
	list, err := x.loops(ctx, list)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.Kind == perdure.KindRecord {
			var config struct {
				Record *treeRecord `json:"perdure_import"`
			}
			if err := json.Unmarshal(t.Config, &config); err != nil {
				return nil, fmt.Errorf("read tree %q: %w", t.ID, err)
			}
			t.record = config.Record
		}
	}
	// The store's own keep their names.
	slices.SortStableFunc(list, func(a, b *exportTree) int {
		return cmp.Or(boolOrder(a.record != nil, b.record != nil), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, t := range list {
		if err := x.ownNames(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, t := range list {
		t.id = x.treeNames.hex(t.id, string(t.ID), "tree-")
		x.restTasks(t.names)
	}
	slices.SortStableFunc(list, func(a, b *exportTree) int {
		rootA, rootB := a.names[a.Root].id, b.names[b.Root].id
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(len(rootA), len(rootB)), cmp.Compare(rootA, rootB))
	})
	return list, nil
}

// ownNames gives a tree, its tasks and its states the IDs they have, and looks
// for the latest time.
func (x *exporter) ownNames(ctx context.Context, t *exportTree) error {
	id := string(t.ID)
	if t.record != nil {
		id = t.record.ID
	}
	t.id = x.treeNames.own(id)
	brief, err := treeTasks(ctx, x.store, t.ID, true)
	if err != nil {
		return err
	}
	t.names = x.ownTasks(brief)
	for i := range brief {
		times := []time.Time{brief[i].CreatedAt, brief[i].StartedAt, brief[i].CompletedAt}
		if foreignState(&brief[i]) != "" {
			times = times[:2]
		}
		x.latest = slices.MaxFunc(append(times, x.latest), time.Time.Compare)
	}
	return x.ownStates(ctx, t.ID)
}

// ownStates keeps the IDs that states have for them.
func (x *exporter) ownStates(ctx context.Context, tree perdure.TreeID) error {
	infos, err := x.store.States(ctx, tree)
	for i := range infos {
		id := infos[i].Foreign
		if id == "" {
			id = infos[i].ID.String()
		}
		if x.stateNames.own(id) != "" {
			x.states[infos[i].ID] = id
		}
	}
	return err
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (x *exporter) writeTrees(ctx context.Context, trees []*exportTree) error {
	if err := x.beginTasks(); err != nil {
		return err
	}
	for _, t := range trees {
		if err := x.writeTree(ctx, t); err != nil {
			return err
		}
		t.tasks, t.states, t.names = nil, nil, nil
	}
	return nil
}

// load reads the tasks and the states of a tree.
func (x *exporter) load(ctx context.Context, t *exportTree) (err error) {
	if t.tasks, err = treeTasks(ctx, x.store, t.ID, false); err != nil {
		return err
	}
	if err := x.treeStates(ctx, t); err != nil {
		return err
	}
	alone := t.Kind == KindIPC || t.record != nil && t.record.ID == "" && t.record.GivenID == ""
	t.lone = alone && len(t.tasks) == 1 && t.plain()
	return nil
}

func (x *exporter) writeTree(ctx context.Context, t *exportTree) error {
	if err := x.load(ctx, t); err != nil {
		return err
	}
	x.report.Trees++
	dir := treesFolder + t.id + "/"
	for i := range t.tasks {
		task := x.taskDoc(t, &t.tasks[i])
		if err := x.addTask(task); err != nil {
			return err
		}
		if t.lone {
			return nil
		}
		if err := x.writeJSON(dir+nodesFolder+t.names[t.tasks[i].ID].node+".json", task); err != nil {
			return err
		}
	}
	if err := x.writeStates(t); err != nil {
		return err
	}
	if err := x.writeJSON(dir+treeFile, x.treeDoc(t)); err != nil {
		return err
	}
	return x.writeReport(ctx, t, dir+reportFile)
}

func (x *exporter) writeReport(ctx context.Context, t *exportTree, name string) error {
	var text bytes.Buffer
	switch {
	case t.record != nil && t.record.Report != nil:
		blob, err := x.store.OpenBlob(ctx, t.record.Report.Hash)
		if err != nil {
			return err
		}
		_, err = io.Copy(&text, io.NewSectionReader(blob, 0, blob.Size()))
		if err := errors.Join(err, blob.Close()); err != nil {
			return fmt.Errorf("read report: %w", err)
		}
	case x.cfg.Report != nil:
		if err := x.cfg.Report(ctx, t.ID, &text); err != nil {
			return err
		}
	default:
		return nil
	}
	return x.write(name, text.Bytes())
}

// write makes a file of the layout.
func (x *exporter) write(name string, content []byte) error {
	path := filepath.Join(x.cfg.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for other programs and people to read
		return fmt.Errorf("export: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // for other programs and people to read
		return fmt.Errorf("export: %w", err)
	}
	x.report.Files++
	x.report.Bytes += int64(len(content))
	return nil
}

func (x *exporter) writeJSON(name string, v any) error {
	raw, err := encode(v, "  ")
	if err != nil {
		return fmt.Errorf("export %q: %w", name, err)
	}
	return x.write(name, raw)
}

// beginTasks opens the file of tasks under another name.
func (x *exporter) beginTasks() (err error) {
	path := filepath.Join(x.cfg.Dir, filepath.FromSlash(tasksFile))
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if x.tasks, err = os.Create(path + ".part"); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	x.out = bufio.NewWriterSize(x.tasks, 256<<10)
	updated := []byte("null")
	if !x.latest.IsZero() {
		updated = mustJSON(x.latest)
	}
	_, err = fmt.Fprintf(x.out, "{\n  \"version\": 1,\n  \"updatedAt\": %s,\n  \"tasks\": [", updated)
	return err
}

func (x *exporter) addTask(doc *taskDoc) error {
	raw, err := encode(doc, "  ")
	if err != nil {
		return fmt.Errorf("export task %q: %w", doc.ID, err)
	}
	comma := ","
	if x.report.Tasks == 0 {
		comma = ""
	}
	x.report.Tasks++
	lines := bytes.ReplaceAll(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"), []byte("\n    "))
	_, err = fmt.Fprintf(x.out, "%s\n    %s", comma, lines)
	return err
}

// finishTasks gives the file of tasks its name when it is whole and durable.
func (x *exporter) finishTasks() error {
	end := "\n  ]\n}\n"
	if x.report.Tasks == 0 {
		end = "]\n}\n"
	}
	_, err := x.out.WriteString(end)
	err = errors.Join(err, x.out.Flush())
	info, statErr := x.tasks.Stat()
	err = errors.Join(err, x.tasks.Sync(), x.tasks.Close(), statErr)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	path := filepath.Join(x.cfg.Dir, filepath.FromSlash(tasksFile))
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	x.report.Files++
	x.report.Bytes += info.Size()
	return atomicfile.SyncDir(filepath.Dir(path))
}
