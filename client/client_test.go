package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	testenv.Set()
	goleak.VerifyTestMain(m)
}

// fake is a client of a handler in process.
func fake(t *testing.T, cfg client.Config, h http.HandlerFunc) *client.Client {
	t.Helper()
	transport := &inproc.Transport{Handler: h}
	t.Cleanup(transport.Close)
	cfg.Transport = transport
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pd") //nolint:usetesting // short: sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, cfg := range []client.Config{
		{},
		{Socket: "s", Transport: http.DefaultTransport},
		{Socket: "/" + strings.Repeat("x", 104)},
	} {
		if _, err := client.New(cfg); !errors.Is(err, perdure.ErrInvalid) {
			t.Errorf("New(%+v) = %v", cfg, err)
		}
	}
}

// Each way in which a server can be missing has its own words.
func TestNoServer(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	listen := func(name string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		t.Cleanup(func() { l.Close() })
		return l
	}
	listen("dead").Close()
	listen("silent") // takes connections, never answers
	cut := listen("cut")
	go func() {
		for {
			conn, err := cut.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	ending := listen("ending") // breaks a connection while it ends
	go func() {
		if conn, err := ending.Accept(); err == nil {
			ending.Close()
			conn.Close()
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, want, hint string }{
		{"ending", "no server answers", "perdure serve"},
		{"none", "no server runs", "perdure serve"},
		{"dead", "no server answers", "perdure serve"},
		{"silent", "did not answer within 100ms", "perdure serve"},
		{"cut", "the connection to the server broke", "perdure status"},
		{"file", "no server answers", "perdure serve"},
	}
	for _, test := range tests {
		c, err := client.New(client.Config{Socket: filepath.Join(dir, test.name), PingTimeout: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Ping(t.Context())
		if !errors.Is(err, perdure.ErrUnavailable) || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(perdure.HintOf(err), test.hint) {
			t.Errorf("%s: %v (hint %q)", test.name, err, perdure.HintOf(err))
		}
		c.Close()
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	c := fake(t, client.Config{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	errWhy := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errWhy)
	calls := map[string]func() error{
		"Ping": func() error { return c.Ping(ctx) },
		"Tree": func() error { _, err := c.Tree(ctx, "tree-00000000"); return err },
		"Wait": func() error { _, err := c.WaitTree(ctx, "tree-00000000"); return err },
		"Events": func() error {
			for _, err := range c.Events(ctx, 0, "") {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		err := call()
		if !errors.Is(err, perdure.ErrCanceled) || !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) {
			t.Errorf("%s = %v", name, err)
		}
	}
}

// Answers that are not of this API.
func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		body   string
		want   perdure.Code
	}{
		{200, "", perdure.CodeUnavailable},
		{200, "<html>", perdure.CodeInternal},
		{200, `{"tree_id":7}`, perdure.CodeInternal},
		{200, `{"tree_id":"tree-`, perdure.CodeUnavailable},
		{400, "", perdure.CodeInvalid},
		{401, "no", perdure.CodeInvalid},
		{402, "", perdure.CodeBudgetExceeded},
		{404, "not here", perdure.CodeNotFound},
		{409, `{"code":""}`, perdure.CodeConflict},
		{412, "", perdure.CodeConflict},
		{429, "", perdure.CodeUnavailable},
		{499, "", perdure.CodeCanceled},
		{500, "null", perdure.CodeInternal},
		{502, "<html>", perdure.CodeUnavailable},
		{503, "[]", perdure.CodeUnavailable},
		{302, "", perdure.CodeInternal},
		{409, `{"code":"gate_closed","detail":"from the future"}`, perdure.CodeConflict},
		{404, `{"code":"conflict","detail":"the code counts"}`, perdure.CodeConflict},
	}
	for _, test := range tests {
		c := fake(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		})
		_, err := c.Tree(t.Context(), "tree-00000000")
		if got := perdure.CodeOf(err); got != test.want {
			t.Errorf("%d %q: code %q, want %q: %v", test.status, test.body, got, test.want, err)
		}
	}
}

// IDs are parts of a path, whatever they hold.
func TestPathsAreEscaped(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	c := fake(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.RequestURI)
		fmt.Fprint(w, "{}")
	})
	if _, err := c.Tree(t.Context(), "../x?y#z"); err != nil {
		t.Fatal(err)
	}
	if got := seen.Load(); got != "/v1/trees/..%2Fx%3Fy%23z" {
		t.Errorf("path %v", got)
	}
}

func TestResultText(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`"a\nb"`: "a\nb", `null`: "", `{"x":1}`: `{"x":1}`, `[1]`: `[1]`, `7`: `7`, `""`: "",
	} {
		r := client.Result{Answer: json.RawMessage(answer)}
		if got := r.Text(); got != want {
			t.Errorf("Text of %s = %q, want %q", answer, got, want)
		}
	}
}

func event(w io.Writer, n int) { fmt.Fprintf(w, "id: %d\ndata: {\"seq\":%d}\n\n", n, n) }

// Events are yielded once even when the server sends them again, and an event
// that is cut is not yielded.
func TestEventsOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var last atomic.Value
	c := fake(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		last.Store(r.Header.Get("Last-Event-ID"))
		switch asked.Add(1) {
		case 1:
			event(w, 1)
			event(w, 2)
			fmt.Fprint(w, "id: 3\ndata: {\"seq\":3}\n") // no empty line
		case 2:
			event(w, 1)
			event(w, 2)
			event(w, 4)
		default:
			event(w, 5)
		}
	})
	var got []int64
	for e, err := range c.Events(t.Context(), 0, "") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Seq); e.Seq == 5 {
			break
		}
	}
	if fmt.Sprint(got) != "[1 2 4 5]" || last.Load() != "4" {
		t.Errorf("events %v, the last connection began after %v", got, last.Load())
	}
}

// Silence, like any other end, makes the follower connect again; without any
// server it gives up when its patience is over.
func TestEventsPatience(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := fake(t, client.Config{Silence: 20 * time.Millisecond, Patience: 300 * time.Millisecond},
		func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				event(w, 1)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		})
	n := 0
	var end error
	for e, err := range c.Events(t.Context(), 0, "") {
		n++
		end = err
		if n == 1 && (err != nil || e.Seq != 1) {
			t.Errorf("first is %+v, %v", e, err)
		}
	}
	if n != 2 || !errors.Is(end, perdure.ErrUnavailable) || asked.Load() < 3 {
		t.Errorf("%d yields, %d connections, the end is %v", n, asked.Load(), end)
	}
}

func TestEventsUnreadable(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"{", `{"seq":"x"}`, `{}`, `{"seq":-1}`} {
		c := fake(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "data: %s\n\n", data) })
		n := 0
		for _, err := range c.Events(t.Context(), 0, "") {
			if n++; perdure.CodeOf(err) != perdure.CodeInternal {
				t.Errorf("%s: %v", data, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d yields", data, n)
		}
	}
}

// Names that would not stand in a path are refused before they become one.
func TestNamesOfVariables(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	c := fake(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.RequestURI)
		fmt.Fprint(w, "{}")
	})
	global := perdure.StateRef{Scope: perdure.ScopeGlobal}
	for _, name := range []string{"", ".", ".."} {
		_, err := c.Var(t.Context(), global, name)
		_, setErr := c.SetVar(t.Context(), global, perdure.VarSpec{Name: name, Value: json.RawMessage("1")})
		if !errors.Is(err, perdure.ErrInvalid) || !errors.Is(setErr, perdure.ErrInvalid) || seen.Load() != nil {
			t.Errorf("%q: %v, %v, asked for %v", name, err, setErr, seen.Load())
		}
	}
	if _, err := c.Var(t.Context(), global, "a/../b"); err != nil {
		t.Fatal(err)
	}
	if got := seen.Load(); got != "/v1/variables/a%2F..%2Fb?scope=global" {
		t.Errorf("path %v", got)
	}
	for _, value := range []string{"", "{", "1 2"} {
		_, err := c.SetVar(t.Context(), global, perdure.VarSpec{Name: "a", Value: json.RawMessage(value)})
		_, appendErr := c.AppendVar(t.Context(), global, "a", json.RawMessage(value), perdure.Cause{})
		if !errors.Is(err, perdure.ErrInvalid) || !errors.Is(appendErr, perdure.ErrInvalid) {
			t.Errorf("%q: %v, %v", value, err, appendErr)
		}
	}
}
