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

// maxSocketPath is what all systems take for the path of a socket.
const maxSocketPath = 100

// SocketVariable is the environment variable that names the socket of the loop that an
// agent works for.
const SocketVariable = "PERDURE_HOOK_SOCKET"

// The socket has a folder of its own, whose name begins with socketPrefix.
const (
	socketPrefix = "hooks-"
	socketName   = "ask"
)

// Question is what a hook asks the loop that its agent works for.
type Question struct {
	// Event is PreToolUse, PostToolUse or PostToolUseFailure.
	Event string         `json:"event"`
	Dir   string         `json:"dir"`
	Call  agent.ToolCall `json:"call"`
}

// Ask asks the loop that listens at a socket about an event. An error means that
// nobody knows what it would have said.
func Ask(ctx context.Context, socket string, e *Event) (a Answer, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return a, fmt.Errorf("ask the loop: %w", err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := json.NewEncoder(conn).Encode(Question{Event: e.Name, Dir: e.Dir, Call: *e.Call}); err != nil {
		return a, fmt.Errorf("ask the loop: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(conn, MaxBytes)).Decode(&a); err != nil {
		return a, fmt.Errorf("ask the loop: it did not answer: %w", errors.Join(context.Cause(ctx), err))
	}
	if !slices.Contains([]Verdict{Pass, Deny, Leave}, a.Verdict) {
		return Answer{}, fmt.Errorf("ask the loop: its answer %.100q is none", a.Verdict)
	}
	return a, nil
}

// Line is where the hooks of an agent ask.
type Line struct {
	dir      string
	listener net.Listener
	stop     context.CancelFunc
	answers  sync.WaitGroup
}

// Listen makes a line, that nobody but this user can reach, and answers what is
// asked there until it is closed: answer may be called from several goroutines, and
// a panic of it is a refusal. The socket is made in the folder home, where its path
// is short enough for one; a process that was killed leaves it there for the next.
func Listen(ctx context.Context, home string, answer func(ctx context.Context, q *Question) Answer) (*Line, error) {
	left, _ := filepath.Glob(filepath.Join(home, socketPrefix+"*")) // the pattern is a good one
	for _, dir := range left {
		_ = os.RemoveAll(dir) // it only takes room
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

// socketDir makes a folder for a socket.
func socketDir(home string) (dir string, err error) {
	for _, parent := range []string{home, os.TempDir(), "/tmp"} {
		if dir, err = os.MkdirTemp(parent, socketPrefix); err != nil {
			continue
		}
		if len(dir) <= maxSocketPath-len("/"+socketName) {
			return dir, nil
		}
		err = errors.Join(fmt.Errorf("the path %s is too long for a socket", dir), os.Remove(dir))
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
		return // the hook takes no answer for a refusal
	}
	a := answered(ctx, &q, answer)
	if doc, err := json.Marshal(a); err == nil {
		_, _ = conn.Write(append(doc, '\n')) // the hook went away, or will say that nobody answered
	}
}

func answered(ctx context.Context, q *Question, answer func(ctx context.Context, q *Question) Answer) (a Answer) {
	defer func() {
		if fault := recover(); fault != nil {
			a = Answer{Verdict: Deny, Text: fmt.Sprintf("perdure could not judge this call: %v", fault)}
		}
	}()
	return answer(ctx, q)
}

// Socket is the path at which hooks ask.
func (l *Line) Socket() string { return l.listener.Addr().String() }

// Close ends the line. Questions under way get no answer.
func (l *Line) Close() error {
	l.stop()
	err := l.listener.Close()
	l.answers.Wait()
	return errors.Join(err, os.RemoveAll(l.dir))
}
