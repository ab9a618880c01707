package loop_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/aiwg/loopimport"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/testing/testdb"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/record"
)

// anyAgent finds every agent; none of them is ever run.
type anyAgent struct{}

// Agent returns no agent.
func (anyAgent) Agent(loop.AgentSpec) (agent.Agent, error) { return nil, nil }

// takenIn imports a document into a new store and returns that loop's.
func takenIn(t testing.TB, doc []byte) loopview.State {
	t.Helper()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	read, notes, err := loops.ReadState("state.json", doc)
	if err != nil || len(notes) > 0 {
		t.Fatalf("%+v, %v", notes, err)
	}
	engine, err := loop.New(t.Context(),
		loop.EngineConfig{Store: s, Agents: anyAgent{}, Dir: filepath.Join(t.TempDir(), "loops")})
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]string{"workspace": t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	in, err := loopimport.Import(t.Context(), s, engine,
		loopimport.Request{Document: read, From: "state.json", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return stateOf(t, s, &in.Tree)
}

// stateOf is the document of a loop of a store.
func stateOf(t testing.TB, s *perdure.Store, tree *perdure.Tree) loopview.State {
	t.Helper()
	in, err := loopview.Read(t.Context(), s, tree)
	if err != nil {
		t.Fatal(err)
	}
	if in.Iterations, err = recordsOf(t, s, tree); err != nil {
		t.Fatal(err)
	}
	return loopview.Document(in)
}

func members(t testing.TB, doc any) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(raw(t, doc), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A loop that runs here, goes elsewhere and comes from there again says what it
// said before, but for what has to be otherwise: what it is called there, where it
// stands, and that none of its files are there.
func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	in := scene{t, "Fix the tests"}.asking()
	tree := saved(t, s, &in, t.TempDir())
	first := stateOf(t, s, &tree)
	again := takenIn(t, raw(t, first))
	valid(t, "loop-state", again)
	valid(t, "persistence-extension", again)
	was, is := members(t, first), members(t, again)
	from, _ := is["imported_from"].(map[string]any)
	if from["loop_id"] != was["loop_id"] || from["iteration"] != 7.0 || from["file"] != "state.json" {
		t.Errorf("imported from %v", from)
	}
	replaced, _ := from["replaced"].(map[string]any)
	differ := []string{"loop_id", "tree_id", "status", "step", "reason", "last_updated", "working_directory",
		"recovery_in_progress", "stuck_loop_detected"}
	for key, value := range was {
		if slices.Contains(differ, key) {
			if !cmp.Equal(value, is[key]) && !cmp.Equal(value, replaced[key]) {
				t.Errorf("%s: %v is lost: it is %v, and %v was replaced", key, value, is[key], replaced[key])
			}
			continue
		}
		if key == "metrics" { // of which time goes on
			value.(map[string]any)["total_duration_seconds"], is[key].(map[string]any)["total_duration_seconds"] = 0, 0
			delete(is[key].(map[string]any), "average_iteration_time_seconds")
			delete(value.(map[string]any), "average_iteration_time_seconds")
		}
		if diff := cmp.Diff(value, is[key]); diff != "" {
			t.Errorf("%s (-here +elsewhere):\n%s", key, diff)
		}
	}
	// And once more: nothing is added but where it is from.
	third := members(t, takenIn(t, raw(t, again)))
	for key := range third {
		if _, there := is[key]; !there {
			t.Errorf("%s is new", key)
		}
	}
	if diff := cmp.Diff(is["iteration_history"], third["iteration_history"]); diff != "" {
		t.Errorf("history (-second +third):\n%s", diff)
	}
}

// What a person marked as a false alarm is counted wherever the loop goes, once.
func TestFalseAlarmsGoAlong(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	in := scene{t, "Fix the tests"}.asking()
	tree := saved(t, s, &in, t.TempDir())
	doc := members(t, stateOf(t, s, &tree))
	events := doc["regression_events"].([]any)
	events[0].(map[string]any)["false_positive"] = true
	for range 2 {
		doc = members(t, takenIn(t, raw(t, doc)))
		watched := doc["persistence_metrics"].(map[string]any)
		if want := 1 / float64(len(events)); watched["false_positives"] != 1.0 || watched["false_positive_rate"] != want {
			t.Errorf("%v of %d are false, a rate of %v", watched["false_positives"], len(events), watched["false_positive_rate"])
		}
		if marked := doc["regression_events"].([]any)[0].(map[string]any)["false_positive"]; marked != true {
			t.Errorf("the event lost its mark: %v", marked)
		}
	}
}

// Unknown members are exported again, and histories continue.
func TestStateGoesOn(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.done()
	const document = `{"version":"2.1.0","loop_id":"ralph-x-a1b2c3d4","status":"running","iteration":6,"task":"Fix the tests","started_at":"2026-02-01T08:00:00Z","owner":"somebody",
		"custom":{"kept":[1.50,"<&>"]},"configuration":{"interactive":true,"max_iterations":200},
		"metrics":{"total_tokens":1000,"total_cost_usd":0.5,"total_iterations":6},"baseline_metrics":{"test_count":150,"coverage_percentage":85},
		"iteration_history":[{"iteration":2,"quality_score":85,"notes":"the best"},{"iteration":6,"quality_score":70.25}],"best_iteration":{"iteration":2,"quality_score":85},
		"reinforcement_level":"AGGRESSIVE","reinforcement_history":[{"iteration":5,"to_level":"AGGRESSIVE"}],"risky_actions":[{"tool":"Bash"}],"recovery_attempts":4,
		"detected_patterns":["test_deletion"],"progress":{"estimated_completion":"soon","completion_checks":[{"iteration":6,"passed":false}]}}`
	in.Document = json.RawMessage(document)
	var state map[string]any
	if err := json.Unmarshal(in.Loop.State, &state); err != nil {
		t.Fatal(err)
	}
	delete(state, "levels")
	state["past"] = map[string]any{"document": "x", "loop_id": "ralph-x-a1b2c3d4", "iteration": 6, "at": when(0)}
	in.Loop.State = raw(t, state)
	d := loopview.Document(in)
	valid(t, "loop-state", d)
	m := members(t, d)
	history := m["iteration_history"].([]any)
	if len(history) != 4 || history[0].(map[string]any)["notes"] != "the best" ||
		history[2].(map[string]any)["iteration"] != 7.0 {
		t.Errorf("history: %v", history)
	}
	if m["started_at"] != "2026-02-01T08:00:00Z" || m["owner"] != "somebody" ||
		m["reinforcement_level"] != "AGGRESSIVE" || m["recovery_attempts"] != 4.0 {
		t.Errorf("%v", m)
	}
	metrics := m["metrics"].(map[string]any)
	if metrics["total_tokens"] != 29_700.0 || metrics["total_cost_usd"] != 0.78 {
		t.Errorf("metrics: %v", metrics)
	}
	if c := m["configuration"].(map[string]any); c["interactive"] != true || c["max_iterations"] != 10.0 {
		t.Errorf("configuration: %v", c)
	}
	progress := m["progress"].(map[string]any)
	// 6, the baseline, 7, 8
	if progress["estimated_completion"] != "soon" || len(progress["completion_checks"].([]any)) != 4 {
		t.Errorf("progress: %v", progress)
	}
	replaced := m["imported_from"].(map[string]any)["replaced"].(map[string]any)
	if replaced["best_iteration"].(map[string]any)["iteration"] != 2.0 ||
		replaced["baseline_metrics"].(map[string]any)["coverage_percentage"] != 85.0 ||
		replaced["configuration"].(map[string]any)["max_iterations"] != 200.0 || replaced["iteration"] != 6.0 {
		t.Errorf("replaced: %v", replaced)
	}
	custom, err := json.Marshal(m["custom"])
	if err != nil || !slices.Equal(m["detected_patterns"].([]any), []any{"test_deletion", "test_failure"}) ||
		len(m["risky_actions"].([]any)) != 1 {
		t.Errorf("patterns %v, custom %s", m["detected_patterns"], custom)
	}
}

func recordsOf(t testing.TB, s *perdure.Store, tree *perdure.Tree) ([]record.Iteration, error) {
	t.Helper()
	return record.New(s).Iterations(t.Context(), tree.ID, 0, 1000)
}
