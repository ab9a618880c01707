package perdure_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func finish(t testing.TB, s *perdure.Store, ref perdure.StateRef, value string, rest bool) error {
	t.Helper()
	_, err := s.SetVar(t.Context(), ref, perdure.VarSpec{Name: perdure.VarFinal, Value: json.RawMessage(value),
		Cause: perdure.Cause{CancelRest: rest}})
	return err
}

func TestFinalCompletes(t *testing.T) {
	t.Parallel()
	for value, result := range map[string]string{`"done"`: "done", `""`: "", `0`: "0", `false`: "false",
		`{"a":1}`: `{"a":1}`} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, s *perdure.Store) {
				r := leased(t, s, perdure.TreeSpec{})
				if err := finish(t, s, treeState(r.tree), "null", false); err != nil {
					t.Fatal(err)
				}
				_, err := r.root.SetVar(t.Context(), r.root.Var(),
					perdure.VarSpec{Name: perdure.VarFinal, Value: json.RawMessage(value)})
				if err != nil {
					t.Fatal(err)
				}
				if task := readTask(t, s, r.tree.Root); task.State != perdure.Completed || task.Result != result {
					t.Errorf("%s with %q", task.State, task.Result)
				}
				wantVar(t, s, treeState(r.tree), perdure.VarFinal, value)
				wantRefusal(t, finish(t, s, treeState(r.tree), `"again"`, false), perdure.CodeConflict, "completed")
				completed := 0
				for _, e := range allEvents(t, s) {
					if e.Kind == perdure.EventTreeCompleted {
						completed++
					}
				}
				if completed != 1 {
					t.Errorf("%d completions", completed)
				}
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("%v, %v", problems, err)
				}
			})
		})
	}
}

func TestFinalByOthers(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		queued := createTree(t, s, perdure.TreeSpec{})
		if err := finish(t, s, treeState(queued), `"by hand"`, false); err != nil {
			t.Fatal(err)
		}
		if task := readTask(t, s, queued.Root); task.State != perdure.Completed || task.Result != "by hand" {
			t.Errorf("%s with %q", task.State, task.Result)
		}
		r := leased(t, s, perdure.TreeSpec{})
		if err := finish(t, s, treeState(r.tree), `"taken"`, false); err != nil {
			t.Fatal(err)
		}
		if err := r.root.Complete(t.Context(), perdure.Result{}); err == nil {
			t.Error("the lease still held")
		}
		if _, err := r.root.IncrVar(t.Context(), r.root.Var(), "n", "1", perdure.Cause{}); !errors.Is(err,
			perdure.ErrLeaseLost) {
			t.Errorf("error %v", err)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

func TestFinalWithUnfinishedChildren(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		ids, err := r.root.Spawn(t.Context(), make([]perdure.TaskSpec, 3))
		if err != nil {
			t.Fatal(err)
		}
		done := claimOne(t, r.ss)
		complete(t, done, "one")
		wantRefusal(t, finish(t, s, treeState(r.tree), `"early"`, false), perdure.CodeConflict, "2 unfinished")
		wantVar(t, s, treeState(r.tree), perdure.VarFinal, "null")
		running := claimOne(t, r.ss)
		if err := finish(t, s, treeState(r.tree), `"early"`, true); err != nil {
			t.Fatal(err)
		}
		if err := running.Complete(t.Context(), perdure.Result{}); err == nil {
			t.Error("a cancelled child completed")
		}
		if task := readTask(t, s, r.tree.Root); task.State != perdure.Completed || task.Result != "early" {
			t.Errorf("%s with %q", task.State, task.Result)
		}
		if task := readTask(t, s, ids[0]); task.State != perdure.Completed {
			t.Errorf("the finished child is %s", task.State)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// What an interrupted attempt did to variables is undone before the next, and
// what counts stays.
func TestRerunUndoesVariables(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		submit(t, s, r.tree.Root, 1)
		setVar(t, s, treeState(r.tree), "shared", "100")
		setVar(t, s, treeState(r.tree), "list", `["a"]`)
		setVar(t, s, treeState(r.tree), "kept", `"before"`)
		setVar(t, s, treeState(r.tree), "gone", `1`)
		l := claimOne(t, r.ss)
		up := treeState(r.tree)
		work := func(l *perdure.Lease) {
			t.Helper()
			set := func(ref perdure.StateRef, name, value string) {
				if _, err := l.SetVar(t.Context(), ref, perdure.VarSpec{Name: name, Value: json.RawMessage(value)}); err != nil {
					t.Fatal(err)
				}
			}
			set(l.Var(), "own", "1")
			set(l.Var(), "own", "2")
			set(up, "kept", `"after"`)
			if _, err := l.IncrVar(t.Context(), up, "shared", "5", perdure.Cause{}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.AppendVar(t.Context(), up, "list", json.RawMessage(`"b"`), perdure.Cause{}); err != nil {
				t.Fatal(err)
			}
			if err := l.DeleteVar(t.Context(), up, "gone", perdure.Cause{}); err != nil {
				t.Fatal(err)
			}
		}
		work(l)
		// Others go on from there.
		if _, err := s.IncrVar(t.Context(), up, "shared", "1000", perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendVar(t.Context(), up, "list", json.RawMessage(`"c"`), perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		l = claimOne(t, r.ss)
		wantVar(t, s, l.Var(), "own", "none")
		wantVar(t, s, up, "shared", "1100")
		wantVar(t, s, up, "list", `["a","c"]`)
		wantVar(t, s, up, "kept", `"before"`)
		wantVar(t, s, up, "gone", "1")
		work(l)
		complete(t, l, "done")
		wantVar(t, s, l.Var(), "own", "2")
		wantVar(t, s, up, "shared", "1105")
		wantVar(t, s, up, "list", `["a","c","b"]`)
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}

// Between two changes of the attempt that are undone, what others did stays.
func TestRerunAroundOthers(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		up := treeState(r.tree)
		steps := []struct {
			name, element string
			own           bool
		}{{"made", `"x"`, true}, {"made", `"other"`, false}, {"made", `"y"`, true}, {"found", `"other"`, false},
			{"found", `"x"`, true}, {"found", `"y"`, true}}
		for _, step := range steps {
			add := s.AppendVar
			if step.own {
				add = r.root.AppendVar
			}
			if _, err := add(t.Context(), up, step.name, json.RawMessage(step.element), perdure.Cause{}); err != nil {
				t.Fatal(err)
			}
		}
		fail(t, r.root, perdure.Failure{Retry: true})
		claimOne(t, r.ss)
		wantVar(t, s, up, "made", `["other"]`)
		wantVar(t, s, up, "found", `["other"]`)
	})
}

// A checkpoint makes count what was done before it.
func TestRerunFromCheckpoint(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		for _, by := range []json.Number{"1", "10"} {
			if _, err := r.root.IncrVar(t.Context(), r.root.Var(), "n", by, perdure.Cause{}); err != nil {
				t.Fatal(err)
			}
			if by == "1" {
				if _, err := r.root.SaveCheckpoint(t.Context(), "half", ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		fail(t, r.root, perdure.Failure{Retry: true})
		again := claimOne(t, r.ss)
		wantVar(t, s, again.Var(), "n", "1")
	})
}

// Final is null until the task completes, however it does.
func TestFinalIsTheResult(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for _, written := range []bool{false, true} {
			r := leased(t, s, perdure.TreeSpec{})
			if written {
				setVar(t, s, treeState(r.tree), "other", "1")
			}
			wantVar(t, s, treeState(r.tree), perdure.VarFinal, "null")
			complete(t, r.root, "the result")
			v := wantVar(t, s, treeState(r.tree), perdure.VarFinal, `"the result"`)
			if v.Type != perdure.VarText || v.Size != 12 || v.Source != r.tree.Root.String() {
				t.Errorf("Final is %+v", v)
			}
			list, err := s.Vars(t.Context(), treeState(r.tree), perdure.VarFilter{})
			if err != nil || string(list[0].Value) != `"the result"` {
				t.Errorf("listed as %s, %v", list[0].Value, err)
			}
		}
		failed := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{MaxAttempts: 1}})
		if _, err := failed.root.Fail(t.Context(), perdure.Failure{Kind: "model"}); err != nil {
			t.Fatal(err)
		}
		wantVar(t, s, treeState(failed.tree), perdure.VarFinal, "null")
	})
}
