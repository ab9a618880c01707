package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// TestUsageErrorsAsJSON: with --json an error of usage is one line of JSON, also if the
// command line cannot be parsed.
func TestUsageErrorsAsJSON(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("usage.txt", "text")
	for _, tt := range []struct {
		args []string
		hint string
	}{
		{[]string{"run", "--modle", "x", "y", "--json"}, "did you mean --model?"},
		{[]string{"run", "--json", "y", "--budget-calls", "many"}, ""},
		{[]string{"resume", "--json", "--model", "mock:hash"}, "perdure resume TREE"},
		{[]string{"run", "--json=true", "--modle", "x", "y"}, "did you mean --model?"},
		{[]string{"run", "--modle", "x", "--json=false", "--json=1"}, "did you mean --model?"},
		{[]string{"reort", "x", "--json"}, `did you mean "perdure report"?`},
		{[]string{"run", "--json", "What is it?", "usage.txt"}, `run "What is it?" --context "usage.txt"`},
		{[]string{"run", "--json", "usage.txt", "What is it?"}, `run "What is it?" --context "usage.txt"`},
		{[]string{"run", "--json", "What is it?", "-c", "first", "usage.txt", "usage.txt"}, "PATTERN' in quotes"},
		{[]string{"run", "--json", "what", "is", "it"}, "quote an argument of several words"},
		{[]string{"run", "--json", "What is it?"}, "name files or folders with --context"},
	} {
		stdout, stderr := p.run(env.StatusUsage, tt.args...)
		var got struct {
			Error struct{ Code, Message, Hint string }
		}
		if err := json.Unmarshal([]byte(stderr), &got); err != nil || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%q prints %q and %q: %v", tt.args, stdout, stderr, err)
		}
		if e := got.Error; e.Code != "invalid" || e.Message == "" || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%q: %+v, want the hint %q", tt.args, e, tt.hint)
		}
	}
	for _, args := range [][]string{{"run", "--modle", "x", "y", "--", "--json"},
		{"run", "--modle", "x", "--", "--json=true"},
		{"run", "--json", "--json=false", "--modle", "x"}, {"run", "--jsonx=true"}} {
		if _, stderr := p.run(env.StatusUsage, args...); strings.HasPrefix(stderr, "{") {
			t.Errorf("%q prints JSON: %s", args, stderr)
		}
	}
}

// TestListShowsPrompts: lists show the prompt, or the name, before the model.
func TestListShowsPrompts(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.run(0, "run", "What is it?", "--model", "mock:text=it")
	p.run(0, "run", "What else?", "--model", "mock:text=else", "--name", "second")
	list, _ := p.run(0, "status")
	lines := strings.Split(list, "\n")
	if !strings.Contains(lines[0], "second  mock:text=else") || !strings.Contains(lines[1], "What is it?  mock:text=it") {
		t.Errorf("the list is\n%s", list)
	}
}
