package tree_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// TestMutationsNameTheirTask: a change that a task makes names the task by its node in an export,
// and still does after an import.
func TestMutationsNameTheirTask(t *testing.T) {
	t.Parallel()
	a, b := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree := must[perdure.Tree](t)(a.CreateTree(t.Context(),
		perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}}))
	session := must[*perdure.Session](t)(a.OpenSession(t.Context(), "test"))
	lease := must[[]*perdure.Lease](t)(session.Claim(t.Context(), perdure.ClaimRequest{Max: 1}))[0]
	must[perdure.Variable](t)(lease.SetVar(t.Context(), lease.Var(),
		perdure.VarSpec{Name: "found", Value: json.RawMessage(`1`)}))
	if err := lease.Complete(t.Context(), perdure.Result{Text: "done"}); err != nil {
		t.Fatal(err)
	}
	first := exportTo(t, a)
	validAll(t, first)
	importFrom(t, b, first)
	name := "rlm/trees/" + string(tree.ID) + "/state.json"
	for _, dir := range []string{first, exportTo(t, b)} {
		if text := content(t, dir)[name]; !strings.Contains(text, `"task_node_id": "`+lease.Task.Node.String()+`"`) {
			t.Errorf("no change names %s:\n%s", lease.Task.Node, text)
		}
	}
}
