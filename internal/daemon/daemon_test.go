package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, cfg daemon.Config) *daemon.Daemon {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	d, err := daemon.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return d
}

// local returns a client of a daemon in the same process.
func local(t *testing.T, d *daemon.Daemon) *client.Client {
	t.Helper()
	transport := &inproc.Transport{Handler: d.Handler()}
	t.Cleanup(transport.Close)
	c, err := client.New(client.Config{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func launch(t *testing.T, c *client.Client, model, owner string) perdure.TreeID {
	t.Helper()
	cfg, err := json.Marshal(map[string]string{"model": model})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := c.CreateTree(t.Context(), client.TreeRequest{Prompt: "x", Config: cfg, Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	return tree.ID
}

// work runs the daemon's own trees until the test ends.
func work(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Work(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestWorkExecutesItsOwnTreesOnly(t *testing.T) {
	t.Parallel()
	d := open(t, daemon.Config{Session: "run"})
	c := local(t, d)
	work(t, d)
	other := launch(t, c, "mock:text=theirs", "") // a tree that is not this process's own
	mine := launch(t, c, "mock:text=mine", d.SessionID())
	d.Own(mine)
	if _, err := c.WaitTree(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	r, err := c.Result(t.Context(), mine)
	if err != nil || r.Text() != "mine" {
		t.Errorf("result %q, %v", r.Text(), err)
	}
	if tree, err := c.Tree(t.Context(), other); err != nil || tree.State != perdure.Queued {
		t.Errorf("the other tree is %s, %v", tree.State, err)
	}
	if _, err := c.Result(t.Context(), other); !errors.Is(err, perdure.ErrConflict) {
		t.Errorf("result of a queued tree: %v", err)
	}
}

// A tree whose model is not available keeps its attempts for another process.
func TestServeLeavesTreesItCannotExecute(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("replies: [{text: fine, repeat: -1}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first := open(t, daemon.Config{Dir: dir})
	c := local(t, first)
	lost := launch(t, c, "mock:"+script, "")
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	fine := launch(t, c, "mock:text=fine", "")
	served(t, open(t, daemon.Config{Dir: dir, Session: "serve"}))
	if _, err := c.WaitTree(t.Context(), fine); err != nil {
		t.Fatal(err)
	}
	if tree, err := c.Tree(t.Context(), lost); err != nil || tree.State != perdure.Queued {
		t.Errorf("the tree without its model is %s, %v", tree.State, err)
	}
}

// served runs Serve until the test ends and returns a client of its socket.
func served(t *testing.T, d *daemon.Daemon) *client.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "pd") //nolint:usetesting // short: sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := server.Listen(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, l) }()
	c, err := client.New(client.Config{Socket: l.Path()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if _, err := net.Dial("unix", l.Path()); err == nil {
			t.Error("the socket still answers")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestServe(t *testing.T) {
	t.Parallel()
	c := served(t, open(t, daemon.Config{Session: "serve", Version: "v1.2.3"}))
	id := launch(t, c, "mock:text=done", "")
	if tree, err := c.WaitTree(t.Context(), id); err != nil || tree.State != perdure.Completed {
		t.Errorf("the tree is %s, %v", tree.State, err)
	}
	if v, err := c.Version(t.Context()); err != nil || v.Version != "v1.2.3" {
		t.Errorf("version %+v, %v", v, err)
	}
	_, err := c.CreateTree(t.Context(), client.TreeRequest{Prompt: "x", Kind: "other"})
	if !errors.Is(err, perdure.ErrInvalid) || !strings.Contains(err.Error(), `kind "other"`) {
		t.Errorf("another kind: %v", err)
	}
}

// While tasks drain, new trees are refused, waiting requests are answered, and unfinished
// tasks are queued again.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, daemon.Config{Dir: dir, Session: "serve", DrainTimeout: time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, l) }()
	c := local(t, d)
	id := launch(t, c, "mock:delay=1h", "")
	for e, err := range c.Events(t.Context(), 0, id) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == perdure.EventCallStarted {
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("Serve: %v", err)
	}
	if _, err := c.CreateTree(t.Context(), client.TreeRequest{Prompt: "x"}); !errors.Is(err, perdure.ErrUnavailable) {
		t.Errorf("a new tree while stopping: %v", err)
	}
	s, err := c.Status(t.Context(), id)
	if err != nil || s.Queued != 1 || s.Running != 0 {
		t.Errorf("status %+v, %v; want one queued task", s.Progress, err)
	}
}

// Retention is applied at intervals.
func TestServeCollects(t *testing.T) {
	t.Parallel()
	d := open(t, daemon.Config{
		Session: "serve", CollectEvery: 10 * time.Millisecond,
		Retention: perdure.RetentionPolicy{Completed: time.Nanosecond},
	})
	c := served(t, d)
	id := launch(t, c, "mock:text=done", "")
	over := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := c.Tree(t.Context(), id)
		if errors.Is(err, perdure.ErrNotFound) {
			return
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("the tree is still there: %v", err)
		}
	}
}

// Repeated starts and stops leave no files and no stuck tasks.
func TestServeStress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 10 {
		d := open(t, daemon.Config{Dir: dir, Session: "serve"})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Serve(ctx, l) }()
		launch(t, local(t, d), "mock:echo", "")
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}
