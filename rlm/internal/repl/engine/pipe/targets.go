package pipe

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// targets are what attempts are after: each is there for all processes outside of the sandbox.
type targets struct {
	attempts  []Attempt
	listeners []net.Listener
}

// newTargets makes targets in a folder that a confined process must not reach. hidden are folders
// that it must not read, readable the paths that it can read.
func newTargets(ctx context.Context, dir string, hidden, readable []string) (*targets, error) {
	file := filepath.Join(dir, "outside")
	if err := os.WriteFile(file, []byte("not for code\n"), 0o600); err != nil {
		return nil, fmt.Errorf("make target to check sandbox: %w", err)
	}
	t := new(targets)
	elsewhere := readable
	if runtime.GOOS != "linux" { // where this attempt is always made
		elsewhere = nil
	}
	t.read("read a file outside", file, elsewhere)
	if home, err := os.UserHomeDir(); err == nil {
		t.read("read a file in the home folder", fileIn(home), readable)
	}
	for i, folder := range hidden {
		t.read(fmt.Sprintf("read a file in hidden folder %d", i+1), fileIn(folder), readable)
	}
	t.attempts = append(t.attempts, Attempt{Name: "write a file outside", Kind: kindWrite, Path: file},
		Attempt{Name: "create a file outside", Kind: kindCreate, Path: filepath.Join(dir, "created")},
		Attempt{Name: "link a file of the interpreter", Kind: kindLink},
		Attempt{Name: "signal its parent", Kind: kindSignal},
		Attempt{Name: "read the environment of its parent", Kind: kindEnvironment})
	if runtime.GOOS != "linux" { // where the code may start a few processes
		t.attempts = append(t.attempts, Attempt{Name: "fork", Kind: kindFork},
			Attempt{Name: "run a program", Kind: kindRun, Path: "/usr/bin/true"})
	}
	if err := t.listen(ctx, dir); err != nil && runtime.GOOS != "linux" { // Linux can refuse sockets to this process
		t.close()
		return nil, fmt.Errorf("make target to check sandbox: %w", err)
	}
	return t, nil
}

// read adds the attempt to read a file, unless there is none or the process may read it.
func (t *targets) read(name, file string, readable []string) {
	if file != "" && !slices.ContainsFunc(readable, func(dir string) bool { return below(file, dir) }) {
		t.attempts = append(t.attempts, Attempt{Name: name, Kind: kindRead, Path: file})
	}
}

// listen adds the attempts to connect to sockets, which it makes.
func (t *targets) listen(ctx context.Context, dir string) error {
	const longest = 100 // of the path of a socket
	var cfg net.ListenConfig
	tcp, err := cfg.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.listeners = append(t.listeners, tcp)
	port := tcp.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	t.attempts = append(t.attempts, Attempt{Name: "connect to the loopback interface", Kind: kindConnect, Port: port})
	path := filepath.Join(dir, "socket")
	if len(path) > longest {
		return nil
	}
	local, err := cfg.Listen(ctx, "unix", path)
	if err != nil {
		return err
	}
	t.listeners = append(t.listeners, local)
	t.attempts = append(t.attempts, Attempt{Name: "connect to a socket outside", Kind: kindDial, Path: path})
	return nil
}

// close closes the sockets. Files stay until their folder is removed.
func (t *targets) close() {
	for _, l := range t.listeners {
		_ = l.Close() // nothing is sent through it
	}
}

// fileIn returns a file directly in a folder that this process can read, "" if there is none.
func fileIn(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if !e.Type().IsRegular() {
			continue
		}
		if f, err := os.Open(path); err == nil { //nolint:gosec // only to know whether it can be read
			_ = f.Close()
			return path
		}
	}
	return ""
}

// below reports whether a path is a folder or in it.
func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
