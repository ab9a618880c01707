//go:build linux

package python

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/rlm/internal/repl/engine/pipe"
)

// listen returns the port of a server on the machine and the path of a socket in a folder.
func listen(t *testing.T, dir string) (port int, socket string) {
	t.Helper()
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "socket")
	local, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = tcp.Close(), local.Close() })
	return tcp.Addr().(*net.TCPAddr).Port, socket //nolint:forcetypeassert // of a TCP listener
}

// attempts are one of each kind, in a folder with a file and a socket.
func attempts(t *testing.T, dir string) []pipe.Attempt {
	t.Helper()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	port, socket := listen(t, dir)
	all := []pipe.Attempt{{Kind: "read", Path: file}, {Kind: "write", Path: file}, {Kind: "link", Path: file},
		{Kind: "create", Path: filepath.Join(dir, "created")}, {Kind: "connect", Port: port}, {Kind: "dial", Path: socket},
		{Kind: "signal"}, {Kind: "environment"}, {Kind: "fork"}, {Kind: "run", Path: "/bin/true"}}
	for i := range all {
		all[i].Name = all[i].Kind
	}
	return all
}

// TestAttemptsThatWork: the process tries what it must not be able to do. What works where a part
// of the sandbox is missing is named, and the process is ended.
func TestAttemptsThatWork(t *testing.T) {
	t.Parallel()
	found, err := new(Engine).find(t.Context(), "python3")
	if err != nil {
		t.Skip(err)
	}
	for name, tt := range map[string]struct {
		// weaken takes something from the sandbox of a process; a nil result is none at all.
		weaken func(c *sandbox.Config, dir string) *sandbox.Config
		want   string // the kinds of the attempts that work
	}{
		"a sandbox without limits of processes": {
			func(c *sandbox.Config, _ string) *sandbox.Config { return c }, "fork run"},
		"no sandbox": {func(*sandbox.Config, string) *sandbox.Config { return nil },
			"read write link create connect dial signal environment fork run"},
		"with the network": {func(c *sandbox.Config, _ string) *sandbox.Config {
			c.Network, c.Confine = true, nil
			return c
		}, "connect fork run"},
		"among all processes": {func(c *sandbox.Config, _ string) *sandbox.Config {
			c.OwnProcesses, c.Confine = false, nil
			return c
		}, "signal fork run"},
		"with a folder to read": {func(c *sandbox.Config, dir string) *sandbox.Config {
			c.Readable, c.Confine = append(c.Readable, dir), nil
			return c
		}, "read dial fork run"},
		"with a folder to write": {func(c *sandbox.Config, dir string) *sandbox.Config {
			c.Writable, c.Confine = append(c.Writable, dir), nil
			return c
		}, "read write create dial fork run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, work := t.TempDir(), t.TempDir()
			cfg := pipe.Config{LazyBytes: 1, Attempts: attempts(t, dir), Command: guard.Config{Path: found.Executable, Dir: work,
				Args: []string{"-s", "-u", "-c", program()}, Env: environment(),
				Sandbox: tt.weaken(&sandbox.Config{OwnProcesses: true, Writable: []string{work}, Temp: t.TempDir(),
					Readable: found.paths(), Confine: &sandbox.Confine{Programs: []string{"/usr", "/bin", "/lib", "/lib64"}}}, dir)}}
			s, err := pipe.Start(t.Context(), cfg)
			if err == nil {
				t.Fatal("it started", s.Close())
			}
			refused, ok := errors.AsType[*sandbox.Error](err)
			if ok && refused.Refused {
				t.Skip(err)
			}
			if got := worked(err); got != tt.want {
				t.Errorf("worked: %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

// worked returns the kinds of attempts that an error names.
func worked(err error) string {
	_, list, _ := strings.Cut(err.Error(), "must not: ")
	var kinds []string
	for one := range strings.SplitSeq(list, ", ") {
		kinds = append(kinds, strings.Fields(one + " ?")[0])
	}
	return strings.Join(kinds, " ")
}

// TestUnknownAttempt: a process that does not know an attempt does not start.
func TestUnknownAttempt(t *testing.T) {
	t.Parallel()
	found, err := new(Engine).find(t.Context(), "python3")
	if err != nil {
		t.Skip(err)
	}
	for _, kind := range []string{"fly", "parent"} {
		s, err := pipe.Start(t.Context(), pipe.Config{LazyBytes: 1, Attempts: []pipe.Attempt{{Name: "x", Kind: kind}},
			Command: guard.Config{Path: found.Executable, Args: []string{"-u", "-c", program()}, Env: environment()}})
		if err == nil {
			t.Fatal(kind, s.Close())
		}
		if !strings.Contains(err.Error(), "ended while it started") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestMessageOfStart: the last line that a process wrote before it ended is in the error.
func TestMessageOfStart(t *testing.T) {
	t.Parallel()
	s, err := pipe.Start(t.Context(), pipe.Config{Command: guard.Config{Path: "sh",
		Args: []string{"-c", "echo first >&2; echo sandbox_apply: not permitted >&2; exit 71"}}})
	if err == nil {
		t.Fatal(s.Close())
	}
	if !strings.Contains(err.Error(), "ended while it started (sandbox_apply: not permitted)") {
		t.Errorf("%v", err)
	}
}

// BenchmarkAttempts measures what the attempts add to a start: run it with a count.
func BenchmarkAttempts(b *testing.B) {
	found, err := new(Engine).find(b.Context(), "python3")
	if err != nil {
		b.Skip(err)
	}
	for _, checked := range []bool{false, true} {
		b.Run(map[bool]string{false: "without", true: "with"}[checked], func(b *testing.B) {
			for b.Loop() {
				s, err := pipe.StartConfined(b.Context(), pipe.Config{LazyBytes: 1, Command: guard.Config{Path: found.Executable,
					Args: []string{"-s", "-u", "-c", program()}, Env: environment()}},
					pipe.Confinement{Readable: found.paths(), Checked: checked})
				if err != nil {
					b.Fatal(err)
				}
				if got := len(s.Sandbox().Checks) > 0; got != checked {
					b.Errorf("checked: %t", got)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
