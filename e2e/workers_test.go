package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// start runs a role of this test binary on a store. Its standard input ends
// when the test does.
func start(t *testing.T, role string, cfg perdure.Config, before ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(before, self)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role+" "+cfg.Dir, dsnEnv+"="+cfg.DSN)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// kill ends a process with SIGKILL and waits until it is gone.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); !killed(err) {
		t.Fatalf("the process was not killed: %v", err)
	}
}

func says(t *testing.T, out *bufio.Reader, want string) string {
	t.Helper()
	line, err := out.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, want) {
		t.Fatalf("the process says %q, want %q: %v", line, want, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, want))
}

// awaitEvents waits until the store has n more events, or the tree is terminal.
func awaitEvents(t *testing.T, s *perdure.Store, tree perdure.TreeID, n int) (ended bool) {
	t.Helper()
	ctx := t.Context()
	var after int64
	for page := 1; page > 0; {
		events, err := s.Events(ctx, perdure.EventFilter{After: after})
		if err != nil {
			t.Fatal(err)
		}
		if page = len(events); page > 0 {
			after = events[page-1].Seq
		}
	}
	for {
		changed := s.Changed()
		got, err := s.Tree(ctx, tree)
		if err != nil {
			t.Fatal(err)
		}
		if got.State.Terminal() {
			return true
		}
		events, err := s.Events(ctx, perdure.EventFilter{After: after, Limit: n})
		if err != nil {
			t.Fatal(err)
		}
		if len(events) >= n {
			return false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

// TestKilledWorkers kills workers that share a store, one at a time and after a random
// number of events, PERDURE_CRASH_KILLS/4 times in all. Each tree has the answer it has
// without kills, and no finished call is sent again.
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	kills, seed := kills(t)/4, seed(t)
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		cfg.PollInterval = time.Millisecond
		s := testdb.Open(t, cfg)
		sh := shape{fan: 4, depth: 3}
		var workers [3]*exec.Cmd
		for i := range workers {
			workers[i], _ = start(t, "work", cfg)
		}
		done := 0
		for done < kills && !t.Failed() {
			tree := createShape(t, s, sh)
			for !awaitEvents(t, s, tree.ID, 1+rng.IntN(30)) {
				if done == kills {
					continue
				}
				i := rng.IntN(len(workers))
				kill(t, workers[i])
				workers[i], _ = start(t, "work", cfg)
				done++
			}
			checkShape(t, s, tree, sh)
		}
		for _, w := range workers {
			kill(t, w)
		}
		t.Logf("%d kills", done)
	})
}

func createShape(t *testing.T, s *perdure.Store, sh shape) perdure.Tree {
	t.Helper()
	tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: kindShape, Root: perdure.TaskSpec{Prompt: sh.prompt()},
		Limits: perdure.Limits{Tokens: 1_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// checkShape looks at everything a finished tree has to be.
func checkShape(t *testing.T, s *perdure.Store, tree perdure.Tree, sh shape) {
	t.Helper()
	ctx := t.Context()
	problems, err := s.Check(ctx)
	if err != nil || len(problems) > 0 {
		t.Errorf("check: %v %v", problems, err)
	}
	root, err := s.Task(ctx, tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	if want := sh.answer(sh.prompt(), 0); root.State != perdure.Completed || root.Result != want {
		t.Errorf("the root is %s with %q, want %q; %+v", root.State, root.Result, want, root.Error)
	}
	p, err := s.Progress(ctx, tree.ID)
	if err != nil || p.Total != int64(sh.nodes()) || p.Completed != p.Total {
		t.Errorf("progress %+v, %v; want %d tasks", p, err, sh.nodes())
	}
	raw, err := os.ReadFile(ledgerPath(s.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(map[string]int)
	for line := range strings.Lines(string(raw)) {
		sent[strings.TrimSpace(line)]++
	}
	checkCalls(t, s, tree, sh, sent)
}

func checkCalls(t *testing.T, s *perdure.Store, tree perdure.Tree, sh shape, sent map[string]int) {
	t.Helper()
	ctx := t.Context()
	tasks, err := s.Tasks(ctx, perdure.TaskFilter{Tree: tree.ID, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for _, task := range tasks {
		if task.Depth != sh.depth {
			continue
		}
		leaves++
		calls, err := s.Calls(ctx, task.ID)
		if err != nil {
			t.Fatal(err)
		}
		settled, uncertain := make(map[string]int), make(map[string]int)
		for _, c := range calls {
			key := fmt.Sprintf("%s/%d/%d", task.ID, c.Attempt, c.Position)
			switch c.State {
			case perdure.CallCompleted:
				settled[key]++
			case perdure.CallUncertain:
				uncertain[key]++
			case perdure.CallStarted, perdure.CallFailed:
				t.Errorf("call %s of %s is %s at the end", c.ID, task.ID, c.State)
			}
		}
		want := []string{fmt.Sprintf("%s/%d/0", task.ID, task.Attempts), fmt.Sprintf("%s/%d/1", task.ID, task.Attempts)}
		if fails(task.Prompt) {
			want = append(want, fmt.Sprintf("%s/1/0", task.ID))
		}
		for _, key := range want {
			if settled[key] != 1 || sent[key] < 1 || sent[key] > 1+uncertain[key] {
				t.Errorf("call %s: %d recorded answers, sent %d times with %d uncertain", key, settled[key], sent[key],
					uncertain[key])
			}
		}
		if len(settled) != len(want) || task.Attempts != len(want)-1 {
			t.Errorf("%s has answers %v in %d attempts, want %v", task.ID, settled, task.Attempts, want)
		}
	}
	if leaves != sh.leaves() {
		t.Errorf("%d leaves, want %d", leaves, sh.leaves())
	}
}

// TestManyWriters lets two processes run trees flat out while eight others do
// single writes, until each has done some and, in the long run, for
// PERDURE_WRITERS_SECONDS. Nothing fails; in a minute no write waits longer than a
// second.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	seconds := number(t, "PERDURE_WRITERS_SECONDS", 0, 60)
	cfg := perdure.Config{Dir: t.TempDir()}
	s := testdb.Open(t, cfg)
	var others []*exec.Cmd
	var outs []*bufio.Reader
	for range 2 {
		cmd, out := start(t, "execute", cfg)
		others, outs = append(others, cmd), append(outs, out)
	}
	for range 8 {
		cmd, out := start(t, "write", cfg)
		others, outs = append(others, cmd), append(outs, out)
	}
	for _, said := range []string{"ready", "some"} {
		for _, out := range outs {
			says(t, out, said)
		}
	}
	<-time.After(time.Duration(seconds) * time.Second)
	var longest time.Duration
	writes := 0
	for i, cmd := range others {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		var n int
		var wait time.Duration
		if _, err := fmt.Sscanf(says(t, outs[i], "did"), "%d %d", &n, &wait); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		if n == 0 {
			t.Errorf("process %d did nothing", i)
		}
		writes += n
		longest = max(longest, wait)
	}
	t.Logf("%d s: %d operations, the longest wait of a write %v", seconds, writes, longest)
	if seconds >= 60 && longest > time.Second {
		t.Errorf("a write waited %v", longest)
	}
	problems, err := s.Check(t.Context())
	if err != nil || len(problems) > 0 {
		t.Errorf("check: %v %v", problems, err)
	}
}

// TestOtherNamespace: a worker whose process cannot be seen here, because it is
// in a process namespace of its own, keeps its task while it lives.
func TestOtherNamespace(t *testing.T) {
	t.Parallel()
	unshare := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	probe := exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], "true")...)
	if out, err := probe.CombinedOutput(); err != nil {
		testdb.Missing(t, "namespaces", fmt.Sprintf("no process namespaces here: %v %s", err, bytes.TrimSpace(out)))
	}
	cfg := perdure.Config{Dir: t.TempDir(), PollInterval: time.Millisecond}
	s := testdb.Open(t, cfg)
	ctx := t.Context()
	tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run"})
	if err != nil {
		t.Fatal(err)
	}
	cmd, out := start(t, "hold", cfg, unshare...)
	if pid := says(t, out, "held by"); pid != "1" {
		t.Fatalf("the process is number %s in its namespace, want 1", pid)
	}
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	claim := func() []*perdure.Lease {
		leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		return leases
	}
	for range 20 {
		ready := s.Ready()
		if len(claim()) > 0 {
			t.Fatal("the task of a living process was taken over")
		}
		<-ready
	}
	if p, err := s.Progress(ctx, tree.ID); err != nil || p.Running != 1 {
		t.Errorf("progress %+v, %v", p, err)
	}
	kill(t, cmd)
	for {
		ready := s.Ready()
		if leases := claim(); len(leases) > 0 {
			if leases[0].Fence() != 2 {
				t.Errorf("fence %d", leases[0].Fence())
			}
			break
		}
		<-ready
	}
}

// TestConcurrencyOne: with a single slot a deep tree finishes, because waiting parents use
// none.
func TestConcurrencyOne(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		sh := shape{fan: 2, depth: 6}
		tree := createShape(t, s, sh)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- work(ctx, s, 1) }()
		for {
			changed := s.Changed()
			got, err := s.Tree(ctx, tree.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.State.Terminal() {
				break
			}
			select {
			case <-changed:
			case err := <-ended:
				t.Fatalf("the worker ended: %v", err)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		checkShape(t, s, tree, sh)
	})
}
