package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	schemas "github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// KindIPC is the kind of a tree whose only task was submitted over the socket of
// the .aiwg daemon.
const KindIPC = "ipc"

// Record returns a task as a record of daemon/tasks.json for clients of the socket: the
// metadata is exactly as the client submitted it, without members that only have
// defaults, and the IDs and the state are those of the store. The tree is of [KindIPC],
// or it was imported.
func Record(ctx context.Context, store *perdure.Store, tree *perdure.Tree, task *perdure.Task) (json.RawMessage,
	error) {
	if !Shown(tree) {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read task",
			Msg: fmt.Sprintf("tree %q was neither submitted over the socket nor imported", tree.ID)}
	}
	x := newExporter(store)
	x.verbatim = true
	t := &exportTree{Tree: *tree, id: string(tree.ID), tasks: []perdure.Task{*task}, single: tree.Kind == KindIPC,
		names: map[perdure.TaskID]taskName{task.ID: nameOf(task)}, states: make(map[perdure.TaskID]*stateExport)}
	if tree.Kind != KindIPC {
		var config struct {
			Record *treeRecord `json:"perdure_import"`
		}
		if err := json.Unmarshal(tree.Config, &config); err != nil {
			return nil, fmt.Errorf("read tree %q: %w", tree.ID, err)
		}
		t.record = config.Record
		t.single = config.Record != nil && config.Record.ID == "" && config.Record.GivenID == "" && task.Parent == 0
	}
	if task.Parent != 0 {
		t.names[task.Parent] = taskName{id: task.Parent.String()}
	}
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: task.ID}
	s, err := x.newStateExport(ctx, ref, t.names)
	if err == nil {
		s.finish(task, []*stateExport{s})
		t.states[task.ID] = s
		nameHistory([]*stateExport{s})
	} else if !errors.Is(err, perdure.ErrNotFound) {
		return nil, err
	}
	return jsontree.Marshal(x.taskDoc(t, task), "")
}

// Tasks returns the tasks of a tree by ID, without their long members.
func Tasks(ctx context.Context, store *perdure.Store, tree perdure.TreeID) ([]perdure.Task, error) {
	return treeTasks(ctx, store, tree, true)
}

// Shown reports whether clients of the socket see the tasks of a tree: those that were
// submitted there, and imported ones that are not loops.
func Shown(tree *perdure.Tree) bool {
	return tree.Kind == KindIPC || tree.Kind == perdure.KindRecord && !loops.Belongs(tree)
}

// nameOf returns the IDs of a task for clients: that of the store, and the node's in its file.
func nameOf(task *perdure.Task) taskName {
	n := taskName{id: task.ID.String(), node: task.Node.String()}
	if f := foreignOf(task.Metadata); f != nil && f.Node != "" {
		n.node = f.Node
	}
	return n
}

// plain returns the metadata of a task without a tree for clients: what the client
// submitted, and the members that differ from their defaults.
func (m *metaDoc) plain(more map[string]json.RawMessage) (any, error) {
	own, fresh := make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	unset := metaDoc{Strategy: perdure.Parallel, Policy: perdure.PolicyPartial, Context: perdure.ContextRef{Type: "none"}}
	err := errors.Join(json.Unmarshal(jsontree.MustMarshal(m), &own),
		json.Unmarshal(jsontree.MustMarshal(unset), &fresh))
	for key, value := range fresh {
		if sameValue(value, own[key]) {
			delete(own, key)
		}
	}
	for key, value := range more { // the client's has precedence
		own[key] = value
	}
	return own, err
}

// submitted returns the reserved members of the metadata for which the value of the
// client is written instead of perdure's: only for a single task. In files, members
// that the schema does not allow are renamed in more instead.
func (x *exporter) submitted(t *exportTree, more map[string]json.RawMessage) map[string]bool {
	if t.Kind != KindIPC || !t.single {
		return nil
	}
	over := make(map[string]bool)
	for _, key := range sortedKeys(more) {
		switch {
		case !reserved(key):
		case x.verbatim || fits(key, more[key]):
			over[key] = true
		default:
			more[key+"_as_given"] = more[key]
			delete(more, key)
		}
	}
	return over
}

// metadataSchema is the part of the published schema tasks-file for metadata.
var metadataSchema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	const name = "tasks-file.json"
	text, err := schemas.FS.ReadFile(name)
	if err != nil {
		return nil, err
	}
	part := jsonschema.Schema{Ref: "schema:///" + name + "#/$defs/task/properties/metadata"}
	load := func(*url.URL) (*jsonschema.Schema, error) {
		var file jsonschema.Schema
		return &file, json.Unmarshal(text, &file)
	}
	return part.Resolve(&jsonschema.ResolveOptions{BaseURI: "schema:///metadata", Loader: load})
})

// fits reports whether the schema tasks-file allows a member of the metadata.
func fits(key string, raw json.RawMessage) bool {
	schema, err := metadataSchema()
	if err != nil {
		return false
	}
	var value any
	return json.Unmarshal(raw, &value) == nil && schema.Validate(map[string]any{key: value}) == nil
}
