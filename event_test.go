package perdure_test

import (
	"bufio"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// A follower of a store that several processes write misses no event and sees
// none twice, and is woken by Changed for all of them.
func TestFollower(t *testing.T) {
	t.Parallel()
	const writers = 3
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		var start []io.Closer
		ended := make(chan error, writers)
		for range writers {
			cmd := another(t, "write", cfg)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			start = append(start, in)
			go func() { ended <- cmd.Wait() }()
		}
		for _, in := range start {
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
		}
		const want = writers * treesPerWriter
		created, completed := make(map[perdure.TreeID]int), make(map[perdure.TreeID]int)
		var last int64
		for running := writers; len(completed) < want || running > 0; {
			changed := s.Changed()
			page, err := s.Events(t.Context(), perdure.EventFilter{After: last, Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				if e.Seq != last+1 {
					t.Fatalf("event %d follows %d", e.Seq, last)
				}
				last = e.Seq
				switch e.Kind {
				case perdure.EventTreeCreated:
					created[e.Tree]++
				case perdure.EventTreeCompleted:
					completed[e.Tree]++
				default:
				}
			}
			if len(page) > 0 {
				continue
			}
			select {
			case <-changed:
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				running--
			}
		}
		if len(created) != want {
			t.Errorf("%d trees created, want %d", len(created), want)
		}
		for id, n := range created {
			if n != 1 || completed[id] != 1 {
				t.Errorf("%s was created %d times and completed %d times", id, n, completed[id])
			}
		}
		sound(t, s)
	})
}

// The lease of a process is taken over when it is dead, however it died, and
// not before.
func TestTakeoverFromProcess(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s := testdb.Open(t, cfg)
		tree := createTree(t, s, perdure.TreeSpec{})
		cmd := another(t, "hold", cfg)
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
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
			t.Fatalf("the other process says %q, %v", line, err)
		}
		ss := openSession(t, s)
		if got := claim(t, ss, 1); len(got) != 0 {
			t.Fatal("claimed from a living process")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the process ended well")
		}
		l := awaitClaim(t, s, ss)
		if l.Task.ID != tree.Root || l.Fence() != 2 {
			t.Errorf("claimed %s with fence %d", l.Task.ID, l.Fence())
		}
		complete(t, l, "")
		sound(t, s)
	})
}

// awaitClaim claims a task when there is one.
func awaitClaim(t *testing.T, s *perdure.Store, ss *perdure.Session) *perdure.Lease {
	t.Helper()
	for {
		ready := s.Ready()
		if leases := claim(t, ss, 1); len(leases) > 0 {
			return leases[0]
		}
		select {
		case <-ready:
		case <-t.Context().Done():
			t.Fatal("nothing became claimable")
		}
	}
}

// Events of one tree come in order; the kinds tell the life of a task.
func TestTreeEvents(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		createTree(t, s, perdure.TreeSpec{})
		r := leased(t, s, perdure.TreeSpec{})
		if err := r.root.AppendEvent(ctx, "task.progress", map[string]string{"say": "half"}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.root.AppendEvent(ctx, "x", []int{1}),
			r.root.AppendEvent(ctx, "x", func() {})); perdure.CodeOf(err) != perdure.CodeInvalid {
			t.Errorf("note that is not an object: %v", err)
		}
		if _, err := r.root.Spawn(ctx, make([]perdure.TaskSpec, 1)); err != nil {
			t.Fatal(err)
		}
		complete(t, claimOf(t, r.ss, r.tree.ID), "")
		complete(t, claimOf(t, r.ss, r.tree.ID), "")
		page, err := s.Events(ctx, perdure.EventFilter{Tree: r.tree.ID})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range page {
			got = append(got, string(e.Kind))
			if e.Tree != r.tree.ID || e.Time.IsZero() {
				t.Errorf("event %+v", e)
			}
		}
		want := []string{"tree.created", "task.created", "task.started", "task.progress", "task.created", "task.waiting",
			"task.started", "task.completed", "task.queued", "task.started", "task.completed", "tree.completed"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("kinds: -want +got\n%s", diff)
		}
	})
}
