package tree_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// Parts of a tree's folder that are not nodes are listed with their place, a tree.json
// without a task is not said to be kept, and a strict import refuses both.
func TestPartsThatAreNoNodesAreListed(t *testing.T) {
	t.Parallel()
	const (
		root    = `"node_id":"task-00000001","prompt":"p","status":"queued"`
		dir     = "rlm/trees/tree-0a0b0c0d/"
		version = `{"version":"1.0.0","tree_id":"tree-0a0b0c0d",`
	)
	for name, test := range map[string]struct {
		file, text, says string
		line, column     int
		trees            int
	}{
		"no root": {dir + "tree.json", version + `"status":"running","nodes":{"a":{}}}`, "has no task", 1, 1, 0},
		"null":    {dir + "tree.json", version + `"root_task":null}`, "has no task", 1, 1, 0},
		"number":  {dir + "tree.json", version + `"root_task":5}`, "root_task is not an object", 1, 58, 0},
		"list":    {dir + "tree.json", version + `"root_task":[{` + root + `}]}`, "root_task is not", 1, 58, 0},
		"numeric child": {dir + "tree.json", version + `"root_task":{` + root + `,"children":["x",5]}}`,
			`"5" is not a child`, 1, 132, 1},
		"list as node": {dir + "nodes/task-00000001.json", `[1]`, "a node must be an object", 1, 1, 0},
		"null as node": {dir + "nodes/task-00000001.json", `null`, "a node must be an object", 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			from, _ := unpack(t, &txtar.Archive{Files: []txtar.File{{Name: test.file, Data: []byte(test.text)}}})
			r := must[*tree.Report](t)(tree.Import(t.Context(), s, tree.ImportConfig{Path: from, Strict: true}))
			if !r.Refused {
				t.Errorf("a strict import is not refused: %+v", r)
			}
			r = importFrom(t, s, from)
			found := notes(r, tree.NotRead, test.says)
			if len(found) != 1 || found[0].Line != test.line || found[0].Column != test.column || r.Trees != test.trees {
				t.Errorf("%d trees, want %d; notes %+v", r.Trees, test.trees, r.Notes)
			}
			if kept := notes(r, tree.Kept, ""); len(kept) > 0 && test.trees == 0 {
				t.Errorf("said to be kept: %+v", kept)
			}
		})
	}
}
