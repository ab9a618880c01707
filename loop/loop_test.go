package loop_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/worker"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	testenv.HideRunners()
	effort.Parallel(6)
	os.Exit(m.Run())
}

// scripted is an agent whose turns are functions: the first does the first turn,
// the last does all that follow.
type scripted struct {
	turns   []func(w *turn) error
	done    int
	specs   []loop.AgentSpec // that were asked for
	prompts []string
	names   []string // who was asked for, in order
	asked   string
	model   string // the configured model
	// addresses, if set, returns what a meter needs.
	addresses func() (map[string]string, error)
	off       string // why its hooks are switched off
}

// counted is a scripted agent whose requests can be counted.
type counted struct{ *scripted }

// HooksOff returns why the agent runs no hooks.
func (c counted) HooksOff(string, []string) string { return c.off }

// Endpoints returns the addresses of the agent.
func (c counted) Endpoints(string, []string) (map[string]string, error) { return c.addresses() }

// Priced returns the configured model, from which the cost is known if it has a price.
func (s *scripted) Priced() (reports bool, model string) { return false, s.model }

// turn is what a scripted turn works with.
type turn struct {
	ctx     context.Context
	dir     string
	prompt  string
	text    string
	env     []string
	observe func(agent.Event)
	decide  func(ctx context.Context, call agent.ToolCall) agent.Decision
	hook    []string
	reader  func(read func())
	// commands are those that the agent may run without asking.
	commands  []agent.CommandRule
	endpoints map[string]string
}

func (w *turn) write(name, text string) error {
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func (w *turn) remove(name string) error { return os.Remove(filepath.Join(w.dir, name)) }

// Run does the next turn.
func (s *scripted) Run(ctx context.Context, t *agent.Turn) (*agent.Result, error) {
	s.prompts, s.names = append(s.prompts, t.Prompt), append(s.names, s.asked)
	w := &turn{ctx: ctx, dir: t.Dir, prompt: t.Prompt, env: t.Env, observe: t.Observe, decide: t.Decide, hook: t.Hook,
		commands: t.Commands, reader: t.Reader, endpoints: t.Endpoints,
		text: fmt.Sprintf("turn %d is done", s.done+1)}
	do := s.turns[min(s.done, len(s.turns)-1)]
	s.done++
	if err := do(w); err != nil {
		return nil, err
	}
	return &agent.Result{Text: w.text, Usage: agent.Usage{InputTokens: 100, OutputTokens: 10, Reported: true}}, nil
}

// Agent finds the agent: there is one.
func (s *scripted) Agent(spec loop.AgentSpec) (agent.Agent, error) {
	s.specs = append(s.specs, spec)
	name := spec.Name
	if name == "missing" {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "find agent", Msg: "there is no agent \"missing\""}
	}
	if name == "absent" {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "find agent", Msg: "program \"absent\" not found",
			Hint: "install it"}
	}
	s.asked = name
	if s.addresses != nil {
		return counted{s}, nil
	}
	return s, nil
}

// checkTAP is a completion command: each file in tests/ is a test of that name,
// which passes when it holds "pass", and is skipped when it holds "skip".
const checkTAP = `n=0; bad=0
for f in tests/*; do [ -e "$f" ] || continue; n=$((n+1)); t=$(basename "$f")
case "$(cat "$f")" in pass*) echo "ok $n - $t";; skip*) echo "ok $n - $t # SKIP later";; *) echo "not ok $n - $t"; bad=1;; esac
done; echo "1..$n"; exit $bad`

// bench is a store, a folder to work in, and an engine.
type bench struct {
	*testing.T
	store   *perdure.Store
	records *record.Records
	engine  *loop.Engine
	session *perdure.Session
	agent   *scripted
	dir     string
	loops   string
	tree    perdure.Tree
	halt    chan struct{} // a turn that sends to it ends the worker
	soon    time.Duration // what is ready later is not waited for; 0: an hour
}

func newBench(t *testing.T, turns ...func(w *turn) error) *bench {
	t.Helper()
	return openBench(t, perdure.Config{Dir: t.TempDir()}, turns...)
}

// openBench is newBench with a configuration of the store.
func openBench(t *testing.T, cfg perdure.Config, turns ...func(w *turn) error) *bench {
	t.Helper()
	b := &bench{T: t, store: testdb.Open(t, cfg), dir: t.TempDir(),
		loops: filepath.Join(t.TempDir(), "loops"),
		agent: &scripted{turns: turns}, halt: make(chan struct{})}
	b.records = record.New(b.store)
	b.restart(loop.EngineConfig{})
	var err error
	b.session, err = b.store.OpenSession(t.Context(), "test")
	b.ok(err)
	t.Cleanup(func() { b.ok(b.session.Close(context.WithoutCancel(t.Context()))) })
	b.put("tests/a", "pass")
	b.put("tests/b", "fail")
	return b
}

// restart gives the bench an engine that is set so.
func (b *bench) restart(cfg loop.EngineConfig) {
	b.Helper()
	cfg.Store, cfg.Agents, cfg.Dir = b.store, b.agent, b.loops
	var err error
	b.engine, err = loop.New(b.Context(), cfg)
	b.ok(err)
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) put(name, text string) {
	b.Helper()
	b.ok((&turn{dir: b.dir}).write(name, text))
}

func (b *bench) launch(change ...func(c *config.Config)) {
	b.Helper()
	cfg := config.Config{Task: "Make the tests pass!", Until: checkTAP, Workspace: b.dir, Agent: "scripted",
		EvenIfGreen: true}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	b.tree, err = b.engine.Launch(b.Context(), loop.LaunchRequest{Config: cfg})
	b.ok(err)
}

// work runs the loop until its tree ends or it waits for something.
func (b *bench) work() record.Loop {
	b.Helper()
	ctx, stop := context.WithTimeout(b.Context(), time.Minute)
	defer stop()
	w, err := worker.New(worker.Config{Store: b.store, Session: b.session,
		Handlers: map[string]worker.Handler{perdure.KindLoop: b.engine}, DrainTimeout: -1})
	b.ok(err)
	ended := make(chan error, 1)
	running, cancel := context.WithCancel(ctx)
	go func() { ended <- w.Run(running) }()
working:
	for b.busy(ctx) {
		changed := b.store.Changed()
		if !b.busy(ctx) {
			break
		}
		select {
		case <-changed:
		case <-b.halt:
			break working
		case <-ctx.Done():
			b.Fatalf("the loop does not end: %s", show(b.row()))
		}
	}
	cancel()
	err = <-ended
	b.ok(err)
	return b.row()
}

// busy reports whether the loop can continue now.
func (b *bench) busy(ctx context.Context) bool {
	b.Helper()
	tasks, err := b.store.Tasks(ctx,
		perdure.TaskFilter{Tree: b.tree.ID, States: []perdure.State{perdure.Queued, perdure.Running}, Limit: 10})
	b.ok(err)
	soon := time.Now().Add(cmp.Or(b.soon, time.Hour))
	for i := range tasks {
		if tasks[i].State == perdure.Running || tasks[i].ReadyAt.Before(soon) {
			return true
		}
	}
	return false
}

func (b *bench) row() record.Loop {
	b.Helper()
	l, err := b.records.Loop(b.Context(), b.tree.ID)
	b.ok(err)
	return l
}

// outcomes are the records of the iterations, the baseline's first.
func (b *bench) outcomes() []state.Outcome {
	b.Helper()
	list, err := b.records.Iterations(b.Context(), b.tree.ID, 0, 1000)
	b.ok(err)
	out := make([]state.Outcome, len(list))
	for i := range list {
		b.ok(json.Unmarshal(list[i].Data, &out[i]))
		if out[i].Iteration != list[i].Number || list[i].Number != i {
			b.Errorf("the record at place %d is of iteration %d, its row %d", i, out[i].Iteration, list[i].Number)
		}
	}
	return out
}

func (b *bench) statuses() string {
	b.Helper()
	list, err := b.records.Iterations(b.Context(), b.tree.ID, 1, 1000)
	b.ok(err)
	words := make([]string, len(list))
	for i := range list {
		words[i] = string(list[i].Status)
	}
	return strings.Join(words, " ")
}

func (b *bench) read(name string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.Fatal(err)
	}
	return string(text)
}

// show is a loop in a line.
func show(l record.Loop) string {
	return fmt.Sprintf("%s is %s at step %s of iteration %d: %s", l.Tree, l.Status, l.Step, l.Iteration, l.State)
}

// sound looks for anything wrong in the store.
func (b *bench) sound() {
	b.Helper()
	problems, err := b.store.Check(b.Context())
	if err != nil || len(problems) > 0 {
		b.Errorf("the store: %v, %v", problems, err)
	}
}

func write(name, text string) func(w *turn) error {
	return func(w *turn) error { return w.write(name, text) }
}

// TestThreeIterations: a task that takes three, each told what fails by name.
func TestThreeIterations(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "not yet"), write("notes", "thinking"), write("tests/b", "pass"))
	b.launch()
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 3 || b.agent.done != 3 {
		t.Fatalf("%s after %d turns", show(l), b.agent.done)
	}
	all := b.outcomes()
	if len(all) != 4 || all[0].Check.Passed || all[0].Check.Counts.Tests != 2 || all[0].Check.Failing[0] != "b" ||
		!all[3].Check.Passed {
		t.Errorf("outcomes: %+v", all)
	}
	if *all[0].Quality >= *all[3].Quality || *all[3].Quality != 100 {
		t.Errorf("qualities %d to %d", *all[0].Quality, *all[3].Quality)
	}
	for i, prompt := range b.agent.prompts {
		for _, want := range []string{"Make the tests pass!", "for f in tests/*", "- b"} {
			if !strings.Contains(prompt, want) {
				t.Errorf("prompt %d does not tell %q:\n%s", i+1, want, prompt)
			}
		}
	}
	if !strings.Contains(b.agent.prompts[2], "turn 2 is done") || !strings.Contains(b.agent.prompts[2], "turn 1 is done") {
		t.Errorf("the last prompt does not tell of the iterations before:\n%s", b.agent.prompts[2])
	}
	tree, err := b.store.Tree(t.Context(), b.tree.ID)
	b.ok(err)
	if tree.State != perdure.Completed || !strings.HasPrefix(loop.ID(&tree), "make-the-tests-pass-") {
		t.Errorf("tree is %s, loop %s", tree.State, loop.ID(&tree))
	}
	p, err := b.store.Progress(t.Context(), b.tree.ID)
	b.ok(err)
	if p.Usage.Calls != 3 || p.Usage.InputTokens != 300 {
		t.Errorf("usage %+v", p.Usage)
	}
	b.sound()
}

// TestBaselineQuality: files that an iteration does not change have the quality of the baseline.
func TestBaselineQuality(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(*turn) error { return nil })
	b.launch(func(c *config.Config) { c.MaxIterations = 1 })
	b.work()
	if all := b.outcomes(); *all[0].Quality != *all[1].Quality || all[1].Void() {
		t.Errorf("quality %d (%v), then %d (%v)", *all[0].Quality, all[0].Parts, *all[1].Quality, all[1].Parts)
	}
}

// TestLimit: a loop that never gets there ends after its last iteration.
func TestLimit(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t, func(w *turn) error { n++; return w.write(fmt.Sprint("try", n), "x") })
	b.launch(func(c *config.Config) { c.MaxIterations = 2 })
	if l := b.work(); l.Status != record.Failed || l.Iteration != 2 {
		t.Errorf("%s", show(l))
	}
	b.sound()
}

// TestRegressionToAGate: deleted tests at iteration 7 go to a person, who rejects;
// the loop goes on as iteration 8 with the previous files.
func TestRegressionToAGate(t *testing.T) {
	t.Parallel()
	n := 0
	b := newBench(t, func(w *turn) error {
		switch n++; n {
		case 7:
			return errors.Join(w.remove("tests/a"), w.remove("tests/b"))
		case 8:
			if strings.Contains(w.prompt, "reverted") && strings.Contains(w.prompt, "keep the tests") {
				return w.write("tests/b", "pass")
			}
		}
		return w.write(fmt.Sprint("progress", n), "x")
	})
	b.launch()
	l := b.work()
	if l.Status != record.Running || l.Iteration != 7 || l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	gates, err := b.store.OpenGates(t.Context())
	b.ok(err)
	if len(gates) != 1 || gates[0].Kind != perdure.GateRecovery || gates[0].Iteration != 7 {
		t.Fatalf("gates %+v", gates)
	}
	q, err := gates[0].ParseQuestion()
	b.ok(err)
	if !strings.Contains(q.Text, "test_deletion") || !strings.Contains(q.Text, "reward_hacking") ||
		!strings.Contains(q.Text, "\n- tests: 2 before, 0 now\n") ||
		!strings.Contains(q.Diff, "--- a/tests/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-pass\n") {
		t.Errorf("the question does not tell what happened: %+v", q)
	}
	if _, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1,
		perdure.GateDecision{Answer: "reject", By: "ann", Reason: "keep the tests"}); err != nil {
		t.Fatal(err)
	}
	l = b.work()
	if l.Status != record.Completed || l.Iteration != 8 {
		t.Fatalf("%s; prompt:\n%s", show(l), b.agent.prompts[len(b.agent.prompts)-1])
	}
	if b.read("tests/a") != "pass" || b.read("progress6") != "x" {
		t.Errorf("tests/a is %q, progress %q", b.read("tests/a"), b.read("progress6"))
	}
	if want := "kept kept kept kept kept kept reverted kept"; b.statuses() != want {
		t.Errorf("iterations %q", b.statuses())
	}
	steps := []string{}
	for _, s := range b.outcomes()[7].Recoveries[0].Steps {
		steps = append(steps, s.Step)
	}
	if got := strings.Join(steps, " "); got != "pause diagnose escalate" {
		t.Errorf("recovery %q", got)
	}
	b.sound()
}

// TestBestIsRestored: qualities 60, 85, 83, 80 end on the second iteration.
func TestBestIsRestored(t *testing.T) {
	t.Parallel()
	scores := []string{"60", "85", "83", "80"}
	n := 0
	b := newBench(t, func(w *turn) error {
		n++
		return errors.Join(w.write("score", scores[n-1]), w.write("tests/b", "pass"), w.write(fmt.Sprint("file", n), "x"))
	})
	// The check passes, but once the loop is to be completed it does not, until
	// the last iteration: so that all four run.
	b.launch(func(c *config.Config) {
		c.MaxIterations, c.Scorer = 4, "cat score"
		c.Until = checkTAP[:strings.LastIndex(checkTAP, "exit")] + "test $bad = 0 && test -e done"
	})
	l := b.work()
	if l.Status != record.Failed {
		t.Fatalf("%s", show(l))
	}
	var s struct {
		Selected int    `json:"selected"`
		Reason   string `json:"selected_reason"`
		WayBack  []string
	}
	b.ok(json.Unmarshal(l.State, &s))
	if s.Selected != 2 || s.Reason != "Highest quality (85 %) at iteration 2, not final" {
		t.Errorf("%+v", s)
	}
	if b.read("score") != "85" || b.read("file2") != "x" || b.read("file3") != "" {
		t.Errorf("score %q, file3 %q", b.read("score"), b.read("file3"))
	}
	b.sound()
}

// TestTwoLoopsInAFolder: the second is refused by the name of the first.
func TestTwoLoopsInAFolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("x", "y"))
	b.launch()
	_, err := b.engine.Launch(t.Context(),
		loop.LaunchRequest{Config: config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "scripted"}})
	if perdure.CodeOf(err) != perdure.CodeConflict || !strings.Contains(err.Error(), loop.ID(&b.tree)) {
		t.Errorf("a second loop: %v", err)
	}
}

func TestLaunchRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("x", "y"))
	for name, c := range map[string]struct {
		cfg  config.Config
		want string
	}{
		"no task":         {config.Config{Until: "true", Workspace: b.dir, Agent: "x"}, "task is missing"},
		"relative folder": {config.Config{Task: "x", Until: "true", Workspace: "src", Agent: "x"}, "not an absolute path"},
		"unknown agent":   {config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "missing"}, "no agent"},
		"unknown stand-in": {config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "x",
			Fallback: []string{"missing"}}, "no agent"},
		"folder is missing": {config.Config{Task: "x", Until: "true", Workspace: b.dir + "/none", Agent: "x"},
			"workspace is missing"},
		"file system": {config.Config{Task: "x", Until: "true", Workspace: "/", Agent: "x"}, "not a workspace"},
		"many iterations": {config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "x", MaxIterations: 10_001},
			"max_iterations"},
	} {
		_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: c.cfg})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) != 0 {
		t.Errorf("trees are left: %v, %v", trees, err)
	}
}
