package tree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// tree is a tree as it was read: from the tasks that name it, from its
// tree.json, or both.
type tree struct {
	id    string // as in the file; "" for a task without a tree
	tasks []*task
	// order are the tasks with the root first and parents before children.
	order  []*task
	file   *file // tree.json
	info   *object
	meta   *object
	record treeRecord
	name   string
	limits perdure.Limits
	report []byte
	key    string
	keys   map[string]bool   // of the tasks
	named  []*jsontree.Value // children that are IDs
}

// treeRecord is the member importKey of a tree's configuration: the tree as it was in
// its file.
type treeRecord struct {
	ID            string                     `json:"tree_id,omitempty"`
	GivenID       string                     `json:"tree_id_as_given,omitempty"`
	Kind          string                     `json:"kind,omitempty"`
	Version       string                     `json:"version,omitempty"` // if it is not the first one
	Configuration json.RawMessage            `json:"configuration,omitempty"`
	Fields        map[string]json.RawMessage `json:"fields,omitempty"`
	Metadata      map[string]json.RawMessage `json:"metadata,omitempty"`
	Report        *perdure.BlobRef           `json:"report,omitempty"`
}

// groupTrees groups the tasks and makes a tree of each group.
func (r *reader) groupTrees() {
	byID := make(map[string]*task)
	for _, t := range r.tasks {
		if t.id != "" && byID[t.id] == nil {
			byID[t.id] = t
		}
	}
	byTree := make(map[string]*tree)
	for _, t := range r.tasks {
		if t.tree == "" && t.parent != "" && byID[t.parent] != nil && byID[t.parent].tree != "" {
			t.tree = byID[t.parent].tree
			r.note(Corrected, t.f, t.n.Start, "%s has no tree_id; it was added to its parent's tree", t.what())
		}
		g := byTree[t.tree]
		if t.tree == "" || g == nil {
			g = &tree{id: t.tree}
			r.trees = append(r.trees, g)
			if t.tree != "" {
				byTree[t.tree] = g
			}
		}
		g.tasks = append(g.tasks, t)
	}
	for _, id := range r.treeFolders() {
		g := byTree[id]
		if g == nil {
			g = &tree{id: id}
		}
		r.readTree(g, id)
		if byTree[id] == nil && len(g.tasks) > 0 {
			r.trees = append(r.trees, g)
			byTree[id] = g
		}
	}
	seen := make(map[string]*tree)
	r.trees = slices.DeleteFunc(r.trees, func(g *tree) bool {
		r.shape(g)
		return r.isCopy(g, seen)
	})
}

// isCopy reports whether a tree is an exact copy of a previous one. Another tree with
// the same key gets a key of its own.
func (r *reader) isCopy(g *tree, seen map[string]*tree) bool {
	root := g.order[0]
	if first := seen[g.key]; first != nil && len(g.order) == 1 && len(first.order) == 1 &&
		bytes.Equal(first.order[0].n.Raw(), root.n.Raw()) {
		r.noteCopy(root)
		return true
	}
	for i, key := 2, g.key; seen[g.key] != nil; i++ {
		g.key = fmt.Sprintf("%s#%d", key, i)
	}
	seen[g.key] = g
	return false
}

// noteCopy notes a second record with the same content.
func (r *reader) noteCopy(t *task) {
	r.note(Corrected, t.f, t.n.Start, "%s occurs twice with the same content; it was imported once", t.what())
}

// treeFolders lists the folders of trees by name.
func (r *reader) treeFolders() []string {
	var ids []string
	for _, name := range r.files {
		if rest, ok := strings.CutPrefix(name, treesFolder); ok {
			if id, _, inside := strings.Cut(rest, "/"); inside && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// readTree reads the files in the folder of a tree.
func (r *reader) readTree(g *tree, folder string) {
	dir := treesFolder + folder + "/"
	known := make(map[string]*task)
	for _, t := range g.tasks {
		known[t.node], known[t.id] = t, t
	}
	delete(known, "")
	for _, name := range r.files {
		if path.Dir(name) == strings.TrimSuffix(dir+nodesFolder, "/") && path.Ext(name) == ".json" {
			r.readNode(g, name, known)
		}
	}
	if g.file = r.open(dir + treeFile); g.file != nil {
		r.treeDocument(g, known)
	}
	if text, err := r.src.read(dir + reportFile); err == nil {
		g.report = text
	}
}

// treeDocument reads a tree.json.
func (r *reader) treeDocument(g *tree, known map[string]*task) {
	if g.file.root.Kind != jsontree.Object {
		r.note(NotRead, g.file, g.file.root.Start, "a tree must be an object")
		return
	}
	o := r.object(docTree, g.file, g.file.root, "the tree")
	if id := o.text("tree_id"); id != g.id && id != "" {
		o.note(o.n.Get("tree_id"), "tree_id is %s and the folder is %s; the folder's name is used", quoted(id),
			quoted(g.id))
	}
	if g.record.Version = o.checkVersion(); g.record.Version == firstVersion {
		g.record.Version = ""
	}
	g.info, g.meta = o, o.sub(docTreeMeta, "metadata")
	g.meta.get("tree_id")
	if id := g.meta.n.Get("tree_id").Text(); id != "" && id != g.id {
		g.meta.note(g.meta.n.Get("tree_id"), "metadata.tree_id is %s; %s is used", quoted(id), quoted(g.id))
	}
	n := o.get("root_task")
	switch {
	case n != nil && n.Kind == jsontree.Object:
		r.treeNode(g, g.file, n, nil, known)
	case !n.IsNull():
		r.note(NotRead, g.file, n.Start, "root_task is not an object; it was not imported")
	}
	for _, id := range g.named {
		if known[id.Text()] == nil {
			r.note(NotRead, g.file, id.Start, "the child %s is no node of the tree", quoted(id.Text()))
		}
	}
	if len(g.tasks) == 0 {
		r.note(NotRead, g.file, g.file.root.Start, "the tree has no task; nothing of the file was imported")
		return
	}
	r.treeDetails(g)
}

// readNode reads the file of a node: a record like those of tasks.json.
func (r *reader) readNode(g *tree, name string, known map[string]*task) {
	f := r.open(name)
	if f == nil {
		return
	}
	if f.root.Kind != jsontree.Object {
		r.note(NotRead, f, f.root.Start, "a node must be an object; it was not imported")
		return
	}
	if f.root.Cut {
		r.note(NotRead, f, -1, "the record is incomplete; it was not imported")
		return
	}
	if isNode(f.root) {
		r.treeNode(g, f, f.root, nil, known)
		return
	}
	before := len(r.report.Notes)
	t := r.task(f, f.root)
	t.node = cmp.Or(t.node, strings.TrimSuffix(path.Base(name), ".json"))
	if known[t.node] != nil || known[t.id] != nil {
		r.report.Notes = r.report.Notes[:before] // the record of tasks.json is used, with its notes
		return
	}
	t.tree = g.id
	known[t.node] = t
	if t.id != "" {
		known[t.id] = t
	}
	g.tasks = append(g.tasks, t)
}

// isNode reports whether the file of a node is a node of a tree.json, not a record.
func isNode(v *jsontree.Value) bool {
	return v.Get("metadata") == nil && v.Get("state") == nil && v.Get("createdAt") == nil
}

// treeNode reads a node of a tree.json and the nodes below it. A node without a record
// becomes a task, and children get their parents.
func (r *reader) treeNode(g *tree, f *file, n *jsontree.Value, up *task, known map[string]*task) {
	o := r.object(docNode, f, n, "a node")
	id, node := o.text("task_id"), o.text("node_id")
	o.used = nil
	before := len(r.report.Notes)
	made := r.nodeTask(g, f, o)
	t := cmp.Or(known[node], known[id])
	if t != nil {
		r.report.Notes = r.report.Notes[:before] // the record is used, with its notes
		t.fill(r, made)
	} else {
		t = made
		if known[node] = t; id != "" {
			known[id] = t
		}
		delete(known, "")
		g.tasks = append(g.tasks, t)
		if n.Cut {
			r.note(Corrected, f, n.Start, "%s is incomplete; its complete members were imported", t.what())
		}
	}
	if t.up == nil && up != nil && up != t && t.parent == "" {
		t.up = up
	}
	for _, child := range o.list("children") {
		switch child.Kind {
		case jsontree.Object:
			r.treeNode(g, f, child, t, known)
		case jsontree.String: // the ID of a node
			g.named = append(g.named, child)
		default:
			r.note(NotRead, f, child.Start, "%s is not a child", quoted(string(child.Raw())))
		}
	}
}

func (r *reader) treeDetails(g *tree) {
	o, m := g.info, g.meta
	g.name = o.cut("name", 1024)
	g.record.Kind = o.cut("kind", 32)
	if n := o.get("configuration"); n != nil && n.Kind == jsontree.Object && !n.Cut {
		g.record.Configuration = compacted(n)
	}
	if n := o.get("limits"); n != nil && n.Kind == jsontree.Object {
		if err := json.Unmarshal(n.Raw(), &g.limits); err != nil {
			o.note(n, "limits cannot be read; they were left out")
			g.limits = perdure.Limits{}
		}
	}
	g.record.Fields = o.noteUnread("the tree's configuration")
	m.used.add("status") // follows from the tasks, as partial
	m.used.add("partial")
}

// shape determines the parents and the order of a tree's tasks, and corrects what is
// not a tree.
func (r *reader) shape(g *tree) {
	byID := make(map[string]*task)
	g.tasks = r.withoutCopies(g.tasks)
	for _, t := range g.tasks {
		for _, id := range []string{t.id, t.node} {
			if id == "" {
				continue
			}
			if byID[id] == nil {
				byID[id] = t
			} else if byID[id] != t {
				r.note(Corrected, t.f, t.n.Start, "%s occurs twice; the second one got a new ID", t.what())
				t.twice = true
				break
			}
		}
	}
	root := r.link(g, byID)
	for _, t := range g.tasks {
		if t.up == nil && t != root {
			t.up = root
			r.note(Corrected, t.f, t.n.Start, "%s has no parent in the tree; it became a child of the root", t.what())
		}
	}
	r.breakCycles(g, root)
	for _, t := range g.tasks {
		if t.up != nil {
			t.up.down = append(t.up.down, t)
		}
	}
	g.order = append(g.order, root)
	root.done = true
	// Records keep their order, except that parents come first.
	for rest := g.tasks; len(g.order) < len(g.tasks); {
		var later []*task
		for _, t := range rest {
			switch {
			case t.done:
			case t.up.done:
				t.done = true
				g.order = append(g.order, t)
			default:
				later = append(later, t)
			}
		}
		rest = later
	}
	for _, t := range g.order {
		r.settle(g, t)
		placeChildren(t)
	}
	r.keepTree(g)
	g.key = treeKey(g)
}

// placeChildren numbers the children of a task by their order, unless they have
// different positions already.
func placeChildren(t *task) {
	seen := make(map[int]bool, len(t.down))
	for _, d := range t.down {
		if !d.placed || seen[d.Position] {
			for i, d := range t.down {
				d.Position = i
			}
			return
		}
		seen[d.Position] = true
	}
}

// withoutCopies removes second records with the same content.
func (r *reader) withoutCopies(tasks []*task) []*task {
	seen := make(map[string]*task, len(tasks))
	return slices.DeleteFunc(tasks, func(t *task) bool {
		first := seen[t.id+" "+t.node]
		if first == nil {
			seen[t.id+" "+t.node] = t
			return false
		}
		if t.id == "" || !bytes.Equal(first.n.Raw(), t.n.Raw()) {
			return false
		}
		r.noteCopy(t)
		return true
	})
}

// link connects tasks with the parents they name, and returns the root.
func (r *reader) link(g *tree, byID map[string]*task) *task {
	var root *task
	for _, t := range g.tasks {
		if t.parent == "" || t.up != nil {
			continue
		}
		switch up := byID[t.parent]; up {
		case nil:
			r.note(Corrected, t.f, t.n.Start, "the parent %s of %s does not exist", quoted(t.parent), t.what())
			t.foreign.GivenParent = t.parent
		case t:
			r.note(Corrected, t.f, t.n.Start, "%s is its own parent", t.what())
		default:
			t.up = up
		}
	}
	for _, t := range g.tasks { // a task that names no parent, rather than one whose parent is missing
		if t.up == nil && (root == nil || root.parent != "" && t.parent == "") {
			root = t
		}
	}
	if root == nil {
		root = g.tasks[0]
		root.up = nil
		r.note(Corrected, root.f, root.n.Start, "every task of the tree has a parent; %s became the root", root.what())
	}
	return root
}

// breakCycles makes tasks that are their own ancestors children of the root.
func (r *reader) breakCycles(g *tree, root *task) {
	checked := map[*task]bool{root: true}
	for _, t := range g.tasks {
		var path []*task
		for up := t; !checked[up]; up = up.up {
			if slices.Contains(path, up) {
				r.note(Corrected, up.f, up.n.Start, "%s is its own ancestor; it became a child of the root", up.what())
				up.up = root
				break
			}
			path = append(path, up)
		}
		for _, up := range path {
			checked[up] = true
		}
	}
}

// settle completes a task, whose parent is complete, to what the store requires.
func (r *reader) settle(g *tree, t *task) {
	switch {
	case t.up == nil:
		t.Position = 0
	case t.foreign.State == "" && !t.State.Terminal() && t.up.State.Terminal():
		r.note(Corrected, t.f, t.n.Start, "%s is %s although its parent is %s; it was imported as cancelled", t.what(),
			t.State, t.up.State)
		t.foreign.State = exportState(t.State)
		t.State, t.Error = perdure.Cancelled, &perdure.TaskError{Kind: unfinished,
			Message: "not finished although its parent is"}
	}
	if !t.State.Terminal() {
		t.foreign.State = exportState(t.State)
		if !t.CompletedAt.IsZero() {
			r.note(Corrected, t.f, t.n.Start, "%s is %s and has a completion time; the time was left out", t.what(), t.State)
			t.CompletedAt = time.Time{}
		}
	}
	r.settleTimes(g, t)
	r.settleIDs(t)
	t.settleKey(g)
	r.settleDepth(t)
	r.keepNode(t)
}

// settleDepth sets the depth, which follows from the parents.
func (r *reader) settleDepth(t *task) {
	is := 0
	if t.up != nil {
		is = t.up.Depth + 1
	}
	if t.deep && t.Depth != is {
		r.note(Corrected, t.f, t.n.Start, "the depth of %s is %d; by its parents it is %d", t.what(), t.Depth, is)
	}
	t.Depth = is
}

// unfinished is the error kind of a task that was imported as cancelled because its
// parent has ended.
const unfinished = "unfinished"

// exportState returns the name of a state in the files.
func exportState(s perdure.State) string {
	if s == perdure.Waiting {
		return string(perdure.Running)
	}
	return string(s)
}

// completed returns the completion time of the tree in its file.
func (g *tree) completed() time.Time {
	if g.meta == nil || !g.meta.has("completed_at") {
		return time.Time{}
	}
	return g.meta.time("completed_at")
}

func (r *reader) settleTimes(g *tree, t *task) {
	if t.CreatedAt.IsZero() {
		switch {
		case !t.StartedAt.IsZero():
			t.CreatedAt = t.StartedAt
		case t.up != nil:
			t.CreatedAt = t.up.CreatedAt
		case !t.CompletedAt.IsZero():
			t.CreatedAt = t.CompletedAt
		case g.meta != nil && !g.meta.time("created_at").IsZero():
			t.CreatedAt = g.meta.time("created_at")
		default:
			t.CreatedAt = time.UnixMicro(1).UTC()
		}
		r.note(Default, t.f, t.n.Start, "%s has no creation time; it was set to %s", t.what(),
			t.CreatedAt.Format(time.RFC3339))
	}
	if t.State.Terminal() && t.CompletedAt.IsZero() && t.foreign.State == "" {
		t.CompletedAt = cmp.Or(t.StartedAt, t.CreatedAt)
		if at := g.completed(); t.up == nil && !at.Before(t.CompletedAt) {
			t.CompletedAt = at // that of the tree
		}
		r.note(Default, t.f, t.n.Start, "%s is %s and has no completion time; it was set to %s", t.what(), t.State,
			t.CompletedAt.Format(time.RFC3339))
	}
	if t.foreign.State != "" && t.State.Terminal() {
		t.CompletedAt = t.CreatedAt // never exported: the task has not ended
	}
}

// settleIDs keeps IDs that match their pattern; the others are kept under another name.
func (r *reader) settleIDs(t *task) {
	split := func(id, what string, valid bool) (string, string) {
		if valid || id == "" {
			return id, ""
		}
		r.note(Corrected, t.f, t.n.Start, "the %s %s does not match its pattern; it is kept in metadata", what, quoted(id))
		return "", id
	}
	t.foreign.ID, t.foreign.GivenID = split(t.id, "ID", taskPattern().MatchString(t.id))
	t.foreign.Node, t.foreign.GivenNode = split(t.node, "node ID", nodePattern().MatchString(t.node))
	if t.tree != "" && !treePattern().MatchString(t.tree) {
		t.foreign.GivenTree = t.tree
		if t.up == nil {
			r.note(Corrected, t.f, t.n.Start, "tree_id %s of %s does not match its pattern; the tree got a new ID, and the "+
				"given one is kept in metadata", quoted(t.tree), t.what())
		}
	}
	if t.twice {
		t.foreign.ID, t.foreign.Node, t.foreign.GivenID, t.foreign.GivenNode = "", "", t.id, t.node
	}
}

// settleKey sets the key by which later imports of the same files find the task in its
// tree.
func (t *task) settleKey(g *tree) {
	base := cmp.Or(t.id, t.node, "record")
	key := base
	for i := 2; g.keys[key]; i++ {
		key = fmt.Sprintf("%s#%d", base, i)
	}
	if g.keys == nil {
		g.keys = make(map[string]bool)
	}
	g.keys[key] = true
	if t.key = key; key != t.foreign.ID {
		t.foreign.Key = key
	}
}

// treeKey returns the key by which later imports find the tree. It is made of values
// that do not change.
func treeKey(g *tree) string {
	root := g.order[0]
	return loops.ImportKey(g.id, root.id, root.node, root.CreatedAt.Format(time.RFC3339Nano), root.Prompt)
}
