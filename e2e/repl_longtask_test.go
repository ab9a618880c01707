package e2e

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/longtask"
)

// longBed is a bed whose run answers a question about a long context, served by scripted
// models.
type longBed struct {
	*bed
	question longtask.Question
	server   *longtask.Server
	front    *httptest.Server
	// want is the answer, calls the number of requests of a run without deaths.
	want  string
	calls int
}

func newLongBed(t *testing.T, q longtask.Question, s longtask.Spec) *longBed {
	t.Helper()
	b := &longBed{bed: newBed(t, "hash"), question: q, server: &longtask.Server{Question: q}}
	var text bytes.Buffer
	truth, err := longtask.Generate(&text, s)
	if err != nil {
		t.Fatal(err)
	}
	answer, lines := truth.Answer(q)
	b.want, b.calls = answer, longtask.Turns+int(longtask.Calls(lines))
	if err := os.WriteFile(filepath.Join(b.dir, "text.txt"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	b.how = []string{"--planner", "repl", "--model", "openai:root", "--sub-model", "openai:sub"}
	t.Cleanup(func() { b.front.Close() })
	b.listen("127.0.0.1:0")
	return b
}

// listen serves the models at an address of this machine.
func (b *longBed) listen(address string) {
	b.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.t.Context(), "tcp", address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.front = &httptest.Server{Listener: l, Config: &http.Server{Handler: b.server, ReadHeaderTimeout: time.Minute}}
	b.front.Start()
	b.url = b.front.URL + "/v1"
}

// listenAgain waits until the requests under way have ended, and serves the models at the
// same address again, which is part of the run.
func (b *longBed) listenAgain() {
	b.front.Close()
	b.listen(b.front.Listener.Addr().String())
}

// requests returns how many requests the models have received.
func (b *longBed) requests() int {
	roots, _ := b.server.Totals("root")
	subs, _ := b.server.Totals("sub")
	return roots + subs
}

// recorded returns how many calls of the tree have a recorded answer, and how many have an
// unknown outcome.
func (b *longBed) recorded(s *perdure.Store, tree perdure.TreeID) (answers, uncertain int) {
	b.t.Helper()
	for _, task := range b.tasks(b.t.Context(), s, tree) {
		calls, err := s.Calls(b.t.Context(), task.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, c := range calls {
			switch c.State {
			case perdure.CallCompleted:
				answers++
			case perdure.CallUncertain:
				uncertain++
			}
		}
	}
	return answers, uncertain
}

// checkEnd checks a finished run: its answer is right, every answer is recorded once, nothing
// was sent again but calls with unknown outcome, and the code did the same each time.
func (b *longBed) checkEnd() (uncertain int) {
	t := b.t
	t.Helper()
	b.front.Close() // it has counted all requests
	s, trees := b.looked("")
	defer s.Close()
	root, err := s.Task(t.Context(), trees[0].Root)
	if err != nil {
		t.Fatal(err)
	}
	if trees[0].State != perdure.Completed || root.Result != b.want {
		t.Errorf("%s\nthe tree is %s with %q, want %q: %+v", b.question, trees[0].State, root.Result, b.want, root.Error)
	}
	answers, uncertain := b.recorded(s, trees[0].ID)
	if n := b.requests(); answers != b.calls || n > b.calls+uncertain {
		t.Errorf("%d answers are recorded after %d requests, want %d; %d have an unknown outcome", answers, n, b.calls,
			uncertain)
	}
	if n := b.server.Repeated(); n > uncertain {
		t.Errorf("%d answered requests were sent again, %d have an unknown outcome", n, uncertain)
	}
	if n := diverged(t, s, trees[0].ID); n != 0 {
		t.Errorf("%d divergences", n)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the store is not sound: %v %v", problems, err)
	}
	return uncertain
}

// TestKillInALongTask kills the program with SIGKILL while a batch of a hundred sub-calls is
// under way. The run is resumed with exactly the calls that have no recorded answer.
func TestKillInALongTask(t *testing.T) {
	t.Parallel()
	const batch = 100
	b := newLongBed(t, longtask.Question{Kind: longtask.Count, Label: 2, User: -1, To: longtask.Days - 1},
		longtask.Spec{Seed: 3, Lines: batch * longtask.Chunk})
	if b.calls != longtask.Turns+batch {
		t.Fatalf("the run has %d calls, want a batch of %d", b.calls, batch)
	}
	var process atomic.Pointer[os.Process]
	b.server.Answered = func(model string, number int) {
		if p := process.Load(); model == "sub" && number == batch/2 && p != nil {
			_ = p.Kill() // the test fails below if it goes on
		}
	}
	cmd := b.next()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process.Store(cmd.Process)
	if err := cmd.Wait(); !killed(err) {
		t.Fatalf("run: %v, want it killed", err)
	}
	b.listenAgain()
	before := b.requests()
	s, trees := b.looked("")
	answers, _ := b.recorded(s, trees[0].ID)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if answers < batch/4 || answers > batch*3/4 {
		t.Fatalf("%d answers were recorded, the kill was not within the batch", answers)
	}
	b.finish()
	uncertain := b.checkEnd()
	if again := b.requests() - before; again != b.calls-answers {
		t.Errorf("%d requests after the kill, want %d", again, b.calls-answers)
	}
	t.Logf("%d requests before the kill, %d answers recorded, %d with unknown outcome", before, answers, uncertain)
}
