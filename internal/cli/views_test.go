package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
)

func progressOf(completed, total int64) perdure.Progress {
	left := 135.0
	return perdure.Progress{
		Tree: "tree-12345678", State: perdure.Running,
		Total: total, Planned: &total, Completed: completed, Running: 2, Queued: total - completed - 2,
		Percent: share(completed, total), ETASeconds: &left, MeanTaskSeconds: 45,
		Usage: perdure.Usage{Calls: completed, InputTokens: 12_345, CostUSD: 0.065},
	}
}

// same compares the output of a view with lines, without spaces at the ends.
func same(t *testing.T, got, want string) {
	t.Helper()
	trim := func(text string) []string {
		lines := strings.Split(strings.Trim(text, "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		return lines
	}
	if diff := cmp.Diff(trim(want), trim(got)); diff != "" {
		t.Errorf("view differs (-want +got):\n%s\nit is:\n%s", diff, got)
	}
}

func TestStatusBox(t *testing.T) {
	t.Parallel()
	s, _ := screen(100)
	same(t, statusBox(s, &client.Status{Progress: progressOf(10, 15)}, about{origin: "turn 3 of tree-87654321"}), `
╭─────────────────────────────────────────────────────────╮
│ Tree Progress                                 ● running │
│ Tree: tree-12345678                                     │
│ Origin: turn 3 of tree-87654321                         │
├─────────────────────────────────────────────────────────┤
│ Total Nodes:        15                                  │
│ Completed:          10 (66%)                            │
│ Running:             2                                  │
│ Queued:              3                                  │
│ Failed:              0                                  │
│                                                         │
│ Progress:       [█████████████▒▒▒▒▒▒▒] 66%              │
│                                                         │
│ Avg Node Time:  45s                                     │
│ ETA:            ~2m 15s                                 │
│ Usage:          10 calls, 12.3k tokens                  │
│ Total Cost:     $0.0650                                 │
╰─────────────────────────────────────────────────────────╯
`)
}

func TestStatusBoxOfAnEndedTree(t *testing.T) {
	t.Parallel()
	s, _ := screen(44)
	p := progressOf(14, 15)
	p.State, p.Partial, p.Running, p.Queued, p.Failed, p.Cancelled, p.Percent = perdure.Partial, true, 0, 0, 1, 2, 93
	p.ElapsedSeconds = 3700
	long := about{name: "a name\x1b[31m that is too long for a narrow terminal"}
	same(t, statusBox(s, &client.Status{Progress: p}, long), `
╭──────────────────────────────────────────╮
│ Tree Progress                  ◐ partial │
│ Tree: tree-12345678                      │
│ Name: a name␛[31m that is too long for … │
├──────────────────────────────────────────┤
│ Total Nodes:        15                   │
│ Completed:          14 (93%)             │
│ Running:             0                   │
│ Queued:              0                   │
│ Failed:              1                   │
│ Cancelled:           2                   │
│                                          │
│ Progress:       [███████████████████▒] … │
│                                          │
│ Avg Node Time:  45s                      │
│ Took:           1h 01m                   │
│ Usage:          14 calls, 12.3k tokens   │
│ Total Cost:     $0.0650                  │
╰──────────────────────────────────────────╯
`)
}

func TestActiveList(t *testing.T) {
	t.Parallel()
	s, _ := screen(40)
	got := activeList(s, []perdure.ActiveTask{{Task: 3, Prompt: "read\nthe first part of everything there is"},
		{Task: 12345, Prompt: "b"}})
	same(t, got, `
Active Tasks:
  - task-0003: read the first part o…
  - task-12345: b
`)
	if got := activeList(s, nil); got != "" {
		t.Errorf("no active task gives %q", got)
	}
}

// testTasks returns a root with the given leaves, whose states are letters.
func testTasks(leaves string) []perdure.Task {
	states := map[rune]perdure.State{
		'c': perdure.Completed, 'f': perdure.Failed, 'r': perdure.Running, 'q': perdure.Queued, 'x': perdure.Cancelled,
	}
	tasks := []perdure.Task{{ID: 1, State: perdure.Waiting, Prompt: "the root", Active: 1500 * time.Millisecond}}
	for i, letter := range leaves {
		task := perdure.Task{
			ID: perdure.TaskID(i + 2), Parent: 1, Position: i, Depth: 1, State: states[letter],
			Prompt: fmt.Sprintf("part %d", i), Active: time.Second,
			Usage: perdure.Usage{Calls: 1, CostUSD: 0.001},
		}
		switch letter {
		case 'f':
			task.Error = &perdure.TaskError{Kind: "timeout", Message: "no answer\nafter 300s"}
		case 'q':
			task.Active, task.Usage, task.WaitsFor = 0, perdure.Usage{}, task.ID-1
		}
		tasks = append(tasks, task)
	}
	return tasks
}

// rowOf returns a task as a row of the outline.
func rowOf(t *perdure.Task) *client.OutlineRow {
	return &client.OutlineRow{Task: t.ID, Parent: t.Parent, Depth: t.Depth, Position: t.Position, State: t.State,
		Label:   t.Prompt,
		Blocked: t.WaitsFor != 0, ActiveMS: float64(t.Active) / float64(time.Millisecond), Usage: t.Usage, Error: t.Error}
}

func drawn(v treeView, tasks []perdure.Task) string {
	s, b := screen(70)
	v.s = s
	var nodes []*node
	for _, task := range tasks {
		nodes = append(nodes, newNode(rowOf(&task)))
	}
	for _, root := range grow(nodes) {
		v.draw(root)
	}
	return b.String()
}

func TestTreeView(t *testing.T) {
	t.Parallel()
	same(t, drawn(treeView{depth: -1}, testTasks("cfrq")), `
◌ task-0001  the root  1.5s
├─ ✓ task-0002  part 0  1.0s, $0.0010
├─ ✗ task-0003  part 1  1.0s, $0.0010
│    timeout: no answer after 300s
├─ ● task-0004  part 2  1.0s, $0.0010
└─ ○ task-0005  part 3
     waits for task-0004
`)
}

// A task that waits for its turn names the one before it that has not ended; there is none
// in a record whose tasks before it have ended.
func TestTreeViewWaits(t *testing.T) {
	t.Parallel()
	tasks := testTasks("rcqcq")
	if got := drawn(treeView{depth: -1}, tasks); !strings.Contains(got, "waits for task-0002\n") ||
		!strings.Contains(got, "waits for task-0004\n") {
		t.Errorf("got\n%s", got)
	}
	if got := drawn(treeView{depth: -1}, testTasks("cq")); strings.Contains(got, "waits") {
		t.Errorf("waits for a task that ended:\n%s", got)
	}
}

func TestTreeViewFolds(t *testing.T) {
	t.Parallel()
	same(t, drawn(treeView{depth: -1}, testTasks(strings.Repeat("c", 100)+"f"+"rr")), `
◌ task-0001  the root  1.5s
├─ ✓ task-0002  part 0  1.0s, $0.0010
├─ ✓ task-0003  part 1  1.0s, $0.0010
├─ ✓ task-0004  part 2  1.0s, $0.0010
├─ ✓ … 96 more completed, task-0005 to task-0100  1m 36s, $0.0960
├─ ✓ task-0101  part 99  1.0s, $0.0010
├─ ✗ task-0102  part 100  1.0s, $0.0010
│    timeout: no answer after 300s
├─ ● task-0103  part 101  1.0s, $0.0010
└─ ● task-0104  part 102  1.0s, $0.0010
`)
	if lines := strings.Count(drawn(treeView{depth: -1, all: true}, testTasks(strings.Repeat("c", 100))),
		"\n"); lines != 101 {
		t.Errorf("with all: %d lines, want 101", lines)
	}
}

// Subtrees with equal states are folded; one with a failed task is drawn.
func TestTreeViewFoldsBranches(t *testing.T) {
	t.Parallel()
	tasks := testTasks(strings.Repeat("c", 14))
	for i := range 14 {
		state := perdure.Completed
		if i == 12 {
			state = perdure.Failed
		}
		tasks = append(tasks, perdure.Task{ID: perdure.TaskID(100 + i), Parent: perdure.TaskID(2 + i), State: state,
			Prompt: "below",
			Active: time.Second, Usage: perdure.Usage{Calls: 1, CostUSD: 0.001}})
	}
	same(t, drawn(treeView{depth: -1}, tasks), `
◌ task-0001  the root  1.5s
├─ ✓ task-0002  part 0  1.0s, $0.0010
│  └─ ✓ task-0100  below  1.0s, $0.0010
├─ ✓ task-0003  part 1  1.0s, $0.0010
│  └─ ✓ task-0101  below  1.0s, $0.0010
├─ ✓ task-0004  part 2  1.0s, $0.0010
│  └─ ✓ task-0102  below  1.0s, $0.0010
├─ ✓ … 8 more completed, task-0005 to task-0012, 8 tasks below  16s, $0.0160
├─ ✓ task-0013  part 11  1.0s, $0.0010
│  └─ ✓ task-0111  below  1.0s, $0.0010
├─ ✓ task-0014  part 12  1.0s, $0.0010
│  └─ ✗ task-0112  below  1.0s, $0.0010
└─ ✓ task-0015  part 13  1.0s, $0.0010
   └─ ✓ task-0113  below  1.0s, $0.0010
`)
}

// TestTreeViewFoldsSameFailures: only failures with the same error are folded.
func TestTreeViewFoldsSameFailures(t *testing.T) {
	t.Parallel()
	tasks := testTasks(strings.Repeat("f", 30))
	got := drawn(treeView{depth: -1}, tasks)
	if !strings.Contains(got, "✗ … 26 more failed: same error, task-0005 to task-0030") {
		t.Errorf("failures with the same error are drawn as\n%s", got)
	}
	for i := range tasks[1:] {
		tasks[i+1].Error = &perdure.TaskError{Kind: "model", Message: fmt.Sprint("error ", i)}
	}
	if n := strings.Count(drawn(treeView{depth: -1}, tasks), "✗"); n != 30 {
		t.Errorf("%d failures shown, want all 30", n)
	}
}

func TestTreeViewDepth(t *testing.T) {
	t.Parallel()
	tasks := testTasks("cc")
	tasks = append(tasks, perdure.Task{ID: 9, Parent: 2, State: perdure.Completed, Prompt: "deeper"})
	same(t, drawn(treeView{depth: 1}, tasks), `
◌ task-0001  the root  1.5s
├─ ✓ task-0002  part 0  1.0s, $0.0010
│  └─ … 1 task below
└─ ✓ task-0003  part 1  1.0s, $0.0010
`)
}

func TestTreeViewKeepsToTheWidth(t *testing.T) {
	t.Parallel()
	tasks := testTasks("c")
	tasks[1].Prompt = strings.Repeat("wide 日本 ", 100)
	for _, text := range strings.Split(drawn(treeView{depth: -1}, tasks), "\n") {
		if env.Width(text) > 70 {
			t.Errorf("%d cells, the terminal has 70: %q", env.Width(text), text)
		}
	}
}

func TestPlainProgress(t *testing.T) {
	t.Parallel()
	s, b := screen(80)
	s.Terminal = false
	v := newProgressView(s, false)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(second int, done int64) {
		v.update(start.Add(time.Duration(second)*time.Second), snapshot{progress: progressOf(done, 100)})
	}
	at(0, 0)  // prints nothing: the tree's ID was just printed
	at(1, 4)  // less than a tenth and less than plainEvery
	at(2, 11) // another tenth
	at(3, 14)
	at(8, 15) // more than plainEvery
	at(9, 15)
	at(20, 15) // nothing changed
	same(t, b.String(), `
perdure: tree-12345678: 11%, 11 of 100 tasks, 2 running, ETA ~2m 15s, $0.0650
perdure: tree-12345678: 15%, 15 of 100 tasks, 2 running, ETA ~2m 15s, $0.0650
`)
}

func TestTerminalProgress(t *testing.T) {
	t.Parallel()
	s, b := screen(60)
	v := newProgressView(s, false)
	active := make([]perdure.ActiveTask, 7)
	for i := range active {
		active[i] = perdure.ActiveTask{Task: perdure.TaskID(i + 1), Prompt: "reading\x1b[2J part"}
	}
	v.update(time.Time{}, snapshot{progress: progressOf(50, 100), active: active, notes: []string{"openai:m waits 12s"}})
	v.update(time.Time{}, snapshot{progress: progressOf(60, 100)})
	v.say("a line that stays")
	v.finish()
	got := b.String()
	same(t, got, "\x1b[J[██████████▒▒▒▒▒▒▒▒▒▒]  50%  50 of 100 tasks, 2 running, E…\n"+`  task-0001 reading␛[2J part
  task-0002 reading␛[2J part
  task-0003 reading␛[2J part
  task-0004 reading␛[2J part
  … 3 more running
  openai:m waits 12s
`+"\x1b[7A\r\x1b[J[████████████▒▒▒▒▒▒▒▒]  60%  60 of 100 tasks, 2 running, E…\n"+
		"\x1b[1A\r\x1b[Ja line that stays\n")
}

func TestQuietProgress(t *testing.T) {
	t.Parallel()
	s, b := screen(60)
	v := newProgressView(s, true)
	v.update(time.Time{}, snapshot{progress: progressOf(50, 100)})
	v.say("text")
	v.finish()
	if b.Len() != 0 {
		t.Errorf("printed %q", b)
	}
}
