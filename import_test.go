package perdure_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func recordTime(minute int) time.Time { return time.Date(2026, 2, 9, 10, minute, 0, 1000, time.UTC) }

// record is a tree that was not finished: a root, a child that completed, one
// that failed, one under way with a child of its own.
func record(key string) perdure.TreeRecord {
	task := func(at int, state perdure.State, prompt string) perdure.TaskRecord {
		t := perdure.TaskRecord{At: at, Task: perdure.Task{Prompt: prompt, State: state, CreatedAt: recordTime(0),
			Attempts: 2, MaxAttempts: 4,
			Metadata: json.RawMessage(`{"own":1}`), Usage: perdure.Usage{Calls: 1, InputTokens: 10, OutputTokens: 5,
				CostUSD: 0.25}}}
		if state.Terminal() {
			t.StartedAt, t.CompletedAt, t.Active = recordTime(1), recordTime(2), time.Minute
		}
		return t
	}
	done := task(0, perdure.Completed, "done")
	done.Result, done.Data, done.Output = strings.Repeat("r", perdure.MaxInlineBytes+1), json.RawMessage(
		`{"x":1}`), "streamed"
	failed := task(0, perdure.Failed, "failed")
	failed.Position, failed.Error = 1, &perdure.TaskError{Kind: "model", Message: "refused"}
	under := task(0, perdure.Running, "under way")
	under.Position = 2
	return perdure.TreeRecord{Key: key, ID: "tree-12345678", Name: "a name",
		Config: json.RawMessage(`{"from":"elsewhere"}`),
		Tasks: []perdure.TaskRecord{task(0, perdure.Running, "the root"), done, failed, under,
			task(3, perdure.Completed, "below")}}
}

func importOne(t *testing.T, s *perdure.Store, rec perdure.TreeRecord) perdure.ImportedTree {
	t.Helper()
	out, err := s.ImportTrees(t.Context(), []perdure.TreeRecord{rec})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func wantSoundStore(t *testing.T, s *perdure.Store) {
	t.Helper()
	if err := statetest.Sound(t.Context(), s); err != nil {
		t.Error(err)
	}
	if faults := logFaults(t, s); len(faults) > 0 {
		t.Errorf("verify log: %q", faults)
	}
}

func TestImportTrees(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		got := importOne(t, s, record("k"))
		if got.ID != "tree-12345678" || got.Found || len(got.Tasks) != 5 || got.Root != got.Tasks[0] {
			t.Fatalf("imported %+v", got)
		}
		wantSoundStore(t, s)
		tree, err := s.Tree(ctx, got.ID)
		if err != nil || tree.Kind != perdure.KindRecord || tree.State != perdure.Queued || tree.Name != "a name" ||
			!tree.CreatedAt.Equal(recordTime(0)) {
			t.Errorf("tree is %+v, %v", tree, err)
		}
		want := record("k").Tasks
		for i, state := range []perdure.State{perdure.Queued, perdure.Completed, perdure.Failed, perdure.Queued,
			perdure.Completed} {
			task, err := s.Task(ctx, got.Tasks[i])
			if err != nil {
				t.Fatal(err)
			}
			w := want[i].Task
			w.ID, w.Node, w.Tree, w.State, w.Depth = task.ID, task.Node, got.ID, state, []int{0, 1, 1, 1, 2}[i]
			w.Strategy, w.Policy, w.Context.Type, w.Pending = perdure.Parallel, perdure.PolicyPartial, "none", []int{1, 0, 0,
				0, 0}[i]
			if i > 0 {
				w.Parent = got.Tasks[want[i].At]
			}
			if diff := cmp.Diff(w, task); diff != "" {
				t.Errorf("task %d (-want +got):\n%s", i, diff)
			}
		}
		p, err := s.Progress(ctx, got.ID)
		if err != nil || p.Total != 5 || p.Completed != 2 || p.Failed != 1 || p.Queued != 2 || p.Usage.Calls != 5 ||
			p.Usage.CostUSD != 1.25 {
			t.Errorf("progress %+v, %v", p, err)
		}
		if again := importOne(t, s, record("k")); !again.Found || again.ID != got.ID {
			t.Errorf("the second time %+v", again)
		}
		// Another import has a tree of that name: it gets one that is free.
		if other := importOne(t, s, record("l")); other.Found || other.ID == got.ID {
			t.Errorf("another one %+v", other)
		}
		wantSoundStore(t, s)
	})
}

// A record is not executed: a worker that may claim all trees claims no task.
func TestRecordsAreNotClaimed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		importOne(t, s, record("k"))
		if leases := claim(t, openSession(t, s), 10); len(leases) != 0 {
			t.Errorf("claimed %d tasks", len(leases))
		}
		if _, err := s.CancelTree(t.Context(), "tree-12345678", "enough"); err != nil {
			t.Error(err)
		}
		wantSoundStore(t, s)
	})
}

func TestImportTasks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		tree := importOne(t, s, record("k"))
		more := []perdure.TaskRecord{
			{Parent: tree.Tasks[3], Task: perdure.Task{Prompt: "more", State: perdure.Waiting, Position: 1,
				CreatedAt: recordTime(3)}},
			{At: 0, Task: perdure.Task{Prompt: "below it", State: perdure.Queued, CreatedAt: recordTime(3)}},
		}
		ids, err := s.ImportTasks(ctx, tree.ID, more)
		if err != nil || len(ids) != 2 {
			t.Fatalf("%v, %v", ids, err)
		}
		wantSoundStore(t, s)
		if task, err := s.Task(ctx, ids[1]); err != nil || task.Depth != 3 || task.Parent != ids[0] {
			t.Errorf("task %+v, %v", task, err)
		}
		living := func(parent perdure.TaskID) []perdure.TaskRecord {
			return []perdure.TaskRecord{{Parent: parent, Task: perdure.Task{State: perdure.Queued, CreatedAt: recordTime(3)}}}
		}
		_, err = s.ImportTasks(ctx, tree.ID, living(tree.Tasks[1]))
		wantRefusal(t, err, perdure.CodeConflict, "completed")
		_, err = s.ImportTasks(ctx, tree.ID, living(999))
		wantRefusal(t, err, perdure.CodeNotFound, "task-0999")
		_, err = s.ImportTasks(ctx, createTree(t, s, perdure.TreeSpec{}).ID, living(tree.Root))
		wantRefusal(t, err, perdure.CodeConflict, "not imported")
		wantSoundStore(t, s)
	})
}

func TestImportRefusals(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	for _, change := range []func(*perdure.TreeRecord){
		func(r *perdure.TreeRecord) { r.Key = "" },
		func(r *perdure.TreeRecord) { r.Tasks = nil },
		func(r *perdure.TreeRecord) { r.Tasks[1].State = "gone" },
		func(r *perdure.TreeRecord) { r.Tasks[1].At = 1 },
		func(r *perdure.TreeRecord) { r.Tasks[1].Result = "\xff" },
		func(r *perdure.TreeRecord) { r.Tasks[1].Output = "\x00" },
		func(r *perdure.TreeRecord) { r.Tasks[1].Metadata = json.RawMessage(`[]`) },
		func(r *perdure.TreeRecord) { r.Config = json.RawMessage(`[]`) },
		func(r *perdure.TreeRecord) { r.Blobs = []perdure.BlobRef{{Hash: strings.Repeat("0", 64)}} },
	} {
		rec := record("k")
		change(&rec)
		if _, err := s.ImportTrees(t.Context(), []perdure.TreeRecord{rec}); err == nil ||
			perdure.CodeOf(err) == perdure.CodeInternal {
			t.Errorf("%+v: %v", rec, err)
		}
	}
	if _, err := s.Tree(t.Context(), "tree-12345678"); perdure.CodeOf(err) != perdure.CodeNotFound {
		t.Errorf("a refused import left something: %v", err)
	}
	importOne(t, s, record("k"))
	wantSoundStore(t, s)
}

// Retention counts from the import: what ended long ago elsewhere stays a while.
func TestRecordsAreKeptFromTheirImportOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		rec := record("k")
		rec.Tasks = rec.Tasks[1:2]
		tree := importOne(t, s, rec)
		for _, kept := range []bool{true, false} {
			policy := perdure.RetentionPolicy{Completed: time.Hour}
			if !kept {
				policy.Completed = time.Nanosecond
			}
			if _, err := s.Prune(t.Context(), perdure.PruneRequest{Policy: policy}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Tree(t.Context(), tree.ID); (err == nil) != kept {
				t.Errorf("kept for %v: %v, want kept %v", policy.Completed, err, kept)
			}
		}
	})
}

func TestStatesMove(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		tree := createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "ask"}})
		child := submit(t, s, tree.Root, 1)[0]
		from, below := treeState(tree), taskState(tree, child)
		setVar(t, s, from, "a", "1")
		setVar(t, s, below, "long", `"`+strings.Repeat("x", perdure.MaxInlineBytes)+`"`)
		checkpoint(t, s, from, "first")
		setVar(t, s, from, "a", "2")
		setVar(t, s, from, "b", `[1]`)
		setVar(t, s, below, "long", `"short"`)
		if _, err := s.Rollback(ctx, from, "first", perdure.Cause{Source: "test"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RenameVar(ctx, from, "a", "renamed", perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		target := importOne(t, s, record("k"))
		to := perdure.StateRef{Scope: perdure.ScopeTree, Tree: target.ID}
		toBelow := perdure.StateRef{Scope: perdure.ScopeTree, Tree: target.ID, Task: target.Tasks[1]}
		records := []perdure.StateRecord{readRecord(t, s, from), readRecord(t, s, below)}
		if records[0].Mutations[len(records[0].Mutations)-2].ID != records[1].Mutations[len(records[1].Mutations)-1].ID {
			t.Fatal("the rollback has not one number; the test proves nothing")
		}
		records[0].Ref, records[1].Ref = to, toBelow
		records[0].Foreign, records[0].Extra, records[0].Mutations[0].Foreign = "state-0000beef", json.RawMessage(
			`{"x":1}`), "mut-0000cafe"
		records[0].Compacted = 7
		if _, err := s.ImportStates(ctx, records); err != nil {
			t.Fatal(err)
		}
		wantSoundStore(t, s)
		for i, ref := range []perdure.StateRef{to, toBelow} {
			got := readRecord(t, s, ref)
			if diff := cmp.Diff(stripped(records[i]), stripped(got)); diff != "" {
				t.Errorf("record %d (-sent +got):\n%s", i, diff)
			}
		}
		wantVar(t, s, to, "renamed", "1")
		wantVar(t, s, toBelow, "long", `"`+strings.Repeat("x", perdure.MaxInlineBytes)+`"`)
		// The rollback is undone, in both states at once.
		history, err := s.History(ctx, toBelow, perdure.HistoryFilter{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Rollback(ctx, to, history[0].ID.String(), perdure.Cause{}); err != nil {
			t.Fatal(err)
		}
		wantVar(t, s, to, "a", "2")
		wantVar(t, s, to, "b", "[1]")
		wantVar(t, s, toBelow, "long", `"short"`)
		_, err = s.ImportStates(ctx, records)
		wantRefusal(t, err, perdure.CodeConflict, "written to already")
		wantSoundStore(t, s)
		inside, err := s.States(ctx, target.ID)
		if err != nil || len(inside) != 2 {
			t.Errorf("states of the tree: %+v, %v", inside, err)
		}
		setVar(t, s, global, "g", "1")
		outside, err := s.States(ctx, "")
		if err != nil || len(outside) != 1 || outside[0].Ref != global {
			t.Errorf("states outside of trees: %+v, %v", outside, err)
		}
	})
}

func readRecord(t *testing.T, s *perdure.Store, ref perdure.StateRef) perdure.StateRecord {
	t.Helper()
	r, err := s.StateRecord(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stripped leaves the order of the numbers, not themselves.
func stripped(r perdure.StateRecord) map[string]any {
	rank := make(map[perdure.MutationID]int)
	for _, m := range r.Mutations {
		rank[m.ID] = len(rank) + 1
	}
	var mutations, versions []string
	for _, m := range r.Mutations {
		m.ID, m.Task = 0, 0
		raw, _ := json.Marshal(m)
		mutations = append(mutations, string(raw)+m.Foreign)
	}
	for _, v := range r.Versions {
		born, dead := rank[v.Version], rank[v.Dead]
		v.Version, v.Task = 0, 0
		raw, _ := json.Marshal(v.Variable)
		versions = append(versions, string(raw), string(rune('0'+born)), string(rune('0'+dead)))
	}
	names := []string{}
	for _, c := range r.Checkpoints {
		names = append(names, c.Name+c.Foreign+c.Time.String())
	}
	return map[string]any{"mutations": mutations, "versions": versions, "checkpoints": names, "foreign": r.Foreign,
		"extra": string(r.Extra), "created": r.CreatedAt, "updated": r.UpdatedAt, "compacted": r.Compacted}
}

// A checkpoint to import needs a number of its own and fields that can be saved.
func TestImportStatesChecksCheckpoints(t *testing.T) {
	t.Parallel()
	check := func(id perdure.CheckpointID, name, description string) perdure.CheckpointRecord {
		return perdure.CheckpointRecord{Checkpoint: perdure.Checkpoint{ID: id, Name: name, Description: description}}
	}
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for _, c := range []struct {
			lists [2][]perdure.CheckpointRecord
			want  string
		}{
			{[2][]perdure.CheckpointRecord{{check(0, "a", "")}}, "has no number"},
			{[2][]perdure.CheckpointRecord{{check(1, "a", ""), check(1, "b", "")}}, "that of another"},
			{[2][]perdure.CheckpointRecord{{check(1, "a", "")}, {check(1, "b", "")}}, "that of another"},
			{[2][]perdure.CheckpointRecord{{check(1, "a\x00", "")}}, "not UTF-8"},
			{[2][]perdure.CheckpointRecord{{check(1, "a", "\xff")}}, "not UTF-8"},
		} {
			_, err := s.ImportStates(t.Context(), []perdure.StateRecord{
				{Ref: perdure.StateRef{Scope: perdure.ScopeSession, Session: "one"}, Checkpoints: c.lists[0]},
				{Ref: perdure.StateRef{Scope: perdure.ScopeSession, Session: "two"}, Checkpoints: c.lists[1]},
			})
			wantRefusal(t, err, perdure.CodeInvalid, c.want)
		}
	})
}

func TestImportStatesChecksMutations(t *testing.T) {
	t.Parallel()
	change := func(id perdure.MutationID, operation, to string) perdure.MutationRecord {
		return perdure.MutationRecord{Mutation: perdure.Mutation{ID: id, Operation: operation, Name: "n", To: to}}
	}
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for _, c := range []struct {
			list []perdure.MutationRecord
			want string
		}{
			{[]perdure.MutationRecord{change(0, "delete", "")}, "has no number"},
			{[]perdure.MutationRecord{change(1, "delete", ""), change(1, "delete", "")}, "that of another"},
			{[]perdure.MutationRecord{change(1, "compacted", "")}, "unknown operation"},
			{[]perdure.MutationRecord{change(1, "rename", strings.Repeat("x", 300))}, "too long"},
			{[]perdure.MutationRecord{change(1, "rename", "\xff")}, "not UTF-8"},
			{[]perdure.MutationRecord{{Mutation: change(1, "delete", "").Mutation, Foreign: "a\x00"}}, "not UTF-8"},
		} {
			_, err := s.ImportStates(t.Context(), []perdure.StateRecord{
				{Ref: perdure.StateRef{Scope: perdure.ScopeSession, Session: "one"}, Mutations: c.list}})
			wantRefusal(t, err, perdure.CodeInvalid, c.want)
		}
	})
}
