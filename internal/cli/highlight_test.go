package cli

import (
	"strings"
	"testing"
)

// TestMatchesAreBoldOnATerminal proves that the words of the prompt are in bold in ranked passages on a
// terminal, not elsewhere, not with NO_COLOR, and not in the answer of a model.
func TestMatchesAreBoldOnATerminal(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("a.txt", "the zebra \x1b[31mis here\n")
	p.width = 80
	for name, tt := range map[string]struct {
		args, environ []string
		want          bool
	}{
		"a terminal":  {nil, nil, true},
		"NO_COLOR":    {nil, []string{"NO_COLOR=1"}, false},
		"dumb":        {nil, []string{"TERM=dumb"}, false},
		"a model":     {[]string{"--model", "mock:text=1 | zebra"}, nil, false},
		"JSON output": {[]string{"--json"}, nil, false},
	} {
		p.environ = append(p.environ[:0:0], tt.environ...)
		stdout, _ := p.run(0, append([]string{"run", "Where is the zebra?", "-c", "a.txt"}, tt.args...)...)
		if got := strings.Contains(stdout, "\x1b[1mzebra\x1b[22m"); got != tt.want || !strings.Contains(stdout, "zebra") ||
			strings.Contains(stdout, "\x1b[31m") {
			t.Errorf("%s: %q", name, stdout)
		}
	}
	p.width, p.environ = 0, nil
	if stdout, _ := p.run(0, "run", "Where is the zebra?", "-c", "a.txt"); strings.Contains(stdout, "\x1b[1m") {
		t.Errorf("no terminal: %q", stdout)
	}
}
