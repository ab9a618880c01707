package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/perdure/perdure"
)

// A task has its variables and its checkpoints in its metadata, from its creation.
func TestTaskHasItsState(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		tree, err := f.store.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run",
			Root: perdure.TaskSpec{Prompt: "find", Metadata: json.RawMessage(`{"mine":1}`)}})
		if err != nil {
			t.Fatal(err)
		}
		ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
		if _, err := f.store.SetVar(t.Context(), ref, perdure.VarSpec{Name: "n", Value: []byte("7")}); err != nil {
			t.Fatal(err)
		}
		got, err := f.client.Task(t.Context(), tree.Root)
		if err != nil || len(got.Variables) != 3 || string(got.Variables["n"].Value) != "7" ||
			string(got.Variables["Final"].Value) != "null" || string(got.Variables["prompt"].Value) != `"find"` ||
			len(got.Checkpoints) != 1 || got.Checkpoints[0].Name != "initial_state" || string(got.Metadata) != `{"mine":1}` {
			t.Fatalf("task %+v, %v", got, err)
		}
		res, err := f.http.Get("http://localhost/v1/tasks/" + tree.Root.String())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		if err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", raw, err)
		}
		var wire struct {
			Metadata struct {
				State       map[string]json.RawMessage `json:"rlm_state"`
				Checkpoints []json.RawMessage          `json:"checkpoints"`
				Mine        int                        `json:"mine"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &wire); err != nil || len(wire.Metadata.State) != 3 ||
			len(wire.Metadata.Checkpoints) != 1 || wire.Metadata.Mine != 1 {
			t.Errorf("%s, %v", raw, err)
		}
	})
}
