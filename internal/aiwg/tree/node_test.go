package tree_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// absent returns the paths of the values of a that b does not have.
func absent(path string, a, b any) (list []string) {
	switch x := a.(type) {
	case nil: // as if it was missing
	case map[string]any:
		y, _ := b.(map[string]any)
		for key, value := range x {
			list = append(list, absent(path+"."+key, value, y[key])...)
		}
	case []any:
		y, _ := b.([]any)
		for i, value := range x {
			var other any
			if i < len(y) {
				other = y[i]
			}
			list = append(list, absent(fmt.Sprintf("%s[%d]", path, i), value, other)...)
		}
	default:
		if !reflect.DeepEqual(a, b) {
			list = append(list, fmt.Sprintf("%s: %v, exported as %v", path, a, b))
		}
	}
	slices.Sort(list)
	return list
}

func decoded(t testing.TB, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// What the public form of a tree says is in the store where it has a place, and all of it is
// in the export.
func TestPublicTree(t *testing.T) {
	t.Parallel()
	archive := must[*txtar.Archive](t)(txtar.ParseFile("testdata/public_tree.txtar"))
	dir, _ := unpack(t, archive)
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, dir)
	const id = "tree-1f2e3d4c"
	p := must[perdure.Progress](t)(s.Progress(t.Context(), id))
	if p.Usage.CostUSD != 0.109 || p.Usage.InputTokens != 4110 {
		t.Errorf("usage is %+v", p.Usage)
	}
	tree := must[perdure.Tree](t)(s.Tree(t.Context(), id))
	root := must[perdure.Task](t)(s.Task(t.Context(), tree.Root))
	if got := root.CompletedAt.Format("15:04:05"); got != "08:05:00" || root.Result != "The north pump." ||
		root.Context.Source != "logbooks" || root.Merge != "vote" {
		t.Errorf("the root is %+v", root)
	}
	out := exportTo(t, s)
	validAll(t, out)
	name := "rlm/trees/" + id + "/tree.json"
	given := decoded(t, content(t, dir)[name])
	lost := absent("", given, decoded(t, content(t, out)[name]))
	lost = slices.DeleteFunc(lost, func(s string) bool {
		return strings.HasPrefix(s, ".root_task.execution_config.timeout_ms") // less than the schema allows
	})
	if len(lost) > 0 {
		t.Errorf("lost:\n%s", strings.Join(lost, "\n"))
	}
	if n := notes(importFrom(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), out), aiwgtree.Default, ""); len(n) > 0 {
		t.Errorf("an export needs defaults: %+v", n)
	}
}

// A member that other readers would refuse is exported under another name.
func TestPublicTreeMisfits(t *testing.T) {
	t.Parallel()
	dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "rlm/trees/tree-00000001/tree.json", Data: []byte(`{
		"version": "1.0.0", "root_task": {"node_id": "task-00000001", "prompt": "p", "status": "completed",
		"merge_strategy": "toss a coin", "result": {"output": 7, "confidence": 40},
		"timestamps": {"created_at": "2026-01-01T00:00:00", "duration_ms": -1}, "cost": "much"},
		"metadata": {"max_depth": -2, "execution_mode": "wild"}}`)}}})
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, dir)
	out := exportTo(t, s)
	validAll(t, out)
	text := content(t, out)["rlm/trees/tree-00000001/tree.json"]
	for _, want := range []string{`"toss a coin"`, `"confidence_as_given": 40`, `"duration_ms_as_given": -1`,
		`"cost_as_given": "much"`, `"max_depth_as_given": -2`, `"execution_mode_as_given": "wild"`, `"output": "7"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the export has no %s:\n%s", want, text)
		}
	}
}

// A record has precedence over the node of its tree, which adds what the record lacks.
func TestNodeFillsRecord(t *testing.T) {
	t.Parallel()
	dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{
		{Name: "daemon/tasks.json", Data: []byte(`{"version":1,"tasks":[{"id":"task-0001","prompt":"p","state":"completed",
			"createdAt":"2026-01-01T00:00:00Z","completedAt":"2026-01-01T00:00:01Z",
			"metadata":{"tree_id":"tree-00000001","node_id":"task-00000001","parent_id":null}}]}`)},
		{Name: "rlm/trees/tree-00000001/tree.json", Data: []byte(`{"version":"1.0.0","root_task":{"node_id":"task-00000001",
			"prompt":"p","status":"failed","cost":{"input_tokens":3,"total_cost_usd":0.5},
			"context":{"type":"full","source":"book"}}}`)}}})
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r := importFrom(t, s, dir)
	task := must[perdure.Task](t)(s.Task(t.Context(), 1))
	if task.State != perdure.Completed || task.Usage.CostUSD != 0.5 || task.Context.Source != "book" {
		t.Errorf("the task is %+v", task)
	}
	if len(notes(r, aiwgtree.Corrected, "is failed here and completed in its record")) != 1 {
		t.Errorf("notes: %+v", r.Notes)
	}
}

// Values that came in files stay in files, however small they are, with the kind of file.
func TestFilesStayFiles(t *testing.T) {
	t.Parallel()
	dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{
		{Name: "rlm/global-state.json", Data: []byte(`{"version":"1.0.0","state_id":"state-00000001","variables":{
			"list": {"name":"list","value":"file:.aiwg/rlm/list.json","type":"file_path"},
			"story": {"name":"story","value":"file:.aiwg/rlm/story.txt","type":"file_path"},
			"none": {"name":"none","value":null,"type":"null"},
			"plain": {"name":"plain","value":"inline","type":"text"}}}`)},
		{Name: "rlm/list.json", Data: []byte(`[1, 2]`)}, {Name: "rlm/story.txt", Data: []byte("[\"no JSON\"]\n")}}})
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, dir)
	first := exportTo(t, s)
	validAll(t, first)
	files := content(t, first)
	if files["rlm/variables/list.json"] != "[1,2]\n" || files["rlm/variables/story.txt"] != "[\"no JSON\"]\n" {
		t.Errorf("exported: %q", files)
	}
	if text := files["rlm/global-state.json"]; strings.Count(text, `"type": "file_path"`) != 2 ||
		strings.Contains(text, `"type": "null"`) {
		t.Errorf("the state is %s", text)
	}
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, other, first)
	if diff := absent("", decoded(t, mapText(files)), decoded(t, mapText(content(t, exportTo(t, other))))); len(diff) > 0 {
		t.Errorf("the round trip differs:\n%s", strings.Join(diff, "\n"))
	}
	ref := perdure.StateRef{Scope: perdure.ScopeGlobal}
	if v := must[perdure.Variable](t)(other.Var(t.Context(), ref, "none")); v.Type != perdure.VarNull {
		t.Errorf("none is %+v", v)
	}
}

func mapText(files map[string]string) string {
	raw, _ := json.Marshal(files) // strings are always valid
	return string(raw)
}
