package e2e

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/mock"
)

// coder is a model that writes ordinary Python, and answers the sub-calls of its code.
const coder = `replies:
- {match: '^Is there a number in line', repeat: -1, text: "yes"}
- {match: '=== message 4 ===', text: "` + "```repl\\nanswer['content'] = f'{yes} of {len(parts)}'\\nanswer['ready'] = True\\n```" + `"}
- {match: '=== message 3 ===', text: "` + "Ask.\\n```repl\\nprompts = [f'Is there a number in line {i}? {p!r}' for i, p in enumerate(parts)]\\ntry:\\n" +
	"    answers = llm_query_batched(prompts)\\nexcept RuntimeError as e:\\n    print(e)\\nyes = sum(a == " +
	"'yes' for a in answers)\\n" +
	"print(json.dumps({'yes': yes, 'share': yes / len(parts)}))\\n```" + `"}
- {match: '=== message 2 ===', text: "` + "```python\\nimport re, json\\nlines = context.splitlines()\\n" +
	"parts = [lines[i] for i in range(0, 100)]\\nprint(len(lines), re.findall(r'\\\\d+', " +
	"parts[7]))\\nmissing.strip()\\n```" + `"}
- {match: 'Turn 1/30', text: "` + "```repl\\nprint(type(context), len(context))\\nprint(context[:80])\\n```" + `"}
`

// replBed is a bed whose model writes code.
func replBed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, "hash")
	script, err := mock.Parse("repl", []byte(coder))
	if err != nil {
		t.Fatal(err)
	}
	b.server = mock.NewServer(script)
	front := httptest.NewServer(b.server)
	t.Cleanup(front.Close)
	b.url = front.URL + "/v1"
	b.how = []string{"--planner", "repl"}
	return b
}

// requests of a whole run: four of the root and a batch of one hundred.
const replRequests = 4 + 100

// TestKillInARepl kills the program at points of a run in which code asks a hundred questions
// at once: it ends with the same answer, and no answer that was recorded is asked for again.
func TestKillInARepl(t *testing.T) {
	t.Parallel()
	points := map[string][]int{"call.after_begin": {1, 4, 5, 60, 104}, "call.before_settle": {2, 4, 50, 104},
		"call.after_settle": {1, 3, 4, 70, 103}, "tx.before_commit": {9, 40, 120}, "tx.after_commit": {6,
			12, 30, 90, 200}}
	for point, numbers := range points {
		for _, n := range numbers {
			t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
				t.Parallel()
				b := replBed(t)
				if out, err := b.next(fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point,
					n)).CombinedOutput(); !killed(err) {
					t.Fatalf("run: %v, want it killed\n%s", err, out)
				}
				b.finish()
				s, trees := b.looked("")
				defer s.Close()
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("the store is not sound: %v %v", problems, err)
				}
				root, err := s.Task(t.Context(), trees[0].Root)
				if err != nil {
					t.Fatal(err)
				}
				if trees[0].State != perdure.Completed || root.Result != "100 of 100" {
					t.Errorf("the tree is %s with %q, %+v", trees[0].State, root.Result, root.Error)
				}
				p, err := s.Progress(t.Context(), trees[0].ID)
				if err != nil {
					t.Fatal(err)
				}
				var again int64
				entries := b.server.Ledger().Entries()
				for _, e := range entries {
					again += int64(e.Started - 1)
				}
				if again > p.Usage.UncertainCalls || len(entries) != replRequests {
					t.Errorf("%d requests were sent again, %d calls are uncertain; %d requests, want %d", again,
						p.Usage.UncertainCalls, len(entries), replRequests)
				}
				if n := diverged(t, s, trees[0].ID); n != 0 {
					t.Errorf("%d divergences", n)
				}
			})
		}
	}
}

// diverged counts the events of a tree that say that something was not repeated exactly.
func diverged(t *testing.T, s *perdure.Store, tree perdure.TreeID) (n int) {
	t.Helper()
	f := perdure.EventFilter{Tree: tree}
	for {
		events, err := s.Events(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Kind == perdure.EventCallDiverged || e.Kind == "repl.diverged" {
				n++
			}
			f.After = e.Seq
		}
		if len(events) == 0 {
			return n
		}
	}
}
