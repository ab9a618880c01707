package tree_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// unwritten is a state document of a tree without a state in the store.
type unwritten struct {
	ID        string                                     `json:"state_id"`
	Variables map[string]struct{ Value json.RawMessage } `json:"variables"`
	History   struct {
		Mutations []struct {
			Name string `json:"variable_name"`
		} `json:"mutations"`
		Checkpoints []struct {
			Name  string                     `json:"name"`
			State map[string]json.RawMessage `json:"state"`
		} `json:"checkpoints"`
	} `json:"history"`
	Metadata struct {
		Status string `json:"completion_status"`
	} `json:"metadata"`
}

// Trees without a state are exported with the state that a new tree begins with: those that an
// earlier version created, those that were imported, and tasks that changed no variable. Each
// document comes in again without a correction.
func TestUnwrittenStates(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		long := strings.Repeat("find it ", 5000)
		old := must[perdure.Tree](t)(s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", LateState: true,
			Root: perdure.TaskSpec{Prompt: long}}))
		ids := must[[]perdure.TaskID](t)(s.Submit(t.Context(), old.Root, perdure.TaskSpec{Prompt: "a part"}))
		root := perdure.StateRef{Scope: perdure.ScopeTree, Tree: old.ID}
		checkUnwritten(t, s, root, long, "incomplete")
		checkUnwritten(t, s, perdure.StateRef{Scope: perdure.ScopeTree, Tree: old.ID, Task: ids[0]}, "a part", "incomplete")
		must[int64](t)(s.CancelTree(t.Context(), old.ID, ""))
		checkUnwritten(t, s, root, long, "cancelled")

		file := filepath.Join(t.TempDir(), "tasks.json")
		text := `{"version":1,"tasks":[{"id":"task-0009","state":"completed","prompt":"of others","result":"seen",` +
			`"created_at":"2026-01-01T00:00:00Z"}]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		importFrom(t, s, file)
		records := must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{}))
		doc := checkUnwritten(t, s, perdure.StateRef{Scope: perdure.ScopeTree, Tree: records[0].ID}, "of others", "complete")
		if string(doc.Variables["Final"].Value) != `"seen"` {
			t.Errorf("Final is %s", doc.Variables["Final"].Value)
		}
	})
}

// checkUnwritten exports the state of a task of a tree, and imports it into another store.
func checkUnwritten(t *testing.T, s *perdure.Store, ref perdure.StateRef, prompt, status string) (doc unwritten) {
	t.Helper()
	text := stateText(t, s, ref)
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	want := must[[]byte](t)(json.Marshal(prompt))
	first := doc.History.Checkpoints
	mutations := 2
	if status == "complete" {
		mutations++ // Final becomes the result
	}
	if len(doc.Variables) != 2 || !bytes.Equal(doc.Variables["prompt"].Value, want) ||
		len(doc.History.Mutations) != mutations ||
		len(first) != 1 || first[0].Name != "initial_state" || len(first[0].State) != 2 || doc.Metadata.Status != status {
		t.Errorf("state of %v: %.2000s", ref, text)
	}
	if again := stateText(t, s, ref); !bytes.Equal(again, text) {
		t.Errorf("another export differs:\n%.2000s", again)
	}
	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r := must[*tree.Report](t)(tree.Import(t.Context(), other, tree.ImportConfig{Path: file, State: true,
		Ref: perdure.StateRef{Scope: perdure.ScopeSession, Session: "s"}}))
	expected := len(notes(r, tree.Corrected, "the scope is session")) // as the import was asked to
	if r.States != 1 || len(r.Notes) != expected {
		t.Errorf("%+v", r)
	}
	return doc
}
