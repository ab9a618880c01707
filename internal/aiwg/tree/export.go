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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// ExportConfig configures [Export].
type ExportConfig struct {
	// Dir is the folder to write; it must be empty or not exist. Required.
	Dir string
	// Trees are the trees to write; without any, all trees and the states that belong
	// to no tree are written.
	Trees []perdure.TreeID
	// Report writes the report of a tree that was imported without one; nil leaves
	// reports out.
	Report func(ctx context.Context, id perdure.TreeID, w io.Writer) error
	// Loop returns the loop of a tree that was created in this store; false for other
	// trees. If it is nil, loops are written as trees.
	Loop func(t *perdure.Tree) (loops.Own, bool)
}

// ExportReport counts the written records.
type ExportReport struct {
	Dir    string `json:"dir"`
	Trees  int    `json:"trees"`
	Tasks  int    `json:"tasks"`
	States int    `json:"states"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	// Exported counts loops.
	loops.Exported
	// Renumbered are the tasks that have another ID in the files than in the store.
	Renumbered []Renumbering `json:"renumbered"`
}

// Renumbering is a task with two IDs.
type Renumbering struct {
	Tree perdure.TreeID `json:"tree_id"`
	Task perdure.TaskID `json:"id"`
	File string         `json:"id_in_file"`
}

// Export writes trees in the layout. Imported records keep their IDs if these are valid
// and unique. After an error nothing of it is left. The file of tasks is written last: a folder
// without it is incomplete, that of an export that was killed.
func Export(ctx context.Context, store *perdure.Store, cfg ExportConfig) (*ExportReport, error) {
	if err := checkWritten(); err != nil {
		return nil, err
	}
	x := newExporter(store)
	x.cfg, x.report = cfg, &ExportReport{Dir: cfg.Dir, Renumbered: []Renumbering{}}
	list, err := x.list(ctx)
	if err != nil {
		return nil, err
	}
	made, err := x.prepare()
	if err != nil {
		return nil, err
	}
	if err := x.writeAll(ctx, list); err != nil {
		return nil, errors.Join(err, x.discard(made))
	}
	return x.report, nil
}

// writeAll writes all files.
func (x *exporter) writeAll(ctx context.Context, list []*exportTree) error {
	trees, err := x.trees(ctx, list)
	if err != nil {
		return err
	}
	all := len(x.cfg.Trees) == 0
	if all {
		if err := x.reserveStates(ctx, ""); err != nil {
			return err
		}
	}
	if err := x.writeTrees(ctx, trees); err != nil {
		return err
	}
	if all {
		if err := x.otherStates(ctx); err != nil {
			return err
		}
	}
	return x.finishTasks()
}

// discard removes what was written, and the folder if this export made it.
func (x *exporter) discard(made bool) error {
	var errs []error
	if x.tasks != nil {
		_ = x.tasks.Close() // closed already if only the last step failed
	}
	for _, file := range []string{tasksFile, rlmFolder, loops.Folder} {
		top, _, _ := strings.Cut(file, "/")
		errs = append(errs, os.RemoveAll(filepath.Join(x.cfg.Dir, top)))
	}
	if made {
		errs = append(errs, os.Remove(x.cfg.Dir))
	}
	return errors.Join(errs...)
}

type exporter struct {
	store  *perdure.Store
	cfg    ExportConfig
	report *ExportReport
	tasks  *os.File // the unfinished file of tasks
	out    *bufio.Writer
	latest time.Time
	// verbatim keeps metadata of clients that the schema does not allow.
	verbatim bool

	taskNames, nodeNames, treeNames, stateNames *names
	states                                      map[perdure.StateID]string // the states that keep their IDs
}

func newExporter(store *perdure.Store) *exporter {
	return &exporter{store: store, taskNames: newNames(), nodeNames: newNames(), treeNames: newNames(),
		stateNames: newNames(), states: make(map[perdure.StateID]string)}
}

// prepare makes the folder if it does not exist.
func (x *exporter) prepare() (made bool, err error) {
	entries, err := os.ReadDir(x.cfg.Dir)
	if made = errors.Is(err, os.ErrNotExist); err != nil && !made {
		return false, fmt.Errorf("export to %q: %w", x.cfg.Dir, cause(err))
	}
	if len(entries) > 0 {
		return false, &perdure.Error{Code: perdure.CodeConflict, Op: "export",
			Msg:  fmt.Sprintf("the folder %q is not empty", x.cfg.Dir),
			Hint: "name a new folder: an export does not overwrite files"}
	}
	return made, atomicfile.MkdirAll(x.cfg.Dir, 0o755)
}

// exportTree is a tree to export.
type exportTree struct {
	perdure.Tree
	id     string
	record *treeRecord // nil for a tree that was not imported
	tasks  []perdure.Task
	names  map[perdure.TaskID]taskName
	states map[perdure.TaskID]*stateExport
	single bool // a task that belonged to no tree
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

// trees writes the loops of the list, and returns the other trees with their IDs, the
// oldest first.
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
	// Trees that were not imported keep their IDs.
	imported := func(t *exportTree) int {
		if t.record != nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b *exportTree) int {
		return cmp.Or(imported(a)-imported(b), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, t := range list {
		if err := x.reserveNames(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, t := range list {
		x.reserveWanted(t.names)
	}
	for _, t := range list {
		x.assignNames(t)
		for _, id := range slices.Sorted(maps.Keys(t.names)) {
			if name := t.names[id].id; name != id.String() {
				x.report.Renumbered = append(x.report.Renumbered, Renumbering{t.Tree.ID, id, name})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *exportTree) int {
		rootA, rootB := a.names[a.Root].id, b.names[b.Root].id
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(len(rootA), len(rootB)), cmp.Compare(rootA, rootB))
	})
	return list, nil
}

// reserveNames reserves the existing IDs of a tree, its tasks and its states, and updates
// the latest time.
func (x *exporter) reserveNames(ctx context.Context, t *exportTree) error {
	id := string(t.ID)
	if t.record != nil {
		id = t.record.ID
	}
	t.id = x.treeNames.reserve(id)
	brief, err := treeTasks(ctx, x.store, t.ID, true)
	if err != nil {
		return err
	}
	t.names = x.reserveTasks(brief)
	for i := range brief {
		times := []time.Time{brief[i].CreatedAt, brief[i].StartedAt, brief[i].CompletedAt}
		if foreignState(&brief[i]) != "" {
			times = times[:2]
		}
		x.latest = slices.MaxFunc(append(times, x.latest), time.Time.Compare)
	}
	return x.reserveStates(ctx, t.ID)
}

// assignNames assigns IDs to a tree and tasks whose IDs were not free.
func (x *exporter) assignNames(t *exportTree) {
	t.id = x.treeNames.hex(t.id, string(t.ID), "tree-")
	x.assignTasks(t.names)
}

// reserveStates reserves the existing IDs of the states of a tree.
func (x *exporter) reserveStates(ctx context.Context, tree perdure.TreeID) error {
	infos, err := x.store.States(ctx, tree)
	for i := range infos {
		x.states[infos[i].ID] = x.stateNames.reserve(cmp.Or(infos[i].Foreign, infos[i].ID.String()))
	}
	return err
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
	t.order()
	noTree := t.Kind == KindIPC || t.record != nil && t.record.ID == "" && t.record.GivenID == ""
	t.single = noTree && len(t.tasks) == 1 && t.inlineStates()
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
		if t.single {
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

// write writes a file of the layout.
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
	raw, err := jsontree.Marshal(v, "  ")
	if err != nil {
		return fmt.Errorf("export %q: %w", name, err)
	}
	return x.write(name, raw)
}

// beginTasks creates the file of tasks under a temporary name.
func (x *exporter) beginTasks() (err error) {
	path := filepath.Join(x.cfg.Dir, filepath.FromSlash(tasksFile))
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	x.tasks, err = os.OpenFile(path+partEnd, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as the other files
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	x.out = bufio.NewWriterSize(x.tasks, 256<<10)
	updated := []byte("null")
	if !x.latest.IsZero() {
		updated = jsontree.MustMarshal(x.latest)
	}
	_, err = fmt.Fprintf(x.out, "{\n  \"version\": 1,\n  \"updatedAt\": %s,\n  \"tasks\": [", updated)
	return err
}

func (x *exporter) addTask(doc *taskDoc) error {
	raw, err := jsontree.Marshal(doc, "  ")
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

// finishTasks makes the file of tasks durable and renames it to its name.
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
	if err := os.Rename(path+partEnd, path); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	x.report.Files++
	x.report.Bytes += info.Size()
	return atomicfile.SyncDir(filepath.Dir(path))
}
