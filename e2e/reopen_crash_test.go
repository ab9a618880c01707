package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure"
)

// budgetOf are the flags of a run that its budget stops.
func budgetOf(calls int, how ...string) []string {
	return append([]string{"--merge", "merge",
		"--chunk-tokens", "1000", "--max-children", "4", "--budget-calls", fmt.Sprint(calls)}, how...)
}

// stopped runs a tree until its budget stops it.
func (b *bed) stopped() perdure.TreeID {
	b.t.Helper()
	out, err := b.next().CombinedOutput()
	trees := b.trees()
	if len(trees) != 1 || trees[0].State != perdure.Partial || exitOf(err) != 3 {
		b.t.Fatalf("the tree was not stopped by its budget: %v\n%s", err, out)
	}
	return trees[0].ID
}

// TestKillWhileResuming stops a run by its budget, and kills the program at each write of
// the command that resumes it with a larger one: the next command finishes it, with the
// answer of a run without a limit and no answered request sent again.
func TestKillWhileResuming(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range []string{"reopen.before", "reopen.after", "tx.before_commit", "tx.after_commit",
		"call.after_begin", "call.after_settle"} {
		for _, n := range []int{1, 2, 5, 9} {
			if n > 1 && point[:3] == "reo" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", point, n), func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "hash")
				b.how = budgetOf(4)
				id := b.stopped()
				more := func(env ...string) *exec.Cmd {
					return b.command(env, "resume", string(id), "--budget-calls", "1000")
				}
				out, err := more(fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)).CombinedOutput()
				if !killed(err) && (err != nil || n == 1) {
					t.Fatalf("resume was not killed: %v\n%s", err, out)
				}
				if out, err := more().CombinedOutput(); err != nil {
					t.Fatalf("resume: %v\n%s", err, out)
				}
				b.sameAs(want)
			})
		}
	}
}

// TestRandomKillsWhileResuming does the same at random moments of many resumes, each with
// a budget a little larger than the last.
func TestRandomKillsWhileResuming(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 3))
	want := baseline(t)
	for range max(kills(t)/20, 1) {
		b := newBed(t, "hash,delay=15ms")
		b.how = budgetOf(2)
		id := b.stopped()
		for calls := 4; calls < 4*len(want.responses); calls += 2 {
			cmd := b.command(nil, "resume", string(id), "--budget-calls", fmt.Sprint(calls))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				if s := exitOf(err); s != 0 && s != 3 {
					t.Fatalf("resume: %v", err)
				}
			case <-time.After(time.Duration(rng.Int64N(int64(150 * time.Millisecond)))):
				_ = cmd.Process.Kill()
				<-ended //nolint:errcheck // it was killed, or had ended
			}
		}
		if out, err := b.command(nil, "resume", string(id), "--budget-calls", "none").CombinedOutput(); err != nil {
			t.Fatalf("resume: %v\n%s", err, out)
		}
		b.sameAs(want)
	}
}

// TestResumeOfManyParts stops a run over a large context by its budget, resumes it with a
// larger one, and wants each request at the endpoint once. PERDURE_RESUME_MB sets the
// size of the context.
func TestResumeOfManyParts(t *testing.T) {
	t.Parallel()
	megabytes := number(t, "PERDURE_RESUME_MB", 1, 8)
	b := newBed(t, "hash")
	const file = 1 << 20
	for i := range megabytes {
		text := make([]byte, 0, file+100)
		for line := 0; len(text) < file; line++ {
			text = fmt.Appendf(text, "file %d, line %d: %x things that nobody has counted before\n", i, line, line*line*(i+7))
		}
		if err := os.WriteFile(filepath.Join(b.dir, fmt.Sprintf("many%03d.txt", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (status int, out string, took time.Duration) {
		began := time.Now()
		raw, err := b.command(nil, args...).CombinedOutput()
		return exitOf(err), string(raw), time.Since(began)
	}
	status, out, took := run("run", "What is spoken of?", "--context", "many*.txt", "--model", "openai:scripted",
		"--merge", "merge",
		"--chunk-tokens", "8000", "--budget-calls", fmt.Sprint(15*megabytes), "--concurrency", "8", "--max-nodes", "100000")
	trees := b.trees()
	if len(trees) != 1 || trees[0].State != perdure.Partial || status != 3 {
		t.Fatalf("exit status %d\n%s", status, out)
	}
	before := b.server.Ledger().Totals().Started
	t.Logf("%d MiB: stopped after %d requests in %v", megabytes, before, took.Round(time.Millisecond))
	if status, out, took = run("resume", string(trees[0].ID), "--budget-calls", fmt.Sprint(100*megabytes)); status != 0 {
		t.Fatalf("resume: exit status %d\n%s", status, out)
	}
	t.Logf("resumed: %d more requests in %v", b.server.Ledger().Totals().Started-before, took.Round(time.Millisecond))
	r := b.check()
	for _, e := range b.server.Ledger().Entries() {
		if e.Started != 1 {
			t.Errorf("a request was sent %d times: %.100s", e.Started, e.Prompt)
		}
	}
	if before != 15*megabytes || len(r.responses) < 20*megabytes {
		t.Errorf("%d requests before the limit of %d, %d in all", before, 15*megabytes, len(r.responses))
	}
	s := b.open()
	defer s.Close()
	for _, task := range b.tasks(t.Context(), s, trees[0].ID) {
		if task.State != perdure.Completed || task.Partial {
			t.Errorf("task %s is %s, partial %v", task.ID, task.State, task.Partial)
		}
	}
}
