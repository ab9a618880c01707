package longtask_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/longtask"
)

// brute counts a text with the sub-model.
func brute(t *testing.T, text string) *longtask.Truth {
	t.Helper()
	users, days := map[string]int{}, map[string]int{}
	for i := range longtask.Users {
		users[longtask.User(i)] = i
	}
	for i := range longtask.Days {
		days[longtask.Date(i)] = i
	}
	got := &longtask.Truth{}
	for line := range strings.Lines(text) {
		var labels []string
		if err := json.Unmarshal([]byte(longtask.Sub(line)), &labels); err != nil || len(labels) != 1 {
			t.Fatalf("%q has the labels %q: %v", line, labels, err)
		}
		parts := strings.SplitN(line, " | ", 3)
		for l := range longtask.Label(longtask.Labels) {
			if l.String() == labels[0] {
				got.Counts[users[parts[1]]][days[parts[0]]][l]++
			}
		}
		got.Lines++
	}
	return got
}

// TestTruth compares the truth of the generator with what the sub-model reads from the text.
func TestTruth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		var text, again bytes.Buffer
		truth, err := longtask.Generate(&text, longtask.Spec{Seed: seed, Bytes: 1000 * int64(1+seed*seed)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := longtask.Generate(&again, longtask.Spec{Seed: seed, Bytes: 1000 * int64(1+seed*seed)}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text.Bytes(), again.Bytes()) {
			t.Errorf("seed %d gives two texts", seed)
		}
		if *brute(t, text.String()) != *truth {
			t.Errorf("seed %d: the text has not the labels of the truth", seed)
		}
	}
}

// harness runs blocks of code in a namespace with a sub-model that has prepared replies. The
// code of a nested root runs in a coroutine; rlm_query_batched runs the code of its REPLs.
const harness = `import ast, asyncio, json, sys
given = json.load(sys.stdin)
out = []
def run(code, space):
    result = eval(compile(code, 'block', 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space)
    if result is not None:
        asyncio.run(result)
for task in given['tasks']:
    replies, asked = task['replies'], []
    def llm_query_batched(prompts):
        asked.extend(prompts)
        return [json.dumps([replies[l.split(' | ')[2]] for l in p.split('\n')[1:]]) for p in prompts]
    async def rlm_query_batched(prompts):
        finals = []
        for p in prompts:
            asked.append(p)
            exec(given['child'], {'context': p, 'llm_query_batched': llm_query_batched, 'FINAL': finals.append})
        return finals
    space = {'context': task['context'], 'answer': {}, 'llm_query_batched': llm_query_batched,
             'rlm_query_batched': rlm_query_batched, 'print': lambda *a: None}
    errors = []
    for i, code in enumerate(task['blocks']):
        try:
            run(code, space)
        except Exception as e:
            errors.append(f'{i + 1} {type(e).__name__}')
    out.append({'answer': space['answer'].get('content'), 'calls': len(asked), 'errors': errors})
print(json.dumps(out))`

// task is what the harness runs, and what has to come of it.
type task struct {
	Context string            `json:"context"`
	Replies map[string]string `json:"replies"`
	Blocks  []string          `json:"blocks"`

	question longtask.Question
	answer   string
	calls    int64
}

// TestRoot runs the code of the root with CPython: each answer and number of calls is right,
// and only the second turn fails.
func TestRoot(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	var tasks []task
	for seed := range uint64(20) {
		tasks = append(tasks, tasksOf(t, seed)...)
	}
	in, err := json.Marshal(map[string]any{"tasks": tasks, "child": longtask.Child()})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", harness)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Answer string
		Calls  int64
		Errors []string
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(tasks) {
		t.Fatalf("%d outcomes: %v", len(got), err)
	}
	for i, x := range tasks {
		if got[i].Answer != x.answer || got[i].Calls != x.calls {
			t.Errorf("%s\n%+v, want %q with %d calls", x.question, got[i], x.answer, x.calls)
		}
		if len(got[i].Errors) != 1 || !strings.HasPrefix(got[i].Errors[0], "2 ") {
			t.Errorf("%s\nerrors %q", x.question, got[i].Errors)
		}
	}
}

// tasksOf returns the tasks of a context: all questions, of which each third one is nested.
func tasksOf(t *testing.T, seed uint64) (tasks []task) {
	t.Helper()
	var text bytes.Buffer
	truth, err := longtask.Generate(&text, longtask.Spec{Seed: seed, Bytes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	replies := map[string]string{}
	for line := range strings.Lines(text.String()) {
		label, _ := longtask.Infer(line)
		replies[strings.TrimSuffix(strings.SplitN(line, " | ", 3)[2], "\n")] = label.String()
	}
	for i, q := range longtask.Questions(seed) {
		x := task{Context: text.String(), Replies: replies, question: q}
		answer, lines := truth.Answer(q)
		x.answer, x.calls = answer, longtask.Calls(lines)
		nested := i%3 == 0
		if nested {
			x.calls = longtask.NestedCalls(lines)
		}
		for turn := 1; turn <= longtask.Turns; turn++ {
			x.Blocks = append(x.Blocks, longtask.Root(q, turn, nested))
		}
		tasks = append(tasks, x)
	}
	return tasks
}
