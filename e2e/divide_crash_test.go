package e2e

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/mock"
)

// overflowBed is a bed whose model reads less than is known of it.
func overflowBed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, "hash")
	script, err := mock.Parse("small", []byte("limit: 1200\nreplies: [{text: 'answer {{hash}}', repeat: -1}]"))
	if err != nil {
		t.Fatal(err)
	}
	b.server = mock.NewServer(script)
	front := httptest.NewServer(b.server)
	t.Cleanup(front.Close)
	b.url = front.URL + "/v1"
	b.how = []string{"--merge", "merge", "--chunk-tokens", "4000", "--concurrency", "1"}
	return b
}

// TestKillWhileDividing kills the program at each point of dividing text
// that are too long: the run ends whole, and no answer and no refusal that was
// recorded is asked for again.
func TestKillWhileDividing(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"tx.before_commit", "tx.after_commit", "call.after_begin", "call.before_settle",
		"call.after_settle"} {
		for _, n := range []int{1, 2, 3, 5, 9} {
			t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
				t.Parallel()
				b := overflowBed(t)
				if out, err := b.next(fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)).CombinedOutput(); !killed(err) {
					t.Fatalf("run: %v, want it killed\n%s", err, out)
				}
				b.finish()
				s, trees := b.looked("")
				defer s.Close()
				if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
					t.Errorf("the store is not sound: %v %v", problems, err)
				}
				if trees[0].State != perdure.Completed || trees[0].Partial {
					t.Errorf("the tree is %s, partial %v", trees[0].State, trees[0].Partial)
				}
				p, err := s.Progress(t.Context(), trees[0].ID)
				if err != nil {
					t.Fatal(err)
				}
				var again, refused int64
				for _, e := range b.server.Ledger().Entries() {
					again, refused = again+int64(e.Started-1), refused+int64(e.Failed)
				}
				if again > p.Usage.UncertainCalls || refused == 0 {
					t.Errorf("%d requests were sent again, %d calls are uncertain; %d were refused", again, p.Usage.UncertainCalls,
						refused)
				}
			})
		}
	}
}
