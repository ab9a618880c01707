package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Replies as models write them end with the answer that their code computed, or with none.
func TestRepliesEndWithTheAnswerOfCode(t *testing.T) {
	t.Parallel()
	const noAnswer = 3 // the exit status of a partial run
	for name, want := range map[string]struct {
		answer string
		status int
		says   string // in the second request
	}{
		"bare-final-expression":     {status: noAnswer, says: "expression"},
		"code-then-final-var":       {answer: "42"},
		"fence-after-text":          {status: noAnswer, says: "27"},
		"fence-in-string":           {answer: "30"},
		"final-in-bold":             {status: noAnswer, says: "at the beginning of a line"},
		"final-indented":            {answer: "42"},
		"final-with-code-inside":    {status: noAnswer, says: "Code within FINAL"},
		"ready-before-content":      {answer: "forty-two"},
		"special-token-after-fence": {answer: "27"},
		"tag-python3":               {answer: "27"},
		"think-code":                {status: noAnswer, says: "27"},
		"think-final":               {answer: "42"},
		"think-schema-json":         {answer: `{"n":42}`},
		"xml-call-final-inside":     {answer: "27"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, dir := serveCase(t, "replies/"+name+".txt"), t.TempDir()
			for file, text := range map[string]string{"ctx.txt": "A context of 27 characters\n",
				"schema.json": `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"run", "number?", "-c", "ctx.txt", "--model", "openai:f", "--base-url", server.URL}
			if strings.Contains(name, "schema") {
				args = append(args, "--schema", "schema.json")
			} else {
				args = append(args, "--planner", "repl", "--repl-engine", "starlark", "--repl-turns", "2")
			}
			run := runCase(t, dir, args...)
			answer := strings.Join(strings.Fields(run.stdout), "")
			if run.status != want.status || want.answer != "" && answer != want.answer {
				t.Errorf("status %d, output %q, errors %q", run.status, run.stdout, run.stderr)
			}
			if want.status == noAnswer && !strings.Contains(run.stdout, "no answer") {
				t.Errorf("output %q of a run without an answer", run.stdout)
			}
			if requests := server.Requests(); want.says != "" && (len(requests) < 2 ||
				!strings.Contains(string(requests[1].Body), want.says)) {
				t.Errorf("%d requests, the second does not say %q", len(requests), want.says)
			}
		})
	}
}

// A model that only thinks is asked once more, and the error says what it did.
func TestOnlyThoughtsFail(t *testing.T) {
	t.Parallel()
	server := serveCase(t, "http/reasoning-only-stop.http")
	run := runCase(t, t.TempDir(), "run", "number?", "--model", "openai:f", "--base-url", server.URL)
	if run.status == 0 || !strings.Contains(run.stderr+run.stdout, "only thoughts") {
		t.Errorf("status %d, output %q, errors %q", run.status, run.stdout, run.stderr)
	}
	if n := len(server.Requests()); n > 3 {
		t.Errorf("%d requests were sent", n)
	}
}
