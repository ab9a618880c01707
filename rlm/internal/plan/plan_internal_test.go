package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/rlm/internal/jsonreply"
)

func testRules(t testing.TB) *Rules {
	t.Helper()
	s, err := jsonreply.Compile(Schema)
	if err != nil {
		t.Fatal(err)
	}
	return &Rules{Shape: s, Merges: []string{"merge", "concatenate"}, Agents: []string{"reviewer"}, Children: 10,
		Nodes: 50,
		Files: []string{"src/a.go", "src/b.go", "README.md"}, PromptTokens: 100}
}

func TestBadPlans(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		return `{"tasks":[` + strings.TrimSuffix(strings.Repeat(`{"prompt":"x"},`, n), ",") + `]}`
	}
	tests := []struct {
		name, plan string
		want       []string
	}{
		{"prose", "First we should read everything.", []string{"the reply contains no JSON"}},
		{"cut", `{"tasks":[{"prompt":"x"`, []string{"the JSON ends before it is complete"}},
		{"a list", `[]`, []string{"the value: got array, want object"}},
		{"no tasks", `{"strategy":"parallel"}`, []string{"the value: missing property 'tasks'"}},
		{"wrong types", `{"strategy":1,"tasks":[{"prompt":"x","depends_on":"a","decompose":"yes"},7]}`,
			[]string{"/strategy: value must be one of", "/tasks/0/depends_on: got string, want array",
				"/tasks/0/decompose: got string", "/tasks/1: got number"}},
		{"unknown field", `{"tasks":[{"prompt":"x","depend_on":["a"]}]}`,
			[]string{"/tasks/0: additional properties 'depend_on' not allowed"}},
		{"unknown strategy", `{"strategy":"mapreduce","tasks":[]}`, []string{"/strategy: value must be one of"}},
		{"unknown merge", `{"merge":"concatenat","tasks":[{"prompt":"x"}]}`,
			[]string{`/merge: "concatenat" is not one of merge, concatenate; did you mean "concatenate"?`}},
		{"empty prompt", `{"tasks":[{"prompt":" "}]}`, []string{"/tasks/0/prompt: it is empty"}},
		{"long prompt", `{"tasks":[{"prompt":"` + strings.Repeat("word ", 100) + `"}]}`,
			[]string{"/tasks/0/prompt: about 125 tokens are more than the 100 that fit"}},
		{"NUL", `{"tasks":[{"prompt":"a\u0000"}]}`, []string{"NUL"}},
		{"11 children", many(11), []string{"/tasks: 11 are more than the 10 that are allowed"}},
		{"10,000 children", many(10_000), []string{"/tasks: 10000 are more than the 10 that are allowed"}},
		{"a huge plan", many(30_000), []string{"the limit is 262144"}},
		{"name twice", `{"tasks":[{"id":"a","prompt":"x"},{"id":"a","prompt":"y"}]}`,
			[]string{`/tasks/1/id: "a" is the name of /tasks/0 too`}},
		{"name", `{"tasks":[{"id":"My task","prompt":"x"}]}`, []string{`/tasks/0/id: "My task" is not a name`}},
		{"name of a function", `{"tasks":[{"id":"count","prompt":"x"},{"prompt":"y","when":"true"}]}`,
			[]string{`/tasks/0/id: "count" has a meaning of its own`}},
		{"unknown dependency", `{"tasks":[{"id":"first_one","prompt":"x"},{"prompt":"y","depends_on":["first_on"]}]}`,
			[]string{`/tasks/1/depends_on/0: "first_on" is not one of first_one, task_2; did you mean "first_one"?`}},
		{"itself", `{"tasks":[{"id":"a","prompt":"x","depends_on":["a"]}]}`, []string{"in a circle: a -> a"}},
		{"circle", `{"tasks":[{"id":"s","prompt":"x"},{"id":"a","prompt":"x","depends_on":["c","s"]},{"id":"b","prompt":"x","depends_on":["a"]},
			{"id":"c","prompt":"x","depends_on":["b"]},{"id":"d","prompt":"x","depends_on":["a"]}]}`,
			[]string{"in a circle: a -> c -> b -> a"}},
		{"unknown file", `{"tasks":[{"prompt":"x","files":["src/a.g","*.py","["]}]}`,
			[]string{`/tasks/0/files/0: "src/a.g" is not one of src/a.go, src/b.go, README.md; did you mean "src/a.go"?`,
				"/tasks/0/files/1", "/tasks/0/files/2"}},
		{"unknown agent", `{"tasks":[{"prompt":"x","agent":"reviwer"}]}`,
			[]string{`/tasks/0/agent: "reviwer" is not one of reviewer; did you mean "reviewer"?`}},
		{"condition", `{"tasks":[{"id":"a","prompt":"x"},{"id":"b","prompt":"y","when":"a.text contians 'x'"}]}`,
			[]string{`condition of task "b": column 8: `}},
		{"condition on a later task", `{"tasks":[{"id":"a","prompt":"x","when":"bee.text == ''"},{"id":"bee","prompt":"y"}]}`,
			[]string{`condition of task "a": column 1: unknown name bee; there is results, previous`}},
		{"condition of text", `{"tasks":[{"id":"a","prompt":"x"},{"prompt":"y","when":"a.text"}]}`,
			[]string{"expected bool, but got string"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, problems := testRules(t).Parse(tt.plan)
			all := strings.Join(problems, "\n")
			for _, want := range tt.want {
				if !strings.Contains(all, want) {
					t.Errorf("it does not tell %q:\n%s", want, all)
				}
			}
			if len(problems) == 0 || len(problems) > maxPlanProblems+1 {
				t.Errorf("%d problems", len(problems))
			}
		})
	}
}

func TestPlanLimits(t *testing.T) {
	t.Parallel()
	r := testRules(t)
	r.Nodes = 1
	if _, problems := r.Parse(`{"tasks":[{"prompt":"x"},{"prompt":"y"}]}`); len(problems) != 1 ||
		!strings.Contains(problems[0], "the limit of the whole tree leaves") {
		t.Errorf("problems are %q", problems)
	}
	r.Direct = "the context does not fit"
	if _, problems := r.Parse(`{"tasks":[]}`); len(problems) != 1 ||
		problems[0] != "/tasks: there are none, and the context does not fit" {
		t.Errorf("problems are %q", problems)
	}
}

func TestPlanIsPutInOrder(t *testing.T) {
	t.Parallel()
	r := testRules(t)
	r.Strategy = Parallel
	p, problems := r.Parse(`{"strategy":"sequential","tasks":[{"id":"d","prompt":"1","depends_on":["b","c"]},{"id":"b","prompt":"2","depends_on":["a"],"decompose":true},
		{"id":"c","prompt":"3","files":["src/*.go"]},{"id":"a","prompt":"4"},{"id":"e","prompt":"5","when":"a.text == '' and d.state != 'failed'"}]}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var ids []string
	for _, task := range p.Tasks {
		ids = append(ids, task.ID)
		if task.Decompose {
			t.Errorf("task %q is planned in turn at the depth limit", task.ID)
		}
	}
	if diff := cmp.Diff([]string{"c", "a", "b", "d", "e"}, ids); diff != "" {
		t.Error(diff)
	}
	if p.Strategy != Parallel || p.Merge != DefaultMerge {
		t.Errorf("strategy %q, merge %q", p.Strategy, p.Merge)
	}
	want := [][]string{nil, nil, {"a"}, {"b", "c"}, {"c", "a", "b", "d"}}
	for i := range p.Tasks {
		if diff := cmp.Diff(want[i], p.Waits(i)); diff != "" {
			t.Errorf("task %d: %s", i, diff)
		}
	}
}

// FuzzPlan wants of every plan that is accepted that it can be followed: each
// task comes after those it waits for, and the plan is the same when it is read
// again.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{`{"tasks":[]}`,
		`{"strategy":"conditional","tasks":[{"id":"a","prompt":"x"},{"prompt":"y","when":"a.text == ''"}]}`,
		`{"tasks":[{"id":"a","prompt":"x","depends_on":["b"]},{"id":"b","prompt":"y"}]}`,
		`{"tasks":[{"prompt":"x","files":["**"],"agent":"reviewer"}]}`,
		"```json\n{\"merge\":\"merge\",\"tasks\":[{\"prompt\":\"x\",\"decompose\":true}]}\n```",
		`{"tasks":[{"id":"task_2","prompt":"x"},{"prompt":"y"}]}`} {
		f.Add(s)
	}
	rules := testRules(f)
	f.Fuzz(func(t *testing.T, reply string) {
		p, problems := rules.Parse(reply)
		if len(problems) > 0 {
			return
		}
		var before []string
		for i, task := range p.Tasks {
			for _, id := range append(p.Waits(i), p.Sees(i)...) {
				if !slices.Contains(before, id) {
					t.Errorf("task %q waits for %q, which comes later", task.ID, id)
				}
			}
			if slices.Contains(before, task.ID) {
				t.Errorf("two tasks are %q", task.ID)
			}
			before = append(before, task.ID)
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again := new(Plan)
		if err := json.Unmarshal(raw, again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPredicates(t *testing.T) {
	t.Parallel()
	earlier := []Outcome{{ID: "a", State: "completed", Text: "yes, 3"}, {ID: "b", State: "skipped"},
		{ID: "c", State: "failed", Error: "no"}}
	tests := []struct {
		source string
		want   bool
	}{
		{`a.text contains "yes"`, true},
		{`b.state == "skipped" && c.state != "completed"`, true},
		{`any(results, .state == "failed")`, true},
		{`previous.id == "c" and len(results) == 3`, true},
		{`d.state == ""`, true},
		{`a.text matches "[0-9]+$"`, true},
		{`lower(c.error) startsWith "yes"`, false},
		{`int(split(a.text, ", ")[1]) > 3`, false},
	}
	for _, tt := range tests {
		p, err := Compile(tt.source, []string{"a", "b", "c", "d"})
		if err != nil {
			t.Errorf("%s: %v", tt.source, err)
			continue
		}
		if got, err := p.Holds(earlier); err != nil || got != tt.want {
			t.Errorf("%s is %v, %v", tt.source, got, err)
		}
	}
	for _, source := range []string{`results[7].text == ""`, `int(previous.error) > 1`} {
		p, err := Compile(source, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Holds(earlier); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("evaluate condition %q: column ", source)) {
			t.Errorf("%s: error is %v", source, err)
		}
	}
}

// FuzzPredicate wants that what compiles can be evaluated without a panic, and
// that what does not names a column.
func FuzzPredicate(f *testing.F) {
	for _, s := range []string{"true", "a.text == ''", "len(results) > 1", "results[9].text == ''", "1 +",
		"a.text matches '('", "now() > 1", "\n", "repeat('x', 9) == ''"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Compile(source, []string{"a"})
		if err == nil {
			_, err = p.Holds([]Outcome{{ID: "a", State: "completed", Text: "x"}})
			if err != nil && !strings.HasPrefix(err.Error(), "evaluate condition ") {
				t.Errorf("error is %v", err)
			}
			return
		}
		if msg := err.Error(); strings.ContainsAny(msg, "\n\r") || msg == "" {
			t.Errorf("error is %q", msg)
		}
	})
}

func BenchmarkPredicate(b *testing.B) {
	for b.Loop() {
		p, err := Compile(`none(results, .text contains "found") and previous.state != "failed"`, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Holds([]Outcome{{Text: "x"}, {Text: "y"}}); err != nil {
			b.Fatal(err)
		}
	}
}
