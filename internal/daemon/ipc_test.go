package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/daemon"
)

// ipcBed is a daemon with a socket for .aiwg clients.
type ipcBed struct {
	t    *testing.T
	path string
	in   *bufio.Reader
	conn net.Conn
}

// models returns the models of a test's agents; "" is not an agent.
func models(names map[string]string) func(agent string) (json.RawMessage, error) {
	return func(agent string) (json.RawMessage, error) {
		model, there := names[agent]
		if !there {
			return nil, errors.New("no such agent")
		}
		if agent == "" {
			return json.Marshal(map[string]any{"model": model, "budget_calls": 5})
		}
		return json.Marshal(map[string]any{"agent": agent,
			"agents": map[string]any{agent: map[string]string{"model": model}}})
	}
}

func serveIPC(t *testing.T, names map[string]string) *ipcBed {
	t.Helper()
	dir, err := os.MkdirTemp("", "pd") //nolint:usetesting // its path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &ipcBed{t: t, path: filepath.Join(dir, "aiwg", "daemon", "s")}
	d := open(t, daemon.Config{Session: "serve", IPC: daemon.IPCConfig{Socket: b.path, Run: models(names)}})
	l, err := server.Listen(filepath.Join(dir, "main"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, l.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(b.path); err == nil {
			t.Error("the socket is left")
		}
	})
	if b.conn, err = net.Dial("unix", b.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.conn.Close() })
	if err := b.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b.in = bufio.NewReader(b.conn)
	return b
}

type ipcAnswer struct {
	Result struct {
		TaskID  string         `json:"taskId"`
		TreeID  perdure.TreeID `json:"treeId"`
		State   string         `json:"state"`
		Result  string         `json:"result"`
		Error   *string        `json:"error"`
		Running int            `json:"running"`
		Meta    map[string]any `json:"metadata"`
	}
	Error *rpc.Error
}

func (b *ipcBed) call(method, params string) ipcAnswer {
	b.t.Helper()
	if _, err := fmt.Fprintf(b.conn, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params); err != nil {
		b.t.Fatal(err)
	}
	line, err := b.in.ReadBytes('\n')
	var a ipcAnswer
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", line, err)
	}
	return a
}

// wait polls until a task has ended.
func (b *ipcBed) wait(id string) ipcAnswer {
	b.t.Helper()
	for {
		a := b.call("task.get", `{"taskId":"`+id+`"}`)
		if a.Error != nil || a.Result.State != "queued" && a.Result.State != "running" {
			return a
		}
	}
}

// The daemon executes a submission if it can: with the configured model, or with that of
// the agent's profile.
func TestIPCExecutes(t *testing.T) {
	t.Parallel()
	b := serveIPC(t, map[string]string{"": "mock:text=plain", "auditor": "mock:text=audited"})
	for params, want := range map[string]string{
		`{"prompt":"p","metadata":{"k":"v"}}`:                               "plain",
		`{"prompt":"p","metadata":{"k":"v"},"agent":"auditor"}`:             "audited",
		`{"prompt":"p","metadata":{"k":"v","tree_id":"t"},"execute":true}`:  "plain",
		`{"prompt":"p","metadata":{"k":"v","parent_id":null},"agent":null}`: "plain",
	} {
		id := b.call("task.submit", params).Result.TaskID
		if got := b.wait(id); got.Result.State != "completed" || got.Result.Result != want || got.Result.Meta["k"] != "v" {
			t.Errorf("%s: %+v", params, got)
		}
	}
}

// A task that the daemon does not execute waits for a worker, and an attempt to execute it
// is an error.
func TestIPCLeavesTasksToWorkers(t *testing.T) {
	t.Parallel()
	b := serveIPC(t, map[string]string{"": "mock:text=plain", "quoter": "builtin:extract", "absent": "mock:/no/such/file"})
	done := b.call("task.submit", `{"prompt":"p"}`).Result.TaskID
	var left []string
	for _, params := range []string{`{"prompt":"p","execute":false}`, `{"prompt":"p","agent":"nobody"}`,
		`{"prompt":"p","agent":"quoter"}`,
		`{"prompt":"p","agent":"absent"}`, `{"prompt":"p","metadata":{"tree_id":"tree-12345678"}}`,
		`{"prompt":"p","metadata":{"parent_id":"task-0001"}}`,
		`{"prompt":"p","metadata":{"rlm":{"v":9}}}`} {
		left = append(left, b.call("task.submit", params).Result.TaskID)
	}
	last := b.call("task.submit", `{"prompt":"p"}`).Result.TaskID
	b.wait(done)
	b.wait(last) // the daemon has skipped the others by then
	for _, id := range left {
		if got := b.call("task.start", `["`+id+`"]`); got.Error != nil || got.Result.State != "running" {
			t.Errorf("%s: %+v %+v", id, got.Result, got.Error)
		}
	}
	for _, params := range []string{`{"prompt":"p","agent":"nobody","execute":true}`,
		`{"prompt":"p","agent":"quoter","execute":true}`,
		`{"prompt":"p","agent":"absent","execute":true}`} {
		if got := b.call("task.submit", params); got.Error == nil || got.Error.Code != rpc.CodeConflict ||
			got.Error.Data.Hint == "" {
			t.Errorf("%s: %+v %+v", params, got.Result, got.Error)
		}
	}
	if got := b.call("task.submit", `{"prompt":"p","execute":true,"metadata":{"rlm":{}}}`); got.Error == nil ||
		got.Error.Code != rpc.CodeInvalidParams {
		t.Errorf("metadata of the executor's: %+v %+v", got.Result, got.Error)
	}
}

// A worker cannot start a task of the daemon, and the limits of the settings apply to it.
func TestIPCExecutionIsTheDaemons(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hold := filepath.Join(dir, "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := serveIPC(t, map[string]string{"": "exec:sh -c 'while [ -e " + hold + " ]; do sleep 0.02; done; printf done'"})
	id := b.call("task.submit", `{"prompt":"p"}`).Result.TaskID
	for b.call("task.stats", `{}`).Result.Running == 0 {
		continue
	}
	for _, method := range []string{"task.start", "task.complete", "task.fail"} {
		if got := b.call(method, `["`+id+`"]`); got.Error == nil || got.Error.Code != rpc.CodeLease {
			t.Errorf("%s: %+v %+v", method, got.Result, got.Error)
		}
	}
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	if got := b.wait(id); got.Result.State != "completed" || got.Result.Result != "done" {
		t.Errorf("it is %+v", got.Result)
	}
}

// Missing folders are created for the user only; the socket of a running daemon is refused
// before any work.
func TestIPCSocket(t *testing.T) {
	t.Parallel()
	b := serveIPC(t, nil)
	for _, dir := range []string{filepath.Dir(b.path), filepath.Dir(filepath.Dir(b.path))} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is %v, %v", dir, info.Mode(), err)
		}
	}
	if info, err := os.Lstat(b.path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	_, err := daemon.Open(t.Context(),
		daemon.Config{Dir: t.TempDir(), Session: "serve", IPC: daemon.IPCConfig{Socket: b.path}})
	if !errors.Is(err, perdure.ErrConflict) {
		t.Errorf("a second daemon: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = daemon.Open(t.Context(),
		daemon.Config{Dir: t.TempDir(), Session: "serve", IPC: daemon.IPCConfig{Socket: filepath.Join(file, "s")}})
	if err == nil || perdure.HintOf(err) == "" {
		t.Errorf("a folder that cannot be made: %v", err)
	}
}

// `perdure resume` does not execute a tree whose task a client executes.
func TestIPCTreesAreNotResumed(t *testing.T) {
	t.Parallel()
	d := open(t, daemon.Config{Session: "run"})
	err := d.Check(t.Context(), &perdure.Tree{ID: "tree-12345678", Kind: rpc.Kind, Config: json.RawMessage(`{}`)})
	if !errors.Is(err, perdure.ErrConflict) || perdure.HintOf(err) == "" {
		t.Errorf("a tree of a worker: %v", err)
	}
	if err := d.Check(t.Context(),
		&perdure.Tree{ID: "tree-12345678", Kind: rpc.Kind, Config: json.RawMessage(`{"model":"mock:text=x"}`)}); err != nil {
		t.Errorf("a tree of the daemon's: %v", err)
	}
}
