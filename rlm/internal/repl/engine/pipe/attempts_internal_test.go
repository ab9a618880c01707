package pipe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// TestJudgeAttempts: an attempt that worked, was not made or, with sandbox-exec, failed for another reason
// than a refusal, is an error that names it.
func TestJudgeAttempts(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "created")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	linux, mac := []string{sandbox.LayerLandlock}, []string{sandbox.LayerSandboxExec}
	for _, tt := range []struct {
		what   string
		a      Attempt
		errno  int
		layers []string
		want   string // in the error
	}{
		{"it worked", Attempt{Kind: kindRead, Path: "/x"}, 0, linux, "must not: try /x"},
		{"a missing file in a private folder", Attempt{Kind: kindRead}, 2, linux, ""},
		{"a missing file", Attempt{Kind: kindRead}, 2, mac, "failed with error 2 only"},
		{"refused", Attempt{Kind: kindRead}, errnoPermission, mac, ""},
		{"refused by mode", Attempt{Kind: kindFork}, errnoAccess, mac, ""},
		{"a refused connection", Attempt{Kind: kindConnect}, 61, mac, "failed with error 61 only"},
		{"another file system", Attempt{Kind: kindLink}, errnoDevice, mac, ""},
		{"another file system", Attempt{Kind: kindWrite}, errnoDevice, mac, "failed with error 18 only"},
		{"without ctypes", Attempt{Kind: kindEnvironment}, errnoMissing, mac, ""},
		{"without sockets", Attempt{Kind: kindDial}, errnoMissing, mac, "failed with error -1 only"},
		{"created in a private folder", Attempt{Kind: kindCreate, Path: there + "x"}, 0, linux, ""},
		{"created", Attempt{Kind: kindCreate, Path: there}, errnoPermission, mac, "must not: try " + there},
		{"created without a trace", Attempt{Kind: kindCreate, Path: there + "x"}, 0, mac, "failed with error 0 only"},
	} {
		tt.a.Name = "try"
		names, err := judge([]Attempt{tt.a}, []Outcome{{"another", 1}, {"try", tt.errno}}, tt.layers)
		if tt.want == "" && (err != nil || !slices.Equal(names, []string{"try"})) ||
			tt.want != "" && (err == nil || names != nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %q, %v, want %q", tt.what, names, err, tt.want)
		}
	}
	if _, err := judge([]Attempt{{Name: "try"}}, nil, linux); err == nil || !strings.Contains(err.Error(), "not tried") {
		t.Errorf("without an outcome: %v", err)
	}
}

// TestTargets: files that the process may read are no targets.
func TestTargets(t *testing.T) {
	t.Parallel()
	dir, hidden := t.TempDir(), t.TempDir()
	secret := filepath.Join(hidden, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(readable ...string) (paths []string) {
		x, err := newTargets(t.Context(), dir, []string{filepath.Join(dir, "missing"), hidden}, readable)
		if err != nil {
			t.Fatal(err)
		}
		x.close()
		if err := os.RemoveAll(filepath.Join(dir, "socket")); err != nil {
			t.Fatal(err)
		}
		for _, a := range x.attempts {
			if a.Kind == kindRead && !strings.Contains(a.Name, "home") {
				paths = append(paths, a.Path)
			}
		}
		return paths
	}
	outside := filepath.Join(dir, "outside")
	if got, want := read(), []string{outside, secret}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := read(hidden+"/"), []string{outside}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := read("/"); got != nil {
		t.Errorf("all is readable: %q", got)
	}
}

// TestExceeded: the host ends a process that uses more than its limits, with a message that says so.
func TestExceeded(t *testing.T) {
	t.Parallel()
	l := engine.Limits{CPU: time.Minute, MemoryBytes: 512 << 20}
	for _, tt := range []struct {
		used   time.Duration
		memory int64
		kind   string
		want   string
	}{
		{l.CPU, l.MemoryBytes, "", "the engine ended while it ran code"},
		{l.CPU + 1, 0, engine.KindCPU, "a block used more than 1m0s of processor time"},
		{l.CPU + 1, l.MemoryBytes + 1, engine.KindMemory, "the code used more than 512 MiB of memory"},
	} {
		kind := exceeded(tt.used, l.CPU, tt.memory, l.MemoryBytes)
		if got := ended(kind, l, nil).Error(); kind != tt.kind || got != tt.want {
			t.Errorf("%s and %d bytes: %q, %q", tt.used, tt.memory, kind, got)
		}
	}
	if kind := exceeded(0, l.CPU, 1<<40, -1); kind != "" {
		t.Errorf("without a limit of memory: %q", kind)
	}
}

// TestErrorText: the end of what a process wrote is kept.
func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", ""}, {"\n \n", ""}, {"a", "a"}, {"a\nsandbox_apply: no\n\n", "sandbox_apply: no"},
		{strings.Repeat("x", 3*mostErrorText) + "\nend", "end"}, {"a\n\xff", "?"},
	} {
		var e errorText
		for _, c := range []byte(tt.text) {
			if n, err := e.Write([]byte{c}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := e.lastLine(); got != tt.want || len(e.kept) > mostErrorText {
			t.Errorf("%.20q: %q, %d bytes", tt.text, got, len(e.kept))
		}
	}
}

// A process whose memory only the host limits is refused if the host cannot read it.
func TestUnmeasuredMemory(t *testing.T) {
	t.Parallel()
	mac, linux := []string{sandbox.LayerSandboxExec}, []string{sandbox.LayerNamespaces}
	if _, refused := errors.AsType[*sandbox.Error](measured(mac, 0)); !refused {
		t.Error("not refused")
	}
	if err := errors.Join(measured(mac, 1), measured(linux, 0)); err != nil {
		t.Error(err)
	}
}
