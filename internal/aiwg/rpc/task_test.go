package rpc_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"os"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// A task as a client outside does it, from the submission to the end.
func TestWorkOutside(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		b := serve(t, rpc.Config{Store: s})
		c := b.dial()
		meta := obj{"tree_id": "tree-12345678", "node_id": "task-a1b2c3d4", "parent_id": nil, "depth": 0.0,
			"own":       obj{"x": []any{1.0, "<y>"}},
			"rlm_state": obj{"Final": nil, "n": 3.0}, "cost_tracking": obj{"input_tokens": 5.0}}
		made := c.call("task.submit", obj{"prompt": "find <it>", "agent": "rlm-executor", "priority": 7, "metadata": meta,
			"extra": "kept"})
		if made.TaskID != "task-0001" || made.State != "queued" || made.Prompt != "find <it>" ||
			made.Agent != "rlm-executor" || made.Priority != 7 {
			t.Errorf("submitted: %s", made.raw)
		}
		got := c.call("task.get", obj{"taskId": made.TaskID})
		for key, want := range meta {
			if diff := cmp.Diff(want, got.Metadata[key]); diff != "" {
				t.Errorf("metadata.%s (-want +got):\n%s", key, diff)
			}
		}
		if got.Metadata["extra"] != "kept" || strings.Contains(string(got.raw), "taskId") {
			t.Errorf("the record is %s", got.raw)
		}
		if tree, err := s.Tree(t.Context(), perdure.TreeID(made.TreeID)); err != nil || tree.Kind != aiwgtree.KindIPC ||
			tree.State != perdure.Queued {
			t.Errorf("tree %+v, %v", tree, err)
		}
		started := c.call("task.start", obj{"taskId": made.TaskID, "pid": 4711})
		if started.State != "running" || started.StartedAt == nil || started.Fence == 0 {
			t.Errorf("started: %s", started.raw)
		}
		for _, text := range []string{"one\n", "two\n"} {
			if a := c.call("task.append_output", obj{"taskId": made.TaskID, "chunk": text}); a.Appended != 4 {
				t.Errorf("appended %+v", a)
			}
		}
		done := c.call("task.complete", obj{"taskId": made.TaskID, "result": "found"})
		if done.State != "completed" || done.Result == nil || *done.Result != "found" || done.Output != "one\ntwo\n" ||
			done.CompletedAt == nil {
			t.Errorf("completed: %s", done.raw)
		}
		if again := c.call("task.complete", obj{"taskId": made.TaskID, "result": "found"}); string(again.raw) != string(
			done.raw) {
			t.Errorf("said again it is %s, was %s", again.raw, done.raw)
		}
		e := c.refusal(rpc.CodeConflict, "task.complete", obj{"taskId": made.TaskID, "result": "other"})
		if e.Data.Is != perdure.Completed || e.Data.Want != perdure.Completed {
			t.Errorf("refused with %+v", e.Data)
		}
		c.refused(rpc.CodeConflict, "task.start", obj{"taskId": made.TaskID})
		c.refused(rpc.CodeConflict, "task.append_output", obj{"taskId": made.TaskID, "chunk": "x"})
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the store is not sound: %v %v", problems, err)
		}
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	tests := []struct {
		params obj
		want   perdure.TaskError
		state  string
	}{
		{obj{"error": "it broke"}, perdure.TaskError{Kind: "unknown", Message: "it broke"}, "failed"},
		{obj{"error": obj{"message": "it broke"}}, perdure.TaskError{Kind: "unknown", Message: "it broke"}, "failed"},
		{obj{"error": obj{"kind": "timeout", "message": "late"}}, perdure.TaskError{Kind: "timeout", Message: "late"},
			"failed"},
		{obj{}, perdure.TaskError{Kind: "unknown", Message: "the worker gave no reason"}, "failed"},
		{obj{"error": "once more", "retry": true}, perdure.TaskError{Kind: "unknown", Message: "once more"}, "queued"},
	}
	for _, test := range tests {
		id := c.call("task.submit", obj{"prompt": "p"}).TaskID
		c.call("task.start", obj{"taskId": id})
		test.params["taskId"] = id
		got := c.call("task.fail", test.params)
		if got.State != test.state || got.Error == nil || *got.Error != test.want.Message ||
			got.ErrorKind != test.want.Kind {
			t.Errorf("%v: %s", test.params, got.raw)
		}
		if test.state == "failed" {
			c.call("task.fail", test.params) // again
			if again := c.call("task.update", obj{"taskId": id, "state": "queued"}); again.State != "queued" ||
				again.Attempts != 2 {
				t.Errorf("queued again: %s", again.raw)
			}
		}
	}
}

// What an export shows of a task is what clients see, as far as its form is the
// layout's.
func TestExportShowsTheRecord(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c := b.dial()
	plain := c.call("task.submit",
		obj{"prompt": "p", "metadata": obj{"k": "v", "cost_tracking": obj{"input_tokens": 1, "output_tokens": 2,
			"total_cost_usd": 0.5},
			"rlm_state": obj{"Final": nil, "n": obj{"name": "n", "value": 1, "type": "number"}}, "parent_id": "task-0009",
			"context_reference": obj{"type": "slice", "size_tokens": 5}, "checkpoints": []any{}}}).TaskID
	odd := c.call("task.submit", obj{"prompt": "q",
		"metadata": obj{"tree_id": "mine", "depth": "deep",
			"checkpoints": []any{obj{"checkpoint_id": "ckpt-1700000000000"}}}}).TaskID
	c.call("task.start", obj{"taskId": plain})
	c.call("task.append_output", obj{"taskId": plain, "chunk": "out"})
	c.call("task.complete", obj{"taskId": plain, "result": obj{"a": 1}})
	wire := []any{decoded(t, c.call("task.get", obj{"taskId": plain}).raw),
		decoded(t, c.call("task.get", obj{"taskId": odd}).raw)}
	dir := filepath.Join(t.TempDir(), ".aiwg")
	if _, err := aiwgtree.Export(t.Context(), b.store, aiwgtree.ExportConfig{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "daemon", "tasks.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := decoded(t, raw).(obj)["tasks"].([]any)
	inFile := file[0].(obj)["metadata"].(obj)
	for _, key := range []string{"decomposition_strategy", "depth", "failure_policy", "merge_strategy", "position"} {
		delete(inFile, key) // defaults, which clients do not get
	}
	if diff := cmp.Diff(wire[0], file[0]); diff != "" {
		t.Errorf("the record differs (-wire +file):\n%s", diff)
	}
	meta := file[1].(obj)["metadata"].(obj)
	if meta["tree_id_as_given"] != "mine" || meta["depth_as_given"] != "deep" || meta["checkpoints_as_given"] == nil ||
		meta["tree_id"] != nil || meta["depth"] != 0.0 {
		t.Errorf("what is odd is %v", meta)
	}
	if meta := wire[1].(obj)["metadata"].(obj); meta["tree_id"] != "mine" || meta["depth"] != "deep" ||
		meta["tree_id_as_given"] != nil {
		t.Errorf("on the wire it is %v", meta)
	}
}

func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Exported, imported elsewhere and exported again the file is the same.
func TestExportOfSubmittedTasksReturns(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c := b.dial()
	for i, end := range []string{"", "task.complete", "task.fail", "task.cancel"} {
		id := c.call("task.submit", obj{"prompt": fmt.Sprint("p", i), "priority": i, "metadata": obj{"k": i}}).TaskID
		if end != "" {
			c.call("task.start", obj{"taskId": id})
			c.call("task.append_output", obj{"taskId": id, "chunk": fmt.Sprint("out ", i)})
			c.call(end, obj{"taskId": id})
		}
	}
	first := filepath.Join(t.TempDir(), ".aiwg")
	if _, err := aiwgtree.Export(t.Context(), b.store, aiwgtree.ExportConfig{Dir: first}); err != nil {
		t.Fatal(err)
	}
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	if r, err := aiwgtree.Import(t.Context(), other, aiwgtree.ImportConfig{Path: first}); err != nil || r.Tasks != 4 ||
		len(r.Notes) > 0 {
		t.Fatalf("import: %+v, %v", r, err)
	}
	second := filepath.Join(t.TempDir(), ".aiwg")
	if _, err := aiwgtree.Export(t.Context(), other, aiwgtree.ExportConfig{Dir: second}); err != nil {
		t.Fatal(err)
	}
	var files [2][]byte
	for i, dir := range []string{first, second} {
		var err error
		if files[i], err = os.ReadFile(filepath.Join(dir, "daemon", "tasks.json")); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(files[0]), string(files[1])); diff != "" {
		t.Errorf("the file differs:\n%s", diff)
	}
	if n := strings.Count(string(files[1]), `"output": "out `); n != 3 {
		t.Errorf("the output of %d tasks came back, want 3", n)
	}
}

func TestSubmitAgain(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c := b.dial()
	first := c.call("task.submit", obj{"id": "build 7", "prompt": "p"})
	if again := c.call("task.submit", obj{"id": "build 7", "prompt": "p"}); again.TaskID != first.TaskID {
		t.Errorf("submitted again it is %s", again.TaskID)
	}
	if again := c.call("task.submit", obj{"id": first.TaskID, "prompt": "p"}); again.TaskID != first.TaskID {
		t.Errorf("submitted under its own ID it is %s", again.TaskID)
	}
	c.refused(rpc.CodeConflict, "task.submit", obj{"id": "build 7", "prompt": "another"})
	if got := c.call("task.get", obj{"taskId": "build 7"}); got.ID != first.TaskID {
		t.Errorf("by the client's ID it is %s", got.raw)
	}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		c := b.dial()
		wg.Go(func() { ids[i] = c.call("task.submit", obj{"id": "at once", "prompt": "p"}).TaskID })
	}
	wg.Wait()
	if slices.Sort(ids); ids[0] != ids[len(ids)-1] {
		t.Errorf("one submission made %v", ids)
	}
	if raw, _ := c.try("task.stats", nil); string(raw) != `{"total":2,"queued":2,"running":0,"completed":0,"failed":0,`+
		`"cancelled":0}` {
		t.Errorf("stats %s", raw)
	}
}

func list(c *client, params any) []string {
	c.t.Helper()
	raw, refused := c.try("task.list", params)
	if refused != nil {
		c.t.Fatal(refused)
	}
	var records []record
	if err := json.Unmarshal(raw, &records); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	ids := []string{}
	for _, r := range records {
		ids = append(ids, strings.TrimLeft(strings.TrimPrefix(r.ID, "task-"), "0"))
	}
	return ids
}

func TestListAndStats(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c := b.dial()
	if got := list(c, nil); len(got) != 0 {
		t.Errorf("at first there is %v", got)
	}
	if _, err := b.store.CreateTree(t.Context(),
		perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "another's"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 24 { // task-0002 to task-0025
		c.call("task.submit", obj{"prompt": "p", "agent": []any{nil, "a", "b"}[i%3]})
	}
	for id, how := range map[string]string{"task-0002": "", "task-0003": "task.complete", "task-0004": "task.fail",
		"task-0005": "task.cancel"} {
		c.call("task.start", obj{"taskId": id})
		if how != "" {
			c.call(how, obj{"taskId": id})
		}
	}
	tests := []struct {
		params obj
		want   string
	}{
		{obj{"limit": 3}, "25 24 23"},
		{obj{"limit": 2, "before": "task-0024"}, "23 22"},
		{obj{"state": "running"}, "2"},
		{obj{"state": "completed"}, "3"},
		{obj{"state": "failed"}, "4"},
		{obj{"state": "cancelled"}, "5"},
		{obj{"state": "queued", "limit": 100}, "25 24 23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6"},
		{obj{"agent": "a", "limit": 2}, "24 21"},
		{obj{}, "25 24 23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6"},
	}
	for _, test := range tests {
		if got := strings.Join(list(c, test.params), " "); got != test.want {
			t.Errorf("%v: %s, want %s", test.params, got, test.want)
		}
	}
	if raw, _ := c.try("task.stats", nil); string(raw) != `{"total":24,"queued":20,"running":1,"completed":1,`+
		`"failed":1,"cancelled":1}` {
		t.Errorf("stats %s", raw)
	}
	c.refused(rpc.CodeInvalidParams, "task.get", obj{"taskId": "task-0001"})
	var status struct {
		PID        int
		Health     string
		Subsystems struct {
			IPC        struct{ Clients int }
			Supervisor struct {
				Running, Queued int
				Tasks           struct{ Running, Queued []record }
			}
		}
	}
	raw, _ := c.try("daemon.status", nil)
	if err := json.Unmarshal(raw, &status); err != nil {
		t.Fatal(err)
	}
	v := status.Subsystems.Supervisor
	if status.PID != os.Getpid() || status.Health != "healthy" || status.Subsystems.IPC.Clients != 1 || v.Running != 1 ||
		v.Queued != 20 ||
		len(v.Tasks.Running) != 1 || v.Tasks.Running[0].ID != "task-0002" || len(v.Tasks.Queued) != 20 {
		t.Errorf("status %s", raw)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c, other := b.dial(), b.dial()
	id := c.call("task.submit", obj{"prompt": "p"}).TaskID
	c.call("task.start", obj{"taskId": id})
	if got := other.call("task.cancel", obj{"taskId": id}); !got.Cancelled {
		t.Errorf("cancel: %s", got.raw)
	}
	if got := other.call("task.cancel", obj{"taskId": id}); got.Cancelled {
		t.Errorf("cancel again: %s", got.raw)
	}
	if got := other.call("task.cancel", obj{"taskId": "task-0099"}); got.Cancelled {
		t.Errorf("cancel what is not there: %s", got.raw)
	}
	e := c.refusal(rpc.CodeConflict, "task.complete", obj{"taskId": id, "result": "too late"})
	if e.Data.Is != perdure.Cancelled {
		t.Errorf("the worker is told %+v", e)
	}
}

func TestCleanup(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		b := serve(t, rpc.Config{Store: s})
		c := b.dial()
		for _, how := range []string{"", "task.complete", "task.fail", "task.cancel"} {
			id := c.call("task.submit", obj{"prompt": "p"}).TaskID
			if how != "" {
				c.call("task.start", obj{"taskId": id})
				c.call(how, obj{"taskId": id})
			}
		}
		if _, err := s.CreateTree(t.Context(),
			perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "another's"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CancelTask(t.Context(), 5, ""); err != nil {
			t.Fatal(err)
		}
		if got := c.call("task.cleanup", nil); got.Removed != 0 {
			t.Errorf("of the last week %d went", got.Removed)
		}
		if got := c.call("task.cleanup", obj{"maxAge": 0}); got.Removed != 2 {
			t.Errorf("%d went, want 2", got.Removed)
		}
		if got := list(c, nil); strings.Join(got, " ") != "3 1" {
			t.Errorf("what is left is %v", got)
		}
		if got := c.call("task.cleanup", obj{"maxAge": 0, "includeFailed": true}); got.Removed != 1 {
			t.Errorf("%d failed ones went, want 1", got.Removed)
		}
		if _, err := s.Task(t.Context(), 5); err != nil {
			t.Errorf("what was not submitted here went: %v", err)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the store is not sound: %v %v", problems, err)
		}
		if id := c.call("task.submit", obj{"prompt": "p"}).TaskID; id != "task-0006" {
			t.Errorf("the next task is %s: an ID was used again", id)
		}
	})
}
