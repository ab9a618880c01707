package tree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// state is a state as it was read.
type state struct {
	f       *file
	id      string
	session string
	tree    string
	node    string // of the task; "" for the state of the tree
	name    string // of a temporary state
	scope   perdure.Scope

	vars      []*variable
	mutations []*mutation
	checks    []*check
	compacted int64
	created   time.Time
	updated   time.Time
	expires   *time.Time
	extra     stateExtra

	task   *task // of a tree
	replay *replay
	// ref names the state in the store; ids and nodes are the tasks of its tree there,
	// by key and by node ID.
	ref   perdure.StateRef
	ids   map[string]perdure.TaskID
	nodes map[string]perdure.TaskID
}

func (s *state) what() string {
	if s.id == "" {
		return "the state"
	}
	return "state " + quoted(s.id)
}

// stateExtra holds the members of a document that have no column in the store.
type stateExtra struct {
	GivenID string `json:"state_id_as_given,omitempty"`
	Version string `json:"version,omitempty"` // if it is not the first one
	Tree    string `json:"tree_id,omitempty"`
	Session string `json:"session_id,omitempty"`
	// Status is a completion status that does not follow from Final, of a state that no task
	// has; valid while the state is as it was updated last at StatusAt.
	Status    string                                `json:"completion_status,omitempty"`
	StatusAt  time.Time                             `json:"completion_status_at,omitzero"`
	Fields    map[string]json.RawMessage            `json:"fields,omitempty"`
	Metadata  map[string]json.RawMessage            `json:"metadata,omitempty"`
	Variables map[string]map[string]json.RawMessage `json:"variables,omitempty"`
}

// mutation is an entry of a history as it was read.
type mutation struct {
	perdure.MutationRecord
	f        *file
	off      int
	node     string // task_node_id
	sequence int64
	number   int64 // in the replay
}

// check is a checkpoint as it was read.
type check struct {
	perdure.CheckpointRecord
	id       string
	sequence int64
	number   int64
	// snapshot are the variables at that time; nil if they are not known.
	snapshot []*variable
	// below are the variables of other tasks of the tree, by node.
	below map[string][]*variable
}

// state reads a document, and its checkpoints and history in the same folder.
func (r *reader) state(f *file, scope perdure.Scope) *state {
	o := r.object(docState, f, f.root, "the state")
	s := &state{f: f, id: o.text("state_id"), session: o.text("session_id"), tree: o.text("tree_id"), scope: scope}
	o.what = s.what()
	if v := o.checkVersion(); v != firstVersion {
		s.extra.Version = v
	}
	if s.id == "" {
		o.noteAs(Default, nil, "there is no state_id; it gets a new one")
	}
	meta := o.sub(docStateMeta, "metadata")
	s.node, s.name = meta.text("node_id"), meta.text("name")
	s.created, s.updated = meta.time("created_at"), meta.time("last_updated_at")
	s.compacted = meta.whole("compacted_mutations")
	if at := meta.time("expires_at"); !at.IsZero() {
		s.expires = &at
	}
	given := perdure.Scope(meta.text("scope"))
	s.scope = cmp.Or(s.scope, given)
	s.findScope()
	if given != "" && given != s.scope {
		meta.note(meta.n.Get("scope"), "metadata.scope is %s; the scope is %s", quoted(string(given)), s.scope)
	}
	if !o.has("variables") {
		r.note(NotRead, f, o.n.Start, "%s has no variables", o.what)
	}
	vars := o.sub(docNames, "variables")
	s.vars = r.variables(vars, s.scope)
	r.history(o.sub(docHistory, "history"), s)
	s.checkCounts(meta)
	execution := meta.execution()
	s.extra.Fields, s.extra.Metadata = o.noteUnread("the state"), meta.noteUnread("the state")
	if execution != nil {
		s.extra.Metadata[nodeExecution] = execution
	}
	s.checkMetadata(meta)
	if s.tree != "" && !treePattern().MatchString(s.tree) {
		o.note(o.n.Get("tree_id"), "the tree ID %s does not match its pattern; it is kept as tree_id_as_given",
			quoted(s.tree))
		s.extra.Fields["tree_id_as_given"], s.tree = jsontree.MustMarshal(s.tree), ""
	}
	s.settle(r)
	return s
}

// checkCounts notes the numbers of a document that do not follow from the rest of it.
func (s *state) checkCounts(meta *object) {
	for key, is := range map[string]int{"variable_count": len(s.vars), "mutation_count": len(s.mutations),
		"checkpoint_count": len(s.checks)} {
		if n := meta.get(key); !n.IsNull() && string(n.Raw()) != strconv.Itoa(is) {
			meta.note(n, "metadata.%s is %.40s; the state has %d", key, n.Raw(), is)
		}
	}
	meta.used.add("total_size_bytes") // an estimate
	meta.used.add("scope")            // the scope that was read
	s.readStatus(meta)
}

// readStatus keeps the completion status of a document where Final does not decide it.
func (s *state) readStatus(meta *object) {
	n := meta.get("completion_status")
	words := []string{"incomplete", "complete", "error", "cancelled"}
	final := slices.ContainsFunc(s.vars,
		func(v *variable) bool { return v.Name == perdure.VarFinal && string(v.Value) != "null" })
	switch {
	case n.IsNull():
	case !slices.Contains(words, n.Text()):
		meta.note(n, "metadata.completion_status is %.40s, want one of %s; it follows from Final", n.Raw(),
			strings.Join(words, ", "))
	case final && n.Text() != "complete":
		meta.note(n, "metadata.completion_status is %s; Final is set, so it is complete", n.Text())
	case !final && n.Text() != "incomplete" && s.scope != perdure.ScopeTree:
		s.extra.Status = n.Text()
	}
}

// checkMetadata renames the members of the metadata that the schema does not allow.
func (s *state) checkMetadata(meta *object) {
	for _, key := range sortedKeys(s.extra.Metadata) {
		value := s.extra.Metadata[key]
		if !allows(statePart, json.RawMessage(`{`+string(jsontree.MustMarshal(key))+`:`+string(value)+`}`)) {
			meta.note(meta.n.Get(key), "metadata.%s is not as the schema rlm-state has it; it is kept as %s_as_given", key, key)
			s.extra.Metadata[key+"_as_given"] = value
			delete(s.extra.Metadata, key)
		}
	}
}

// findScope sets an unknown scope to that of the state's owner.
func (s *state) findScope() {
	known := []perdure.Scope{perdure.ScopeGlobal, perdure.ScopeSession, perdure.ScopeTree, perdure.ScopeTemporary}
	switch {
	case slices.Contains(known, s.scope):
	case s.tree != "":
		s.scope = perdure.ScopeTree
	case s.session != "":
		s.scope = perdure.ScopeSession
	default:
		s.scope = perdure.ScopeTemporary
	}
}

// settle moves values without a column to extra, and sets missing times.
func (s *state) settle(r *reader) {
	if !isID(s.id, "state-") {
		if s.id != "" {
			r.note(Corrected, s.f, 0, "the ID %s does not match its pattern; it is kept as state_id_as_given", quoted(s.id))
		}
		s.extra.GivenID = s.id
	}
	if s.scope == perdure.ScopeTemporary {
		s.name = cmp.Or(s.name, s.id)
	}
	s.extra.Variables = make(map[string]map[string]json.RawMessage)
	for _, v := range s.vars {
		if len(v.rest) > 0 {
			s.extra.Variables[v.Name] = v.rest
		}
	}
	s.settleTimes(r)
}

// settleTimes sets missing times.
func (s *state) settleTimes(r *reader) {
	times := []time.Time{s.updated}
	for _, m := range s.mutations {
		times = append(times, m.Time)
	}
	for _, v := range s.vars {
		times = append(times, v.CreatedAt, v.UpdatedAt)
	}
	times = slices.DeleteFunc(times, time.Time.IsZero)
	if len(times) == 0 {
		times = []time.Time{time.UnixMicro(1).UTC()}
	}
	var missing []string
	if s.created.IsZero() {
		s.created = slices.MinFunc(times, time.Time.Compare)
		missing = append(missing, "the state")
	}
	if s.updated.IsZero() {
		s.updated = slices.MaxFunc(times, time.Time.Compare)
	}
	if s.extra.Status != "" {
		s.extra.StatusAt = s.updated.Truncate(time.Microsecond)
	}
	set := func(at *time.Time, what string) {
		if at.IsZero() {
			*at = s.created
			missing = append(missing, what)
		}
	}
	for _, m := range s.mutations {
		set(&m.Time, "mutation of "+quoted(m.Name))
	}
	for _, c := range s.checks {
		set(&c.Time, "checkpoint "+quoted(c.Name))
	}
	for _, v := range s.vars {
		set(&v.CreatedAt, "variable "+quoted(v.Name))
		v.UpdatedAt = cmp.Or(v.UpdatedAt, v.CreatedAt)
	}
	s.noteTimes(r, missing)
}

// noteTimes notes what of a document has no creation time. A record of a task has one for all
// of its variables.
func (s *state) noteTimes(r *reader, missing []string) {
	const shown = 5
	if len(missing) == 0 || s.task != nil {
		return
	}
	list := strings.Join(missing[:min(len(missing), shown)], ", ")
	if more := len(missing) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	r.note(Default, s.f, -1, "%s: no creation time of %s; it was set to %s", s.what(), list,
		s.created.Format(time.RFC3339))
}

// isID reports whether id is prefix and 8 hexadecimal digits.
func isID(id, prefix string) bool {
	digits, ok := strings.CutPrefix(id, prefix)
	return ok && len(digits) == 8 && strings.Trim(digits, "0123456789abcdef") == ""
}

// history reads mutations and checkpoints from the document and from the files in its
// folder.
func (r *reader) history(o *object, s *state) {
	dir := path.Dir(s.f.name)
	list := o.list("mutations")
	for _, n := range list {
		r.mutation(s, s.f, n)
	}
	log := path.Join(dir, historyFile)
	if len(list) == 0 && slices.Contains(r.files, log) {
		r.historyLog(s, log)
	}
	if over := len(s.mutations) - perdure.MaxHistory; over > 0 {
		r.note(Corrected, s.f, -1, "the history of %s has %d entries; the oldest %d were compacted", s.what(),
			len(s.mutations), over)
		s.mutations, s.compacted = s.mutations[over:], s.compacted+int64(over)
	}
	for _, n := range o.list("checkpoints") {
		r.checkpoint(s, s.f, n)
	}
	for _, name := range r.files {
		if path.Dir(name) == path.Join(dir, checksFolder) && path.Ext(name) == ".json" && !r.src.used[name] {
			if f := r.open(name); f != nil && f.root.Kind == jsontree.Object {
				r.checkpoint(s, f, f.root)
			}
		}
	}
	if over := len(s.checks) - perdure.MaxCheckpoints; over > 0 {
		r.note(NotRead, s.f, -1, "%s has %d checkpoints; the oldest %d were not imported", s.what(), len(s.checks), over)
		s.checks = s.checks[over:]
	}
}

// historyLog reads a history of one mutation a line.
func (r *reader) historyLog(s *state, name string) {
	text, err := r.src.read(name)
	if err != nil {
		r.note(NotRead, &file{name: name}, -1, "cannot be read: %v", cause(err))
		return
	}
	whole := r.decoded(name, text)
	at := 0
	for line := range bytes.Lines(whole.text) {
		f := &file{name: name, text: whole.text[:at+len(line)], lines: whole.lines}
		if len(bytes.TrimSpace(line)) > 0 {
			if f.parse(at); f.err != nil {
				r.note(NotRead, f, f.err.Offset, "invalid JSON in the line: %s", f.err.Msg)
			} else {
				r.mutation(s, f, f.root)
			}
		}
		at += len(line)
	}
}

func (r *reader) mutation(s *state, f *file, n *jsontree.Value) {
	o := r.object(docMutation, f, n, s.what()+": mutation")
	if n.Cut || n.Kind != jsontree.Object {
		r.note(NotRead, f, n.Start, "%s: an incomplete mutation was not imported", s.what())
		return
	}
	m := &mutation{f: f, off: n.Start}
	m.Foreign = o.text("mutation_id")
	m.Operation, m.Name = strings.ToLower(o.text("operation")), o.cut("variable_name", maxCheckName)
	switch m.Operation {
	case "create", "update", "delete", "rename", "rollback":
	case "set", "write":
		o.note(o.n.Get("operation"), "operation %s was read as update", quoted(m.Operation))
		m.Operation = "update"
	default:
		r.note(NotRead, f, n.Start, "%s: a mutation with the unknown operation %s was not imported", s.what(),
			quoted(m.Operation))
		return
	}
	m.Old, m.New = o.raw("old_value"), o.raw("new_value")
	m.Source, m.Time = o.cut("source", maxText), o.time("timestamp")
	meta := o.sub(docMutation, "metadata")
	m.Reason, m.To, m.node = meta.cut("reason", maxText), meta.text("to"), meta.text("task_node_id")
	m.sequence = meta.whole("sequence")
	for key, value := range map[string]*json.RawMessage{"old_file": &m.Old, "new_file": &m.New} {
		if ref := meta.text(key); ref != "" {
			raw, err := r.valueFile(ref, f.name, "json")
			if err != nil {
				r.note(NotRead, f, n.Start, "%s: %v", s.what(), err)
			}
			*value = raw
		}
	}
	if !isID(m.Foreign, "mut-") {
		o.note(o.n.Get("mutation_id"), "the ID %s does not match its pattern; it was replaced", quoted(m.Foreign))
		m.Foreign = ""
	}
	known := s.created
	if k := len(s.mutations); k > 0 {
		known = cmp.Or(s.mutations[k-1].Time, known)
	}
	m.Time = o.timeOr(m.Time, known)
	if rest := append(sortedKeys(o.unread()), sortedKeys(meta.unread())...); len(rest) > 0 {
		r.note(NotRead, f, n.Start, "%s: unknown members of a mutation have no place in the store: %s", s.what(),
			strings.Join(rest, ", "))
	}
	s.mutations = append(s.mutations, m)
}

// maxCheckName is the limit of the store for the name of a checkpoint, and for what a mutation names.
const maxCheckName = 256

// checkpoint reads a checkpoint from a list or from its own file, and its variables if
// they are known.
func (r *reader) checkpoint(s *state, f *file, n *jsontree.Value) {
	o := r.object(docCheckpoint, f, n, s.what()+": checkpoint")
	if n.Cut || n.Kind != jsontree.Object {
		r.note(NotRead, f, n.Start, "%s: an incomplete checkpoint was not imported", s.what())
		return
	}
	c := &check{id: o.text("checkpoint_id")}
	c.Name, c.Description, c.Time = o.cut("name", maxCheckName), o.cut("description", maxText), o.time("timestamp")
	c.sequence = o.whole("sequence")
	if c.Foreign = c.id; !isID(c.id, "ckpt-") {
		o.note(o.n.Get("checkpoint_id"), "the ID %s does not match its pattern; it was replaced", quoted(c.id))
		c.Foreign = ""
		c.Description = cmp.Or(c.Description, clip.Prefix("was "+c.id, maxText))
	}
	if c.Name = cmp.Or(c.Name, clip.Prefix(c.id, maxCheckName)); c.Name == "" {
		c.Name = "checkpoint"
		o.note(nil, "it has neither a name nor an ID; its name was set to checkpoint")
	}
	c.Time = o.timeOr(c.Time, s.created)
	r.snapshot(s, c, f, o)
	if i := slices.IndexFunc(s.checks, func(d *check) bool { return d.id == c.id }); i >= 0 {
		if s.checks[i].snapshot == nil {
			s.checks[i].snapshot, s.checks[i].below = c.snapshot, c.below
		}
		return
	}
	s.checks = append(s.checks, c)
}

// snapshot reads the variables of a checkpoint from its record or its file.
func (r *reader) snapshot(s *state, c *check, f *file, o *object) {
	ref := o.text("snapshot_path")
	if ref == "" && o.n.Get("state") == nil {
		ref = path.Join(path.Dir(f.name), checksFolder, c.id+".json")
		if !slices.Contains(r.files, ref) {
			return
		}
	}
	in := o
	if o.n.Get("state") == nil {
		name, err := r.src.resolve(ref, f.name)
		if err != nil {
			r.note(NotRead, f, o.n.Start, "the snapshot of checkpoint %s: %v", quoted(c.id), err)
			return
		}
		g := r.open(name)
		if g == nil || g.root.Kind != jsontree.Object || g.root.Cut {
			return
		}
		in = r.object(docCheckpoint, g, g.root, o.what)
	}
	vars := in.sub(docNames, "state")
	if inner := vars.n.Get("variables"); inner != nil && inner.Kind == jsontree.Object && inner.Get("value") == nil {
		vars = vars.sub(docNames, "variables") // the document of the state
	}
	c.snapshot = append([]*variable{}, r.variables(vars, s.scope)...)
	c.below = make(map[string][]*variable)
	for _, m := range in.sub(docNames, "tasks").n.Members {
		c.below[m.Name] = r.variables(r.object(docNames, in.f, m.Value, o.what), s.scope)
	}
}
