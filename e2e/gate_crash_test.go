package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// exitOf is the status of a command that ended by itself; -1 when it was killed.
func exitOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// gateBed is a bed whose model is down, until up is set, behind a chain; dsn is a
// PostgreSQL store, empty for SQLite.
func gateBed(t *testing.T, dsn string) (b *bed, up *atomic.Bool, env []string) {
	t.Helper()
	b = newBed(t, "hash")
	b.how = []string{"--merge", "merge",
		"--chunk-tokens", "1300", "--model", "openai:scripted,mock:status=500", "--call-retries", "0",
		"--max-attempts", "1"}
	up = new(atomic.Bool)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		b.server.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b.url = front.URL + "/v1"
	if dsn != "" {
		env = append(env, "PERDURE_STORE="+dsn)
	}
	return b, up, env
}

// looked opens the store of a bed.
func (b *bed) looked(dsn string) (*perdure.Store, []perdure.Tree) {
	b.t.Helper()
	cfg := perdure.Config{Dir: filepath.Join(b.dir, ".perdure"), Heads: headsFolder()}
	if dsn != "" {
		cfg = perdure.Config{DSN: dsn}
	}
	s, err := perdure.Open(b.t.Context(), cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	trees, err := s.Trees(b.t.Context(), perdure.TreeFilter{})
	if err != nil {
		b.t.Fatal(err)
	}
	return s, trees
}

// oneGate checks a tree that waits: one gate, at which all of it waits, in a sound
// store.
func (b *bed) oneGate(dsn string, answered bool) perdure.TreeID {
	b.t.Helper()
	s, trees := b.looked(dsn)
	defer s.Close()
	list, err := s.Gates(b.t.Context(), trees[0].ID)
	if err != nil || len(list) != 1 || (list[0].AnsweredAt != nil) != answered {
		b.t.Fatalf("gates = %+v, %v; want one, answered %v", list, err, answered)
	}
	if problems, err := s.Check(b.t.Context()); err != nil || len(problems) > 0 {
		b.t.Fatalf("the store is not sound: %v %v", problems, err)
	}
	intactLog(b.t, s)
	p, err := s.Progress(b.t.Context(), trees[0].ID)
	if err != nil || !answered && (p.Waiting != p.Total || list[0].Waiting != int(p.Total)-1) {
		b.t.Fatalf("%d of %d tasks wait, %d at the gate, %v", p.Waiting, p.Total, list[0].Waiting, err)
	}
	return trees[0].ID
}

// TestKillAtGate kills the program at each write before a gate, around the answer, and
// after it: there is one gate and one answer, and no recorded call is sent again.
func TestKillAtGate(t *testing.T) {
	t.Parallel()
	want := baseline(t, "--merge", "merge",
		"--chunk-tokens", "1300")
	stores := map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" },
		"postgres": testdb.PostgresStore}
	for name, store := range stores {
		passages := []int{2, 4, 6, 8, 11, 15}
		if name == "postgres" && !effort.Long() {
			passages = []int{4, 11}
		}
		for _, n := range passages {
			for _, at := range []string{"tx.before_commit", "tx.after_commit"} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, at, n), func(t *testing.T) {
					t.Parallel()
					killAtGate(t, store(t), fmt.Sprintf("PERDURE_FAILPOINT=%s:", at), n, want)
				})
			}
		}
	}
}

func killAtGate(t *testing.T, dsn, point string, n int, want result) {
	b, up, env := gateBed(t, dsn)
	next := func(more ...string) *exec.Cmd {
		s, trees := b.looked(dsn)
		defer s.Close()
		with := slices.Concat(env, more)
		if len(trees) == 0 {
			return b.command(with, append([]string{"run", "What is spoken of?", "--context", "text.txt"}, b.how...)...)
		}
		return b.command(with, "resume", string(trees[0].ID))
	}
	// On the way to the gate.
	if out, err := next(point + fmt.Sprint(n)).CombinedOutput(); !killed(err) && exitOf(err) != 6 {
		t.Fatalf("run: %v\n%s", err, out)
	}
	if out, err := next().CombinedOutput(); exitOf(err) != 6 {
		t.Fatalf("go on: %v, want the status of a gate\n%s", err, out)
	}
	id := b.oneGate(dsn, false)
	// Around the answer.
	out, err := b.command(slices.Concat(env, []string{point + "1"}), "answer", string(id), "retry").CombinedOutput()
	if !killed(err) {
		t.Fatalf("answer: %v, want it killed\n%s", err, out)
	}
	if point == "PERDURE_FAILPOINT=tx.before_commit:" {
		b.oneGate(dsn, false)
		if out, err := b.command(env, "answer", string(id), "retry").CombinedOutput(); err != nil {
			t.Fatalf("answer: %v\n%s", err, out)
		}
	}
	b.oneGate(dsn, true)
	// On the way from there, with a model that answers.
	up.Store(true)
	if out, err := next(point + fmt.Sprint(n)).CombinedOutput(); !killed(err) && err != nil {
		t.Fatalf("resume: %v\n%s", err, out)
	}
	if out, err := next().CombinedOutput(); err != nil {
		t.Fatalf("resume: %v\n%s", err, out)
	}
	b.oneGate(dsn, true)
	s, trees := b.looked(dsn)
	defer s.Close()
	root, err := s.Task(t.Context(), trees[0].Root)
	if err != nil || root.State != perdure.Completed || root.Result != want.answer {
		t.Errorf("the root is %s: %v", root.State, err)
	}
	p, err := s.Progress(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if again := len(b.server.Ledger().Repeated()); int64(again) > p.Usage.UncertainCalls {
		t.Errorf("%d answers were asked for again, %d calls are uncertain", again, p.Usage.UncertainCalls)
	}
}
