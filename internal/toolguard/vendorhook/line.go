package vendorhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/perdure/perdure/agent"
)

// maxSocketPath is the length of a socket path that all systems accept.
const maxSocketPath = 100

// SocketVariable is the environment variable with the socket of the loop that an agent
// works for.
const SocketVariable = "PERDURE_HOOK_SOCKET"

// The socket has a folder of its own, whose name begins with socketPrefix. It has unboundName until
// connections are accepted.
const (
	socketPrefix = "perdure-hooks-"
	socketName   = "ask"
	unboundName  = "new"
)

// Question is what a hook asks the loop.
type Question struct {
	// Event is PreToolUse, PostToolUse or PostToolUseFailure.
	Event string         `json:"event"`
	Dir   string         `json:"dir"`
	Call  agent.ToolCall `json:"call"`
	// Late is set if the agent's model receives a text only after the call.
	Late bool `json:"late,omitempty"`
}

// Ask asks the loop that listens at a socket about an event. An error means that there is
// no answer.
func Ask(ctx context.Context, socket string, e *Event) (a Answer, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return a, fmt.Errorf("ask the loop: %w", err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	q := Question{Event: e.Name, Dir: e.Dir, Call: *e.Call, Late: e.Late()}
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return a, fmt.Errorf("ask the loop: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(conn, MaxBytes)).Decode(&a); err != nil {
		return a, fmt.Errorf("ask the loop: no answer: %w", errors.Join(context.Cause(ctx), err))
	}
	if !slices.Contains([]Verdict{Pass, Deny, Leave}, a.Verdict) {
		return Answer{}, fmt.Errorf("ask the loop: unknown answer %.100q", a.Verdict)
	}
	return a, nil
}

// Line receives the questions of an agent's hooks.
type Line struct {
	dir      string
	listener net.Listener
	stop     context.CancelFunc
	answers  sync.WaitGroup
}

// Listen creates a socket that only this user can reach, and answers questions until the
// line is closed. answer may be called concurrently; a panic in it refuses the call. The
// socket is in the first of the folders homes in which its path is short enough, or else in one for
// temporary files. It should be outside of the folders in which the agent works, which can remove it.
// Sockets that killed processes left there are removed.
func Listen(ctx context.Context, homes []string, answer func(ctx context.Context, q *Question) Answer) (*Line, error) {
	dir, err := socketDir(ctx, append(slices.Clip(homes), os.TempDir(), "/tmp"))
	if err != nil {
		return nil, fmt.Errorf("listen for hooks: %w", err)
	}
	listener, err := listen(ctx, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for hooks: %w", err), os.RemoveAll(dir))
	}
	l := &Line{dir: dir, listener: listener}
	ctx, l.stop = context.WithCancel(ctx)
	l.answers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.answers.Go(func() { serve(ctx, conn, answer) })
		}
	})
	return l, nil
}

// listen creates the socket in its folder. It has its name only when it accepts connections, so that
// no other process takes it for one that was left.
func listen(ctx context.Context, dir string) (net.Listener, error) {
	unbound := filepath.Join(dir, unboundName)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", unbound)
	if err != nil {
		return nil, err
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // it is renamed, and Close removes the folder
	}
	if err := os.Rename(unbound, filepath.Join(dir, socketName)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// socketDir creates a folder for a socket in one of the folders.
func socketDir(ctx context.Context, parents []string) (dir string, err error) {
	for _, parent := range parents {
		if parent == "" {
			continue
		}
		if err = os.MkdirAll(parent, 0o700); err != nil {
			continue
		}
		removeLeft(ctx, parent)
		if dir, err = os.MkdirTemp(parent, socketPrefix); err != nil {
			continue
		}
		if len(dir) <= maxSocketPath-len("/"+socketName) {
			return dir, nil
		}
		err = errors.Join(fmt.Errorf("path %s is too long for a socket", dir), os.Remove(dir))
	}
	return "", err
}

// removeLeft removes the sockets in a folder on which no process accepts connections. Those of other
// users stay.
func removeLeft(ctx context.Context, parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, socketPrefix+"*", socketName)) // the pattern is valid
	for _, path := range left {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.RemoveAll(filepath.Dir(path)) // it only takes space
		}
	}
}

func serve(ctx context.Context, conn net.Conn, answer func(ctx context.Context, q *Question) Answer) {
	defer func() { _ = conn.Close() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var q Question
	if err := json.NewDecoder(io.LimitReader(conn, 2*MaxBytes)).Decode(&q); err != nil {
		return // without an answer the hook refuses the call
	}
	a := answered(ctx, &q, answer)
	if ctx.Err() != nil {
		return // the line is closed
	}
	if doc, err := json.Marshal(a); err == nil {
		_, _ = conn.Write(append(doc, '\n')) // the hook has ended, or will report that there was no answer
	}
}

func answered(ctx context.Context, q *Question, answer func(ctx context.Context, q *Question) Answer) (a Answer) {
	defer func() {
		if fault := recover(); fault != nil {
			a = Answer{Verdict: Deny, Text: fmt.Sprintf("perdure failed to judge this call: %v", fault)}
		}
	}()
	return answer(ctx, q)
}

// Socket returns the path of the socket.
func (l *Line) Socket() string { return filepath.Join(l.dir, socketName) }

// Close closes the line. Open questions get no answer.
func (l *Line) Close() error {
	l.stop()
	err := l.listener.Close()
	l.answers.Wait()
	return errors.Join(err, os.RemoveAll(l.dir))
}
