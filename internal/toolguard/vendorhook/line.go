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

	"github.com/perdure/perdure/agent"
)

// maxSocketPath is the length of a socket path that all systems accept.
const maxSocketPath = 100

// SocketVariable is the environment variable with the socket of the loop that an agent
// works for.
const SocketVariable = "PERDURE_HOOK_SOCKET"

// The socket has a folder of its own, whose name begins with socketPrefix.
const (
	socketPrefix = "hooks-"
	socketName   = "ask"
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
// socket is in the folder home if the path is short enough; a socket that a killed
// process left is removed.
func Listen(ctx context.Context, home string, answer func(ctx context.Context, q *Question) Answer) (*Line, error) {
	left, _ := filepath.Glob(filepath.Join(home, socketPrefix+"*")) // the pattern is valid
	for _, dir := range left {
		_ = os.RemoveAll(dir) // it only takes space
	}
	dir, err := socketDir(home)
	if err != nil {
		return nil, fmt.Errorf("listen for hooks: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(dir, socketName))
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

// socketDir creates a folder for a socket.
func socketDir(home string) (dir string, err error) {
	for _, parent := range []string{home, os.TempDir(), "/tmp"} {
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
func (l *Line) Socket() string { return l.listener.Addr().String() }

// Close closes the line. Open questions get no answer.
func (l *Line) Close() error {
	l.stop()
	err := l.listener.Close()
	l.answers.Wait()
	return errors.Join(err, os.RemoveAll(l.dir))
}
