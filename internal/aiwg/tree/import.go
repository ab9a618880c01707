package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// ImportConfig configures [Import].
type ImportConfig struct {
	// Path is an .aiwg folder, the folder it is in, or one of its files:
	// tasks.json, a tree.json or a state. Required.
	Path string
	// State reads the file as a state, whatever its members are. Ref, if it has a
	// scope, replaces the state that the file names.
	State bool
	Ref   perdure.StateRef
	// DryRun reports what an import would do and changes nothing.
	DryRun bool
	// Strict imports nothing if a value would be corrected, renumbered or not read, if a
	// default would be taken, or if a setting would not be applied.
	Strict bool
}

// Report counts the imported records.
type Report struct {
	Path        string `json:"path"`
	DryRun      bool   `json:"dry_run"`
	Trees       int    `json:"trees"`
	Tasks       int    `json:"tasks"`
	States      int    `json:"states"`
	Variables   int    `json:"variables"`
	Mutations   int    `json:"mutations"`
	Checkpoints int    `json:"checkpoints"`
	// Files counts the values in files of their own.
	Files int `json:"value_files"`
	// Counts counts loops.
	loops.Counts
	// PresentTrees and so on were in the store already.
	PresentTrees  int    `json:"present_trees"`
	PresentTasks  int    `json:"present_tasks"`
	PresentStates int    `json:"present_states"`
	Notes         []Note `json:"notes"`
	// Refused is set if nothing was imported because of the notes.
	Refused bool `json:"refused,omitempty"`
}

// strictly reports whether an import with Strict would import everything unchanged.
func (r *Report) strictly() bool {
	for _, kind := range refusing() {
		if r.Count(kind) > 0 {
			return false
		}
	}
	return true
}

// refusing returns the kinds of notes for which a strict import is refused.
func refusing() []string { return []string{Corrected, Default, Renumbered, NotRead, NotApplied} }

// Count returns the number of notes of a kind.
func (r *Report) Count(kind string) int {
	n := 0
	for i := range r.Notes {
		if r.Notes[i].Kind == kind {
			n++
		}
	}
	return n
}

// reader is one import.
type reader struct {
	store  *perdure.Store
	cfg    ImportConfig
	src    *source
	files  []string
	report *Report

	tasks  []*task
	trees  []*tree
	states []*state
	placed map[*tree]*placedTree
	// writing are the trees that another goroutine writes; it ends before importTrees does.
	writing *writing
	values  map[string]bool // files of values that were read

	unused   []perdure.TaskRange // the free IDs, for a dry run
	given    map[perdure.TaskID]bool
	strict   *strict // finds what the schemas refuse; nil unless the import is strict
	whole    bool    // a folder is read, not one file
	settings string  // the name of a single settings file
	loop     string  // the name of a single state of a loop
}

// Import imports a folder or a file into the store, in a sequence of transactions. If it
// is killed between two of them, the store is consistent, and the next import completes
// it. Records that the store has already are not changed.
func Import(ctx context.Context, store *perdure.Store, cfg ImportConfig) (*Report, error) {
	if cfg.Strict {
		first := cfg
		first.DryRun = true
		report, err := importOnce(ctx, store, first)
		if err != nil || cfg.DryRun || !report.strictly() {
			if report != nil {
				report.DryRun, report.Refused = cfg.DryRun, !report.strictly()
			}
			return report, err
		}
	}
	return importOnce(ctx, store, cfg)
}

// importOnce imports, or reports what an import would do. In a strict dry run the schemas are
// asked, too.
func importOnce(ctx context.Context, store *perdure.Store, cfg ImportConfig) (*Report, error) {
	r := &reader{store: store, cfg: cfg, report: &Report{Path: cfg.Path, DryRun: cfg.DryRun, Notes: []Note{}},
		placed: make(map[*tree]*placedTree), values: make(map[string]bool), given: make(map[perdure.TaskID]bool)}
	var err error
	if cfg.Strict && cfg.DryRun {
		if r.strict, err = newStrict(); err != nil {
			return nil, err
		}
	}
	err = r.read()
	if r.src != nil {
		defer r.src.root.Close()
	}
	if err != nil {
		return nil, err
	}
	r.groupTrees()
	for _, write := range []func(context.Context) error{r.reserveIDs, r.importTrees, r.importStates, r.importLoops} {
		if err := write(ctx); err != nil {
			return nil, err
		}
	}
	r.noteFiles()
	r.strict.note(r)
	sortNotes(r.report.Notes)
	return r.report, nil
}

// read reads the documents of the folder or file.
func (r *reader) read() error {
	info, err := os.Stat(r.cfg.Path)
	if err != nil {
		return &perdure.Error{Code: perdure.CodeNotFound, Op: "import", Msg: fmt.Sprintf("cannot read %q", r.cfg.Path),
			Err: cause(err), Hint: hintPath}
	}
	if !info.IsDir() {
		return r.readFile()
	}
	if r.cfg.State {
		return r.invalid("is a folder", "--state reads one file")
	}
	dir := r.cfg.Path
	if inner, err := os.Stat(filepath.Join(dir, layoutName)); err == nil && inner.IsDir() {
		dir = filepath.Join(dir, layoutName)
	}
	if r.src, err = openSource(dir); err != nil {
		return err
	}
	if r.files, err = r.src.list(); err != nil {
		return fmt.Errorf("list %q: %w", dir, err)
	}
	if !slices.ContainsFunc(r.files, known) {
		return r.invalid("is not an .aiwg folder: it has no daemon/tasks.json, no rlm/ and no ralph/loops/", hintPath)
	}
	r.whole = true
	r.readTasks()
	r.readStates()
	return nil
}

func (r *reader) invalid(problem, hint string) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "import", Msg: fmt.Sprintf("%q %s", r.cfg.Path, problem),
		Hint: hint}
}

func known(name string) bool {
	return name == tasksFile || name == backupFile || strings.HasPrefix(name, rlmFolder) ||
		strings.HasPrefix(name, loops.Folder) || name == loops.CurrentFile
}

// readFile reads one file. References are followed in its .aiwg folder, or in its own
// folder if it is in no .aiwg folder.
func (r *reader) readFile() error {
	whole, err := filepath.Abs(r.cfg.Path)
	if err != nil {
		return fmt.Errorf("import %q: %w", r.cfg.Path, err)
	}
	dir := filepath.Dir(whole)
	for up := dir; filepath.Dir(up) != up; up = filepath.Dir(up) {
		if filepath.Base(up) == layoutName {
			dir = up
			break
		}
	}
	if r.src, err = openSource(dir); err != nil {
		return err
	}
	name, err := filepath.Rel(dir, whole)
	if err != nil {
		return fmt.Errorf("import %q: %w", r.cfg.Path, err)
	}
	name = filepath.ToSlash(name)
	if slices.Contains(settingsFiles(), path.Base(name)) {
		r.settings = name
		return nil
	}
	f := r.open(name)
	if f == nil && name == tasksFile {
		r.useBackup(false)
		return nil
	}
	if f == nil {
		return nil // noted
	}
	r.nearFiles(name)
	switch {
	case r.cfg.State || f.root.Get("variables") != nil:
		r.addState(r.state(f, r.cfg.Ref.Scope))
	case f.root.Kind == jsontree.Array || f.root.Get("tasks") != nil:
		r.tasksOf(f)
		if f.err != nil && path.Base(name) == path.Base(tasksFile) &&
			path.Join(path.Dir(name), path.Base(backupFile)) == backupFile {
			r.useBackup(true)
		}
	case f.root.Get("root_task") != nil:
		g := &tree{id: cmp.Or(f.root.Get("tree_id").Text(), f.root.Get("metadata").Get("tree_id").Text()), file: f}
		r.treeDocument(g, make(map[string]*task))
		if len(g.tasks) > 0 {
			r.trees = append(r.trees, g)
		}
	case f.root.Get("loop_id") != nil && strings.HasPrefix(name, loops.Folder):
		return r.invalid("is one file of a loop", "name the .aiwg folder: a loop is imported with all of its files")
	case loops.IsState(f.root):
		r.report.Notes = r.report.Notes[:0] // it is read again
		r.loop = name
	default:
		return r.invalid("is not a file of tasks, a tree or a state",
			"perdure schema tasks-file, rlm-task-tree and rlm-state print their schemas")
	}
	return nil
}

// nearFiles adds the checkpoints and the history in the folder of a state to the files.
func (r *reader) nearFiles(name string) {
	dir := path.Dir(name)
	if _, err := r.src.root.Lstat(filepath.FromSlash(path.Join(dir, historyFile))); err == nil {
		r.files = append(r.files, path.Join(dir, historyFile))
	}
	dir = path.Join(dir, checksFolder)
	entries, _ := fs.ReadDir(r.src.root.FS(), dir) // mostly there is none
	for _, e := range entries {
		if path.Ext(e.Name()) == ".json" {
			r.files = append(r.files, path.Join(dir, e.Name()))
		}
	}
}

// readStates reads all documents of states.
func (r *reader) readStates() {
	for _, name := range r.files {
		var scope perdure.Scope
		dir := path.Base(path.Dir(name))
		switch {
		case name == globalFile:
			scope = perdure.ScopeGlobal
		case path.Base(name) != stateFile || !strings.HasPrefix(name, rlmFolder):
			continue
		case strings.HasPrefix(name, sessionsDir):
			scope = perdure.ScopeSession
		case strings.HasPrefix(name, tempFolder):
			scope = perdure.ScopeTemporary
		case strings.HasPrefix(name, treesFolder):
			scope = perdure.ScopeTree
		}
		f := r.open(name)
		if f == nil {
			continue
		}
		if f.root.Kind != jsontree.Object {
			r.note(NotRead, f, f.root.Start, "a state must be an object")
			continue
		}
		s := r.state(f, scope)
		switch scope {
		case perdure.ScopeSession:
			s.session = cmp.Or(s.session, dir)
		case perdure.ScopeTemporary:
			s.name = cmp.Or(s.name, dir)
		case perdure.ScopeTree:
			s.tree = dir
		case perdure.ScopeGlobal:
		}
		r.addState(s)
	}
}

func (r *reader) addState(s *state) {
	now := time.Now()
	s.vars = slices.DeleteFunc(s.vars, func(v *variable) bool {
		over := v.Metadata.ExpiresAt != nil && v.Metadata.ExpiresAt.Before(now)
		if over {
			r.note(Corrected, s.f, -1, "%s: variable %s has expired; it was not imported", s.what(), quoted(v.Name))
		}
		return over
	})
	r.states = append(r.states, s)
}

// noteFiles notes the files that were not read.
func (r *reader) noteFiles() {
	for _, name := range r.files {
		switch {
		case r.src.used[name]:
		case name == tasksFile+partEnd:
			r.note(NotRead, &file{name: name}, -1, "the export of this folder did not end; its tasks are missing")
		case strings.Contains(name, "/"+varsFolder):
			r.note(Left, &file{name: name}, -1, "not imported: no variable refers to it")
		default:
			r.note(Left, &file{name: name}, -1, "not imported: not a file of the layout")
		}
	}
}

// importChunk is the number of tasks in one transaction.
const importChunk = perdure.MaxImport

// placedTree is a tree of the import in the store.
type placedTree struct {
	id      perdure.TreeID
	own     bool                      // created in this store, not imported
	byKey   map[string]perdure.TaskID // of its tasks
	present bool                      // before this import
}

// importTrees writes new trees, and the tasks that the other trees do not have.
func (r *reader) importTrees(ctx context.Context) error {
	keys := make([]string, len(r.trees))
	for i, g := range r.trees {
		keys[i] = g.key
	}
	have, err := r.store.ImportedKeys(ctx, keys)
	if err != nil {
		return err
	}
	defer r.waitForTrees() // also after an error
	var fresh []*tree
	tasks := 0
	for _, g := range r.trees {
		p, err := r.findTree(ctx, g, have)
		if err != nil {
			return err
		}
		if p != nil {
			r.placed[g] = p
			if err := r.finishTrees(ctx); err != nil { // new IDs are in the order of the files
				return err
			}
			if err := r.completeTree(ctx, g, p); err != nil {
				return err
			}
			continue
		}
		first := min(len(g.order), importChunk)
		if tasks+first > importChunk {
			if err := r.writeTrees(ctx, fresh); err != nil {
				return err
			}
			fresh, tasks = nil, 0
		}
		fresh, tasks = append(fresh, g), tasks+first
	}
	if err := r.writeTrees(ctx, fresh); err != nil {
		return err
	}
	return r.finishTrees(ctx)
}

// findTree returns a tree in the store, nil if it is not there. It can be the record of
// a previous import, or a tree of this store that was exported.
func (r *reader) findTree(ctx context.Context, g *tree, have map[string]perdure.TreeID) (*placedTree, error) {
	id, there := have[g.key]
	if !there {
		if !treePattern().MatchString(g.id) {
			return nil, nil
		}
		id = perdure.TreeID(g.id)
	}
	t, err := r.store.Tree(ctx, id)
	if errors.Is(err, perdure.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !there {
		root, err := r.store.Task(ctx, t.Root)
		if err != nil {
			return nil, err
		}
		if !root.CreatedAt.Equal(g.order[0].CreatedAt) || root.Prompt != g.order[0].Prompt {
			return nil, nil // another tree with the same ID
		}
	}
	p := &placedTree{id: id, own: t.Kind != perdure.KindRecord, present: true}
	r.report.PresentTrees++
	if len(g.order) == 1 { // the root is there with its tree
		p.byKey = map[string]perdure.TaskID{g.order[0].key: t.Root}
		return p, nil
	}
	list, err := treeTasks(ctx, r.store, id, true)
	if err != nil {
		return nil, err
	}
	p.byKey = make(map[string]perdure.TaskID, 2*len(list))
	for i := range list {
		if f := foreignOf(list[i].Metadata); f != nil {
			p.byKey[f.key()] = list[i].ID
		}
	}
	for i := range list { // the IDs in exports of tasks whose IDs could not be kept
		for _, key := range []string{list[i].ID.String(), list[i].Node.String()} {
			if _, taken := p.byKey[key]; !taken {
				p.byKey[key] = list[i].ID
			}
		}
	}
	return p, nil
}

// treeTasks lists the tasks of a tree by ID.
func treeTasks(ctx context.Context, store *perdure.Store, id perdure.TreeID, brief bool) ([]perdure.Task, error) {
	progress, err := store.Progress(ctx, id)
	if err != nil {
		return nil, err
	}
	const page = 1000
	list := make([]perdure.Task, 0, progress.Total)
	filter := perdure.TaskFilter{Tree: id, Brief: brief, Output: !brief}
	for left := progress.Total; left > 0; left = progress.Total - int64(len(list)) {
		// No more tasks than exist: the search for another one would read the table to its end.
		filter.Limit = int(min(left, page))
		tasks, err := store.Tasks(ctx, filter)
		if err != nil {
			return nil, err
		}
		if len(tasks) == 0 {
			break
		}
		list = append(list, tasks...)
		filter.After = list[len(list)-1].ID
	}
	return list, nil
}
