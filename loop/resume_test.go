package loop_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// request is what a resume asks for.
func request(config, settings string) record.ResumeRequest {
	return record.ResumeRequest{Config: json.RawMessage(config), Settings: json.RawMessage(settings)}
}

// resume asks the loop to continue and returns the reported differences.
func (b *bench) resume(req record.ResumeRequest) string {
	b.Helper()
	r, err := b.engine.Resume(b.Context(), b.tree.ID, req)
	b.ok(err)
	if r.Loop.Control != record.Resume {
		b.Errorf("the wish is %q", r.Loop.Control)
	}
	var lines []string
	for _, c := range r.Changes {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, ", ")
}

// config is what the loop is to do now.
func (b *bench) config() config.Config {
	b.Helper()
	row := b.row()
	c, err := config.Of(&b.tree, &row)
	b.ok(err)
	return c
}

// TestResumeReadsSettings: explicit values stand over settings, what is asked
// for now over both, and stays so.
func TestResumeReadsSettings(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("x", "1"), write("x", "2"), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxIterations, c.Given = 1, []string{"timeout"} })
	b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Pause))
	if l := b.work(); l.Status != record.Paused {
		t.Fatal(show(l))
	}
	got := b.resume(request("", `{"max_iterations":2,"timeout":60000000000,"keep_last":true}`))
	if want := "max_iterations 1 -> 2, keep_last false -> true"; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	got = b.resume(request(`{"max_iterations":5,"fallback":["other"]}`, `{"max_iterations":3,"keep_last":false}`))
	if want := "fallback [] -> [other], max_iterations 2 -> 5, keep_last true -> false"; got != want {
		t.Errorf("changes %q, want %q", got, want)
	}
	if got := b.resume(request("", `{"max_iterations":3,"keep_last":false}`)); got != "" {
		t.Errorf("what was asked for before is overridden: %q", got)
	}
	if diff := cmp.Diff([]string{"fallback", "max_iterations", "timeout"}, b.config().Given); diff != "" {
		t.Error(diff)
	}
	if l := b.work(); l.Status != record.Completed || l.Iteration != 3 {
		t.Errorf("it does not go by the new configuration: %s", show(l))
	}
	events, err := b.store.Events(t.Context(), perdure.EventFilter{Tree: b.tree.ID})
	b.ok(err)
	var told []string
	for _, e := range events {
		if e.Kind == record.EventConfigured {
			told = append(told, string(e.Data))
		}
	}
	want := []string{
		`{"changes":[{"field":"max_iterations","from":"1","to":"2"},{"field":"keep_last","from":"false","to":"true"}]}`,
		`{"changes":[{"field":"fallback","from":"[]","to":"[other]"},{"field":"max_iterations","from":"2","to":"5"},` +
			`{"field":"keep_last","from":"true","to":"false"}]}`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	b.sound()
}

// TestResumeOfCancelledTree: a loop whose tree was cancelled says so and can be ended.
func TestResumeOfCancelledTree(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch()
	_, err := b.store.CancelTree(t.Context(), b.tree.ID, "by the user")
	b.ok(err)
	_, err = b.engine.Resume(t.Context(), b.tree.ID, record.ResumeRequest{})
	if perdure.CodeOf(err) != perdure.CodeConflict || !strings.Contains(err.Error(), "is cancelled although the loop") ||
		!strings.Contains(perdure.HintOf(err), "perdure loop abort") {
		t.Errorf("%v, hint %q", err, perdure.HintOf(err))
	}
	b.ask(record.Abort)
	if l := b.row(); l.Status != record.Aborted {
		t.Error(show(l))
	}
	b.launch()
	b.work()
	b.sound()
}

// TestResumeIsNotWeakened: the file with the settings can be written by an agent, so
// they make nothing weaker without a person's word.
func TestResumeIsNotWeakened(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) {
		c.Given, c.Rules.Off, c.Rules.Protected = []string{}, []string{"open-ends"}, []string{"deploy/**"}
	})
	weak := map[string]string{
		"detection": `"off"`, "plain": `true`, "sealed": `"off"`, "sealed_setup": `"true"`, "coverage": `"off"`,
		"types": `"true"`, "lint": `"off"`,
		"coverage_threshold": `-1`, "sensitive_coverage_threshold": `5`, "sensitive_paths": `[]`, "quality_threshold": `1`,
		"retry_critical": `true`,
		"snapshot_risky": `"none"`, "risk_answers": `{"write_perdure":"allow"}`,
	}
	allowed, err := b.engine.Resume(t.Context(), b.tree.ID, request("", `{"risk_answers":{"command docker push":"allow"}}`))
	b.ok(err)
	if len(allowed.Changes) != 0 || len(allowed.Kept) != 1 {
		t.Errorf("an allowed command: changes %v, kept %v", allowed.Changes, allowed.Kept)
	}
	for field, value := range weak {
		r, err := b.engine.Resume(t.Context(), b.tree.ID, request("", `{"`+field+`":`+value+`}`))
		b.ok(err)
		if len(r.Changes) != 0 || len(r.Kept) != 1 || r.Kept[0].Field != field {
			t.Errorf("%s: changes %v, kept %v", field, r.Changes, r.Kept)
		}
	}
	for _, rules := range []string{`{}`, `{"patterns_off":["open-ends","skip-added"],"protected_paths":["deploy/**"]}`,
		`{"patterns_off":["open-ends"],"protected_paths":["deploy/**"],"patterns_enabled":["test_deletion"]}`,
		`{"patterns_off":["open-ends"],"protected_paths":["deploy/**"],"pattern_actions":{"T001":"tell"}}`,
		`{"patterns_off":["open-ends"],"protected_paths":["deploy/**"],"act_confidence":1}`} {
		r, err := b.engine.Resume(t.Context(), b.tree.ID, request("", `{"detection_rules":`+rules+`}`))
		b.ok(err)
		if len(r.Changes) != 0 || len(r.Kept) != 1 {
			t.Errorf("%s: changes %v, kept %v", rules, r.Changes, r.Kept)
		}
	}
	strong := `{"detection":"aggressive","sealed":"always","coverage_threshold":1,"risk_answers":{"delete_test":"block"},
		"detection_rules":{"patterns_off":[],"protected_paths":["deploy/**","ops/**"],"pattern_actions":{"stub-body":"act"}}}`
	r, err := b.engine.Resume(t.Context(), b.tree.ID, request("", strong))
	b.ok(err)
	if len(r.Changes) != 5 || r.Kept != nil {
		t.Errorf("what is stronger: changes %v, kept %v", r.Changes, r.Kept)
	}
	meant := request(`{"coverage_threshold":3}`, `{"detection":"minimal"}`)
	meant.Weaker = true
	if got := b.resume(meant); got != "coverage_threshold 1 -> 3, detection aggressive -> minimal" {
		t.Errorf("what is meant: %q", got)
	}
	other := request("", `{"detection_rules":{"protected_paths":["deploy/**","src/**"]}}`) // as many as before
	other.Weaker = true
	if got := b.resume(other); !strings.Contains(got, "protected deploy/** ops/**") ||
		!strings.Contains(got, "-> protected deploy/** src/**") {
		t.Errorf("other rules: %q", got)
	}
}

// TestResumeKeepsWhatAProgramGave: a configuration that does not tell which of its
// fields were given was given as a whole.
func TestResumeKeepsWhatAProgramGave(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch()
	if got := b.resume(request("", `{"max_iterations":2}`)); got != "" {
		t.Errorf("settings change it: %q", got)
	}
	if got := b.resume(request(`{"max_iterations":2}`, "")); got != "max_iterations 10 -> 2" || b.config().Given != nil {
		t.Errorf("changes %q, given %v", got, b.config().Given)
	}
}

// TestResumeRefuses: nothing is changed then, and nothing is wished.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch()
	before := b.row()
	for name, c := range map[string]struct {
		req  record.ResumeRequest
		want string
	}{
		"another task":      {request(`{"task":"other"}`, ""), "task cannot be changed"},
		"another folder":    {request(`{"workspace":"/elsewhere"}`, ""), "workspace cannot be changed"},
		"no field":          {request(`{"max_iteration":20}`, ""), `there is no field "max_iteration"`},
		"another case":      {request(`{"Task":"other"}`, ""), `there is no field "Task"`},
		"a setting of none": {request("", `{"colour":"red"}`), `settings: there is no field "colour"`},
		"who gave what":     {request(`{"given":[]}`, ""), `there is no field "given"`},
		"a bad value":       {request(`{"max_iterations":20000}`, ""), "max_iterations is 20000, must be 1 to 10000"},
		"a bad type":        {request(`{"max_iterations":"many"}`, ""), "max_iterations"},
		"no object":         {request(`[1]`, ""), "config: "},
		"no agent":          {request(`{"agent":"missing"}`, ""), "there is no agent"},
		"no stand-in":       {request(`{"fallback":["missing"]}`, ""), "there is no agent"},
	} {
		_, err := b.engine.Resume(t.Context(), b.tree.ID, c.req)
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(before, b.row()); diff != "" {
		t.Errorf("the row is different: %s", diff)
	}
	_, err := b.engine.Resume(t.Context(), "tree-00000000", record.ResumeRequest{})
	if perdure.CodeOf(err) != perdure.CodeNotFound {
		t.Errorf("no loop: %v", err)
	}
}

// TestResumeAfterTheEnd: a loop that failed goes on when it may do more iterations,
// from the files that it left, and says so otherwise.
func TestResumeAfterTheEnd(t *testing.T) {
	t.Parallel()
	better := func(w *turn) error { return errors.Join(w.write("tests/c", "pass"), w.write("tests/d", "fail")) }
	b := newBench(t, better, write("tests/d", "pass"), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxIterations = 1; c.Scorer = "echo 50" })
	if l := b.work(); l.Status != record.Failed {
		t.Fatal(show(l))
	}
	for _, req := range []record.ResumeRequest{{}, request(`{"max_iterations":1}`, "")} {
		_, err := b.engine.Resume(t.Context(), b.tree.ID, req)
		if perdure.CodeOf(err) != perdure.CodeConflict ||
			!strings.Contains(err.Error(), "has ended: failed after 1 iteration") ||
			!strings.Contains(perdure.HintOf(err), "--max-iterations") {
			t.Errorf("%v (%s)", err, perdure.HintOf(err))
		}
	}
	r, err := b.engine.Resume(t.Context(), b.tree.ID, request(`{"max_iterations":5}`, ""))
	b.ok(err)
	if r.Loop.Status != record.Running || len(r.Changes) != 1 || r.Changes[0].String() != "max_iterations 1 -> 5" {
		t.Errorf("%s, changes %v", show(r.Loop), r.Changes)
	}
	if l := b.work(); l.Status != record.Completed || l.Iteration != 3 {
		t.Errorf("it does not go on: %s", show(l))
	}
	if !strings.Contains(b.agent.prompts[1], "Iteration 1 (the check failed") {
		t.Errorf("the agent is not told of before:\n%s", b.agent.prompts[1])
	}
	b.sound()
	if _, err := b.engine.Resume(t.Context(), b.tree.ID, request(`{"max_iterations":9}`, "")); perdure.CodeOf(
		err) != perdure.CodeConflict ||
		!strings.Contains(perdure.HintOf(err), "loop run") {
		t.Errorf("one that is completed: %v (%s)", err, perdure.HintOf(err))
	}
}

// TestReopenedFromTheBest: the prompt then describes the files that are there.
func TestReopenedFromTheBest(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("quality", "80"),
		func(w *turn) error { return errors.Join(w.write("quality", "60"), w.write("tests/worse", "fail")) },
		write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxIterations, c.Scorer = 2, "cat quality 2>/dev/null || echo 10" })
	if l := b.work(); l.Status != record.Failed {
		t.Fatal(show(l))
	}
	_, err := b.engine.Resume(t.Context(), b.tree.ID, request(`{"max_iterations":4}`, ""))
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 3 {
		t.Errorf("it does not go on: %s", show(l))
	}
	prompt := b.agent.prompts[2]
	if !strings.Contains(prompt, "The workspace is that of iteration 1, which was the best one.") ||
		strings.Contains(prompt, "worse") {
		t.Errorf("the agent is told of other files:\n%s", prompt)
	}
}

// TestReopenedOnce: not where another loop works by now, and half a beginning is
// completed.
func TestReopenedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("x", "1"), write("x", "2"), write("tests/b", "pass"))
	one := func(c *config.Config) { c.MaxIterations = 1 }
	b.launch(one)
	b.work()
	first := b.tree
	b.launch()
	_, err := b.engine.Resume(t.Context(), first.ID, request(`{"max_iterations":5}`, ""))
	if perdure.CodeOf(err) != perdure.CodeConflict || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("two work in one folder: %v", err)
	}
	b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Abort))
	b.work()
	b.tree = first
	row, cfg := b.row(), b.config()
	cfg.MaxIterations = 5
	raw, err := json.Marshal(cfg)
	b.ok(err)
	row.Status, row.Step = record.Running, "next"
	row.State = json.RawMessage(strings.Replace(string(row.State), `"verdict":"failed"`, `"verdict":""`, 1))
	// and the process died
	b.ok(b.records.Reopen(t.Context(), &row, record.Reconfiguration{Before: row.Config, After: raw}))
	if err := b.records.Reopen(t.Context(), &row, record.Reconfiguration{Before: raw, After: raw}); perdure.CodeOf(
		err) != perdure.CodeConflict {
		t.Errorf("reopened twice: %v", err)
	}
	b.sound()
	_, err = b.engine.Resume(t.Context(), first.ID, record.ResumeRequest{})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed && l.Status != record.Failed {
		t.Errorf("no process continues: %s", show(l))
	}
}

// TestResumeWithAnotherAgent: the new one works, also where a stand-in did.
func TestResumeWithAnotherAgent(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, failing(agent.KindFailed), func(w *turn) error { b.ask(record.Pause); return w.write("x", "1") },
		write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.MaxRetries, c.Fallback = -1, []string{"other"} })
	b.work()
	b.resume(request(`{"agent":"better"}`, ""))
	l := b.work()
	if diff := cmp.Diff([]string{"scripted", "other", "better"}, b.agent.names); diff != "" ||
		l.Status != record.Completed {
		t.Errorf("%s; who worked: %s", show(l), diff)
	}
}

// TestResumeWithAnotherBudget: the tree is bounded by it.
func TestResumeWithAnotherBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.agent.model = "priced"
	b.restart(loop.EngineConfig{Price: tenMicros})
	b.launch(func(c *config.Config) { c.BudgetTokens = 50 })
	if got := b.resume(request(`{"budget_tokens":1000,"budget_usd":2.5}`, "")); got !=
		"budget_usd none -> 2.5, budget_tokens 50 -> 1000" {
		t.Errorf("changes %q", got)
	}
	tree, err := b.store.Tree(t.Context(), b.tree.ID)
	b.ok(err)
	if tree.Limits.Tokens != 1000 || tree.Limits.CostMicros != 2_500_000 {
		t.Errorf("limits %+v", tree.Limits)
	}
}

// TestReconfigureOnce: of two who change what they read one does.
func TestReconfigureOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("x", "1"))
	b.launch()
	old := b.row().Config
	b.ok(b.records.Reconfigure(t.Context(), b.tree.ID,
		record.Reconfiguration{Before: old, After: json.RawMessage(`{"a":1}`)}))
	err := b.records.Reconfigure(t.Context(), b.tree.ID,
		record.Reconfiguration{Before: old, After: json.RawMessage(`{"a":2}`)})
	if perdure.CodeOf(err) != perdure.CodeConflict || string(b.row().Config) != `{"a":1}` {
		t.Errorf("%v, configuration %s", err, b.row().Config)
	}
}
