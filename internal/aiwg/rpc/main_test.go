package rpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	testenv.Set()
	goleak.VerifyTestMain(m)
}

// patience bounds every wait; it is never what a test measures.
const patience = time.Minute

// bed is a server that runs on a socket.
type bed struct {
	t     *testing.T
	store *perdure.Store
	path  string
	stop  context.CancelFunc
	ended chan error
}

// shortDir is a folder with a path that a socket's may begin with.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ipc") //nolint:usetesting // its path is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func serve(t *testing.T, cfg rpc.Config) *bed {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	}
	s, err := rpc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(filepath.Join(shortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	b := &bed{t: t, store: cfg.Store, path: l.Path(), stop: stop, ended: make(chan error, 1)}
	go func() { b.ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-b.ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return b
}

// end stops the server and waits until it has.
func (b *bed) end() {
	b.t.Helper()
	b.stop()
	err := <-b.ended
	b.ended <- nil // for the cleanup
	if err != nil {
		b.t.Errorf("serve: %v", err)
	}
}

// client is one connection.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	id   int
}

func (b *bed) dial() *client {
	b.t.Helper()
	conn, err := net.Dial("unix", b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		b.t.Fatal(err)
	}
	return &client{t: b.t, conn: conn, in: bufio.NewReader(conn)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, line); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) line() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("read answer: %v (%q)", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// closed waits for the end of the connection.
func (c *client) closed() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); err != nil || len(rest) > 0 {
		c.t.Errorf("at the end there is %q, %v", rest, err)
	}
}

type answer struct {
	Version string          `json:"jsonrpc"`
	Result  json.RawMessage `json:"result"`
	Error   *rpc.Error      `json:"error"`
	ID      json.RawMessage `json:"id"`
}

// ask sends one line and reads one.
func (c *client) ask(line string) answer {
	c.t.Helper()
	c.send(line + "\n")
	return c.answer()
}

func (c *client) answer() answer {
	c.t.Helper()
	line := c.line()
	var a answer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	if a.Version != "2.0" || (a.Result == nil) == (a.Error == nil) {
		c.t.Errorf("%q is not an answer", line)
	}
	return a
}

// try calls a method.
func (c *client) try(method string, params any) (json.RawMessage, *rpc.Error) {
	c.t.Helper()
	c.id++
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	a := c.ask(string(raw))
	if want := fmt.Sprint(c.id); string(a.ID) != want {
		c.t.Errorf("the answer is for %s, want %s", a.ID, want)
	}
	return a.Result, a.Error
}

// call calls a method that works.
func (c *client) call(method string, params any) record {
	c.t.Helper()
	raw, refused := c.try(method, params)
	if refused != nil {
		c.t.Fatalf("%s %v: %+v %+v", method, params, refused, refused.Data)
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	r.raw = raw
	return r
}

// refused calls a method that does not work.
func (c *client) refused(code int, method string, params any) {
	c.t.Helper()
	if e := c.refusal(code, method, params); e.Message == "" {
		c.t.Errorf("%s %v: nothing is said", method, params)
	}
}

// refusal is refused for those who look at the error.
func (c *client) refusal(code int, method string, params any) *rpc.Error {
	c.t.Helper()
	raw, err := c.try(method, params)
	if err == nil {
		c.t.Fatalf("%s %v: %s", method, params, raw)
	}
	if err.Code != code {
		c.t.Errorf("%s %v: error %d %q, want %d", method, params, err.Code, err.Message, code)
	}
	return err
}

// record is what the tests look at of a task.
type record struct {
	ID          string `json:"id"`
	TaskID      string `json:"taskId"`
	TreeID      string `json:"treeId"`
	Fence       int64  `json:"fence"`
	Prompt      string `json:"prompt"`
	Agent       string `json:"agent"`
	Priority    int    `json:"priority"`
	State       string `json:"state"`
	Result      *string
	Error       *string
	ErrorKind   string     `json:"error_kind"`
	PID         *int       `json:"pid"`
	Output      string     `json:"output"`
	StartedAt   *time.Time `json:"startedAt"`
	CompletedAt *time.Time `json:"completedAt"`
	Attempts    int        `json:"attempts"`
	Metadata    map[string]any
	Cancelled   bool `json:"cancelled"`
	Removed     int  `json:"removed"`
	Appended    int  `json:"appended"`

	raw json.RawMessage
}

type obj = map[string]any

// until waits until something is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("too long"))
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for ever until %s", what)
		case <-tick.C:
		}
	}
}
