package tree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// stateDoc is a document of the schema rlm-state.
type stateDoc struct {
	Version   string              `json:"version"`
	ID        string              `json:"state_id"`
	Session   string              `json:"session_id,omitempty"`
	Tree      string              `json:"tree_id,omitempty"`
	Variables json.RawMessage     `json:"variables"`
	History   historyDoc          `json:"history"`
	Metadata  extended[stateMeta] `json:"metadata"`
}

type historyDoc struct {
	Mutations   []mutationDoc `json:"mutations"`
	Checkpoints []checkDoc    `json:"checkpoints"`
}

type stateMeta struct {
	CreatedAt   time.Time     `json:"created_at"`
	UpdatedAt   time.Time     `json:"last_updated_at"`
	Variables   int           `json:"variable_count"`
	Mutations   int           `json:"mutation_count"`
	Checkpoints int           `json:"checkpoint_count"`
	Bytes       int64         `json:"total_size_bytes"`
	Compacted   int64         `json:"compacted_mutations,omitempty"`
	Status      string        `json:"completion_status"`
	Scope       perdure.Scope `json:"scope"`
	Name        string        `json:"name,omitempty"`
	Node        string        `json:"node_id,omitempty"`
	ExpiresAt   *time.Time    `json:"expires_at,omitempty"`
}

type mutationDoc struct {
	ID        string          `json:"mutation_id"`
	Operation string          `json:"operation"`
	Name      string          `json:"variable_name"`
	Old       json.RawMessage `json:"old_value,omitempty"`
	New       json.RawMessage `json:"new_value,omitempty"`
	Source    string          `json:"source,omitempty"`
	Time      time.Time       `json:"timestamp"`
	Metadata  mutationMeta    `json:"metadata"`
}

type mutationMeta struct {
	Reason   string `json:"reason,omitempty"`
	Node     string `json:"task_node_id,omitempty"`
	To       string `json:"to,omitempty"`
	OldFile  string `json:"old_file,omitempty"`
	NewFile  string `json:"new_file,omitempty"`
	Sequence int    `json:"sequence"`
}

type checkDoc struct {
	ID          string          `json:"checkpoint_id"`
	Name        string          `json:"name"`
	Time        time.Time       `json:"timestamp"`
	Path        string          `json:"snapshot_path,omitempty"`
	Description string          `json:"description,omitempty"`
	Sequence    int             `json:"sequence"`
	State       json.RawMessage `json:"state,omitempty"`
}

type snapshotDoc struct {
	ID    string                     `json:"checkpoint_id"`
	Name  string                     `json:"name"`
	Time  time.Time                  `json:"timestamp"`
	Task  string                     `json:"task_id,omitempty"`
	State json.RawMessage            `json:"state"`
	Tasks map[string]json.RawMessage `json:"tasks,omitempty"`
}

type variableDoc struct {
	Name        string                 `json:"name"`
	Value       json.RawMessage        `json:"value"`
	Type        perdure.VarType        `json:"type"`
	Description string                 `json:"description,omitempty"`
	Source      string                 `json:"source,omitempty"`
	CreatedAt   time.Time              `json:"created_at"`
	UpdatedAt   time.Time              `json:"updated_at"`
	Accessed    int64                  `json:"access_count"`
	Metadata    extended[variableMeta] `json:"metadata"`
}

type variableMeta struct {
	ReadOnly  bool            `json:"read_only,omitempty"`
	Scope     perdure.Scope   `json:"scope"`
	TTL       int64           `json:"ttl_seconds,omitempty"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	ValueType perdure.VarType `json:"value_type,omitempty"`
}

// stateExport is a state to export.
type stateExport struct {
	rec   perdure.StateRecord
	extra stateExtra
	id    string
	dir   string // the folder of its files in the layout; "" for a single document
	names map[perdure.TaskID]taskName
	// muts are the mutations without those of the import itself.
	muts   []perdure.MutationRecord
	checks []checkDoc
	ids    map[int64]string // of mutations and checkpoints, by place
	order  map[perdure.MutationID]int
	files  map[string][]byte // values by the names of their files
	now    time.Time
}

// newStateExport reads a state.
func (x *exporter) newStateExport(ctx context.Context, ref perdure.StateRef, names map[perdure.TaskID]taskName) (
	*stateExport, error) {
	rec, err := x.store.StateRecord(ctx, ref)
	if err != nil {
		return nil, err
	}
	return x.exportRecord(&rec, rec.ID.String(), names)
}

// exportRecord returns a state to export. It gets the ID unless it has another one in files.
func (x *exporter) exportRecord(rec *perdure.StateRecord, id string, names map[perdure.TaskID]taskName) (
	*stateExport, error) {
	s := &stateExport{rec: *rec, names: names, ids: make(map[int64]string), order: make(map[perdure.MutationID]int),
		files: make(map[string][]byte), now: time.Now()}
	if rec.Extra != nil {
		if err := json.Unmarshal(rec.Extra, &s.extra); err != nil {
			return nil, err
		}
	}
	s.spread()
	s.id = x.stateNames.hex(x.states[rec.ID], id, "state-")
	s.muts = slices.DeleteFunc(rec.Mutations,
		func(m perdure.MutationRecord) bool { return m.Foreign == perdure.ImportOnly })
	slices.SortFunc(s.rec.Versions, func(a, b perdure.VersionRecord) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	s.expire()
	return s, nil
}

// isCurrent reports whether a version is a current value that has not expired.
func (s *stateExport) isCurrent(v *perdure.VersionRecord) bool {
	return v.Dead == 0 && (v.Metadata.ExpiresAt == nil || v.Metadata.ExpiresAt.After(s.now))
}

// current returns the variables.
func (s *stateExport) current() json.RawMessage { return s.object(s.isCurrent) }

// at returns the variables before the mutation or checkpoint of the number.
func (s *stateExport) at(number int64) json.RawMessage {
	return s.object(func(v *perdure.VersionRecord) bool {
		return int64(v.Version) < number && (v.Dead == 0 || int64(v.Dead) >= number)
	})
}

// object returns variables by name; long values go to files if the state has a folder.
func (s *stateExport) object(which func(*perdure.VersionRecord) bool) json.RawMessage {
	out := []byte{'{'}
	s.each(which, func(name string, v any) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, jsontree.MustMarshal(name)...), ':')
		out = append(out, jsontree.MustMarshal(v)...)
	})
	return append(out, '}')
}

// each calls do for variables by name, as object returns them.
func (s *stateExport) each(which func(*perdure.VersionRecord) bool, do func(name string, v any)) {
	for i := range s.rec.Versions {
		if v := &s.rec.Versions[i]; which(v) {
			do(v.Name, s.variable(v))
		}
	}
}

func (s *stateExport) variable(v *perdure.VersionRecord) any {
	d := variableDoc{Name: v.Name, Value: v.Value, Type: v.Type, Description: v.Description, Source: v.Source,
		CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, Accessed: v.Accessed}
	m := variableMeta{ReadOnly: v.Metadata.ReadOnly, Scope: s.rec.Ref.Scope, TTL: v.Metadata.TTLSeconds,
		ExpiresAt: v.Metadata.ExpiresAt}
	if v.Type == perdure.VarNull { // other readers of the schema know no type null
		d.Type, m.ValueType = perdure.VarJSON, perdure.VarNull
	}
	if path := s.file(v.Name, v.Value, v.Dead == 0); path != "" {
		d.Value, d.Type, m.ValueType = jsontree.MustMarshal(fileScheme+path), perdure.VarFilePath, v.Type
	}
	fields, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if v.Dead == 0 {
		for key, value := range s.extra.Variables[v.Name] {
			if rest, ok := strings.CutPrefix(key, metadataPrefix); ok && rest != "" {
				meta[rest] = value
			} else if key != fileKey {
				fields[key] = value
			}
		}
	}
	d.Metadata = extended[variableMeta]{doc: m, more: meta}
	return extended[variableDoc]{doc: d, more: fields}
}

// file returns the file of a value that is too long for a document of the layout or that
// was imported from a file, "" for other values.
func (s *stateExport) file(name string, value json.RawMessage, current bool) string {
	end := ""
	if current && s.extra.Variables[name] != nil {
		_ = json.Unmarshal(s.extra.Variables[name][fileKey], &end) // "" for a value that came inline
	}
	if s.dir == "" || len(value) <= perdure.MaxInlineBytes && end == "" {
		return ""
	}
	text := slices.Concat(value, []byte{'\n'})
	var plain string
	if isPlainEnd(end) && json.Unmarshal(value, &plain) == nil {
		text = []byte(plain)
	} else {
		end = jsonEnd
	}
	path := s.dir + varsFolder + name + end
	if !current {
		sum := sha256.Sum256(value)
		path = s.dir + varsFolder + name + "-" + hex.EncodeToString(sum[:6]) + jsonEnd
	}
	s.files[path] = text
	return layoutName + "/" + path
}

func (s *stateExport) mutations() []mutationDoc {
	type at struct {
		name   string
		number perdure.MutationID
	}
	born, dead := make(map[at]*perdure.VersionRecord), make(map[at]*perdure.VersionRecord)
	for i := range s.rec.Versions {
		v := &s.rec.Versions[i]
		born[at{v.Name, v.Version}] = v
		if v.Dead != 0 {
			dead[at{v.Name, v.Dead}] = v
		}
	}
	list := make([]mutationDoc, len(s.muts))
	for i := range s.muts {
		m := &s.muts[i]
		d := mutationDoc{ID: s.ids[int64(m.ID)], Operation: m.Operation, Name: m.Name, Source: m.Source, Time: m.Time,
			Metadata: mutationMeta{Reason: m.Reason, To: m.To, Sequence: s.order[m.ID]}}
		if m.Task != 0 {
			d.Metadata.Node = s.names[m.Task].node
		}
		if m.Operation == "rollback" && m.Foreign == "" {
			d.Metadata.To = s.exportID(m.To)
		}
		if v := dead[at{m.Name, m.ID}]; v != nil && m.Operation != "rollback" {
			if d.Metadata.OldFile = s.file(v.Name, v.Value, false); d.Metadata.OldFile == "" {
				d.Old = v.Value
			}
		}
		if v := born[at{m.Name, m.ID}]; v != nil && (m.Operation == "create" || m.Operation == "update") {
			if d.Metadata.NewFile = s.file(v.Name, v.Value, v.Dead == 0); d.Metadata.NewFile == "" {
				d.New = v.Value
			}
		}
		list[i] = d
	}
	return list
}

// exportID returns the exported ID of a checkpoint or mutation of the store.
func (s *stateExport) exportID(to string) string {
	var c perdure.CheckpointID
	var m perdure.MutationID
	switch {
	case c.UnmarshalText([]byte(to)) == nil && s.ids[place(c)] != "":
		return s.ids[place(c)]
	case m.UnmarshalText([]byte(to)) == nil && s.ids[place(m)] != "":
		return s.ids[place(m)]
	}
	return to
}

// meta returns the metadata of a state. state is that of its task.
func (s *stateExport) meta(node string, state perdure.State) extended[stateMeta] {
	m := stateMeta{CreatedAt: s.rec.CreatedAt, UpdatedAt: s.rec.UpdatedAt, Mutations: len(s.muts),
		Checkpoints: len(s.checks), Compacted: s.rec.Compacted, Status: "incomplete", Scope: s.rec.Ref.Scope,
		Name: s.rec.Ref.Name, Node: node, ExpiresAt: s.rec.ExpiresAt}
	for i := range s.rec.Versions {
		v := &s.rec.Versions[i]
		if !s.isCurrent(v) {
			continue
		}
		m.Variables++
		m.Bytes += int64(len(v.Value))
		if v.Name == perdure.VarFinal && string(v.Value) != "null" {
			m.Status = "complete"
		}
	}
	if m.Status != "complete" && s.extra.Status != "" && s.rec.UpdatedAt.Equal(s.extra.StatusAt) {
		m.Status = s.extra.Status
	} else if m.Status != "complete" {
		m.Status = cmp.Or(map[perdure.State]string{perdure.Completed: "complete", perdure.Failed: "error",
			perdure.Cancelled: "cancelled"}[state], m.Status)
	}
	return extended[stateMeta]{doc: m, more: s.extra.Metadata}
}

// owner returns the tree of a state in its document.
func (s *stateExport) owner(tree string) string {
	if s.rec.Ref.Scope != perdure.ScopeTree {
		return s.extra.Tree
	}
	return tree
}

// doc returns the document of a state.
func (s *stateExport) doc(tree, node string, state perdure.State) any {
	return extended[stateDoc]{doc: stateDoc{Version: cmp.Or(s.extra.Version, firstVersion), ID: s.id,
		Session: cmp.Or(s.rec.Ref.Session, s.extra.Session), Tree: s.owner(tree), Variables: s.current(),
		History:  historyDoc{s.mutations(), append([]checkDoc{}, s.checks...)},
		Metadata: s.meta(node, state)}, more: s.extra.Fields}
}

// treeStates reads the states of a tree.
func (x *exporter) treeStates(ctx context.Context, t *exportTree) error {
	infos, err := x.store.States(ctx, t.ID)
	if err != nil {
		return err
	}
	t.states = make(map[perdure.TaskID]*stateExport, len(infos))
	var list []*stateExport
	for i := range infos {
		ref := infos[i].Ref
		s, err := x.newStateExport(ctx, ref, t.names)
		if errors.Is(err, perdure.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if s.dir = statesFolder + s.id + "/"; ref.Task == t.Root {
			s.dir = treesFolder + t.id + "/"
		}
		t.states[ref.Task] = s
		list = append(list, s)
	}
	for _, s := range list {
		i, found := slices.BinarySearchFunc(t.tasks, s.rec.Ref.Task,
			func(task perdure.Task, id perdure.TaskID) int { return cmp.Compare(task.ID, id) })
		if found {
			s.finish(&t.tasks[i], list)
		}
	}
	nameHistory(list)
	return nil
}

// inlineStates reports whether the states of the tree fit into the records of their
// tasks: they have only variables, and no long ones.
func (t *exportTree) inlineStates() bool {
	for _, s := range t.states {
		long := slices.ContainsFunc(s.rec.Versions,
			func(v perdure.VersionRecord) bool { return len(v.Value) > perdure.MaxInlineBytes })
		if len(s.muts) > 0 || len(s.checks) > 0 || long {
			return false
		}
	}
	return true
}

// writeStates writes the states of a tree with their checkpoints and files.
func (x *exporter) writeStates(t *exportTree) error {
	for i := range t.tasks {
		task := &t.tasks[i]
		s := t.states[task.ID]
		if s == nil {
			continue
		}
		node, below := t.names[task.ID].node, map[perdure.TaskID]*stateExport(nil)
		if task.ID == t.Root {
			node, below = "", t.states
		}
		x.report.States++
		if err := x.writeJSON(s.dir+stateFile, s.doc(t.id, node, task.State)); err != nil {
			return err
		}
		if err := x.writeChecks(t, s, below, t.names[task.ID].id); err != nil {
			return err
		}
	}
	return nil
}

// writeChecks writes the checkpoints of a state, with the variables of the states
// below, and then the files of long values.
func (x *exporter) writeChecks(t *exportTree, s *stateExport, below map[perdure.TaskID]*stateExport,
	task string) error {
	for i := range s.checks {
		c := &s.rec.Checkpoints[i]
		d := snapshotDoc{ID: s.checks[i].ID, Name: c.Name, Time: c.Time, Task: task, State: s.at(int64(c.ID)),
			Tasks: make(map[string]json.RawMessage)}
		for id, other := range below {
			if other == s {
				continue
			}
			if vars := other.at(int64(c.ID)); string(vars) != "{}" {
				d.Tasks[t.names[id].node] = vars
			}
		}
		if err := x.writeJSON(s.dir+checksFolder+"/"+d.ID+".json", d); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(s.files) {
		if err := x.write(name, s.files[name]); err != nil {
			return err
		}
	}
	return nil
}

// maxFileName is the longest name of a state that becomes the name of its folder.
const maxFileName = 100

var filePattern = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// folderOf returns the name of a state if it can be a folder, else its ID.
func (s *stateExport) folderOf(name string) string {
	if len(name) <= maxFileName && filePattern().MatchString(name) {
		return name
	}
	return s.id
}

// otherStates writes the states that belong to no tree.
func (x *exporter) otherStates(ctx context.Context) error {
	infos, err := x.store.States(ctx, "")
	if err != nil {
		return err
	}
	var list []*stateExport
	for i := range infos {
		s, err := x.newStateExport(ctx, infos[i].Ref, nil)
		if errors.Is(err, perdure.ErrNotFound) || err == nil && s.rec.ExpiresAt != nil && !s.rec.ExpiresAt.After(s.now) {
			continue // expired
		}
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	for _, s := range list {
		file := stateFile
		switch ref := &s.rec.Ref; ref.Scope {
		case perdure.ScopeGlobal:
			s.dir, file = rlmFolder, globalFile[len(rlmFolder):]
		case perdure.ScopeSession:
			s.dir = sessionsDir + s.folderOf(ref.Session) + "/"
		case perdure.ScopeTemporary, perdure.ScopeTree:
			s.dir = tempFolder + s.folderOf(ref.Name) + "/"
		}
		nameHistory([]*stateExport{s})
		x.report.States++
		if err := x.writeJSON(s.dir+file, s.doc("", "", "")); err != nil {
			return err
		}
		if err := x.writeChecks(nil, s, nil, ""); err != nil {
			return err
		}
	}
	return nil
}

// ExportState writes one state as a document of its own, part by part: no copy of the
// document is in memory.
func ExportState(ctx context.Context, store *perdure.Store, ref perdure.StateRef, w io.Writer) error {
	x := newExporter(store)
	var names map[perdure.TaskID]taskName
	var node string
	var tree perdure.TreeID
	var task perdure.Task
	if ref.Scope == perdure.ScopeTree {
		t, err := store.Tree(ctx, ref.Tree)
		if err != nil {
			return err
		}
		list, err := treeTasks(ctx, store, ref.Tree, true)
		if err != nil {
			return err
		}
		tree, names = t.ID, x.reserveTasks(list)
		x.reserveWanted(names)
		x.assignTasks(names)
		id := cmp.Or(ref.Task, t.Root)
		if id != t.Root {
			node = names[id].node
		}
		if task, err = store.Task(ctx, id); err != nil {
			return err
		}
	}
	if err := x.reserveStates(ctx, tree); err != nil {
		return err
	}
	s, err := x.newStateExport(ctx, ref, names)
	if errors.Is(err, perdure.ErrNotFound) && tree != "" {
		s, err = x.unwrittenState(ctx, ref, &task, names)
	}
	if err != nil {
		return err
	}
	s.finish(&task, []*stateExport{s})
	nameHistory([]*stateExport{s})
	return s.stream(w, string(tree), node, task.State)
}
