package aiwg

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/schemas"
)

// KindIPC is the kind of trees of one task each, which clients of the socket of
// the layout's daemon submitted.
const KindIPC = "ipc"

// Record returns the root task of a tree of [KindIPC] as daemon/tasks.json has
// it: the record that an export shows, with the metadata that the client gave
// word for word.
func Record(ctx context.Context, store *perdure.Store, tree *perdure.Tree) (json.RawMessage, error) {
	if tree.Kind != KindIPC {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read task", Msg: fmt.Sprintf("tree %q was not submitted over the socket", tree.ID)}
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
var metadataSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	const name = "tasks-file.json"
	text, err := schemas.FS.ReadFile(name)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema:///"+name, doc); err != nil {
		return nil, err
	}
	return c.Compile("schema:///" + name + "#/$defs/task/properties/metadata")
})

// fits tells whether a member of the metadata has the form that the schema
// tasks-file gives it.
func fits(key string, raw json.RawMessage) bool {
	schema, err := metadataSchema()
	if err != nil {
		return false
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	return err == nil && schema.Validate(map[string]any{key: value}) == nil
}
