package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/rlm"
)

func TestMain(m *testing.M) {
	testenv.Set()
	goleak.VerifyTestMain(m)
}

// terminal drives a model as the program would, without one: commands run at
// once, and time passes when the test says so.
type terminal struct {
	t       *testing.T
	m       *model
	store   *perdure.Store
	session *perdure.Session
	waiting tea.Msg // the next time-up
	quit    bool
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	session, err := s.OpenSession(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, store: s, session: session}
}

// start shows a tree, or the list.
func (x *terminal) start(tree perdure.TreeID) {
	x.t.Helper()
	transport := &inproc.Transport{Handler: server.New(server.Config{Store: x.store})}
	x.t.Cleanup(transport.Close)
	c, err := client.New(client.Config{Transport: transport})
	if err != nil {
		x.t.Fatal(err)
	}
	x.m = newModel(x.t.Context(), Config{Client: c, Tree: tree})
	x.m.later = func(_ time.Duration, msg tea.Msg) tea.Cmd {
		x.waiting = msg
		return nil
	}
	x.send(tea.WindowSizeMsg{Width: 80, Height: 20})
	x.run(x.m.Init())
}

func (x *terminal) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, one := range msg {
			x.run(one)
		}
	case tea.QuitMsg:
		x.quit = true
	default:
		x.send(msg)
	}
}

func (x *terminal) send(msg tea.Msg) {
	_, cmd := x.m.Update(msg)
	x.run(cmd)
}

// keys presses keys: words are names of keys, others are typed.
func (x *terminal) keys(names ...string) {
	special := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
		"enter": tea.KeyEnter,
		"esc":   tea.KeyEscape, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"backspace": tea.KeyBackspace}
	for _, name := range names {
		if code, ok := special[name]; ok {
			x.send(tea.KeyPressMsg{Code: code})
			continue
		}
		if name == "ctrl+c" {
			x.send(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
			continue
		}
		for _, r := range name {
			x.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// pass lets the time pass until the next look.
func (x *terminal) pass() {
	x.t.Helper()
	msg := x.waiting
	if msg == nil {
		x.t.Fatal("nothing is waited for")
	}
	x.waiting = nil
	x.send(msg)
}

func (x *terminal) screen() string {
	x.t.Helper()
	text := x.m.View().Content
	lines := strings.Split(text, "\n")
	if len(lines) != x.m.height {
		x.t.Fatalf("%d lines on a screen of %d:\n%s", len(lines), x.m.height, text)
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > x.m.width {
			x.t.Fatalf("%d cells on a screen of %d: %q", ansi.StringWidth(line), x.m.width, line)
		}
	}
	return text
}

// shows requires strings on the screen; those after a "!" must not be there.
func (x *terminal) shows(texts ...string) {
	x.t.Helper()
	screen := x.screen()
	for _, text := range texts {
		bare, not := strings.CutPrefix(text, "!")
		if strings.Contains(screen, bare) == not {
			x.t.Errorf("%q is there: %v, want the opposite:\n%s", bare, !strings.Contains(screen, bare), screen)
			x.t.FailNow()
		}
	}
}

func (x *terminal) check(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// tree makes a tree whose root waits for children.
func (x *terminal) tree(prompts ...string) (perdure.Tree, []perdure.TaskID) {
	x.t.Helper()
	tree, err := x.store.CreateTree(x.t.Context(),
		perdure.TreeSpec{Kind: "run", Name: "a name", Root: perdure.TaskSpec{Prompt: "the root"}})
	x.check(err)
	specs := make([]perdure.TaskSpec, len(prompts))
	for i, p := range prompts {
		specs[i] = perdure.TaskSpec{Prompt: p, MaxAttempts: 1}
	}
	ids, err := x.claim().Spawn(x.t.Context(), specs)
	x.check(err)
	return tree, ids
}

func (x *terminal) claim() *perdure.Lease {
	x.t.Helper()
	leases, err := x.session.Claim(x.t.Context(), perdure.ClaimRequest{Max: 1})
	if err != nil || len(leases) != 1 {
		x.t.Fatalf("%d leases, %v", len(leases), err)
	}
	return leases[0]
}

func numbered(n int) []string {
	prompts := make([]string, n)
	for i := range prompts {
		prompts[i] = fmt.Sprintf("part %d.", i)
	}
	return prompts
}

// A run that waits for a person says so, and how it is answered.
func TestTellsOfAGate(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree("read the first", "read the second")
	wait := func() {
		_, err := x.claim().WaitAtGate(t.Context(), perdure.GateReassignment, perdure.GateQuestion{Title: "?",
			Options: []perdure.GateOption{{Answer: perdure.AnswerRetry}}})
		x.check(err)
	}
	wait()
	x.start(tree.ID)
	x.shows("1 task waiting at gate 1; `perdure answer "+string(tree.ID), "1 queued", "gate.opened")
	wait()
	x.pass()
	x.shows("2 tasks waiting at gate 1", "!no tasks are running")
	_, err := x.store.AnswerGate(t.Context(), tree.ID, 1, perdure.GateDecision{Answer: perdure.AnswerRetry, By: "ann"})
	x.check(err)
	x.pass()
	x.shows("!waiting at gate", "no tasks are running", "gate.answered")
}

func TestFollowsATree(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	ctx := t.Context()
	tree, ids := x.tree("read the first", "read the second", "read the third")
	x.start(tree.ID)
	x.shows(string(tree.ID), "a name", "0 of 4 tasks", "3 queued", "▾ ◌ task-0001  (3) the root",
		"○ task-0002  read the first", "task.waiting", "no tasks are running")
	first := x.claim()
	_, _, err := first.BeginCall(ctx, perdure.CallSpec{Model: "mock:slow", RequestHash: "h"})
	x.check(err)
	x.pass()
	x.shows("1 running", "● task-0002", `slowest: task-0002 "read the first"`, "in mock:slow", "call.started")
	_, err = first.Fail(ctx, perdure.Failure{Kind: "model", Message: "it\x1b[2Jrefused"})
	x.check(err)
	x.check(x.claim().Complete(ctx, perdure.Result{Text: "done"}))
	x.pass()
	x.shows("2 of 4 tasks", "1 failed", "✗ task-0002", "model: it␛[2Jrefused", "✓ task-0003", "task.failed")
	if got := x.m.outline.byID[ids[0]].row.State; got != perdure.Failed {
		t.Errorf("the row is %s", got)
	}
}

func TestActs(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, ids := x.tree("a", "b", "c")
	_, err := x.claim().Fail(t.Context(), perdure.Failure{Kind: "model", Message: "no"})
	x.check(err)
	x.start(tree.ID)
	state := func(id perdure.TaskID) perdure.State {
		task, err := x.store.Task(t.Context(), id)
		x.check(err)
		return task.State
	}
	x.keys("down", "c")
	x.shows("is failed: there is nothing to cancel")
	x.keys("r")
	x.shows("retry task-0002? y n")
	x.keys("n")
	x.shows("nothing was done")
	if got := state(ids[0]); got != perdure.Failed {
		t.Fatalf("after no it is %s", got)
	}
	x.keys("r", "y")
	x.shows("task-0002 is queued again; `perdure resume "+string(tree.ID)+"` runs it", "○ task-0002")
	x.keys("down", "r")
	x.shows("only failed tasks can be retried")
	x.keys("c", "y")
	x.shows("cancelled 1 task", "⊘ task-0003")
	if got := state(ids[1]); got != perdure.Cancelled {
		t.Errorf("after cancel it is %s", got)
	}
	x.keys("C")
	x.shows("cancel all of " + string(tree.ID))
	x.keys("y")
	x.shows("⊘ cancelled", "⊘ task-0004")
	x.keys("C")
	x.shows("the tree has ended")
	x.keys("q")
	if !x.quit {
		t.Error("q does not leave")
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree(numbered(300)...)
	x.start(tree.ID)
	x.keys("/", "PART 29")
	x.shows("tasks with “PART 29▏”: 11", "part 29.", "part 290.", "!part 28.", "!the root")
	x.keys("enter", "down", "enter")
	x.shows("task-0292", "Prompt", "part 290.")
	x.keys("esc", "esc")
	x.shows("the root", "part 0.")
	x.keys("/", "nothing like it", "enter")
	x.shows("no task matches")
	x.keys("esc", "s")
	x.shows("tasks that are failed: 0")
	x.keys("s", "s")
	x.shows("tasks that are queued: 100 and more", "part 0.")
	x.keys("end", "end", "end", "end")
	x.shows("tasks that are queued: 300", "part 299.")
	x.keys("/", "7q", "backspace", "esc", "esc")
	x.shows("─ tasks ─", "the root")
}

// What is typed while a search runs is searched for next, and an answer that is
// too late is dropped.
func TestSearchesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree(numbered(30)...)
	x.start(tree.ID)
	x.keys("/")
	_, first := x.m.Update(tea.KeyPressMsg{Code: '1', Text: "1"})
	_, second := x.m.Update(tea.KeyPressMsg{Code: '7', Text: "7"})
	if first == nil || second != nil {
		t.Fatal("the second search did not wait for the first")
	}
	x.shows("with “17▏”: searching …")
	x.run(first)
	x.shows("with “17▏”: 1", "part 17.")
	_, late := x.m.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	x.keys("esc", "esc")
	x.m.choose("") // another screen before the answer
	x.run(late)
	if len(x.m.matches) != 0 {
		t.Error("a late answer is shown")
	}
}

// A tree with very many children is loaded where it is looked at.
func TestLoadsWhatIsInSight(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree(numbered(5000)...)
	x.start(tree.ID)
	x.shows("(5,000) the root", "part 0.")
	x.keys("end")
	x.shows("❯     ○ task-5001  part 4999.", "part 4990.", "!  …\n")
	x.keys("home", "down", "pgdown", "up")
	x.shows("part 8.")
	if n := len(x.m.outline.byID); n > 1+3*pageRows {
		t.Errorf("%d tasks are loaded for three screens", n)
	}
	x.keys("home", "left")
	x.shows("▸ ◌ task-0001", "!part")
	x.keys("right")
	x.shows("part 0.")
}

func TestFolds(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree("inner", "leaf")
	_, err := x.claim().Spawn(t.Context(), []perdure.TaskSpec{{Prompt: "deep one"}, {Prompt: "deep two"}})
	x.check(err)
	x.start(tree.ID)
	x.shows("▸ ◌ task-0002  (2) inner", "leaf", "!deep")
	x.keys("down", "right")
	x.shows("▾ ◌ task-0002", "deep one", "deep two", "leaf")
	x.keys("down", "down", "left")
	if row := x.m.subject(); row.Label != "inner" {
		t.Errorf("left goes to %q, want the parent", row.Label)
	}
	x.keys("left")
	x.shows("▸ ◌ task-0002", "!deep", "leaf")
}

func TestListsTrees(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	x.start("")
	x.shows("no trees yet")
	first, _ := x.tree("a")
	x.check(x.claim().Complete(t.Context(), perdure.Result{Text: "done"}))
	x.check(x.claim().Complete(t.Context(), perdure.Result{Text: "done"}))
	second, _ := x.tree("b")
	x.pass()
	x.shows(string(first.ID), string(second.ID), "✓ completed", "a name", "100%  of 2 tasks")
	x.keys("down", "enter")
	x.shows(string(first.ID), "✓ task-0001", "!"+string(second.ID))
	x.keys("esc")
	x.shows(string(second.ID))
	x.keys("?")
	x.shows("fold", "quit")
	x.keys("x")
	x.shows(string(first.ID))
	x.keys("ctrl+c")
	if !x.quit {
		t.Error("Ctrl-C does not leave")
	}
}

// An ended tree is asked for less often, and nothing is asked for its rows.
func TestRestsWhenNothingHappens(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree("a")
	var pauses []time.Duration
	x.start(tree.ID)
	x.m.later = func(d time.Duration, msg tea.Msg) tea.Cmd {
		pauses, x.waiting = append(pauses, d), msg
		return nil
	}
	before := x.screen()
	x.pass()
	if after := x.screen(); after[:strings.Index(after, "no tasks are running")] == "" || len(pauses) != 1 ||
		pauses[0] < 4*defaultEvery {
		t.Errorf("pauses %v:\n%s\n%s", pauses, before, after)
	}
	x.m.wait(time.Second)
	if last := pauses[len(pauses)-1]; last < idleShare*time.Second {
		t.Errorf("after a look of a second it waits %v", last)
	}
}

func TestSmallAndHostileScreens(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree("\x1b]0;title\x07 \u202egnp.exe", strings.Repeat("wide 日本 ", 60), "", "a\tb\nc")
	x.start(tree.ID)
	for _, size := range [][2]int{{20, 6}, {1, 1}, {40, 10}, {300, 80}, {80, 13}} {
		x.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, key := range []string{"end", "enter", "pgdown", "esc", "?", "x", "/", "日", "enter", "esc", "e", "home"} {
			x.keys(key)
			if text := x.screen(); strings.ContainsAny(text, "\x1b\u202e\t\x07") {
				t.Fatalf("control characters on the screen: %q", text)
			}
		}
	}
}

// A server that is gone shows, and what was there stays.
func TestErrors(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree("a")
	x.start(tree.ID)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.m.ctx = ctx
	x.pass()
	x.shows("cannot read: ", "task-0002")
	x.m.ctx = t.Context()
	x.pass()
	x.shows("!cannot read", "task-0002")
	x.m.requests.close()
	if cmd := x.m.look(); cmd() != nil {
		t.Error("a request began after the end")
	}
}

// The numbers of rows and their places agree, however the tree is folded.
func TestPlaces(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		o := newOutline()
		o.put(client.OutlineRow{Task: 1, Children: 3})
		next := perdure.TaskID(2)
		nodes := []*node{o.root}
		for range 200 {
			n := nodes[r.IntN(len(nodes))]
			if n.row.Children == 0 || r.IntN(3) == 0 {
				n.unfold(r.IntN(4) > 0)
				continue
			}
			n.unfold(true)
			pos := r.IntN(int(n.row.Children))
			if n.kids[pos] == nil {
				o.put(client.OutlineRow{Task: next, Parent: n.row.Task, Position: pos, Children: int64(r.IntN(6))})
				nodes = append(nodes, o.byID[next])
				next++
			}
		}
		var walk func(n *node, level int) []string
		walk = func(n *node, level int) []string {
			lines := []string{fmt.Sprintf("%d@%d", n.row.Task, level)}
			for pos, kid := range n.kids {
				switch {
				case !n.open:
				case kid == nil:
					lines = append(lines, fmt.Sprintf("%d/%d@%d", n.row.Task, pos, level+1))
				default:
					lines = append(lines, walk(kid, level+1)...)
				}
			}
			return lines
		}
		want := walk(o.root, 0)
		if o.size() != len(want) {
			t.Fatalf("size %d, want %d", o.size(), len(want))
		}
		for i, line := range want {
			p, level := o.at(i)
			got := ""
			if n := o.node(p); n != nil {
				got = fmt.Sprintf("%d@%d", n.row.Task, level)
			} else {
				got = fmt.Sprintf("%d/%d@%d", p.parent.row.Task, p.pos, level)
			}
			if got != line || o.index(p) != i {
				t.Fatalf("row %d is %s with index %d, want %s", i, got, o.index(p), line)
			}
		}
	}
}

// The turns of a REPL are above the log, the last ones first to be kept, and go with it.
func TestShowsTurns(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	tree, _ := x.tree(numbered(40)...)
	x.start(tree.ID)
	x.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	x.shows("!turns", "log")
	x.m.setTurns([]rlm.TaskTurns{{}})
	x.shows("turns", "no turn yet", "log")
	var list []rlm.Turn
	for i := range 12 {
		list = append(list, rlm.Turn{Turn: i + 1, State: perdure.Failed, Usage: perdure.Usage{Calls: 1, CostUSD: 0.5},
			Blocks: []rlm.TurnBlock{{State: perdure.Failed, Code: "日本 = len(cntext)" + strings.Repeat(" + 1", 40),
				Failure: "NameError: \x1b[2Jname 'cntext' is not defined", SubCalls: 3}}})
	}
	x.m.setTurns([]rlm.TaskTurns{{Turns: list}})
	x.shows("─ turns ─", "!turn 7 ", "✗ turn 8   日本", "✗ turn 12  日本 = len(cntext)", "→ NameError: ", "$0.5000", "─ log ─",
		"the root")
	for _, size := range [][2]int{{20, 6}, {20, 24}, {40, 18}, {300, 80}} {
		x.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if text := x.screen(); strings.ContainsAny(text, "\x1b") {
			t.Fatalf("control characters on the screen: %q", text)
		}
	}
	x.shows("turn 12", "$0.5000")
	x.keys("e")
	x.shows("!turn 12", "!log")
	raw, err := json.Marshal(list)
	x.check(err)
	x.keys("e")
	x.send(opened{task: perdure.ShowTask{Task: perdure.Task{ID: 1}, Turns: raw}})
	x.shows("Turns", "turn 1 ", "turn 12", "NameError: ")
}
