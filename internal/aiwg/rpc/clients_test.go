package rpc_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/aiwg/rpc"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
)

// imported imports a folder with these records into the store of a bed.
func imported(t *testing.T, b *bed, tasks string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".aiwg")
	if err := os.MkdirAll(filepath.Join(dir, "daemon"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "daemon", "tasks.json"), []byte(`{"version":1,"tasks":[`+tasks+`]}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := aiwgtree.Import(t.Context(), b.store, aiwgtree.ImportConfig{Path: dir}); err != nil {
		t.Fatal(err)
	}
}

// A new task has all members that existing clients read, with the values they expect.
func TestRecordsAreComplete(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	made := c.call("task.submit", obj{"prompt": "p", "priority": 10, "metadata": obj{"source": "cli", "user": "me"}})
	got, _ := decoded(t, c.call("task.get", obj{"taskId": made.TaskID}).raw).(obj)
	for _, key := range []string{"createdAt", "attempts", "max_attempts", "active_ms"} {
		if _, there := got[key]; !there {
			t.Errorf("no %s", key)
		}
		delete(got, key)
	}
	want := obj{"id": "task-0001", "prompt": "p", "agent": nil, "priority": 10.0, "state": "queued", "result": nil,
		"error": nil, "output": "", "pid": nil, "startedAt": nil, "completedAt": nil,
		"metadata": obj{"source": "cli", "user": "me"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	started := c.call("task.start", obj{"taskId": "task-0001", "pid": 4711})
	if started.PID == nil || *started.PID != 4711 || started.StartedAt == nil || started.State != "running" {
		t.Errorf("started: %s", started.raw)
	}
	failed := c.call("task.fail", obj{"taskId": "task-0001", "error": "it broke"})
	if failed.PID != nil || failed.CompletedAt == nil || failed.Error == nil || *failed.Error != "it broke" {
		t.Errorf("failed: %s", failed.raw)
	}
}

// Clients that do not start a task end it directly, and append to its output.
func TestTasksEndWithoutStart(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	for range 4 {
		c.call("task.submit", obj{"prompt": "p"})
	}
	done := c.call("task.complete", obj{"taskId": "task-0001", "result": "r"})
	failed := c.call("task.fail", obj{"taskId": "task-0002", "error": "e"})
	updated := c.call("task.update", obj{"taskId": "task-0003", "state": "running", "pid": 12})
	c.call("task.append_output", obj{"taskId": "task-0004", "chunk": "line 1\n"})
	c.call("task.append_output", obj{"taskId": "task-0004", "chunk": "line 2\n"})
	output := c.call("task.get", obj{"taskId": "task-0004"}).Output
	if done.State != "completed" || done.StartedAt == nil || failed.State != "failed" || updated.PID == nil ||
		*updated.PID != 12 || output != "line 1\nline 2\n" {
		t.Errorf("%s %s %s %q", done.raw, failed.raw, updated.raw, output)
	}
}

// Error messages are those that existing clients match on.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	c.call("task.submit", obj{"prompt": "p"})
	for _, test := range []struct {
		method string
		params obj
		want   string
	}{
		{"task.get", obj{"taskId": "task-9999"}, "Task not found: task-9999"},
		{"task.update", obj{"taskId": "task-9999", "updates": obj{}}, "Task not found: task-9999"},
		{"task.update", obj{"taskId": "task-0001", "state": "invalid"}, "Invalid state: invalid"},
		{"task.list", obj{"state": "odd"}, "Invalid state: odd"},
		{"task.submit", obj{}, "Missing required parameter: prompt"},
	} {
		if e := c.refusal(rpc.CodeInvalidParams, test.method, test.params); e.Message != test.want {
			t.Errorf("%s %v: %q, want %q", test.method, test.params, e.Message, test.want)
		}
	}
	if e := c.refusal(rpc.CodeUnknownMethod, "task.paint", nil); e.Message != "Method not found: task.paint" {
		t.Errorf("%q", e.Message)
	}
}

// A summary has the numbers, the running tasks and the five newest ones with short prompts.
func TestSummary(t *testing.T) {
	t.Parallel()
	c := serve(t, rpc.Config{}).dial()
	c.call("task.submit", obj{"prompt": "first", "agent": "a"})
	c.call("task.start", obj{"taskId": "task-0001", "pid": 7})
	c.call("task.submit", obj{"prompt": "second"})
	c.call("task.complete", obj{"taskId": "task-0002", "result": "r"})
	for range 5 {
		c.call("task.submit", obj{"prompt": strings.Repeat("ä", 200)})
	}
	raw, _ := c.try("task.summary", nil)
	var got struct {
		Stats   struct{ Total, Queued, Running, Completed int }
		Running []struct {
			ID, Prompt, Agent, StartedAt string
			PID                          int
		}
		Recent []struct{ ID, Prompt, State string }
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Stats.Total != 7 || got.Stats.Running != 1 || got.Stats.Completed != 1 || len(got.Running) != 1 ||
		got.Running[0].ID != "task-0001" || got.Running[0].Agent != "a" || got.Running[0].StartedAt == "" ||
		got.Running[0].PID != 7 {
		t.Errorf("%s", raw)
	}
	if len(got.Recent) != 5 || got.Recent[0].ID != "task-0007" || got.Recent[0].Prompt != strings.Repeat("ä", 80) {
		t.Errorf("recent: %s", raw)
	}
}

// Clients see imported tasks, also those below a root, and cannot execute them.
func TestImportedTasksAreShown(t *testing.T) {
	t.Parallel()
	b := serve(t, rpc.Config{})
	c := b.dial()
	imported(t, b, `{"id":"task-0003","prompt":"alone","agent":"x","state":"running","pid":7,
			"createdAt":"2026-02-09T10:00:00Z","metadata":{"team":"red"}},
		{"id":"task-0011","prompt":"root","state":"completed","result":"r","createdAt":"2026-02-09T10:00:00Z",
			"completedAt":"2026-02-09T10:01:00Z","metadata":{"tree_id":"tree-12345678","parent_id":null,
			"rlm_state":{"n":{"name":"n","value":3,"type":"number"}}}},
		{"id":"task-0012","prompt":"part","state":"failed","error":"it broke","createdAt":"2026-02-09T10:00:00Z",
			"completedAt":"2026-02-09T10:01:00Z","metadata":{"tree_id":"tree-12345678","parent_id":"task-0011"}}`)
	mine := c.call("task.submit", obj{"prompt": "new"}).TaskID
	for _, test := range []struct {
		params obj
		want   string
	}{
		{obj{}, "13 12 11 3"}, {obj{"limit": 2}, "13 12"}, {obj{"before": "task-0012"}, "11 3"},
		{obj{"state": "failed"}, "12"}, {obj{"agent": "x"}, "3"}, {obj{"before": mine, "limit": 1}, "12"},
	} {
		if got := strings.Join(list(c, test.params), " "); got != test.want {
			t.Errorf("%v: %s, want %s", test.params, got, test.want)
		}
	}
	alone, child := c.call("task.get", obj{"taskId": "task-0003"}), c.call("task.get", obj{"taskId": "task-0012"})
	if diff := cmp.Diff(map[string]any{"team": "red"}, alone.Metadata); diff != "" || alone.State != "queued" {
		t.Errorf("alone: %s", alone.raw)
	}
	if child.Error == nil || *child.Error != "it broke" || child.Metadata["parent_id"] != "task-0011" ||
		child.Metadata["tree_id"] != "tree-12345678" {
		t.Errorf("child: %s", child.raw)
	}
	root := c.call("task.get", obj{"taskId": "task-0011"})
	if !strings.Contains(string(root.raw), `"n":{"name":"n","value":3`) {
		t.Errorf("root: %s", root.raw)
	}
	if raw, _ := c.try("task.stats", nil); string(raw) != `{"total":4,"queued":2,"running":0,"completed":1,"failed":1,`+
		`"cancelled":0}` {
		t.Errorf("stats: %s", raw)
	}
	// The supervisor has only the tasks that are executed; the numbers are those of task.stats.
	var status struct {
		Stats      obj `json:"task_stats"`
		Subsystems struct{ Supervisor json.RawMessage }
	}
	raw, _ := c.try("daemon.status", nil)
	if err := json.Unmarshal(raw, &status); err != nil || status.Stats["total"] != 4.0 ||
		string(status.Subsystems.Supervisor) != `{"running":0,"queued":1,"maxConcurrency":0,"tasks":{"running":[],`+
			`"queued":[{"id":"task-0013","prompt":"new","agent":null,"priority":0}]}}` {
		t.Errorf("status: %s", raw)
	}
	e := c.refusal(rpc.CodeConflict, "task.start", obj{"taskId": "task-0003"})
	if !strings.Contains(e.Message, "was imported") {
		t.Errorf("start: %+v", e)
	}
	if got := c.call("task.cancel", obj{"taskId": "task-0003"}); !got.Cancelled {
		t.Errorf("cancel: %s", got.raw)
	}
}
