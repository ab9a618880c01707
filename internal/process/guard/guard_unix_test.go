//go:build unix

package guard_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/process/guard"
)

// sh is a configuration that runs a shell script.
func sh(script string) guard.Config {
	return guard.Config{Path: "sh", Args: []string{"-c", script}}
}

func TestChildSeesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cfg := sh(`cat; pwd; echo "$GIVEN" "$1"; echo "${GOTRACEBACK-unset}" >&2`)
	cfg.Args = append(cfg.Args, "name", "two words")
	cfg.Env = []string{"PATH=" + os.Getenv("PATH"), "GIVEN=first", "GIVEN=given"}
	cfg.Dir = dir
	cfg.Stdin = strings.NewReader("input\n")
	cfg.Stdout, cfg.Stderr = &out, &errs
	if err := guard.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("input\n"+dir+"\ngiven two words\n", out.String()); diff != "" {
		t.Error(diff)
	}
	if got := errs.String(); got != "unset\n" {
		t.Errorf("stderr = %q: the guard's own environment came through", got)
	}
}

// TestChildFolder: PWD is the child's folder, not the folder of the environment. A shell
// would correct it by itself.
func TestChildFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, env := range map[string][]string{"inherited": nil, "given": {"PATH=" + os.Getenv("PATH"), "PWD=/"}} {
		var out bytes.Buffer
		if err := guard.Run(t.Context(), guard.Config{Path: "env", Env: env, Dir: dir, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		if want := "PWD=" + dir + "\n"; strings.Count("\n"+out.String(), "\nPWD=") != 1 ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: PWD is\n%swant %s", name, out.String(), want)
		}
	}
}

func TestExitStatusComesThrough(t *testing.T) {
	t.Parallel()
	tests := []struct {
		script string
		want   *guard.ExitError
	}{
		{"exit 0", nil},
		{"exit 3", &guard.ExitError{Code: 3}},
		{"exit 255", &guard.ExitError{Code: 255}},
		{"kill -TERM $$", &guard.ExitError{Code: -1, Signal: "terminated"}},
		{"kill -KILL $$", &guard.ExitError{Code: -1, Signal: "killed"}},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			err := guard.Run(t.Context(), sh(tt.script))
			var got *guard.ExitError
			errors.As(err, &got)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want == nil) {
				t.Errorf("error %v: %s", err, diff)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "odd")
	if err := os.WriteFile(odd, []byte("#!/nowhere/at/all\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		cfg  guard.Config
		want error
	}{
		{"no such name", guard.Config{Path: "no-such-program-here"}, exec.ErrNotFound},
		{"no such path", guard.Config{Path: filepath.Join(dir, "none")}, fs.ErrNotExist},
		{"relative to the folder", guard.Config{Path: "./none", Dir: dir}, fs.ErrNotExist},
		{"not executable", guard.Config{Path: plain}, fs.ErrPermission},
		{"a folder", guard.Config{Path: dir}, syscall.EISDIR},
		{"interpreter missing", guard.Config{Path: odd}, fs.ErrNotExist},
		{"folder missing", guard.Config{Path: "sh", Dir: filepath.Join(dir, "none")}, fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := guard.Start(t.Context(), tt.cfg); !errors.Is(err, tt.want) {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
		})
	}
	for _, cfg := range []guard.Config{{}, {Path: "a\x00b"}, {Path: "sh", Args: []string{"\x00"}},
		{Path: "sh", Hold: []*os.File{nil}}} {
		if _, err := guard.Start(t.Context(), cfg); err == nil {
			t.Errorf("no error for %+v", cfg)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := guard.Start(ended, sh("true")); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that the context ended", err)
	}
}

func TestStartWithoutEnter(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeVar+"=unguarded")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// running is a child whose output a test reads.
type running struct {
	*guard.Process
	lines *bufio.Reader
}

// start starts a child. Reading its output to the end proves that nothing that
// inherited it is left.
func start(ctx context.Context, t *testing.T, cfg guard.Config) running {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	cfg.Stdout = w
	p, err := guard.Start(ctx, cfg)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return running{p, bufio.NewReader(r)}
}

func (r running) line(t *testing.T) string {
	t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("read a line of the child: %v", err)
	}
	return strings.TrimSpace(line)
}

func (r running) rest(t *testing.T) string {
	t.Helper()
	rest, err := io.ReadAll(r.lines)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

// wantGone checks that there is no process with one of these numbers.
func wantGone(t *testing.T, pids ...string) {
	t.Helper()
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there (%v)", pid, err)
		}
	}
}

func TestStopAsksFirst(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := sh(`trap 'echo bye; exit 7' TERM; sh -c 'echo ready; exec sleep 1000' & wait`)
	cfg.Grace = time.Minute
	child := start(ctx, t, cfg)
	child.line(t)
	cancel()
	err := child.Wait()
	var exit *guard.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 || !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want exit status 7 and that the context ended", err)
	}
	if got := child.rest(t); got != "bye\n" {
		t.Errorf("last words = %q", got)
	}
}

func TestStopOfAChildThatExitsWithZero(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	child := start(ctx, t, sh(`trap 'exit 0' TERM; sh -c 'echo ready; exec sleep 1000' & wait`))
	child.line(t)
	cancel()
	if err := child.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that the context ended: the child did not finish", err)
	}
}

func TestStopKillsWhoDoesNotListen(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{-1, 50 * time.Millisecond} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cfg := sh(`trap '' TERM INT HUP; echo $$; sh -c 'echo $$; sleep 1000' & wait; wait; sleep 1000`)
		cfg.Grace = grace
		child := start(ctx, t, cfg)
		pids := []string{child.line(t), child.line(t)}
		cancel()
		err := child.Wait()
		var exit *guard.ExitError
		if !errors.As(err, &exit) || exit.Signal != "killed" || !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want killed and that the context ended", err)
		}
		wantGone(t, pids...)
		child.rest(t)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	cfg := sh(`trap '' TERM; sh -c 'trap "" TERM; echo $$; sleep 1000' & read x; exit 4`)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Stdin, cfg.Grace = r, time.Millisecond
	child := start(t.Context(), t, cfg)
	_ = r.Close()
	left := child.line(t)
	_ = w.Close() // the child ends, what it started does not
	var exit *guard.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.Code != 4 {
		t.Errorf("error = %v, want exit status 4", err)
	}
	wantGone(t, left)
	child.rest(t)
}

func TestChildThatDoesNotReadItsInput(t *testing.T) {
	t.Parallel()
	cfg := sh("exec <&-; echo done")
	cfg.Stdin = io.LimitReader(zeros{}, 1<<30)
	var out bytes.Buffer
	cfg.Stdout = &out
	if err := guard.Run(t.Context(), cfg); err != nil || out.String() != "done\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLostGuard(t *testing.T) {
	t.Parallel()
	child := start(t.Context(), t, sh(`echo $PPID; echo $$; sleep 1000 & wait`))
	guardPid, err := strconv.Atoi(child.line(t))
	if err != nil {
		t.Fatal(err)
	}
	child.line(t)
	if err := syscall.Kill(guardPid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); !errors.Is(err, guard.ErrGuardLost) {
		t.Errorf("error = %v, want that the guard was lost", err)
	}
	child.rest(t) // returns only when nothing holds the output
}

func TestGuardThatIsAskedToEnd(t *testing.T) {
	t.Parallel()
	child := start(t.Context(), t, sh(`echo $PPID; sleep 1000`))
	guardPid, err := strconv.Atoi(child.line(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(guardPid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *guard.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.Signal != "terminated" {
		t.Errorf("error = %v, want terminated", err)
	}
}
