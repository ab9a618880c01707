package perdure_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// A tree can begin with variables, also with large ones; one that cannot be set means no tree.
func TestTreeBeginsWithVariables(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	large, err := json.Marshal(strings.Repeat("x", 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	spec := perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "go on"}, Vars: []perdure.VarSpec{
		{Name: "small", Value: json.RawMessage(`{"n":1}`), Cause: perdure.Cause{Source: "tree-11111111"}},
		{Name: "large", Value: large}}}
	tree, err := s.CreateTree(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: tree.Root}
	for name, want := range map[string]string{"small": `{"n":1}`, "large": string(large)} {
		if v, err := s.Var(t.Context(), ref, name); err != nil || string(v.Value) != want {
			t.Errorf("%s: %.80s, %v", name, v.Value, err)
		}
	}
	spec.Vars = append(spec.Vars, perdure.VarSpec{Name: "Final", Value: json.RawMessage(`1`)})
	if _, err := s.CreateTree(t.Context(), spec); perdure.CodeOf(err) != perdure.CodeInvalid {
		t.Errorf("Final: %v", err)
	}
	if trees, err := s.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) != 1 {
		t.Errorf("%d trees, %v", len(trees), err)
	}
}
