package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// contains checks that a text contains all given parts.
func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("not said: %s\n%s", want, text)
		}
	}
}

func TestRunVotes(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("m.yaml", "replies:\n- {text: '41', repeat: 1}\n- {text: '42.', repeat: 1}\n- {text: ' 42 ', repeat: -1}\n")
	stdout, stderr := p.run(0, "run", "How many?", "--model", "mock:m.yaml", "--merge", "vote", "--concurrency", "1")
	if stdout != "42.\n" {
		t.Errorf("answer %q", stdout)
	}
	contains(t, stderr, "votes:", "2 × 42. (task-0003)", "1 × 41 (task-0002)", "4 tasks")
	shown, _ := p.run(0, "show", "task-0001")
	contains(t, shown, "Details", "2 × 42. (task-0003)", "merge: vote")
	asJSON, _ := p.run(0, "run", "How many?", "--model", "mock:m.yaml", "--merge", "vote", "--samples", "2",
		"--concurrency", "1", "--json")
	contains(t, asJSON, `"votes":[{"answer":"41"`, `"count":1`)
}

func TestRunChoosesByAProgram(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("m.yaml", "replies:\n- {text: 'x', repeat: 1}\n- {text: 'xxx', repeat: 1}\n- {text: 'bad', repeat: 1}\n")
	p.write("score.sh", "grep -q x in.$$ 2>/dev/null; text=$(cat); case $text in *x*) echo ${#text}; echo its length;; "+
		"*) echo no x >&2; exit 3;; esac\n")
	stdout, stderr := p.run(0, "run", "Say x", "--model", "mock:m.yaml", "--merge", "best-of-n", "--judge",
		"exec:sh score.sh", "--concurrency", "1")
	if stdout != "xxx\n" {
		t.Errorf("answer %q", stdout)
	}
	contains(t, stderr, "scores:", "task-0003: 3, chosen; its length", "task-0004: no score", `"exec:sh score.sh"`,
		"no x", "6 calls")
}

func TestRunThroughAGate(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("m.yaml", `replies:
- {match: "strict and fair judge", text: '{"score": 35.5, "critique": "too short"}'}
- {match: "too short", text: longer}
- {text: short}
`)
	stdout, stderr := p.run(env.StatusIncomplete, "run", "Tell", "--model", "mock:m.yaml", "--min-score", "80",
		"--gate-rounds", "2")
	if !strings.HasPrefix(stdout, "(partial: ") || !strings.HasSuffix(stdout, "tries again)\nshort\n") {
		t.Errorf("answer %q", stdout)
	}
	contains(t, stderr, "quality gate: not passed, 35.5 of at least 80", "round 1 (mock:", "35.5, chosen; too short",
		"is partial: the best of 2 answers has the score 35.5, and at least 80 is needed")
	events, _ := p.run(0, "events", "--json")
	if n := strings.Count(events, `"gate.scored"`); n != 2 {
		t.Errorf("%d events of the gate:\n%s", n, events)
	}
	p.run(env.StatusFailed, "run", "Tell", "--model", "mock:m.yaml", "--min-score", "80", "--gate-rounds", "1",
		"--gate-fallback", "fail")
}

func TestRunRefusesBadJudging(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--merge", "best-of-n", "--judge", "rule:len(txt) > 1"}, "column 5: unknown name txt"},
		{[]string{"--judge", "rule:1"}, "judge: no answer is scored"},
		{[]string{"--merge", "best-of"}, `merge: "best-of" is not one of`},
		{[]string{"--samples", "-1"}, "samples: -1 is not between 0 and 1000"},
		{[]string{"--min-score", "NaN"}, "--min-score: NaN is not a number"},
		{[]string{"--min-score", "80", "--gate-fallback", "escalate"}, "no stronger model"},
	} {
		_, stderr := p.run(env.StatusUsage, append([]string{"run", "Say", "--model", "mock:echo"}, tt.args...)...)
		contains(t, stderr, tt.want)
	}
	// A judge in the settings does not fail a run that needs none.
	p.write(".perdure/config.yaml", "judge: \"rule:len(text)\"\n")
	p.run(0, "run", "Say", "--model", "mock:echo")
}
