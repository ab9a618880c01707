package schema_test

import (
	"testing"

	"github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// A document is of the kind that its place or its members say, and of none where no schema is
// published.
func TestKindOf(t *testing.T) {
	t.Parallel()
	loop, err := jsontree.Parse([]byte(`{"loop_id":"a-0a0b0c0d","status":"running","iteration":1,"max_iterations":3,
		"version":"2.0.0","objective":"x"}`), jsontree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ralph/loops/a/state.json":                         schema.KindOf("state.json", loop),
		"ralph/loops/a/iterations/iteration-001.json":      "",
		"ralph/loops/a/checkpoints/iteration-001.json.gz":  "loop-checkpoint",
		"elsewhere/iteration-001.json":                     schema.KindOf("x.json", loop),
		"ralph/loops/a/iterations/iteration-001.json.gz":   "",
		"rlm/trees/tree-00000001/nodes/task-00000001.json": "task-record",
	} {
		if got := schema.KindOf(name, loop); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if schema.KindOf("x.json", loop) == "" {
		t.Error("the members of a loop's state are not known")
	}
	earlier, err := jsontree.Parse([]byte(`{"loop_id":"a","status":"running","iterations":[{"n":1}]}`), jsontree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := schema.KindOf("ralph/loops/a/state.json", earlier); got != "loop-state" {
		t.Errorf("a state of a loop with a member iterations is of kind %q", got)
	}
}
