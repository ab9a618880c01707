package tree_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// finalState is what a document says of the result of a task.
type finalState struct {
	Variables map[string]struct {
		Value   json.RawMessage `json:"value"`
		Updated time.Time       `json:"updated_at"`
	} `json:"variables"`
	History struct {
		Mutations []struct {
			Name     string          `json:"variable_name"`
			New      json.RawMessage `json:"new_value"`
			Metadata struct {
				Sequence int `json:"sequence"`
			} `json:"metadata"`
		} `json:"mutations"`
		Checkpoints []struct {
			Name     string `json:"name"`
			Path     string `json:"snapshot_path"`
			Sequence int    `json:"sequence"`
		} `json:"checkpoints"`
	} `json:"history"`
	Metadata struct {
		Updated   time.Time `json:"last_updated_at"`
		Mutations int       `json:"mutation_count"`
	} `json:"metadata"`
}

func finalOf(t *testing.T, files map[string]string, name string) (doc finalState) {
	t.Helper()
	if err := json.Unmarshal([]byte(files[name]), &doc); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return doc
}

// The result of a task is in the history of its state, at the time of its end: after what was
// before it in any state of the tree, and before what came later.
func TestResultInHistory(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree := must[perdure.Tree](t)(a.CreateTree(ctx,
		perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "whole"}}))
	session := must[*perdure.Session](t)(a.OpenSession(ctx, "test"))
	claim := func() *perdure.Lease {
		return must[[]*perdure.Lease](t)(session.Claim(ctx, perdure.ClaimRequest{Max: 1}))[0]
	}
	kids := must[[]perdure.TaskID](t)(claim().Spawn(ctx, []perdure.TaskSpec{{Prompt: "part"}}))
	root := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
	below := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: kids[0]}
	complete := func(text string) {
		if err := claim().Complete(ctx, perdure.Result{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	set(t, a, below, "n", "1")
	check(t, a, root, "before")
	complete("the part")
	check(t, a, root, "after")
	complete("the whole")

	dir := exportTo(t, a)
	validAll(t, dir)
	files := content(t, dir)
	of := "rlm/trees/" + string(tree.ID) + "/"
	whole := finalOf(t, files, of+"state.json")
	states := must[[]string](t)(filepath.Glob(filepath.Join(dir, "rlm/states/*/state.json")))
	if len(states) != 1 {
		t.Fatalf("states of tasks: %v", states)
	}
	name := must[string](t)(filepath.Rel(dir, states[0]))
	part := finalOf(t, files, filepath.ToSlash(name))
	for want, doc := range map[string]*finalState{`"the whole"`: &whole, `"the part"`: &part} {
		m := doc.History.Mutations
		last := m[len(m)-1]
		if last.Name != "Final" || string(last.New) != want || string(doc.Variables["Final"].Value) != want ||
			doc.Metadata.Mutations != len(m) || doc.Metadata.Updated.Before(doc.Variables["Final"].Updated) {
			t.Errorf("the history of %s: %+v", want, doc)
		}
	}
	ended := part.History.Mutations[len(part.History.Mutations)-1].Metadata.Sequence
	for _, c := range whole.History.Checkpoints {
		var snapshot struct {
			Tasks map[string]map[string]struct{ Value any }
		}
		if err := json.Unmarshal([]byte(files[c.Path[len(".aiwg/"):]]), &snapshot); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"initial_state": nil, "before": nil, "after": "the part"}[c.Name]
		if len(snapshot.Tasks) != 1 && c.Name != "initial_state" {
			t.Errorf("checkpoint %q covers %d tasks below", c.Name, len(snapshot.Tasks))
		}
		for _, vars := range snapshot.Tasks {
			if vars["Final"].Value != want || (want != nil) != (c.Sequence > ended) {
				t.Errorf("checkpoint %q has Final %v of the part, want %v; sequences %d and %d", c.Name,
					vars["Final"].Value, want, c.Sequence, ended)
			}
		}
	}
	if r := importFrom(t, b, dir); len(r.Notes) > 0 {
		t.Errorf("notes of the import: %v", r.Notes)
	}
	if diff := cmp.Diff(files, content(t, exportTo(t, b))); diff != "" {
		t.Errorf("the second export differs (-first +second):\n%.4000s", diff)
	}
}
