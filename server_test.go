package perdure_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// A server that drops its connections (a restart, a broken network) costs no
// more than a moment: writing and reading go on, and the sessions of living
// processes are seen to live again.
func TestServerDropsConnections(t *testing.T) {
	t.Parallel()
	cfg := perdure.Config{DSN: testdb.PostgresStore(t), LeaseTTL: time.Second, PollInterval: 10 * time.Millisecond}
	s, other := testdb.Open(t, cfg), testdb.Open(t, cfg)
	admin, err := sql.Open("pgx", cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	r := leased(t, s, perdure.TreeSpec{})
	for range 3 {
		_, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		if err != nil {
			t.Fatal(err)
		}
		createTree(t, s, perdure.TreeSpec{})
		if err := r.root.AppendOutput(t.Context(), "still here "); err != nil {
			t.Fatal(err)
		}
		for {
			changed := other.Changed()
			if got := readTask(t, other, r.tree.Root); !got.Lease.Lost {
				break
			}
			<-changed
		}
	}
	if got := claim(t, openSession(t, other), 9); len(got) != 3 {
		t.Errorf("claimed %d tasks, want the 3 that no worker has", len(got))
	}
	complete(t, r.root, "")
	sound(t, s)
}

// Operations that cannot be made because another process writes for too long
// fail together, after one wait and not one each.
func TestBusyStore(t *testing.T) {
	t.Parallel()
	cfg := perdure.Config{Dir: t.TempDir()}
	holder := testdb.Open(t, cfg)
	cfg.BusyTimeout = time.Second // on a busy machine, a write after the release takes longer than a tenth
	s := testdb.Open(t, cfg)
	release := perdure.HoldWriter(t.Context(), holder)
	const writes = 1000
	errs := make(chan error, writes)
	for range writes {
		go func() {
			_, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run"})
			errs <- err
		}()
	}
	for range writes {
		err := <-errs
		if perdure.CodeOf(err) != perdure.CodeUnavailable || perdure.HintOf(err) == "" {
			t.Fatalf("%v, hint %q", err, perdure.HintOf(err))
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	createTree(t, s, perdure.TreeSpec{})
	sound(t, s)
}
