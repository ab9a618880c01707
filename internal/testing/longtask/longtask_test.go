package longtask_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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
		truth, err := longtask.Generate(&text, longtask.Spec{Seed: seed, Bytes: 10_000 * int64(1+seed)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := longtask.Generate(&again, longtask.Spec{Seed: seed, Bytes: 10_000 * int64(1+seed)}); err != nil {
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

// harness runs blocks of code in a namespace with a sub-model that gives prepared replies.
const harness = `import json, sys
given = json.load(sys.stdin)
out = []
for task in given['tasks']:
    replies, asked = given['replies'], []
    def llm_query_batched(prompts):
        asked.extend(prompts)
        return [json.dumps([replies[l.split(' | ')[2]] for l in p.split('\n')[1:]]) for p in prompts]
    space = {'context': given['context'], 'answer': {}, 'llm_query_batched': llm_query_batched,
             'print': lambda *a: None}
    errors = []
    for i, code in enumerate(task):
        try:
            exec(code, space)
        except Exception as e:
            errors.append(f'{i + 1} {type(e).__name__}')
    out.append({'answer': space['answer'].get('content'), 'calls': len(asked), 'errors': errors})
print(json.dumps(out))`

type outcome struct {
	Answer string
	Calls  int64
	Errors []string
}

// TestRoot runs the code of the root with CPython: each answer and number of calls is right,
// and only the second turn fails.
func TestRoot(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			truth, err := longtask.Generate(&text, longtask.Spec{Seed: seed, Bytes: 20_000})
			if err != nil {
				t.Fatal(err)
			}
			check(t, python, text.String(), truth, longtask.Questions(seed))
		})
	}
}

func check(t *testing.T, python, text string, truth *longtask.Truth, questions []longtask.Question) {
	t.Helper()
	replies := map[string]string{}
	for line := range strings.Lines(text) {
		label, _ := longtask.Infer(line)
		replies[strings.TrimSuffix(strings.SplitN(line, " | ", 3)[2], "\n")] = label.String()
	}
	var tasks [][]string
	for _, q := range questions {
		var code []string
		for turn := 1; turn <= 4; turn++ {
			code = append(code, longtask.Root(q, turn))
		}
		tasks = append(tasks, code)
	}
	in, err := json.Marshal(map[string]any{"context": text, "replies": replies, "tasks": tasks})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", harness)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []outcome
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(questions) {
		t.Fatalf("%d outcomes: %v", len(got), err)
	}
	for i, q := range questions {
		want, lines := truth.Answer(q)
		if got[i].Answer != want || got[i].Calls != longtask.Calls(lines) {
			t.Errorf("%s\n%+v, want %q with %d calls", q, got[i], want, longtask.Calls(lines))
		}
		if len(got[i].Errors) != 1 || !strings.HasPrefix(got[i].Errors[0], "2 ") {
			t.Errorf("%s\nerrors %q", q, got[i].Errors)
		}
	}
}
