package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/mock"
)

// These tests kill the real program with SIGKILL while it runs a tree against a
// scripted model behind a real socket, resume it, and compare with a run that
// was left alone: the same result, and no finished call asked for again, counted
// at the model.

// bed is one folder with a text, a model and the program.
type bed struct {
	t      *testing.T
	bin    string
	dir    string
	server *mock.Server
	web    *httptest.Server
	url    string
	// how are the flags of the run.
	how []string
}

func newBed(t *testing.T, script string) *bed {
	t.Helper()
	bin, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	s, err := mock.Inline(script)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, bin: bin, dir: t.TempDir(), server: mock.NewServer(s),
		how: []string{"--merge", "merge", "--chunk-tokens", "1000", "--max-children", "4"}}
	b.web = httptest.NewServer(b.server)
	t.Cleanup(b.web.Close)
	b.url = b.web.URL + "/v1"
	var text bytes.Buffer
	for i := range 700 {
		fmt.Fprintf(&text, "line %d speaks of %d things that nobody has counted before\n", i, i*i%97)
		if i%10 == 9 {
			text.WriteString("\n")
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "text.txt"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(b.bin, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), append(env, "OPENAI_BASE_URL="+b.url, "OPENAI_API_KEY=k", "NO_COLOR=1",
		"PERDURE_DIR="+filepath.Join(b.dir, ".perdure"))...)
	return cmd
}

// next returns the command to continue: a run if there is no tree, else a resume.
func (b *bed) next(env ...string) *exec.Cmd {
	trees := b.trees()
	if len(trees) == 0 {
		return b.command(env, append([]string{"run", "What is spoken of?", "--context", "text.txt", "--model",
			"openai:scripted",
			"--concurrency", "4"}, b.how...)...)
	}
	return b.command(env, "resume", string(trees[0].ID))
}

func (b *bed) open() *perdure.Store {
	b.t.Helper()
	s, err := perdure.Open(b.t.Context(), perdure.Config{Dir: filepath.Join(b.dir, ".perdure"),
		Heads: headsFolder()})
	if err != nil {
		b.t.Fatalf("open the store after a kill: %v", err)
	}
	return s
}

func (b *bed) trees() []perdure.Tree {
	b.t.Helper()
	if _, err := os.Stat(filepath.Join(b.dir, ".perdure")); err != nil {
		return nil
	}
	s := b.open()
	defer s.Close()
	trees, err := s.Trees(b.t.Context(), perdure.TreeFilter{})
	if err != nil {
		b.t.Fatal(err)
	}
	return trees
}

// finish runs without kills until the tree is done.
func (b *bed) finish() {
	b.t.Helper()
	for range 3 {
		if trees := b.trees(); len(trees) > 0 && trees[0].State.Terminal() {
			return
		}
		if out, err := b.next().CombinedOutput(); err != nil {
			b.t.Fatalf("resume: %v\n%s", err, out)
		}
	}
	b.t.Fatal("the tree does not end")
}

// result is the answer of a tree, and the number of answers to each request at the
// model and in the journal.
type result struct {
	answer    string
	responses []string
}

// check looks at everything a finished tree must be, and returns its result.
func (b *bed) check() result {
	t := b.t
	t.Helper()
	b.web.Close() // waits until the model has counted what it answered
	s := b.open()
	defer s.Close()
	ctx := t.Context()
	problems, err := s.Check(ctx)
	if err != nil || len(problems) > 0 {
		t.Errorf("the store is not sound: %v %v", problems, err)
	}
	intactLog(t, s)
	trees, err := s.Trees(ctx, perdure.TreeFilter{})
	if err != nil || len(trees) != 1 {
		t.Fatalf("trees = %d, %v", len(trees), err)
	}
	root, err := s.Task(ctx, trees[0].Root)
	if err != nil {
		t.Fatal(err)
	}
	if root.State != perdure.Completed {
		t.Fatalf("the root is %s: %+v", root.State, root.Error)
	}
	r := result{answer: root.Result}
	completed, uncertain := b.calls(ctx, s, trees[0].ID)
	asked := make(map[string]bool)
	for _, e := range b.server.Ledger().Entries() {
		asked[e.Hash] = true
		if completed[e.Hash] != 1 {
			t.Errorf("request %s has %d recorded answers, want 1", e.Hash, completed[e.Hash])
		}
		// Each request beyond the recorded one must be a call known as uncertain.
		if e.Started > 1+uncertain[e.Hash] {
			t.Errorf("request %s was sent %d times with %d uncertain calls", e.Hash, e.Started, uncertain[e.Hash])
		}
		r.responses = append(r.responses, e.Hash)
	}
	for hash := range completed {
		if !asked[hash] {
			t.Errorf("the model was never asked for answer %s", hash)
		}
	}
	slices.Sort(r.responses)
	return r
}

// calls counts the journal's completed calls, and calls with unknown outcome, by the request. The
// scripted model answers with a hash of the request, so the completed call of the
// same request hash shows which requests had an unknown outcome.
func (b *bed) calls(ctx context.Context, s *perdure.Store, tree perdure.TreeID) (completed, uncertain map[string]int) {
	b.t.Helper()
	completed, uncertain = make(map[string]int), make(map[string]int)
	for _, task := range b.tasks(ctx, s, tree) {
		calls, err := s.Calls(ctx, task.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		answers, lost := make(map[string]string), make(map[string]int)
		for _, c := range calls {
			switch c.State {
			case perdure.CallCompleted:
				hash := strings.TrimSpace(strings.TrimPrefix(c.Response, "answer "))
				answers[c.RequestHash] = hash
				completed[hash]++
			case perdure.CallUncertain:
				lost[c.RequestHash]++
			case perdure.CallStarted, perdure.CallFailed:
				b.t.Errorf("call %s of %s is %s at the end", c.ID, task.ID, c.State)
			}
		}
		for request, n := range lost {
			uncertain[answers[request]] += n
		}
	}
	return completed, uncertain
}

// tasks lists all tasks of a tree, without results.
func (b *bed) tasks(ctx context.Context, s *perdure.Store, tree perdure.TreeID) []perdure.Task {
	b.t.Helper()
	var all []perdure.Task
	f := perdure.TaskFilter{Tree: tree, Limit: 1000, Brief: true}
	for {
		page, err := s.Tasks(ctx, f)
		if err != nil {
			b.t.Fatal(err)
		}
		if all = append(all, page...); len(page) < f.Limit {
			return all
		}
		f.After = page[len(page)-1].ID
	}
}

func (b *bed) sameAs(want result) {
	b.t.Helper()
	got := b.check()
	if got.answer != want.answer {
		b.t.Errorf("the answer differs from the uninterrupted run's:\n%s\nwant\n%s", got.answer, want.answer)
	}
	if !slices.Equal(got.responses, want.responses) {
		b.t.Errorf("%d requests, the uninterrupted run had %d", len(got.responses), len(want.responses))
	}
}

func baseline(t *testing.T, how ...string) result {
	t.Helper()
	b := newBed(t, "hash")
	if how != nil {
		b.how = how
	}
	b.finish()
	r := b.check()
	if len(r.responses) < 8 || r.answer == "" {
		t.Fatalf("the run asked %d requests; it proves too little", len(r.responses))
	}
	return r
}

func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// TestKillAtFailpoints dies at each named point, on its first, third and tenth
// passage.
func TestKillAtFailpoints(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range passedFailpoints(t) {
		for _, n := range []int{1, 3, 10} {
			t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "hash")
				out, err := b.next(fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)).CombinedOutput()
				if !killed(err) && err != nil {
					t.Fatalf("run: %v\n%s", err, out)
				}
				if n == 1 && err == nil {
					t.Fatal("the process was not killed; the test proves nothing")
				}
				b.finish()
				b.sameAs(want)
			})
		}
	}
}

// passedFailpoints lists the points that a run passes.
func passedFailpoints(t *testing.T) []string {
	t.Helper()
	b := newBed(t, "hash")
	list := filepath.Join(b.dir, "failpoints")
	if out, err := b.next("PERDURE_FAILPOINT_LIST=" + list).CombinedOutput(); err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	points := strings.Fields(string(raw))
	slices.Sort(points)
	points = slices.Compact(points)
	for _, want := range []string{"tx.before_commit", "tx.after_commit", "call.after_begin", "call.before_settle",
		"call.after_settle",
		"blob.before_sync", "blob.after_sync", "blob.after_rename"} {
		if !slices.Contains(points, want) {
			t.Errorf("a run does not pass %s", want)
		}
	}
	return points
}

// kills is how often tests kill at random moments in all.
func kills(t *testing.T) int {
	t.Helper()
	return number(t, "PERDURE_CRASH_KILLS", 60, 2000)
}

// TestRandomKills kills at random moments, PERDURE_CRASH_KILLS times, in an order
// that PERDURE_CRASH_SEED repeats.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills := kills(t)
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 1))
	want := baseline(t)
	done, trees := 0, 0
	for done < kills && !t.Failed() {
		b := newBed(t, "hash,delay=15ms")
		done += killUntilDone(b, rng, kills-done)
		b.finish()
		b.sameAs(want)
		trees++
	}
	t.Logf("%d kills in %d trees", done, trees)
}

// TestRandomKillsInSummaries does the same where the results are summarized by
// further calls, on two levels.
func TestRandomKillsInSummaries(t *testing.T) {
	t.Parallel()
	kills := kills(t) / 5
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 2))
	how := []string{"--merge", "summarize", "--chunk-tokens", "300", "--max-children", "8", "--context-window", "1000"}
	want := baseline(t, how...)
	if !strings.HasPrefix(want.answer, "answer ") || strings.Count(want.answer, "answer") != 1 ||
		len(want.responses) < 40 {
		t.Fatalf("after %d requests the answer is %q; it proves too little", len(want.responses), want.answer)
	}
	for done := 0; done < kills && !t.Failed(); {
		b := newBed(t, "hash,delay=15ms")
		b.how = how
		done += killUntilDone(b, rng, kills-done)
		b.finish()
		b.sameAs(want)
	}
}

// killUntilDone kills processes until one ends by itself, at most limit times.
func killUntilDone(b *bed, rng *rand.Rand, limit int) int {
	b.t.Helper()
	// The program takes some 15 ms to start and a tree some 150 ms.
	const longest = 180 * time.Millisecond
	for n := range limit {
		cmd := b.next()
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			b.t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				b.t.Fatalf("resume: %v\n%s", err, out.Bytes())
			}
			return n
		case <-time.After(time.Duration(rng.Int64N(int64(longest)))):
		}
		_ = cmd.Process.Kill() // it may have ended just now
		if err := <-ended; err != nil && !killed(err) {
			b.t.Fatalf("resume: %v\n%s", err, out.Bytes())
		}
	}
	return limit
}
