package loopimport_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/aiwg/loopimport"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/record"
)

// agents knows all agents but one. None is run.
type agents struct{}

// Agent finds an agent that does nothing.
func (agents) Agent(spec loop.AgentSpec) (agent.Agent, error) {
	if spec.Name == "missing" {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: "there is no agent \"missing\""}
	}
	return nil, nil
}

// bench is a store to import into, with an engine and a workspace.
type bench struct {
	*testing.T
	store   *perdure.Store
	records *record.Records
	engine  *loop.Engine
	dir     string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, store: testdb.Open(t, perdure.Config{Dir: t.TempDir()}), dir: t.TempDir()}
	b.records = record.New(b.store)
	var err error
	b.engine, err = loop.New(t.Context(),
		loop.EngineConfig{Store: b.store, Agents: agents{}, Dir: filepath.Join(t.TempDir(), "loops")})
	b.ok(err)
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// elsewhere is the state of a loop of another program. Iteration 8 is under way
// there; of 3 to 6 nothing is known.
func elsewhere(status string) json.RawMessage {
	return json.RawMessage(`{"version":"2.0.0","loop_id":"ralph-fix-tests-a1b2c3d4","status":"` + status +
		`","iteration":8,"task":"Make the tests pass!",
		"completion_criteria":"all tests pass","started_at":"2026-02-02T21:00:00Z","pid":4711,"working_directory":"/somewhere",
		"configuration":{"max_iterations":20,"timeout_minutes":null},
		"progress":{"completion_checks":[{"iteration":7,"passed":false,"output":"2 failed"}]},
		"iteration_history":[{"iteration":1,"timestamp":"2026-02-02T21:01:00Z","quality_score":60.4,"artifacts":["a.go",{"path":"b.go"}],"quality_breakdown":{"validation":50,"efficiency":null}},
			{"iteration":2,"quality_score":85,"test_results":{"verification_status":"passed","total":10,"passed":9,"skipped":1},"snapshot_path":"../../etc/passwd"},
			{"iteration":7,"quality_score":70,"regression_detected":true},{"iteration":7,"quality_score":71,"status":{"odd":1}}],
		"best_iteration":{"iteration":2,"quality_score":85},
		"regression_events":[{"event_id":"reg-001","iteration":7,"regression_type":"test_deletion","severity":"critical","human_decision":"reject",
			"details":{"baseline_value":150,"current_value":148,"diff":{"deleted_tests":["login: email"],"files":["test/a.ts"]}}}],
		"recovery_history":[{"event_id":"reg-001","attempt":1,"outcome":"escalated","steps":{"DIAGNOSE":{"executed_at":"2026-02-02T21:15:10Z","root_cause":"deleted","confidence":0.95,"diagnosis":"reward_hacking"},
			"PAUSE":{"executed_at":"2026-02-02T21:15:05Z","actions":["x"]}}}],
		"error_history":[{"iteration":2,"error_type":"TypeError","error_message":"at line 42"}],"custom":{"kept":1}}`)
}

// takeIn imports a document with the flags that it takes.
func (b *bench) takeIn(doc json.RawMessage, change func(fields map[string]any)) (loopimport.Imported, error) {
	b.Helper()
	fields := map[string]any{"until": "sh check.sh", "workspace": b.dir, "agent": "scripted"}
	if change != nil {
		change(fields)
	}
	raw, err := json.Marshal(fields)
	b.ok(err)
	return loopimport.Import(b.Context(), b.store, b.engine,
		loopimport.Request{Document: doc, From: "state.json", Config: raw,
			Settings: json.RawMessage(`{"max_retries":1,"idle_timeout":60000000000,"max_iterations":3}`)})
}

// The document overrides the settings, and the flags override the document. Differences
// are noted, and the document is kept unchanged.
func TestImport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in, err := b.takeIn(elsewhere("running"), nil)
	b.ok(err)
	if in.Iterations != 3 || in.Next != 9 || in.Config.MaxIterations != 20 || in.Config.Timeout != -1 ||
		in.Config.MaxRetries != 1 || in.Config.IdleTimeout != time.Minute {
		t.Errorf("imported %+v", in)
	}
	notes := strings.Join(in.Notes, "\n")
	for _, want := range []string{"process 4711", "iteration 7 has two records", "iteration 8 was not finished",
		"iteration 2 was the best so far; its files are not", b.dir} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not tell %q:\n%s", want, notes)
		}
	}
	l, err := b.records.Loop(t.Context(), in.Tree.ID)
	if err != nil || l.Status != record.Paused || l.Iteration != 8 {
		t.Errorf("the loop %+v, %v", l, err)
	}
	doc, err := b.records.Document(t.Context(), in.Tree.ID)
	b.ok(err)
	if string(doc) != string(elsewhere("running")) {
		t.Errorf("the document became %s", doc)
	}
}

// The records of then say what the document says, and none of them may be
// brought back: a snapshot's name is not trusted.
func TestImportedRecords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in, err := b.takeIn(elsewhere("paused"), nil)
	b.ok(err)
	list, err := b.records.Iterations(t.Context(), in.Tree.ID, 0, 10)
	b.ok(err)
	all := make([]state.Outcome, len(list))
	for i := range list {
		if all[i], err = state.ReadOutcome(&list[i]); err != nil {
			t.Fatal(err)
		}
		if o := &all[i]; !o.Imported || o.After != "" || o.Before != "" || o.Eligible(&list[i]) || list[i].EndedAt == nil ||
			list[i].Task != in.Tree.Root {
			t.Errorf("iteration %d: %+v", list[i].Number, o)
		}
	}
	one, two, seven := &all[0], &all[1], &all[2]
	if *one.Quality != 60 || fmt.Sprint(one.Artifacts) != "[a.go b.go]" || one.Parts["validation"] != 50 ||
		len(one.Parts) != 1 || !one.Check.Skipped {
		t.Errorf("iteration 1: %+v", one)
	}
	if !list[0].StartedAt.Equal(time.Date(2026, 2, 2, 21, 1, 0, 0, time.UTC)) ||
		!list[1].StartedAt.Equal(time.Date(2026, 2, 2, 21, 0, 0, 0, time.UTC)) {
		t.Errorf("times %s and %s", list[0].StartedAt, list[1].StartedAt)
	}
	if !two.Check.Passed || two.Check.Counts.Tests != 10 || two.Check.Weak || two.AgentError != "TypeError: at line 42" {
		t.Errorf("iteration 2: %+v", two)
	}
	g, v := seven.Regressions[0], seven.Recoveries[0]
	if *seven.Quality != 71 || seven.Check.Skipped || seven.Check.Output != "2 failed" ||
		g.Text != "changed from 150 to 148" ||
		g.Tests[0] != "login: email" || g.Files[0] != "test/a.ts" {
		t.Errorf("iteration 7: %+v", seven)
	}
	if v.Diagnosis != state.RewardHacking || v.Confidence != 95 || v.Why != "deleted" || len(v.Steps) != 2 ||
		v.Steps[0].Step != "pause" || v.Outcome != "escalated" {
		t.Errorf("recovery %+v", v)
	}
}

// What cannot go on is refused, with a way out, before anything exists.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	set := func(key string, value any) func(map[string]any) {
		return func(fields map[string]any) { fields[key] = value }
	}
	without := func(key string) func(map[string]any) {
		return func(fields map[string]any) { delete(fields, key) }
	}
	changed := func(old, with string) json.RawMessage {
		return json.RawMessage(strings.Replace(string(elsewhere("paused")), old, with, 1))
	}
	tests := []struct {
		name   string
		doc    json.RawMessage
		change func(map[string]any)
		code   perdure.Code
		want   string
		hint   string
	}{
		{"ended", elsewhere("completed"), nil, perdure.CodeConflict, "has ended: completed", "perdure import"},
		{"failed", elsewhere("failed"), nil, perdure.CodeConflict, "has ended: failed", "perdure import"},
		{"words", elsewhere("paused"), without("until"), perdure.CodeInvalid, `not a command: "all tests pass"`,
			"--until COMMAND"},
		{"a command in words", changed("all tests pass", "sh check.sh passes."), without("until"), perdure.CodeInvalid,
			"not a command", `perhaps --until "sh check.sh"`},
		{"a program that is not here", changed("all tests pass", "no-such-program --check"), without("until"),
			perdure.CodeInvalid, "not a command", "--until"},
		{"no criteria", changed(`"completion_criteria":"all tests pass",`, ""), without("until"), perdure.CodeInvalid,
			"no completion_criteria", "--until"},
		{"no agent", elsewhere("paused"), without("agent"), perdure.CodeInvalid, "does not name the agent", "--agent"},
		{"an agent that is not there", elsewhere("paused"), set("agent", "missing"), perdure.CodeInvalid,
			"there is no agent", ""},
		{"no workspace", elsewhere("paused"), set("workspace", "/no/such/folder"), perdure.CodeInvalid,
			"workspace is missing",
			""},
		{"no iterations left", changed(`"max_iterations":20`, `"max_iterations":8`), nil, perdure.CodeInvalid,
			"iteration 8 was the last of 8", "--max-iterations"},
		{"too many", changed(`"iteration":8,`, `"iteration":10001,`), nil, perdure.CodeInvalid,
			"iteration 10001 exceeds", ""},
		{"no task", changed(`"task":"Make the tests pass!"`, `"task":" "`), nil, perdure.CodeInvalid, "task is missing", ""},
		{"a field that is none", elsewhere("paused"), set("colour", "red"), perdure.CodeInvalid, `no field "colour"`, ""},
		{"no integer", changed(`"iteration":8,`, `"iteration":1e300,`), nil, perdure.CodeInvalid, "not an integer", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			_, err := b.takeIn(tt.doc, tt.change)
			if perdure.CodeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.want) ||
				!strings.Contains(perdure.HintOf(err), tt.hint) {
				t.Errorf("%v (hint %q), want %s %q (hint %q)", err, perdure.HintOf(err), tt.code, tt.want, tt.hint)
			}
			trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{})
			b.ok(err)
			if len(trees) > 0 {
				t.Errorf("%d trees are there", len(trees))
			}
		})
	}
}

// A document of perdure has the whole configuration; unknown fields are noted.
func TestImportOwnConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	doc := strings.Replace(string(elsewhere("paused")), `"timeout_minutes":null`,
		`"timeout_minutes":90,"perdure":{"until":"sh check.sh","agent":"another","keep_last":true,"max_retries":7,`+
			`"workspace":"/etc","task":"another task","invented":1}`, 1)
	in, err := b.takeIn(json.RawMessage(doc),
		func(fields map[string]any) { delete(fields, "until"); delete(fields, "agent") })
	b.ok(err)
	c := &in.Config
	if c.Until != "sh check.sh" || c.Agent != "another" || !c.KeepLast || c.MaxRetries != 7 || c.Workspace != b.dir ||
		c.Task != "Make the tests pass!" || c.Timeout != 90*time.Minute {
		t.Errorf("configuration %+v", c)
	}
	if !strings.Contains(strings.Join(in.Notes, "\n"), `configuration.perdure.invented was not imported`) {
		t.Errorf("notes: %q", in.Notes)
	}
	for _, field := range []string{"until", "keep_last", "timeout", "workspace"} { // settings do not change them
		if !strings.Contains(strings.Join(c.Given, " "), field) {
			t.Errorf("%s is not given: %v", field, c.Given)
		}
	}
}

// FuzzImport reads documents whose members are not of the types that they should
// be: they are refused, or rows can be made of them.
func FuzzImport(f *testing.F) {
	f.Add([]byte(elsewhere("paused")))
	f.Add([]byte(`{"iteration_history":[{"iteration":1,"artifacts":[7]}]}`))
	f.Add([]byte(`{"iteration":-4,"regression_events":[{"iteration":-1}],"recovery_history":[{"steps":{"PAUSE":null}}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		rows, err := loopimport.RowsForTest(doc)
		for i := range rows {
			o, readErr := state.ReadOutcome(&rows[i])
			if readErr != nil || !o.Imported || o.After != "" || rows[i].Number <= 0 || i > 0 &&
				rows[i].Number <= rows[i-1].Number || len(rows[i].Data) > record.MaxIterationBytes {
				t.Fatalf("row %d: %+v, %v", i, rows[i], readErr)
			}
		}
		if err != nil && len(rows) > 0 {
			t.Fatal("rows beside an error")
		}
	})
}
