package server_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api/server"
)

func listen(t *testing.T, path string) *server.Listener {
	t.Helper()
	l, err := server.Listen(path)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// answers reports whether a process accepts connections.
func answers(path string) bool {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func TestListen(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	path := filepath.Join(dir, "perdure.sock")
	l := listen(t, path)
	info, err := os.Lstat(path)
	must(t, err)
	if info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode %s", info.Mode())
	}
	if l.Path() != path || l.Addr().String() != path || !answers(path) {
		t.Errorf("path %q, address %q", l.Path(), l.Addr())
	}
	if _, err := server.Listen(path); !errors.Is(err, perdure.ErrConflict) ||
		!strings.Contains(err.Error(), "already running") {
		t.Errorf("second Listen = %v", err)
	}
	must(t, l.Close())
	must(t, l.Close())
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 1 || entries[0].Name() != "perdure.sock.lock" {
		t.Errorf("left behind: %v", entries)
	}
	listen(t, path)
}

// leaveDead makes the socket of a server that was killed.
func leaveDead(t *testing.T, path string) {
	t.Helper()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	dead.SetUnlinkOnClose(false)
	must(t, dead.Close())
	for answers(path) { // a process that a parallel test is just starting has a copy
		runtime.Gosched()
	}
}

// What a killed server leaves is replaced.
func TestListenStale(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "perdure.sock")
	leaveDead(t, path)
	must(t, os.WriteFile(path+".lock", nil, 0o600))
	listen(t, path)
	if !answers(path) {
		t.Error("nobody answers")
	}
}

// A server that lives keeps its socket, also when its lock file was removed.
func TestListenLive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "perdure.sock")
	listen(t, path)
	must(t, os.Remove(path+".lock"))
	if _, err := server.Listen(path); !errors.Is(err, perdure.ErrConflict) {
		t.Errorf("Listen = %v", err)
	}
	if !answers(path) {
		t.Error("the living server lost its socket")
	}
}

// Close removes its own socket only.
func TestListenReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "perdure.sock")
	l := listen(t, path)
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, []byte("mine"), 0o600))
	must(t, l.Close())
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if _, err := server.Listen(path); !errors.Is(err, perdure.ErrInvalid) ||
		!strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("Listen over a file = %v", err)
	}
}

func TestListenBadPath(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	long := filepath.Join(dir, strings.Repeat("x", 104-len(dir)-1))
	_, err := server.Listen(long)
	if !errors.Is(err, perdure.ErrInvalid) || !strings.Contains(err.Error(), "104 bytes") || perdure.HintOf(err) == "" {
		t.Errorf("Listen on %d bytes = %v", len(long), err)
	}
	listen(t, long[:103])
	_, err = server.Listen(filepath.Join(dir, "none", "s"))
	if !errors.Is(err, perdure.ErrUnavailable) || perdure.HintOf(err) == "" {
		t.Errorf("Listen in no folder = %v", err)
	}
}

// Of many that start at once over a dead socket, one gets it.
func TestListenRace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "perdure.sock")
	for range 20 {
		leaveDead(t, path)
		var won atomic.Pointer[server.Listener]
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				l, err := server.Listen(path)
				switch {
				case err == nil && !won.CompareAndSwap(nil, l):
					t.Error("two servers have the socket")
					l.Close()
				case err != nil && !errors.Is(err, perdure.ErrConflict):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() == nil || !answers(path) {
			t.Fatal("nobody has the socket")
		}
		must(t, won.Load().Close())
	}
}
