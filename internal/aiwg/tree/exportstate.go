package tree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
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

// stateExport is a state about to be written.
type stateExport struct {
	rec   perdure.StateRecord
	extra stateExtra
	id    string
	dir   string // of the layout, where its files go; "" for one document
	names map[perdure.TaskID]taskName
	// muts are the mutations that are shown.
	muts   []perdure.MutationRecord
	checks []checkDoc
	ids    map[int64]string // of mutations and checkpoints, by number
	order  map[perdure.MutationID]int
	final  *perdure.VersionRecord     // of a task that completed without setting it
	files  map[string]json.RawMessage // values by the names of their files
	now    time.Time
}

// newStateExport reads a state.
func (x *exporter) newStateExport(ctx context.Context, ref perdure.StateRef, names map[perdure.TaskID]taskName) (
	*stateExport, error) {
	rec, err := x.store.StateRecord(ctx, ref)
	if err != nil {
		return nil, err
	}
	s := &stateExport{rec: rec, names: names, ids: make(map[int64]string), order: make(map[perdure.MutationID]int),
		files: make(map[string]json.RawMessage), now: time.Now()}
	if rec.Extra != nil {
		if err := json.Unmarshal(rec.Extra, &s.extra); err != nil {
			return nil, err
		}
	}
	s.id = x.stateNames.hex(x.states[rec.ID], rec.ID.String(), "state-")
	for i := range rec.Mutations {
		if rec.Mutations[i].Foreign != perdure.ImportOnly {
			s.muts = append(s.muts, rec.Mutations[i])
		}
	}
	slices.SortFunc(s.rec.Versions, func(a, b perdure.VersionRecord) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return s, nil
}

// finish makes Final of a task that completed what its result is, if the task
// did not set it: Final is null only until the work is done.
func (s *stateExport) finish(task *perdure.Task) {
	for i := range s.rec.Versions {
		v := &s.rec.Versions[i]
		if v.Dead != 0 || v.Name != perdure.VarFinal || string(v.Value) != "null" || task.State != perdure.Completed {
			continue
		}
		final := *v
		final.Value, final.Type = mustJSON(task.Result), perdure.VarText
		final.Source, final.UpdatedAt = s.names[task.ID].id, task.CompletedAt
		s.final = &final
	}
}

// nameHistory names mutations and checkpoints, and numbers them from 1 on in
// the order they have across the states.
func nameHistory(states []*stateExport) {
	var numbers []int64
	for _, s := range states {
		taken := newNames()
		for i := range s.muts {
			s.ids[int64(s.muts[i].ID)] = taken.own(s.muts[i].Foreign)
		}
		for i := range s.rec.Checkpoints {
			s.ids[int64(s.rec.Checkpoints[i].ID)] = taken.own(s.rec.Checkpoints[i].Foreign)
		}
		for i := range s.muts {
			n := int64(s.muts[i].ID)
			s.ids[n] = taken.hex(s.ids[n], s.muts[i].ID.String(), "mut-")
			numbers = append(numbers, n)
		}
		for i := range s.rec.Checkpoints {
			n := int64(s.rec.Checkpoints[i].ID)
			s.ids[n] = taken.hex(s.ids[n], s.rec.Checkpoints[i].ID.String(), "ckpt-")
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for _, s := range states {
		for i := range s.rec.Checkpoints {
			c := &s.rec.Checkpoints[i]
			at, _ := slices.BinarySearch(numbers, int64(c.ID))
			d := checkDoc{ID: s.ids[int64(c.ID)], Name: c.Name, Time: c.Time, Description: c.Description, Sequence: at + 1}
			if s.dir != "" {
				d.Path = layoutName + "/" + s.dir + checksFolder + "/" + d.ID + ".json"
			} else {
				d.State = mustJSON(s.at(int64(c.ID)))
			}
			s.checks = append(s.checks, d)
		}
		for i := range s.muts {
			at, _ := slices.BinarySearch(numbers, int64(s.muts[i].ID))
			s.order[s.muts[i].ID] = at + 1
		}
	}
}

// lives tells whether a version is there now.
func (s *stateExport) lives(v *perdure.VersionRecord) bool {
	return v.Dead == 0 && (v.Metadata.ExpiresAt == nil || v.Metadata.ExpiresAt.After(s.now))
}

// living are the variables as they are.
func (s *stateExport) living() json.RawMessage { return s.object(s.lives, s.final) }

// at are the variables as they were at an instant.
func (s *stateExport) at(number int64) json.RawMessage {
	return s.object(func(v *perdure.VersionRecord) bool {
		return int64(v.Version) < number && (v.Dead == 0 || int64(v.Dead) >= number)
	}, nil)
}

// object writes variables by name; the long ones go to files where the state has
// a folder. final, when there is one, stands for a Final that is null.
func (s *stateExport) object(which func(*perdure.VersionRecord) bool, final *perdure.VersionRecord) json.RawMessage {
	out := []byte{'{'}
	for i := range s.rec.Versions {
		v := &s.rec.Versions[i]
		if !which(v) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, mustJSON(v.Name)...), ':')
		if v.Name == perdure.VarFinal && string(v.Value) == "null" {
			if final == nil {
				out = append(out, "null"...)
				continue
			}
			v = final
		}
		out = append(out, mustJSON(s.variable(v))...)
	}
	return append(out, '}')
}

func (s *stateExport) variable(v *perdure.VersionRecord) any {
	d := variableDoc{Name: v.Name, Value: v.Value, Type: v.Type, Description: v.Description, Source: v.Source,
		CreatedAt: v.CreatedAt,
		UpdatedAt: v.UpdatedAt, Accessed: v.Accessed}
	m := variableMeta{ReadOnly: v.Metadata.ReadOnly, Scope: s.rec.Ref.Scope, TTL: v.Metadata.TTLSeconds,
		ExpiresAt: v.Metadata.ExpiresAt}
	if path := s.file(v.Name, v.Value, v.Dead == 0); path != "" {
		d.Value, d.Type, m.ValueType = mustJSON(fileScheme+path), perdure.VarFilePath, v.Type
	}
	fields, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if v.Dead == 0 {
		for key, value := range s.extra.Variables[v.Name] {
			if rest, ok := cutMetadata(key); ok {
				meta[rest] = value
			} else {
				fields[key] = value
			}
		}
	}
	d.Metadata = extended[variableMeta]{doc: m, more: meta}
	return extended[variableDoc]{doc: d, more: fields}
}

func cutMetadata(key string) (string, bool) {
	const prefix = "metadata."
	if len(key) > len(prefix) && key[:len(prefix)] == prefix {
		return key[len(prefix):], true
	}
	return "", false
}

// file names the file of a value that is too long to stand in a document of the
// layout, "" for others.
func (s *stateExport) file(name string, value json.RawMessage, living bool) string {
	if s.dir == "" || len(value) <= perdure.MaxInlineBytes {
		return ""
	}
	path := s.dir + varsFolder + name + ".json"
	if !living {
		sum := sha256.Sum256(value)
		path = s.dir + varsFolder + name + "-" + hex.EncodeToString(sum[:6]) + ".json"
	}
	s.files[path] = value
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
			d.Metadata.To = s.instant(m.To)
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

// instant is what an export calls a checkpoint or mutation of the store.
func (s *stateExport) instant(to string) string {
	var c perdure.CheckpointID
	var m perdure.MutationID
	switch {
	case c.UnmarshalText([]byte(to)) == nil && s.ids[int64(c)] != "":
		return s.ids[int64(c)]
	case m.UnmarshalText([]byte(to)) == nil && s.ids[int64(m)] != "":
		return s.ids[int64(m)]
	}
	return to
}

// doc is the document of a state.
func (s *stateExport) doc(tree, node string, state perdure.State) any {
	vars := s.living()
	m := stateMeta{CreatedAt: s.rec.CreatedAt, UpdatedAt: s.rec.UpdatedAt, Mutations: len(s.muts),
		Checkpoints: len(s.checks),
		Compacted:   s.rec.Compacted, Status: "incomplete", Scope: s.rec.Ref.Scope, Name: s.rec.Ref.Name, Node: node,
		ExpiresAt: s.rec.ExpiresAt}
	for i := range s.rec.Versions {
		v := &s.rec.Versions[i]
		if !s.lives(v) {
			continue
		}
		m.Variables++
		m.Bytes += int64(len(v.Value))
		if v.Name == perdure.VarFinal && string(v.Value) != "null" {
			m.Status = "complete"
		} else if v.Name == perdure.VarFinal && s.final != nil {
			m.Bytes += int64(len(s.final.Value) - len(v.Value))
		}
	}
	switch {
	case m.Status == "complete":
	case state == perdure.Completed:
		m.Status = "complete"
	case state == perdure.Failed:
		m.Status = "error"
	case state == perdure.Cancelled:
		m.Status = "cancelled"
	}
	d := stateDoc{Version: "1.0.0", ID: s.id, Session: s.rec.Ref.Session, Tree: tree, Variables: vars,
		History: historyDoc{s.mutations(), s.checks}, Metadata: extended[stateMeta]{doc: m, more: s.extra.Metadata}}
	if d.History.Checkpoints == nil {
		d.History.Checkpoints = []checkDoc{}
	}
	if s.rec.Ref.Scope != perdure.ScopeTree {
		d.Tree = s.extra.Tree
	}
	if d.Session == "" {
		d.Session = s.extra.Session
	}
	return extended[stateDoc]{doc: d, more: s.extra.Fields}
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
		i, found := slices.BinarySearchFunc(t.tasks, ref.Task,
			func(task perdure.Task, id perdure.TaskID) int { return cmp.Compare(task.ID, id) })
		if found {
			s.finish(&t.tasks[i])
		}
		list = append(list, s)
	}
	nameHistory(list)
	return nil
}

// plain tells that nothing is known of the tree's states but variables, which all
// stand in the record of their task.
func (t *exportTree) plain() bool {
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
		node := t.names[task.ID].node
		below := t.states
		if task.ID == t.Root {
			node = ""
		} else {
			below = nil
		}
		if err := x.writeState(s.dir+stateFile, s.doc(t.id, node, task.State)); err != nil {
			return err
		}
		if err := x.writeChecks(t, s, below, t.names[task.ID].id); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) writeState(name string, doc any) error {
	x.report.States++
	return x.writeJSON(name, doc)
}

// writeChecks writes the snapshots of a state, those of a tree with the states
// of its tasks, and then the values that are in files.
func (x *exporter) writeChecks(t *exportTree, s *stateExport, below map[perdure.TaskID]*stateExport,
	task string) error {
	for i := range s.checks {
		c := &s.rec.Checkpoints[i]
		d := snapshotDoc{ID: s.checks[i].ID, Name: c.Name, Time: c.Time, Task: task, State: s.at(int64(c.ID))}
		for id, other := range below {
			if other == s {
				continue
			}
			if vars := other.at(int64(c.ID)); string(vars) != "{}" {
				if d.Tasks == nil {
					d.Tasks = make(map[string]json.RawMessage)
				}
				d.Tasks[t.names[id].node] = vars
			}
		}
		if err := x.writeJSON(s.dir+checksFolder+"/"+d.ID+".json", d); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(s.files) {
		if err := x.write(name, append(slices.Clip(s.files[name]), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// maxFileName is the length of a name that a file is called by as it is. It
// does not stand in the expression: counted repetitions make every start of the
// program slower.
const maxFileName = 100

var filePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
})

// fileName tells whether a file may be called by a name as it is.
func fileName(name string) bool { return len(name) <= maxFileName && filePattern().MatchString(name) }

// outside writes the states that are of no tree.
func (x *exporter) outside(ctx context.Context) error {
	infos, err := x.store.States(ctx, "")
	if err != nil {
		return err
	}
	var list []*stateExport
	for i := range infos {
		s, err := x.newStateExport(ctx, infos[i].Ref, nil)
		if errors.Is(err, perdure.ErrNotFound) || err == nil && s.rec.ExpiresAt != nil && !s.rec.ExpiresAt.After(s.now) {
			continue // its time is over
		}
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	for _, s := range list {
		file, owner := stateFile, s.id
		switch ref := &s.rec.Ref; ref.Scope {
		case perdure.ScopeGlobal:
			s.dir, file = rlmFolder, globalFile[len(rlmFolder):]
		case perdure.ScopeSession:
			if fileName(ref.Session) {
				owner = ref.Session
			}
			s.dir = sessionsDir + owner + "/"
		case perdure.ScopeTemporary, perdure.ScopeTree:
			if fileName(ref.Name) {
				owner = ref.Name
			}
			s.dir = tempFolder + owner + "/"
		}
		nameHistory([]*stateExport{s})
		if err := x.writeState(s.dir+file, s.doc("", "", "")); err != nil {
			return err
		}
		if err := x.writeChecks(nil, s, nil, ""); err != nil {
			return err
		}
	}
	return nil
}

// ExportState returns one state as a document that stands alone.
func ExportState(ctx context.Context, store *perdure.Store, ref perdure.StateRef) ([]byte, error) {
	x := newExporter(store)
	t := &exportTree{}
	node := ""
	var state perdure.State
	var whole perdure.Task
	if ref.Scope == perdure.ScopeTree {
		tree, err := store.Tree(ctx, ref.Tree)
		if err != nil {
			return nil, err
		}
		list, err := treeTasks(ctx, store, ref.Tree, true)
		if err != nil {
			return nil, err
		}
		t.id, t.names = string(tree.ID), x.ownTasks(list)
		x.restTasks(t.names)
		if err := x.ownStates(ctx, ref.Tree); err != nil {
			return nil, err
		}
		task := cmp.Or(ref.Task, tree.Root)
		if task != tree.Root {
			node = t.names[task].node
		}
		if whole, err = store.Task(ctx, task); err != nil {
			return nil, err
		}
	}
	if ref.Scope != perdure.ScopeTree {
		if err := x.ownStates(ctx, ""); err != nil {
			return nil, err
		}
	}
	s, err := x.newStateExport(ctx, ref, t.names)
	if err != nil {
		return nil, err
	}
	state = whole.State
	s.finish(&whole)
	nameHistory([]*stateExport{s})
	return encode(s.doc(t.id, node, state), "  ")
}
