package worker_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

// hookHandler calls a function for each line of a log.
type hookHandler struct {
	slog.Handler
	hook func(msg string)
}

func (h hookHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h hookHandler) Handle(_ context.Context, r slog.Record) error {
	h.hook(r.Message)
	return nil
}

// refuse lets the store refuse every write, as a full disk does, until the
// returned function is called: it begins a concurrent transaction.
func refuse(t *testing.T, s *perdure.Store) (stop func()) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(s.Dir(), "perdure.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK")
			if err = errors.Join(err, conn.Close(), db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func openImpatient(t *testing.T) *perdure.Store {
	t.Helper()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir(), BusyTimeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestGivesUpWhenTheEndCannotBeWritten: no caller waits forever for a task whose
// end the store does not take, and the task is not lost.
func TestGivesUpWhenTheEndCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := openImpatient(t)
	tree := createTree(t, s, "test", "p")
	ss := openSession(t, s)
	var again func()
	h := handlerFunc(func(context.Context, *perdure.Lease) error {
		again = refuse(t, s)
		return errors.New("broken")
	})
	w, err := worker.New(worker.Config{Store: s, Session: ss, Handlers: handlers(h), Patience: time.Millisecond,
		SettleTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); !errors.Is(err, perdure.ErrUnavailable) {
		t.Errorf("Run returned %v, want that the store cannot be used", err)
	}
	again()
	if got := task(t, s, tree.Root); got.State != perdure.Running {
		t.Errorf("task is %s: its end was written after all", got.State)
	}
	if err := ss.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(handlerFunc(complete))})
	if got := wait(t, s, tree.ID); got.State != perdure.Completed {
		t.Errorf("tree is %s", got.State)
	}
}

// TestEndIsWrittenLater: a daemon writes it when the store can be written again.
func TestEndIsWrittenLater(t *testing.T) {
	t.Parallel()
	s := openImpatient(t)
	tree := createTree(t, s, "test", "p")
	var again func()
	var once sync.Once
	h := handlerFunc(func(context.Context, *perdure.Lease) error {
		again = refuse(t, s)
		return &worker.Failure{Err: errors.New("broken")}
	})
	log := slog.New(hookHandler{hook: func(msg string) {
		if msg == "settle task" {
			once.Do(func() { again() })
		}
	}})
	start(t, worker.Config{Store: s, Session: openSession(t, s), Handlers: handlers(h), Patience: -1, Logger: log})
	if got := wait(t, s, tree.ID); got.State != perdure.Failed {
		t.Errorf("tree is %s", got.State)
	}
}

// TestResultThatCannotBeWritten: the work is not done again and again for
// nothing, and does not count as an attempt that failed.
func TestResultThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	tree := createTree(t, s, "test", "p")
	full := &perdure.Error{Code: perdure.CodeUnavailable, Op: "write", Msg: "disk is full"}
	calls := 0
	h := handlerFunc(func(context.Context, *perdure.Lease) error {
		calls++
		return full
	})
	ss := openSession(t, s)
	w, err := worker.New(worker.Config{Store: s, Session: ss, Handlers: handlers(h)})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); !errors.Is(err, full) || calls != 1 {
		t.Errorf("Run returned %v after %d calls, want the refusal after one", err, calls)
	}
	if got := task(t, s, tree.Root); got.State != perdure.Queued || got.Error != nil {
		t.Errorf("task is %s with error %v, want it queued", got.State, got.Error)
	}
}
