package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// noAgents knows agents by name and has none.
type noAgents struct{}

func (noAgents) Agent(spec loop.AgentSpec) (agent.Agent, error) {
	if spec.Name == "missing" {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "find agent", Msg: "there is no agent \"missing\"",
			Hint: "install it"}
	}
	return nil, nil
}

// loops is a loop behind the API that no process executes.
type loops struct {
	*fixture
	records *record.Records
	tree    perdure.Tree
}

// eachLoop is each for loops.
func eachLoop(t *testing.T, test func(t *testing.T, f *loops)) {
	t.Helper()
	eachStore(t, func(t *testing.T, s *perdure.Store, w way) { test(t, newLoops(t, s, w)) })
}

func newLoops(t *testing.T, s *perdure.Store, w way) *loops {
	t.Helper()
	engine, err := loop.New(t.Context(),
		loop.EngineConfig{Store: s, Agents: noAgents{}, Dir: filepath.Join(t.TempDir(), "loops")})
	must(t, err)
	launch := launcherFunc(func(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
		cfg, err := config.Parse(req.Config)
		if err != nil {
			return perdure.Tree{}, err
		}
		return engine.Launch(ctx, loop.LaunchRequest{Config: cfg, Owner: req.Owner})
	})
	f := &loops{fixture: newFixture(t, s, w, server.Config{Launcher: launch, ResumeLoop: engine.Resume}),
		records: record.New(s)}
	cfg, err := json.Marshal(&config.Config{Task: "Fix it", Until: "make test", Workspace: t.TempDir(), Agent: "claude",
		Given: []string{"timeout"}, Approver: perdure.ApproverAny})
	must(t, err)
	f.tree, err = f.client.CreateTree(t.Context(), client.TreeRequest{Kind: perdure.KindLoop, Prompt: "Fix it",
		Config: cfg})
	must(t, err)
	return f
}

// save writes a change of the loop as its engine would.
func (f *loops) save(t *testing.T, c record.Change) {
	t.Helper()
	l, err := f.records.Loop(t.Context(), f.tree.ID)
	must(t, err)
	if c.Loop == nil {
		c.Loop = &l
	}
	c.Loop.Tree, c.Loop.Version = l.Tree, l.Version
	lease := f.one(t)
	must(t, f.records.Save(t.Context(), lease, c))
	must(t, lease.Release(t.Context()))
}

// What the store has of loops, their iterations and gates comes out as it is.
func TestLoops(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, f *loops) {
		ctx, quality := t.Context(), 85
		f.save(t, record.Change{Iteration: &record.Iteration{Number: 0, Status: record.IterationKept,
			Data: json.RawMessage(`{"a":"<&>"}`)}})
		f.save(t, record.Change{Iteration: &record.Iteration{Number: 1, Status: record.IterationRunning, Quality: &quality,
			Data: json.RawMessage(`{}`)},
			Gate: &perdure.Gate{Iteration: 1, Kind: perdure.GateStuck,
				Question: json.RawMessage(`{"title":"Why?","options":[{"answer":"abort","effect":"it ends"}]}`)}})
		want, err := f.records.Loop(ctx, f.tree.ID)
		must(t, err)
		got, err := f.client.Loop(ctx, f.tree.ID)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		all, err := f.client.Loops(ctx, 0)
		must(t, err)
		if diff := cmp.Diff([]record.Loop{want}, all); diff != "" {
			t.Error(diff)
		}
		its, err := f.client.Iterations(ctx, f.tree.ID, 0, 0)
		must(t, err)
		wantIts, err := f.records.Iterations(ctx, f.tree.ID, 0, 10)
		must(t, err)
		if diff := cmp.Diff(wantIts, its); diff != "" || len(its) != 2 {
			t.Errorf("%d iterations: %s", len(its), diff)
		}
		if its, err = f.client.Iterations(ctx, f.tree.ID, 1, 1); err != nil || len(its) != 1 || its[0].Number != 1 {
			t.Errorf("from the first one: %+v, %v", its, err)
		}
		gates, err := f.client.Gates(ctx, f.tree.ID)
		must(t, err)
		open, err := f.client.OpenGates(ctx)
		must(t, err)
		if diff := cmp.Diff(gates, open); diff != "" || len(gates) != 1 || gates[0].Kind != perdure.GateStuck {
			t.Errorf("gates %+v: %s", gates, diff)
		}
	})
}

// A loop is summed up, and its iterations come out in brief, as the records have
// them.
func TestLoopHistory(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, f *loops) {
		ctx, ended := t.Context(), time.Now().UTC().Truncate(time.Microsecond)
		for n := range 6 {
			quality, data := 50+n, `{"snapshot_path":"s","test_results":{"output":"long"}}`
			if n%2 == 1 {
				data = `{"regressions":[{"regression_type":"test_deletion","severity":"critical","text":"<&>"}]}`
			}
			f.save(t, record.Change{Iteration: &record.Iteration{Number: n, Status: record.IterationKept, Quality: &quality,
				Data: json.RawMessage(data), EndedAt: &ended}})
		}
		req := record.HistoryRequest{Threshold: 54, Each: 2, Below: 4}
		want, err := f.records.LoopHistory(ctx, f.tree.ID, req)
		must(t, err)
		got, err := f.client.LoopHistory(ctx, f.tree.ID, req)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" || got.Iterations != 5 || got.Total() != 3 || len(got.Columns) != 2 ||
			len(got.Candidates) != 1 {
			t.Errorf("history %+v: %s", got, diff)
		}
		if all, err := f.client.LoopHistory(ctx, f.tree.ID, record.HistoryRequest{Each: 1}); err != nil ||
			len(all.Columns) != 5 {
			t.Errorf("columns of all: %+v, %v", all.Columns, err)
		}
		best, err := f.client.LoopHistory(ctx, f.tree.ID, record.HistoryRequest{Threshold: 54, Best: true})
		if diff := cmp.Diff(record.History{Regressions: []record.Tally{}, Candidates: want.Candidates,
			Columns: []record.Column{}}, best); err != nil || diff != "" {
			t.Errorf("the best: %v, %s", err, diff)
		}
		briefs, err := f.client.Briefs(ctx, f.tree.ID, 2, 2)
		if err != nil || len(briefs) != 2 || briefs[0].Number != 2 || strings.Contains(string(briefs[0].Data), "long") ||
			!strings.Contains(string(briefs[1].Data), "test_deletion") {
			t.Errorf("briefs %+v, %v", briefs, err)
		}
		worse, err := f.client.Regressed(ctx, f.tree.ID, 0, 2)
		if err != nil || len(worse) != 2 || worse[0].Number != 5 || worse[1].Number != 3 {
			t.Errorf("regressed %+v, %v", worse, err)
		}
		if worse, err = f.client.Regressed(ctx, f.tree.ID, 3, 2); err != nil || len(worse) != 1 || worse[0].Number != 1 {
			t.Errorf("regressed below the third: %+v, %v", worse, err)
		}
		if _, err := f.client.LoopHistory(ctx, "tree-00000000", req); perdure.CodeOf(err) != perdure.CodeNotFound {
			t.Errorf("of no loop: %v", err)
		}
		for _, query := range []string{"history?threshold=101", "history?each=-1", "history?from=1", "history?best=maybe",
			"briefs?below=1", "regressed?from=1", "briefs?limit=0"} {
			if a := f.send(t, http.MethodGet, "/v1/loops/"+string(f.tree.ID)+"/"+query, ""); a.status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", query, a.status, a.body)
			}
		}
	})
}

// A gate takes one of its answers, once.
func TestAnswerGate(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, f *loops) {
		ctx := t.Context()
		f.save(t, record.Change{Gate: &perdure.Gate{Kind: perdure.GateStuck,
			Question: json.RawMessage(`{"title":"?","options":[{"answer":"abort"}]}`)}})
		_, err := f.client.AnswerGate(ctx, f.tree.ID, 1, perdure.GateDecision{Answer: "perhaps"})
		if perdure.CodeOf(err) != perdure.CodeInvalid || perdure.HintOf(err) != "possible answers: abort" {
			t.Errorf("an answer that is none: %v (%s)", err, perdure.HintOf(err))
		}
		if _, err := f.client.AnswerGate(ctx, f.tree.ID, 2, perdure.GateDecision{Answer: "abort"}); perdure.CodeOf(
			err) != perdure.CodeNotFound {
			t.Errorf("a gate that is none: %v", err)
		}
		g, err := f.client.AnswerGate(ctx, f.tree.ID, 1, perdure.GateDecision{Answer: "abort", By: "ann", Reason: "enough"})
		if err != nil || g.Answer != "abort" || g.AnsweredBy != "ann" || g.Reason != "enough" || g.AnsweredAt == nil {
			t.Errorf("answered: %+v, %v", g, err)
		}
		if _, err := f.client.AnswerGate(ctx, f.tree.ID, 1, perdure.GateDecision{Answer: "abort"}); perdure.CodeOf(
			err) != perdure.CodeConflict {
			t.Errorf("a second answer: %v", err)
		}
		if open, err := f.client.OpenGates(ctx); err != nil || len(open) != 0 {
			t.Errorf("open gates: %+v, %v", open, err)
		}
	})
}

// What is asked of a loop is in its row, and a loop is not ended or repeated in
// parts.
func TestAskLoop(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, f *loops) {
		ctx := t.Context()
		l, err := f.client.AskLoop(ctx, f.tree.ID, record.PauseNow)
		if err != nil || l.Control != record.PauseNow {
			t.Errorf("asked: %+v, %v", l, err)
		}
		if _, err := f.client.AskLoop(ctx, f.tree.ID, "dance"); perdure.CodeOf(err) != perdure.CodeInvalid ||
			!strings.Contains(perdure.HintOf(err), "pause_now") {
			t.Errorf("a wish that is none: %v (%s)", err, perdure.HintOf(err))
		}
		if _, err := f.client.AskLoop(ctx, "tree-00000000", record.Pause); perdure.CodeOf(err) != perdure.CodeNotFound {
			t.Errorf("a loop that is none: %v", err)
		}
		if _, err := f.client.CancelTree(ctx, f.tree.ID, ""); perdure.CodeOf(err) != perdure.CodeConflict ||
			!strings.Contains(perdure.HintOf(err), "loop abort") {
			t.Errorf("its tree is cancelled: %v", err)
		}
		if _, err := f.client.CancelTask(ctx, f.tree.Root, ""); perdure.CodeOf(err) != perdure.CodeConflict {
			t.Errorf("its root is cancelled: %v", err)
		}
		f.save(t, record.Change{Loop: &record.Loop{Status: record.Aborted, Step: "ended", State: json.RawMessage(`{}`)}})
		if _, err := f.client.AskLoop(ctx, f.tree.ID, record.Pause); perdure.CodeOf(err) != perdure.CodeConflict {
			t.Errorf("a wish to a loop that ended: %v", err)
		}
	})
}

// Resuming with another configuration tells what is different; it is in the row,
// and the control request is stored.
func TestResumeLoop(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, f *loops) {
		ctx := t.Context()
		r, err := f.client.ResumeLoop(ctx, f.tree.ID, record.ResumeRequest{})
		if err != nil || r.Loop.Control != record.Resume || r.Changes == nil || len(r.Changes) > 0 || len(r.Loop.Config) > 0 {
			t.Errorf("resumed as it is: %+v, %v", r, err)
		}
		r, err = f.client.ResumeLoop(ctx, f.tree.ID, record.ResumeRequest{Config: json.RawMessage(`{"agent":"codex"}`),
			Settings: json.RawMessage(`{"agent":"gemini","timeout":1,"max_iterations":20}`)})
		must(t, err)
		want := []record.FieldChange{{Field: "agent", From: "claude", To: "codex"},
			{Field: "max_iterations", From: "10", To: "20"}}
		if diff := cmp.Diff(want, r.Changes); diff != "" {
			t.Error(diff)
		}
		got, err := f.client.Loop(ctx, f.tree.ID)
		must(t, err)
		if cfg, err := config.Of(&f.tree, &got); err != nil || cfg.Agent != "codex" || cfg.MaxIterations != 20 ||
			!cmp.Equal(cfg.Given, []string{"agent", "timeout"}) {
			t.Errorf("the configuration is %+v, %v", cfg, err)
		}
		if tree, err := f.client.Tree(ctx, f.tree.ID); err != nil || !cmp.Equal(tree.Config, f.tree.Config) {
			t.Errorf("the configuration of the tree is different: %s, %v", tree.Config, err)
		}
		_, err = f.client.ResumeLoop(ctx, f.tree.ID, record.ResumeRequest{Config: json.RawMessage(`{"agent":"missing"}`)})
		if perdure.CodeOf(err) != perdure.CodeUnavailable || perdure.HintOf(err) != "install it" {
			t.Errorf("an agent that is not there: %v (%s)", err, perdure.HintOf(err))
		}
	})
}

// The body of a resume may be missing; one that is wrong is refused with the
// status of its fault.
func TestResumeLoopOverHTTP(t *testing.T) {
	t.Parallel()
	f := newLoops(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[0])
	path := "/v1/loops/" + string(f.tree.ID) + "/resume"
	for name, c := range map[string]struct {
		target, body string
		status       int
		want         string
	}{
		"no body":       {path, "", http.StatusOK, `"changes":[]`},
		"empty":         {path, "{}", http.StatusOK, `"wish":"resume"`},
		"unknown part":  {path, `{"configuration":{}}`, http.StatusBadRequest, "configuration"},
		"unknown field": {path, `{"config":{"max_iteration":2}}`, http.StatusBadRequest, "max_iteration"},
		"fixed field":   {path, `{"config":{"task":"other"}}`, http.StatusBadRequest, "task cannot be changed"},
		"wrong type":    {path, `{"config":7}`, http.StatusBadRequest, "config"},
		"no loop":       {"/v1/loops/tree-00000000/resume", "", http.StatusNotFound, "tree-00000000"},
		"no ID":         {"/v1/loops/x/resume", "", http.StatusBadRequest, ""},
		"a query":       {path + "?x=1", "", http.StatusBadRequest, "x"},
	} {
		if a := f.send(t, http.MethodPost, c.target, c.body); a.status != c.status ||
			!strings.Contains(string(a.body), c.want) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	f.save(t, record.Change{Loop: &record.Loop{Status: record.Failed, Step: "ended", State: json.RawMessage(`{}`)}})
	must(t, f.one(t).Complete(t.Context(), perdure.Result{Text: "over"}))
	if a := f.send(t, http.MethodPost, path, `{"config":{"max_iterations":2}}`); a.status != http.StatusConflict ||
		!strings.Contains(string(a.body), "has ended") {
		t.Errorf("a loop that ended: %d %s", a.status, a.body)
	}
	alone := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), ways()[0], server.Config{})
	if a := alone.send(t, http.MethodPost, path, ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("a server without loops: %d %s", a.status, a.body)
	}
}

// What a person marks as a false alarm is kept, with who and why.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, f *loops) {
		ctx := t.Context()
		mark := record.FalseAlarm{Fingerprint: "0123456789abcdef", Iteration: 1, Event: "reg-001-1", By: "ann",
			Reason: "moved"}
		for _, want := range []int{1, 0} {
			all, fresh, err := f.client.MarkFalse(ctx, f.tree.ID, []record.FalseAlarm{mark})
			if err != nil || fresh != want || len(all) != 1 || all[0].By != "ann" || all[0].At.IsZero() {
				t.Errorf("marked %+v, %d are new, want %d: %v", all, fresh, want, err)
			}
		}
		if all, err := f.client.FalseAlarms(ctx, f.tree.ID); err != nil || len(all) != 1 {
			t.Errorf("listed %+v, %v", all, err)
		}
		if _, _, err := f.client.MarkFalse(ctx, f.tree.ID, []record.FalseAlarm{{Fingerprint: "x"}}); perdure.CodeOf(
			err) != perdure.CodeInvalid {
			t.Errorf("what is not a fingerprint: %v", err)
		}
		if _, _, err := f.client.MarkFalse(ctx, "tree-00000000", []record.FalseAlarm{mark}); perdure.CodeOf(
			err) != perdure.CodeNotFound {
			t.Errorf("a loop that is none: %v", err)
		}
		if _, err := f.client.FalseAlarms(ctx, "tree-00000000"); perdure.CodeOf(err) != perdure.CodeNotFound {
			t.Errorf("those of a loop that is none: %v", err)
		}
	})
}
