package rpc_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/schematest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// exported is daemon/tasks.json of an export.
func exported(t testing.TB, s *perdure.Store, trees ...perdure.TreeID) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".aiwg")
	if _, err := aiwgtree.Export(context.WithoutCancel(t.Context()), s,
		aiwgtree.ExportConfig{Dir: dir, Trees: trees}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "daemon", "tasks.json"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// oddMetadata are what clients give although the layout has another meaning for
// it, or nearly the right one.
func oddMetadata() []string {
	return []string{
		`{"tree_id":"tree-12345678","node_id":"task-a1b2c3d4","parent_id":"task-0009","depth":2,"position":1}`,
		`{"tree_id":"tree-1234567","node_id":"task-0001","parent_id":"parent","depth":-1,"position":1.5}`,
		`{"tree_id":null,"node_id":7,"parent_id":null,"depth":null,"position":"1"}`,
		`{"depth":1e3,"position":99999999999999999999}`,
		`{"decomposition_strategy":"parallel","merge_strategy":"vote","failure_policy":"fail"}`,
		`{"decomposition_strategy":"none","merge_strategy":null,"failure_policy":["fail"]}`,
		`{"context_reference":{"type":"slice","source":null,"size_tokens":5},"cost_tracking":{"input_tokens":1,` +
			`"output_tokens":2,"total_cost_usd":0.5}}`,
		`{"context_reference":{"type":"all"},"cost_tracking":{"input_tokens":1,"output_tokens":-2,"total_cost_usd":0.5}}`,
		`{"context_reference":{"Type":"slice"},"cost_tracking":{"Input_Tokens":1,"output_tokens":2,"total_cost_usd":1}}`,
		`{"context_reference":{"type":"full","size_tokens":null},"cost_tracking":{"input_tokens":1,"output_tokens":2,` +
			`"cached_tokens":null,"total_cost_usd":1}}`,
		`{"context_reference":"full","cost_tracking":[]}`,
		`{"checkpoints":[{"checkpoint_id":"ckpt-0123abcd","name":"n","snapshot_path":"p"}]}`,
		`{"checkpoints":[{"checkpoint_id":"ckpt-1700000000000","name":"n","snapshot_path":"p"}]}`,
		`{"checkpoints":[{"checkpoint_id":"ckpt-0123abcd","name":"n"}]}`, `{"checkpoints":null}`, `{"checkpoints":[null]}`,
		`{"rlm_state":{"Final":null,"x":{"name":"x","value":null,"type":"null"}}}`,
		`{"rlm_state":{"Final":{"name":"Final","value":1,"type":"number"},"x":3}}`,
		`{"rlm_state":{"x":{"name":"x y","value":1,"type":"number"}}}`, `{"rlm_state":{"x":{"name":"x","type":"number"}}}`,
		`{"rlm_state":{"x":{"Name":"x","value":1,"type":"number"}}}`, `{"rlm_state":[]}`, `{"rlm_state":null}`,
		`{"rlm_state":{"x":{"name":"x","value":1,"type":"integer"}}}`, `{"rlm_state":{"x":null}}`,
	}
}

// Whatever clients give, an export is valid under its schema.
func TestExportIsValid(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c, schema := b.dial(), schematest.Published(t, "tasks-file")
	for _, meta := range oddMetadata() {
		made := c.call("task.submit", obj{"prompt": "p", "metadata": json.RawMessage(meta)})
		if err := schema.ValidateJSON(exported(t, b.store, perdure.TreeID(made.TreeID))); err != nil {
			t.Errorf("%s: %v", meta, err)
		}
	}
}

func FuzzExport(f *testing.F) {
	for _, meta := range oddMetadata() {
		f.Add(meta)
	}
	schema := schematest.Published(f, "tasks-file")
	store, err := perdure.Open(context.Background(), perdure.Config{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	s, err := rpc.New(rpc.Config{Store: store})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, meta string) {
		if !json.Valid([]byte(meta)) || !utf8.ValidString(meta) {
			t.Skip()
		}
		var a struct {
			Result struct{ TreeID perdure.TreeID }
			Error  *rpc.Error
		}
		line := `{"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"p","metadata":` +
			strings.ReplaceAll(meta, "\n", " ") + `}}`
		if err := json.Unmarshal(s.AnswerForTest(t.Context(), []byte(line)), &a); err != nil {
			t.Fatal(err)
		}
		if a.Error != nil {
			if a.Error.Code != rpc.CodeInvalidParams {
				t.Errorf("refused with %+v", a.Error)
			}
			t.Skip()
		}
		if err := schema.ValidateJSON(exported(t, store, a.Result.TreeID)); err != nil {
			t.Errorf("%s: %v", meta, err)
		}
	})
}

// Tasks that a client connects by their metadata, as the executors of the layout
// do, are one tree when the export is imported.
func TestConnectedTasksBecomeATree(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c := b.dial()
	root := c.call("task.submit",
		obj{"prompt": "all", "metadata": obj{"tree_id": "tree-12345678", "node_id": "task-a0000000", "parent_id": nil,
			"depth": 0}}).TaskID
	for i, node := range []string{"task-a0000001", "task-a0000002"} {
		c.call("task.submit", obj{"prompt": "part", "metadata": obj{"tree_id": "tree-12345678", "node_id": node,
			"parent_id": root, "depth": 1, "position": i}})
	}
	dir := filepath.Join(t.TempDir(), ".aiwg")
	if _, err := aiwgtree.Export(t.Context(), b.store, aiwgtree.ExportConfig{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	if r, err := aiwgtree.Import(t.Context(), other, aiwgtree.ImportConfig{Path: dir}); err != nil || r.Trees != 1 ||
		r.Tasks != 3 || len(r.Notes) > 0 {
		t.Fatalf("import: %+v, %v", r, err)
	}
	tree, err := other.Tree(t.Context(), "tree-12345678")
	if err != nil {
		t.Fatal(err)
	}
	if below, err := other.Tasks(t.Context(), perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root}); err != nil ||
		len(below) != 2 {
		t.Errorf("below the root are %d tasks, %v", len(below), err)
	}
}
