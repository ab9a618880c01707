package e2e

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/mock"
)

// searchBed is a bed whose model searches three times, reads a range and answers.
func searchBed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, "hash")
	script, err := mock.Parse("search", []byte(`replies:
- {match: 'your reply 4', text: "ANSWER\nOf things. [^1]\n\n[^1]: text.txt:8\n> line 7 speaks of 49 things"}
- {match: 'your reply 3', text: "READ text.txt:1-20"}
- {match: 'your reply 2', text: "SEARCH line 81\nLIST ."}
- {match: 'your reply 1', text: "SEARCH counted before"}
- {match: 'SEARCH words', text: "SEARCH things"}`))
	if err != nil {
		t.Fatal(err)
	}
	b.server = mock.NewServer(script)
	front := httptest.NewServer(b.server)
	t.Cleanup(front.Close)
	b.url = front.URL + "/v1"
	b.how = []string{"--planner", "search", "--context-window", "12000"}
	return b
}

// TestKillWhileSearching kills the program at each point of a search: it ends with the same
// answer, and no reply that was recorded is asked for again.
func TestKillWhileSearching(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"tx.after_commit", "call.after_begin", "call.before_settle", "call.after_settle"} {
		for _, n := range []int{1, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
				t.Parallel()
				b := searchBed(t)
				if out, err := b.next(fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)).CombinedOutput(); !killed(err) {
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
				if trees[0].State != perdure.Completed || root.Result != "Of things. [^1]" ||
					!strings.Contains(string(root.Data), "line 7 speaks of 49 things") {
					t.Errorf("the tree is %s with %q, %s", trees[0].State, root.Result, root.Data)
				}
				p, err := s.Progress(t.Context(), trees[0].ID)
				if err != nil {
					t.Fatal(err)
				}
				var again int64
				for _, e := range b.server.Ledger().Entries() {
					again += int64(e.Started - 1)
				}
				if again > p.Usage.UncertainCalls || len(b.server.Ledger().Entries()) != 5 {
					t.Errorf("%d requests were sent again, %d calls are uncertain; %d requests", again, p.Usage.UncertainCalls,
						len(b.server.Ledger().Entries()))
				}
			})
		}
	}
}
