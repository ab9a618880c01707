package rpc_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// What an update changes, and what it leaves.
func TestUpdate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		c := serve(t, rpc.Config{Store: s}).dial()
		id := c.call("task.submit", obj{"prompt": "p", "metadata": obj{"a": 1.0, "b": "x"}}).TaskID
		update := func(updates obj) record {
			t.Helper()
			return c.call("task.update", obj{"taskId": id, "updates": updates})
		}
		// The metadata are replaced, as by an assignment.
		if got := update(obj{"metadata": obj{"a": 2.0, "rlm_state": obj{"n": 1.0}}, "agent": "x",
			"priority": 5}); got.Metadata["a"] != 2.0 ||
			got.Metadata["b"] != nil || got.Metadata["rlm_state"] == nil || got.Agent != "x" || got.Priority != 5 ||
			got.State != "queued" {
			t.Errorf("it is %s", got.raw)
		}
		// Members that records do not have are kept in them.
		if got := c.call("task.update", obj{"taskId": id, "progress": 0.5}); got.Metadata["progress"] != 0.5 ||
			got.Metadata["a"] != 2.0 {
			t.Errorf("it is %s", got.raw)
		}
		if got := update(obj{"state": "running", "pid": 7}); got.State != "running" || got.Fence == 0 {
			t.Errorf("it is %s", got.raw)
		}
		c.refused(rpc.CodeConflict, "task.update", obj{"taskId": id, "priority": 6})
		if got := update(obj{"output": "one "}); got.Output != "one " {
			t.Errorf("it is %s", got.raw)
		}
		if got := update(obj{"output": "one two", "metadata": obj{"a": 3.0}}); got.Output != "one two" ||
			got.Metadata["a"] != 3.0 {
			t.Errorf("it is %s", got.raw)
		}
		// A whole record may come back, with something else in it.
		var whole obj
		if err := json.Unmarshal(c.call("task.get", obj{"taskId": id}).raw, &whole); err != nil {
			t.Fatal(err)
		}
		whole["state"], whole["result"], whole["completedAt"] = "completed", "found", "2026-02-09T10:00:00Z"
		whole["metadata"].(obj)["a"] = 4.0
		done := update(whole)
		if done.State != "completed" || *done.Result != "found" || done.Metadata["a"] != 4.0 ||
			done.CompletedAt.Month() == 2 {
			t.Errorf("it is %s", done.raw)
		}
		if again := update(whole); !cmp.Equal(again.raw, done.raw) {
			t.Errorf("again it is %s, was %s", again.raw, done.raw)
		}
		task, err := s.Task(t.Context(), 1)
		if err != nil || string(task.Metadata) != `{"a":4}` {
			t.Errorf("the store keeps %s, %v", task.Metadata, err)
		}
		// After its end only the metadata change.
		if got := update(obj{"metadata": obj{"read": true}}); got.Metadata["read"] != true || got.State != "completed" {
			t.Errorf("it is %s", got.raw)
		}
		for _, updates := range []obj{{"state": "queued"}, {"state": "running"}, {"state": "cancelled"},
			{"state": "failed", "error": "x"}, {"result": "other"}} {
			c.refused(rpc.CodeConflict, "task.update", obj{"taskId": id, "updates": updates})
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the store is not sound: %v %v", problems, err)
		}
	})
}

func TestUpdateRefuses(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	id := c.call("task.submit", obj{"prompt": "p"}).TaskID
	c.call("task.start", obj{"taskId": id})
	c.call("task.append_output", obj{"taskId": id, "chunk": "abc"})
	before := c.call("task.get", obj{"taskId": id})
	for _, updates := range []obj{
		{"prompt": "q"}, {"id": "task-0009"}, {"data": obj{}}, {"max_attempts": 9},
		{"state": "asleep"}, {"state": 7}, {"state": "waiting"},
		{"result": "x"}, {"error": "x"}, {"state": "failed", "result": "x"}, {"state": "completed", "error": "x"},
		{"output": "xyz"}, {"output": "ab"}, {"output": 7},
		{"metadata": "x"}, {"metadata": obj{"perdure_import": obj{}}},
		{"agent": 7}, {"priority": "x"},
	} {
		c.refused(rpc.CodeInvalidParams, "task.update", obj{"taskId": id, "updates": updates})
	}
	if after := c.call("task.get", obj{"taskId": id}); string(after.raw) != string(before.raw) {
		t.Errorf("what was refused changed the task: %s", after.raw)
	}
}

func TestUpdateOfStates(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	for _, test := range []struct{ way []string }{
		{[]string{"running", "completed"}}, {[]string{"running", "failed", "queued", "running", "completed"}},
		{[]string{"cancelled"}}, {[]string{"running", "queued", "running", "cancelled"}},
	} {
		id := c.call("task.submit", obj{"prompt": "p"}).TaskID
		for _, state := range test.way {
			if got := c.call("task.update", obj{"taskId": id, "state": state}); got.State != state {
				t.Errorf("%v: it is %s", test.way, got.raw)
			}
		}
	}
	id := c.call("task.submit", obj{"prompt": "p"}).TaskID
	if got := c.call("task.update", obj{"taskId": id, "state": "completed"}); got.State != "completed" {
		t.Errorf("without a start: %s", got.raw)
	}
	c.refused(rpc.CodeConflict, "task.update", obj{"taskId": id, "state": "failed"})
}
