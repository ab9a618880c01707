package perdure_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is a task with everything set.
func sample() perdure.Task {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	return perdure.Task{
		ID: 42, Node: perdure.TaskID(42).Node(), Tree: "tree-1a2b3c4d", Parent: 7, Depth: 2, Position: 3,
		Prompt: "What is <this> & \"that\"?\n", Agent: "reader", Priority: -5, State: perdure.Completed,
		Strategy: perdure.Sequential, Policy: perdure.PolicyFail, Merge: "concatenate",
		Context: perdure.ContextRef{Type: "slice", Source: "ctx-0123456789abcdef", Offset: 10, Length: 20, SizeTokens: 5,
			Hash: "abc"},
		Metadata: json.RawMessage(`{"rlm_state":{"n":1},"mine":[1,2]}`),
		Attempts: 2, MaxAttempts: 4, Result: "It is.", Data: json.RawMessage(`{"citations":[]}`), Output: "It…",
		Usage: perdure.Usage{Calls: 2, InputTokens: 100, OutputTokens: 20, CachedTokens: 3, CostUSD: 0.25,
			UnpricedCalls: 1},
		CreatedAt: at, StartedAt: at.Add(time.Second), CompletedAt: at.Add(2 * time.Second),
		Active: 1_234_567 * time.Microsecond,
	}
}

func samples() map[string]perdure.Task {
	queued := perdure.Task{ID: 1, Node: perdure.TaskID(1).Node(), Tree: "tree-00000000", State: perdure.Queued,
		Attempts: 1, MaxAttempts: 3,
		Strategy: perdure.Parallel, Policy: perdure.PolicyPartial, Context: perdure.ContextRef{Type: "none"},
		Metadata:  json.RawMessage(`{}`),
		CreatedAt: time.Unix(1, 0).UTC()}
	blocked := queued
	blocked.Parent, blocked.WaitsFor = 9, 8
	running := sample()
	running.State, running.Result, running.Data, running.CompletedAt = perdure.Running, "", nil, time.Time{}
	running.Error = &perdure.TaskError{Kind: "timeout", Message: "the attempt before"}
	running.Lease = &perdure.LeaseInfo{Session: "sess-1", Fence: 3, ClaimedAt: time.Unix(2, 0).UTC(), Lost: true}
	running.ReadyAt, running.Pending = time.Unix(3, 0).UTC(), 2
	empty := sample()
	empty.Result = ""
	return map[string]perdure.Task{"completed": sample(), "queued": queued, "blocked": blocked, "running": running,
		"empty": empty}
}

// The JSON of a task comes back as the same task.
func TestTaskJSON(t *testing.T) {
	t.Parallel()
	for name, task := range samples() {
		raw, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		var back perdure.Task
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(sorted(t, task), sorted(t, back)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		again, err := json.Marshal(back)
		if err != nil || !bytes.Equal(again, raw) {
			t.Errorf("%s: written again it differs: %v\n%s\n%s", name, err, raw, again)
		}
	}
	for us := range 3_000 {
		task := sample()
		task.Active = time.Duration(us*1001) * time.Microsecond
		raw, err := json.Marshal(task)
		var back perdure.Task
		if err != nil || json.Unmarshal(raw, &back) != nil || back.Active != task.Active {
			t.Fatalf("active %v came back as %v", task.Active, back.Active)
		}
	}
}

// sorted gives the metadata the order in which it is written.
func sorted(t *testing.T, task perdure.Task) perdure.Task {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(task.Metadata, &all); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	task.Metadata = raw
	return task
}

func TestShowTaskJSON(t *testing.T) {
	t.Parallel()
	cost, at := 0.5, time.Unix(5, 0).UTC()
	shown := perdure.ShowTask{Task: sample(),
		Calls: []perdure.Call{{ID: 3, Task: 42, Attempt: 1, State: perdure.CallCompleted, Model: "m",
			RequestHash: "h", Response: "r", Data: json.RawMessage(`{"a":1}`), Tries: 1, InputTokens: 4, CostUSD: &cost,
			StartedAt: at, EndedAt: &at}}}
	raw, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var back perdure.ShowTask
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	shown.Task = sorted(t, shown.Task)
	if diff := cmp.Diff(shown, back); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	raw, err = json.Marshal(perdure.ShowTask{Task: sample()})
	if err != nil || !bytes.Contains(raw, []byte(`"calls":[]`)) {
		t.Errorf("a task without calls: %s, %v", raw, err)
	}
}

// The shape is what programs rely on; -update rewrites it.
func TestTaskGolden(t *testing.T) {
	t.Parallel()
	for name, task := range samples() {
		got, err := json.MarshalIndent(task, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		path := filepath.Join("testdata", "task-"+name+".json")
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
	}
}

// What parses as a task is written and read again as the same.
func FuzzTaskJSON(f *testing.F) {
	for _, task := range samples() {
		raw, err := json.Marshal(task)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"id":"task-0001","metadata":{"rlm_state":{}},"createdAt":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var task perdure.Task
		if json.Unmarshal(raw, &task) != nil {
			return
		}
		first, err := json.Marshal(task)
		if err != nil {
			return // a time outside the years that can be written
		}
		var back perdure.Task
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, first)
		}
		second, err := json.Marshal(back)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("written again it differs: %v\n%s\n%s", err, first, second)
		}
	})
}

// TestUnknownCostIsNull: in JSON a cost of which nothing is known is null, never 0, and comes
// back as usage of unknown price.
func TestUnknownCostIsNull(t *testing.T) {
	t.Parallel()
	for text, u := range map[string]perdure.Usage{
		`"cost_usd":null,"unpriced_calls":2`: {Calls: 2, UnpricedCalls: 2},
		`"cost_usd":0.5,"unpriced_calls":1`:  {Calls: 2, UnpricedCalls: 1, CostUSD: 0.5},
		`"cost_usd":0,"uncertain_calls"`:     {Calls: 1},
	} {
		task := perdure.Task{Usage: u, Metadata: json.RawMessage("{}")}
		for _, v := range []any{u, perdure.CostLine{Depth: 1, Model: "m", Usage: u}, perdure.Progress{Usage: u}, task} {
			raw, err := json.Marshal(v)
			if err != nil || !strings.Contains(string(raw), text) {
				t.Errorf("%T is %s, %v, want %s", v, raw, err, text)
			}
		}
		raw, err := json.Marshal(perdure.CostLine{Depth: 1, Model: "m", Usage: u})
		var back perdure.CostLine
		if err == nil {
			err = json.Unmarshal(raw, &back)
		}
		if err != nil || back.Usage != u || back.Model != "m" || back.Depth != 1 {
			t.Errorf("%s comes back as %+v, %v", raw, back, err)
		}
		total := `"total_cost_usd":null`
		if raw, _ = json.Marshal(task); strings.Contains(string(raw), total) != (u.UnpricedCalls == 2) {
			t.Errorf("task is %s", raw)
		}
	}
}
