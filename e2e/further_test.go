package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
)

// sentFields is what a request has besides its messages: a parameter, and a header.
type sentFields struct {
	TopP   float64 `json:"top_p"`
	Effort string  `json:"reasoning_effort"`
	Team   string  `json:"-"`
}

func fieldsOf(t *testing.T, r replyserver.Request) (f sentFields) {
	t.Helper()
	if err := json.Unmarshal(r.Body, &f); err != nil {
		t.Fatal(err)
	}
	f.Team = r.Header.Get("X-Team")
	return f
}

// Further questions, forks and resumed trees send the parameters and headers of the first tree, with those
// that are given by flags; views name the tree that they go on from.
func TestParametersOfTreesThatGoOn(t *testing.T) {
	t.Parallel()
	server := replyserver.Start(t, func(r replyserver.Request) []byte {
		if strings.Contains(string(r.Body), "Fail") && !strings.Contains(string(r.Body), "0.1") {
			return replyserver.JSON(400, `{"error":{"message":"no"}}`)
		}
		return replyserver.Chat("```repl\nFINAL(7)\n```")
	})
	dir := t.TempDir()
	tree := func(want string, args ...string) string {
		t.Helper()
		run := runCase(t, dir, append(args, "--trust")...)
		id := regexp.MustCompile(`tree-[0-9a-f]{8}`).FindString(run.stdout + run.stderr)
		if run.status != 0 && want != "" || id == "" || !strings.Contains(run.stdout, want) {
			t.Fatalf("%s: status %d, output %q, errors %q", args, run.status, run.stdout, run.stderr)
		}
		return id
	}
	first := tree("7", "run", "First?", "--planner", "repl", "--repl-engine", "starlark", "--model", "openai:f",
		"--base-url", server.URL, "--param", "top_p=0.9", "--header", "X-Team: blue")
	second := tree("7", "ask", first, "Second?", "--param", "reasoning_effort=low", "--header", "X-Team: red")
	third := tree("7", "fork", first, "--at", "1", "--param", "top_p=0.3", "--header", "X-Team: green")
	fourth := tree("", "run", "Fail?", "--planner", "none", "--model", "openai:f", "--base-url", server.URL,
		"--header", "X-Team: blue", "--param", "top_p=0.9")
	tree("FINAL", "resume", fourth, "--param", "top_p=0.1", "--header", "X-Team: white")
	var got []sentFields
	for _, r := range server.Requests() {
		got = append(got, fieldsOf(t, r))
	}
	want := []sentFields{{0.9, "", "blue"}, {0.9, "low", "red"}, {0.9, "", "blue"}, {0.1, "", "white"}}
	if len(got) != len(want) {
		t.Fatalf("requests %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d has %+v, want %+v", i+1, got[i], want[i])
		}
	}
	for id, origin := range map[string]string{second: "a further question to " + first, third: "turn 1 of " + first} {
		for _, command := range []string{"status", "report"} {
			if run := runCase(t, dir, command, id); !strings.Contains(run.stdout, origin) {
				t.Errorf("%s of %s does not say %q: %s", command, id, origin, run.stdout)
			}
		}
	}
	if run := runCase(t, dir, "show", "task-0002"); !strings.Contains(run.stdout, "a further question to "+first) {
		t.Errorf("show: %s", run.stdout)
	}
}
