package tree

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure"
	schemas "github.com/perdure/perdure/internal/schema"
)

// KindIPC is the kind of trees of one task each, which clients of the socket of
// the layout's daemon submitted.
const KindIPC = "ipc"

// Record returns the root task of a tree of [KindIPC] as daemon/tasks.json has
// it: the record that an export shows, with the metadata that the client gave
// word for word.
func Record(ctx context.Context, store *perdure.Store, tree *perdure.Tree) (json.RawMessage, error) {
	if tree.Kind != KindIPC {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read task",
			Msg: fmt.Sprintf("tree %q was not submitted over the socket", tree.ID)}
	}
	x := newExporter(store)
	x.verbatim = true
	t := &exportTree{Tree: *tree}
	if err := x.ownNames(ctx, t); err != nil {
		return nil, err
	}
	t.id = x.treeNames.hex(t.id, string(t.ID), "tree-")
	x.restTasks(t.names)
	if err := x.load(ctx, t); err != nil {
		return nil, err
	}
	for i := range t.tasks {
		if t.tasks[i].ID == t.Root {
			return encode(x.taskDoc(t, &t.tasks[i]), "")
		}
	}
	return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "read task", Msg: fmt.Sprintf("tree %q is gone", tree.ID)}
}

// given are the members of the metadata that a client gave a task although the
// layout has a meaning for them. The client's count for a task that stands for
// itself. In files, where others rely on their form, those of another form are
// kept under another name.
func (x *exporter) given(t *exportTree, more map[string]json.RawMessage) map[string]bool {
	if t.Kind != KindIPC || !t.lone {
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

// metadataSchema is what the published schema tasks-file says of metadata.
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

// fits tells whether a member of the metadata has the form that the schema
// tasks-file gives it.
func fits(key string, raw json.RawMessage) bool {
	schema, err := metadataSchema()
	if err != nil {
		return false
	}
	var value any
	return json.Unmarshal(raw, &value) == nil && schema.Validate(map[string]any{key: value}) == nil
}
