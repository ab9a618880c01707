package vendorhook_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
)

func listen(t *testing.T, home string,
	answer func(context.Context, *vendorhook.Question) vendorhook.Answer) *vendorhook.Line {
	t.Helper()
	l, err := vendorhook.Listen(t.Context(), []string{home}, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func event(command string) *vendorhook.Event {
	return &vendorhook.Event{Name: vendorhook.PreToolUse, Dir: "/w",
		Call: &agent.ToolCall{ID: "1", Name: "Bash", Kind: agent.ToolExecute, Command: command}}
}

// TestAsk: the loop receives the whole call; a loop that crashes or has ended does not
// consent.
func TestAsk(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), strings.Repeat("long", 20)) // too long for a socket
	l := listen(t, home, func(_ context.Context, q *vendorhook.Question) vendorhook.Answer {
		if q.Call.Command == "crash" {
			panic("no idea")
		}
		return vendorhook.Answer{Verdict: vendorhook.Deny, Text: q.Event + " " + q.Dir + " " + q.Call.Command}
	})
	if left, err := os.ReadDir(home); err != nil || len(left) != 0 {
		t.Errorf("the folder whose path is too long has %v, %v", left, err)
	}
	if info, err := os.Stat(filepath.Dir(l.Socket())); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the socket: %v, %v", info, err)
	}
	a, err := vendorhook.Ask(t.Context(), l.Socket(), event("ls"))
	if err != nil || a.Verdict != vendorhook.Deny || a.Text != "PreToolUse /w ls" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := vendorhook.Ask(t.Context(), l.Socket(), event("crash")); err != nil || a.Verdict != vendorhook.Deny ||
		!strings.Contains(a.Text, "no idea") {
		t.Errorf("%+v, %v", a, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if a, err := vendorhook.Ask(t.Context(), l.Socket(), event("ls")); err == nil {
		t.Errorf("nobody listens: %+v", a)
	}
}

// TestNoAnswer: an invalid answer is an error, and so is a loop that ends or takes too
// long.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"", "nonsense\n", "{}\n", `{"verdict":"sure"}` + "\n", `{"verdict":"pass"`} {
		path := filepath.Join(t.TempDir(), "s")
		server, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := server.Accept()
			if err == nil {
				_, _ = conn.Write([]byte(said))
				_ = conn.Close()
			}
		}()
		if a, err := vendorhook.Ask(t.Context(), path, event("ls")); err == nil {
			t.Errorf("%q: %+v", said, a)
		}
		_ = server.Close()
	}
	hangs := make(chan struct{})
	l := listen(t, t.TempDir(), func(ctx context.Context, _ *vendorhook.Question) vendorhook.Answer {
		close(hangs)
		<-ctx.Done()
		return vendorhook.Answer{Verdict: vendorhook.Pass}
	})
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-hangs; stop() }()
	if a, err := vendorhook.Ask(ctx, l.Socket(), event("ls")); err == nil {
		t.Errorf("one that was given up: %+v", a)
	}
}

// TestSocketFolder: the first folder in which a socket can be is used. What a killed process left there
// is removed, and no socket that is in use.
func TestSocketFolder(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("", "s") // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	file, home := filepath.Join(root, "file"), filepath.Join(root, "run", "perdure")
	dead := filepath.Join(home, "perdure-hooks-dead", "ask")
	for _, err := range []error{os.WriteFile(file, nil, 0o600), os.MkdirAll(filepath.Dir(dead), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	_ = killed.Close()
	pass := func(context.Context, *vendorhook.Question) vendorhook.Answer {
		return vendorhook.Answer{Verdict: vendorhook.Pass}
	}
	var sockets []string
	for range 2 {
		l, err := vendorhook.Listen(t.Context(), []string{"", filepath.Join(file, "below"), home}, pass)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		sockets = append(sockets, l.Socket())
	}
	for _, socket := range sockets {
		if !strings.HasPrefix(socket, home+"/perdure-hooks-") {
			t.Errorf("the socket is %s", socket)
		}
		if a, err := vendorhook.Ask(t.Context(), socket, event("ls")); err != nil || a.Verdict != vendorhook.Pass {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if _, err := os.Stat(filepath.Dir(dead)); !os.IsNotExist(err) {
		t.Errorf("the socket of the killed process: %v", err)
	}
}
