package tree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// importKey is the member of a task's metadata and of a tree's configuration
// that holds values of the imported record.
const importKey = "perdure_import"

// foreign is that member of a task.
type foreign struct {
	ID   string `json:"id,omitempty"`
	Node string `json:"node_id,omitempty"`
	// GivenID and so on are IDs that do not match their pattern.
	GivenID     string `json:"id_as_given,omitempty"`
	GivenNode   string `json:"node_id_as_given,omitempty"`
	GivenTree   string `json:"tree_id_as_given,omitempty"`
	GivenParent string `json:"parent_id_as_given,omitempty"`
	// State is the state in the file if the state in the store is another.
	State string `json:"state,omitempty"`
	// Key finds the record when the import is repeated, if the ID does not.
	Key string `json:"key,omitempty"`
	// PID is the process in the file.
	PID json.RawMessage `json:"pid,omitempty"`
	// Error is the value in the file if it has more than a kind and a message.
	Error json.RawMessage `json:"error,omitempty"`
}

func (f *foreign) key() string { return cmp.Or(f.Key, f.ID) }

// foreignOf returns the member of a task's metadata, nil if it was not imported.
func foreignOf(metadata json.RawMessage) *foreign {
	if !bytes.Contains(metadata, []byte(`"`+importKey+`"`)) {
		return nil
	}
	var m struct {
		Foreign *foreign `json:"perdure_import"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return nil
	}
	return m.Foreign
}

var (
	taskPattern = lazyregexp.New(`^task-[0-9]{4,}$`)
	nodePattern = lazyregexp.New(`^task-[0-9a-f]{8}$`)
	treePattern = lazyregexp.New(`^tree-[0-9a-f]{8}$`)
)

// task is a record of a task as it was read.
type task struct {
	perdure.Task
	f       *file
	n       *jsontree.Value
	foreign foreign
	meta    map[string]json.RawMessage // other members of the metadata
	// The IDs as in the file, by which records refer to each other.
	id, node, tree, parent string
	placed                 bool // the record has a position
	twice                  bool // a previous record has the same ID
	vars                   *object
	key                    string // unique in the tree
	stated                 bool   // the file has its state
	deep                   bool   // the file has its depth
	// Of a node of tree.json: the value, and the members that have no column.
	fromNode bool
	doc      *jsontree.Value
	unread   map[string]json.RawMessage

	up   *task
	down []*task
	done bool // is in the order of the tree
}

func (t *task) what() string {
	switch {
	case t.id != "":
		return "task " + quoted(t.id)
	case t.node != "":
		return "node " + quoted(t.node)
	}
	return "a task without an ID"
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil || len(raw) > 100 {
		return `"` + strings.ToValidUTF8(s[:min(len(s), 90)], "") + `…"`
	}
	return string(raw)
}

// stateNamed returns the state with a name in files, which have several for some, or "".
func stateNamed(name string) perdure.State {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "queued", "pending", "created", "ready", "blocked":
		return perdure.Queued
	case "running", "in_progress", "active", "started":
		return perdure.Running
	case "waiting":
		return perdure.Waiting
	case "completed", "complete", "done", "success", "succeeded":
		return perdure.Completed
	case "failed", "error":
		return perdure.Failed
	case "cancelled", "canceled", "aborted":
		return perdure.Cancelled
	}
	return ""
}

// task reads a record of tasks.json or of nodes/.
func (r *reader) task(f *file, n *jsontree.Value) *task {
	o := r.object(docRecord, f, n, "a task")
	t := &task{f: f, n: n, id: o.text("id"), meta: make(map[string]json.RawMessage)}
	meta := o.sub(docRecordMeta, "metadata")
	t.node, t.tree = firstText(meta, o, "node_id"), firstText(meta, o, "tree_id")
	t.parent = firstText(meta, o, "parent_id")
	o.what, meta.what = t.what(), t.what()
	r.readTask(o, t)
	r.taskMetadata(meta, t)
	t.keepUnread(meta)
	for key, value := range o.noteUnread("metadata") {
		if _, taken := t.meta[key]; taken || reserved(key) {
			key = "task." + key
		}
		t.meta[key] = value
	}
	return t
}

// reserved reports whether the layout defines the member of a record's metadata.
func reserved(key string) bool { return key != nodeKey && docRecordMeta.has(key) }

// readTask reads the fields that all forms of a record have.
func (r *reader) readTask(o *object, t *task) {
	t.Prompt = o.cut("prompt", perdure.MaxPromptBytes)
	t.Agent = o.cut("agent", perdure.MaxAgentBytes)
	t.Priority = bounded(o, "priority", -perdure.MaxPriority, perdure.MaxPriority)
	t.CreatedAt, t.StartedAt, t.CompletedAt = o.time("createdAt"), o.time("startedAt"), o.time("completedAt")
	t.Attempts, t.MaxAttempts = bounded(o, "attempts", 0, 1<<30), bounded(o, "max_attempts", 0, 1<<30)
	t.Active = time.Duration(o.number("active_ms")*1000+0.5) * time.Microsecond
	t.Output = o.cut("output", perdure.MaxResultBytes)
	if n := o.get("pid"); !n.IsNull() && n.Kind == jsontree.Number {
		t.foreign.PID = compacted(n)
	} else if !n.IsNull() {
		o.used.drop("pid") // kept with the unknown members
	}
	r.taskState(o, t)
	r.taskResult(o, t)
	if t.Active == 0 && !t.StartedAt.IsZero() && t.CompletedAt.After(t.StartedAt) {
		t.Active = t.CompletedAt.Sub(t.StartedAt)
	}
}

// keepUnread adds the members of o that were not read, the user's own, to the metadata.
func (t *task) keepUnread(o *object) { maps.Copy(t.meta, o.unread()) }

func firstText(meta, o *object, key string) string {
	if meta.has(key) {
		return meta.text(key)
	}
	if o.has(key) {
		return o.text(key)
	}
	meta.used.add(key) // null is as good as missing
	return ""
}

func bounded(o *object, key string, least, most int) int {
	n := o.get(key)
	if n.IsNull() {
		return 0
	}
	var v float64
	err := json.Unmarshal(n.Raw(), &v)
	is := int(min(max(v, float64(least)), float64(most)))
	if err != nil || float64(is) != v {
		o.note(n, "%s is not an integer from %d to %d; it was set to %d", key, least, most, is)
	}
	return is
}

func (r *reader) taskState(o *object, t *task) {
	given := o.text("state")
	if given == "" && o.has("status") {
		given = o.text("status")
	}
	t.State = cmp.Or(stateNamed(given), perdure.Queued)
	t.stated = given != ""
	switch {
	case given == "":
		o.noteAs(Default, nil, "there is no state; it was set to %s", t.State)
	case stateNamed(given) == "":
		o.note(o.n.Get("state"), "unknown state %s; it was set to %s", quoted(given), t.State)
		t.set("state_as_given", given)
	case string(t.State) != given && (!t.fromNode || statusWord(string(t.State)) != given):
		o.note(o.n.Get("state"), "state %s was read as %s", quoted(given), t.State)
	}
}

func (r *reader) taskResult(o *object, t *task) {
	if n := o.get("result"); !n.IsNull() && !n.Cut && !(t.fromNode && isNodeResult(n)) {
		if n.Kind == jsontree.Object {
			t.Data = compacted(n)
			o.note(n, "the result is an object; it was also kept as data")
			t.Result = string(t.Data)
		} else {
			t.Result = o.cut("result", perdure.MaxResultBytes)
		}
	}
	if n := o.get("data"); !n.IsNull() {
		if n.Kind == jsontree.Object && !n.Cut {
			t.Data = compacted(n)
		} else {
			o.used.drop("data") // kept with the unknown members
		}
	}
	if t.Result != "" && t.State != perdure.Completed {
		o.note(o.n.Get("result"), "a task that is %s has a result; it is kept as result_as_given", t.State)
		t.set("result_as_given", t.Result)
		t.Result = ""
	}
	n := o.get("error")
	if n.IsNull() {
		return
	}
	e := r.object(docRecord, o.f, n, o.what)
	switch {
	case n.Kind == jsontree.Object && (e.has("kind") || e.has("message")):
		t.Error = &perdure.TaskError{Kind: e.cut("kind", 256), Message: e.cut("message", perdure.MaxErrorBytes)}
		if len(e.unread()) > 0 {
			t.foreign.Error = compacted(n)
		}
	case n.Kind == jsontree.String:
		t.Error = &perdure.TaskError{Kind: "unknown", Message: o.cut("error", perdure.MaxErrorBytes)}
		o.noteAs(Kept, n, "the error is a string; its kind was set to unknown")
	default:
		t.Error = &perdure.TaskError{Kind: "unknown", Message: string(compacted(n))}
		t.foreign.Error = compacted(n)
		o.note(n, "the error has no kind and message; it was kept unchanged")
	}
	t.Error.Kind = cmp.Or(t.Error.Kind, "unknown")
}

// set adds a text to the metadata.
func (t *task) set(key, text string) { t.meta[key] = jsontree.MustMarshal(text) }

func (r *reader) taskMetadata(meta *object, t *task) {
	t.Depth, t.deep = bounded(meta, "depth", 0, 1<<20), meta.has("depth")
	t.placed = meta.has("position")
	t.Position = bounded(meta, "position", 0, 1<<30)
	if s := perdure.Strategy(meta.text("decomposition_strategy")); s == perdure.Parallel || s == perdure.Sequential {
		t.Strategy = s
	} else if t.fromNode && s == "conditional" { // the next child depends on the previous one
		t.Strategy = perdure.Sequential
	} else if t.fromNode && s == "map-reduce" {
		t.Strategy = perdure.Parallel
	} else if s != "" && s != "none" {
		meta.note(meta.n.Get("decomposition_strategy"), "unknown strategy %s; it is kept as strategy_as_given",
			quoted(string(s)))
		t.set("strategy_as_given", string(s))
	}
	if p := perdure.Policy(meta.text("failure_policy")); p == perdure.PolicyPartial || p == perdure.PolicyFail {
		t.Policy = p
	}
	t.Merge = meta.text("merge_strategy")
	if c := meta.sub(docContext, "context_reference"); len(c.n.Members) > 0 {
		t.Context = c.contextRef()
		t.setUnread("context_reference_rest", c)
	}
	if c := meta.sub(docCost, "cost_tracking"); len(c.n.Members) > 0 {
		t.Usage = perdure.Usage{InputTokens: c.whole("input_tokens"), OutputTokens: c.whole("output_tokens"),
			CachedTokens: c.whole("cached_tokens"), Calls: c.whole("calls"), UnpricedCalls: c.whole("unpriced_calls"),
			CostUSD: c.dollars("total_cost_usd")}
		t.setUnread("cost_tracking_rest", c)
	}
	if meta.has("rlm_state") {
		t.vars = meta.sub(docNames, "rlm_state")
	}
	meta.used.add("rlm_state")
	meta.used.add("checkpoints") // they come with their files
	if meta.has(importKey) {
		meta.note(meta.n.Get(importKey), "%s is reserved for perdure; it is kept as %s_as_given", importKey, importKey)
		t.keepUnread(meta)
		t.meta[importKey+"_as_given"] = t.meta[importKey]
		delete(t.meta, importKey)
	}
	meta.used.add(importKey)
}

// setUnread adds the members of o that were not read to the metadata, as text.
func (t *task) setUnread(key string, o *object) {
	if rest := o.noteUnread("metadata"); len(rest) > 0 {
		t.set(key, string(jsontree.MustMarshal(rest)))
	}
}

// readTasks reads daemon/tasks.json, and its backup if it is incomplete or missing.
func (r *reader) readTasks() {
	f := r.open(tasksFile)
	r.tasksOf(f)
	if f == nil || f.err != nil {
		r.useBackup(f != nil)
	}
	r.src.used[backupFile] = true
}

// useBackup adds the tasks of the backup file that were not read; partial says that
// some were.
func (r *reader) useBackup(partial bool) {
	text, err := r.src.read(backupFile)
	if err != nil {
		return
	}
	b := r.parse(backupFile, text)
	r.noteSyntax(b)
	if b.root == nil {
		return
	}
	have := make(map[string]bool)
	for _, t := range r.tasks {
		have[t.id] = true
	}
	before := r.tasks
	r.tasks = nil
	r.tasksOf(b)
	r.tasks = slices.DeleteFunc(r.tasks, func(t *task) bool { return have[t.id] })
	if partial {
		r.note(Corrected, b, -1, "used for %d tasks that %s does not have completely", len(r.tasks), tasksFile)
	} else {
		r.note(Corrected, b, -1, "used instead of %s: %d tasks", tasksFile, len(r.tasks))
	}
	r.tasks = append(before, r.tasks...)
}

// tasksOf reads the tasks of a file like tasks.json.
func (r *reader) tasksOf(f *file) {
	if f == nil {
		return
	}
	list := f.root
	if f.root.Kind == jsontree.Object {
		o := r.object(docTasks, f, f.root, "the file")
		switch v := o.get("version"); {
		case v == nil:
			o.noteAs(Default, nil, "there is no version; the file was read as version 1")
		case string(v.Raw()) != "1":
			o.note(v, "the version is %s, not 1; the file was read as version 1", quoted(v.Scalar()))
		}
		o.time("updatedAt") // only checked
		list = o.get("tasks")
		for _, key := range sortedKeys(o.unread()) {
			r.note(NotRead, f, o.n.Get(key).Start, "unknown member %s of the file: it has no place in the store", quoted(key))
		}
	}
	if !list.Is(jsontree.Array) {
		r.note(NotRead, f, f.root.Start, "there is no list of tasks")
		return
	}
	for _, n := range list.Items {
		switch {
		case n.Cut:
			r.note(NotRead, f, n.Start, "the last task is incomplete; it was not imported")
		case n.Kind != jsontree.Object:
			r.note(NotRead, f, n.Start, "%s is not a task", quoted(string(n.Raw()[:min(len(n.Raw()), 80)])))
		default:
			r.tasks = append(r.tasks, r.task(f, n))
			n.Members = nil // they were read, and would fill the memory
		}
	}
}
