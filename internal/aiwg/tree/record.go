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
	"github.com/perdure/perdure/internal/text/jsontree"
)

// KindIPC is the kind of a tree whose only task was submitted over the socket of
// the .aiwg daemon.
const KindIPC = "ipc"

// Record returns the root task of a tree of [KindIPC] as a record of
// daemon/tasks.json, with the metadata exactly as the client submitted it.
func Record(ctx context.Context, store *perdure.Store, tree *perdure.Tree) (json.RawMessage, error) {
	if tree.Kind != KindIPC {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read task",
			Msg: fmt.Sprintf("tree %q was not submitted over the socket", tree.ID)}
	}
	x := newExporter(store)
	x.verbatim = true
	t := &exportTree{Tree: *tree}
	if err := x.reserveNames(ctx, t); err != nil {
		return nil, err
	}
	x.reserveWanted(t.names)
	x.assignNames(t)
	if err := x.load(ctx, t); err != nil {
		return nil, err
	}
	for i := range t.tasks {
		if t.tasks[i].ID == t.Root {
			return jsontree.Marshal(x.taskDoc(t, &t.tasks[i]), "")
		}
	}
	return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "read task",
		Msg: fmt.Sprintf("tree %q was removed", tree.ID)}
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
