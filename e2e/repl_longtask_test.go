package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/longtask"
	"github.com/perdure/perdure/rlm"
)

// longBed is a bed whose run answers a question about a long context, served by scripted
// models.
type longBed struct {
	*bed
	server *longtask.Server
	front  *httptest.Server
	// want is the answer, calls the number of requests of a run without deaths and faults,
	// faults that of the requests that the server fails.
	want          string
	calls, faults int
}

func newLongBed(t *testing.T, server *longtask.Server, s longtask.Spec) *longBed {
	t.Helper()
	b := &longBed{bed: newBed(t, "hash"), server: server}
	var text bytes.Buffer
	truth, err := longtask.Generate(&text, s)
	if err != nil {
		t.Fatal(err)
	}
	answer, lines := truth.Answer(server.Question)
	b.want, b.calls = answer, longtask.Turns+int(longtask.Calls(lines))
	if server.Nested {
		b.calls = longtask.Turns + int(longtask.NestedCalls(lines))
	}
	if err := os.WriteFile(filepath.Join(b.dir, "text.txt"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	b.how = []string{"--planner", "repl", "--model", "openai:root", "--sub-model", "openai:sub"}
	b.front = httptest.NewServer(b.server)
	t.Cleanup(b.front.Close)
	b.url = b.front.URL + "/v1"
	return b
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
		t.Errorf("%s\nthe tree is %s with %q, want %q: %+v", b.server.Question, trees[0].State, root.Result, b.want,
			root.Error)
	}
	answers, uncertain := b.recorded(s, trees[0].ID)
	if n := b.requests() - b.faults; answers != b.calls || n > b.calls+uncertain {
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

// longQuestion is a question about all lines.
func longQuestion() longtask.Question {
	return longtask.Question{Kind: longtask.Count, Label: 2, User: -1, To: longtask.Days - 1}
}

// TestKillInALongTask kills the program with SIGKILL while a batch of a hundred sub-calls is
// under way. The run is resumed with exactly the calls that have no recorded answer.
func TestKillInALongTask(t *testing.T) {
	t.Parallel()
	const batch = 100
	b := newLongBed(t, &longtask.Server{Question: longQuestion()}, longtask.Spec{Seed: 3, Lines: batch * longtask.Chunk})
	if b.calls != longtask.Turns+batch {
		t.Fatalf("the run has %d calls, want a batch of %d", b.calls, batch)
	}
	var process atomic.Pointer[os.Process]
	b.server.OnAnswer(func(model string, number int) {
		if p := process.Load(); model == "sub" && number == batch/2 && p != nil {
			_ = p.Kill() // the test fails below if it goes on
		}
	})
	cmd := b.next()
	cmd.Env = append(cmd.Env, "OPENAI_API_KEY=first") // the other processes have another key
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process.Store(cmd.Process)
	if err := cmd.Wait(); !killed(err) {
		t.Fatalf("run: %v, want it killed", err)
	}
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
	before := b.server.Sent("first")
	if again := b.requests() - before; again != b.calls-answers {
		t.Errorf("%d requests after the kill, want %d", again, b.calls-answers)
	}
	t.Logf("%d requests before the kill, %d answers recorded, %d with unknown outcome", before, answers, uncertain)
}

// turnsOf returns what the code of all REPLs of a finished run did: its output, exceptions and
// variables.
func (b *longBed) turnsOf() (turns []string) {
	b.t.Helper()
	s, trees := b.looked("")
	defer s.Close()
	for _, task := range b.tasks(b.t.Context(), s, trees[0].ID) {
		calls, err := s.Calls(b.t.Context(), task.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		list, err := rlm.Turns(b.t.Context(), s, &task, calls)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, x := range list {
			for _, block := range x.Blocks {
				sum := sha256.Sum256([]byte(block.Output))
				turns = append(turns, fmt.Sprintf("%s, turn %d: %x %q %q %q, %d sub-calls", task.ID, x.Turn, sum, block.Failure,
					block.Final, block.Variables, block.SubCalls))
			}
		}
	}
	return turns
}

// TestReplFromEachPrefix kills the program after each commit of a run whose code has REPLs of
// its own, so that the store has a prefix of the journal of a finished run: the resumed run has
// the same answer, and its code has the same output. PERDURE_REPL_PREFIXES sets the number of
// prefixes, which are all in the long run.
func TestReplFromEachPrefix(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) *longBed {
		t.Helper()
		return newLongBed(t, &longtask.Server{Question: longQuestion(), Nested: true}, longtask.Spec{Seed: 5, Lines: 60})
	}
	whole := begin(t)
	passed := filepath.Join(whole.dir, "passed")
	if out, err := whole.next("PERDURE_FAILPOINT_LIST=" + passed).CombinedOutput(); err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	whole.checkEnd()
	list, err := os.ReadFile(passed)
	if err != nil {
		t.Fatal(err)
	}
	commits := bytes.Count(list, []byte("tx.after_commit\n"))
	want := whole.turnsOf()
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 0))
	prefixes := rng.Perm(commits)[:min(number(t, "PERDURE_REPL_PREFIXES", 2, commits), commits)]
	t.Logf("%d commits, %d blocks", commits, len(want))
	for _, n := range prefixes {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			b := begin(t)
			out, err := b.next(fmt.Sprintf("PERDURE_FAILPOINT=tx.after_commit:%d", n+1)).CombinedOutput()
			if err != nil && !killed(err) {
				t.Fatalf("run: %v\n%s", err, out)
			}
			b.finish()
			b.checkEnd()
			if diff := cmp.Diff(want, b.turnsOf()); diff != "" {
				t.Errorf("the code did something else (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLongTaskWithFaults: an endpoint that is slow, refuses requests, fails, and cuts its
// answers changes neither the answer nor what is asked, and each request is counted.
func TestLongTaskWithFaults(t *testing.T) {
	t.Parallel()
	server := &longtask.Server{Question: longQuestion(), Delay: time.Millisecond}
	faults := map[string]map[int]longtask.Fault{"root": {2: longtask.Cut},
		"sub": {2: longtask.Cut, 5: longtask.TooMany, 9: longtask.Internal, 14: longtask.Cut, 15: longtask.TooMany}}
	server.Fault = func(model string, number int) longtask.Fault { return faults[model][number] }
	b := newLongBed(t, server, longtask.Spec{Seed: 4, Lines: 400})
	b.faults = len(faults["root"]) + len(faults["sub"])
	if out, err := b.next().CombinedOutput(); err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	if n := b.checkEnd(); n != 0 {
		t.Errorf("%d calls have an unknown outcome", n)
	}
	if n := server.Repeated(); n != 0 {
		t.Errorf("%d answered requests were sent again", n)
	}
	s, trees := b.looked("")
	defer s.Close()
	p, err := s.Progress(t.Context(), trees[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.requests(); n != b.calls+b.faults || p.Usage.Calls != int64(n) {
		t.Errorf("%d requests, %d of them shown, want %d and %d that failed", n, p.Usage.Calls, b.calls, b.faults)
	}
}
