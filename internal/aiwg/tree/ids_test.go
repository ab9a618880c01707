package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// tasksFile is a file of tasks with these IDs.
func tasksFile(t testing.TB, ids ...string) string {
	t.Helper()
	var list []string
	for i, id := range ids {
		list = append(list, fmt.Sprintf(`{"id":%q,"prompt":"p %d of %s","state":"queued","createdAt":"2026-02-09T10:00:%02dZ",
			"metadata":{}}`, id, i, strings.Join(ids, " "), i))
	}
	dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "daemon/tasks.json",
		Data: []byte(`{"version":1,"tasks":[` + strings.Join(list, ",") + `]}`)}}})
	return dir
}

// Imported tasks keep their IDs, in whatever order they come, and a new task gets a higher
// one than all of them.
func TestIDsStay(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		if r := importFrom(t, s, tasksFile(t, "task-0040", "task-0002", "task-0007")); len(r.Notes) > 0 {
			t.Errorf("notes: %+v", r.Notes)
		}
		for id, want := range map[perdure.TaskID]string{40: "p 0", 2: "p 1", 7: "p 2"} {
			if task := must[perdure.Task](t)(s.Task(t.Context(), id)); !strings.HasPrefix(task.Prompt, want) {
				t.Errorf("%s is %q", id, task.Prompt)
			}
		}
		tree := must[perdure.Tree](t)(
			s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "new"}}))
		if tree.Root != 41 {
			t.Errorf("a new task is %s", tree.Root)
		}
		// Another folder: one ID was never used, one is taken, one is higher than all.
		dir := tasksFile(t, "task-0003", "task-0007", "task-0100", "task-0000")
		dry := must[*aiwgtree.Report](t)(
			aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: dir, DryRun: true}))
		r := importFrom(t, s, dir)
		if n := notes(r, aiwgtree.Renumbered, "became"); len(n) != 2 || len(dry.Notes) != 2 ||
			!strings.Contains(n[0].Message, "task-0101: another task") || !strings.Contains(n[1].Message, "from task-0001") {
			t.Errorf("notes: %+v, dry run: %+v", r.Notes, dry.Notes)
		}
		report := must[aiwgtree.ExportReport](t)(exported(t, s))
		want := []aiwgtree.Renumbering{{Task: 102, File: "task-0000"}}
		for i := range report.Renumbered {
			report.Renumbered[i].Tree = ""
		}
		if diff := cmp.Diff(want, report.Renumbered); diff != "" {
			t.Errorf("renumbered in the export (-want +got):\n%s", diff)
		}
	})
}

func exported(t testing.TB, s *perdure.Store) (aiwgtree.ExportReport, error) {
	t.Helper()
	r, err := aiwgtree.Export(t.Context(), s, aiwgtree.ExportConfig{Dir: t.TempDir() + "/out"})
	if err != nil {
		return aiwgtree.ExportReport{}, err
	}
	return *r, nil
}

// A removed task's ID is not used again, and no import skips numbers without need.
func TestRemovedIDsStayUsed(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree := must[perdure.Tree](t)(
		s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "gone"}}))
	must[int64](t)(s.CancelTree(t.Context(), tree.ID, "by the test"))
	if err := s.RemoveTree(t.Context(), tree.ID); err != nil {
		t.Fatal(err)
	}
	r := importFrom(t, s, tasksFile(t, "task-0001", "task-0002"))
	if n := notes(r, aiwgtree.Renumbered, "task-0001\" became task-0003"); len(n) != 1 {
		t.Errorf("notes: %+v", r.Notes)
	}
	if left := must[[]perdure.TaskRange](t)(s.UnusedTasks(t.Context())); left[0].First != 4 || len(left) != 1 {
		t.Errorf("unused: %v", left)
	}
}
