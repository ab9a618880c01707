//go:build unix

package hook_test

import (
	"bufio"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/loop/hook"
)

// appender is this binary again, appending to a log.
type appender struct {
	cmd  *exec.Cmd
	said *bufio.Reader
}

func startAppender(t *testing.T, path, name, maxBytes string, env ...string) appender {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(env, logVar+"="+path, logVar+"_NAME="+name, logVar+"_MAX="+maxBytes)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return appender{cmd: cmd, said: bufio.NewReader(out)}
}

// killAfter kills it when it has written n lines, and returns the number of the
// last one that it said to have written.
func (a appender) killAfter(t *testing.T, n int) int {
	t.Helper()
	for range n {
		if _, err := a.said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(a.said)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Split(string(rest), "\n")
	for i := len(said) - 2; i >= 0; i-- { // the last part is not a whole line
		if last, err := strconv.Atoi(said[i]); err == nil {
			return last
		}
	}
	return n
}

// wantUpTo checks that a log holds the lines of an appender up to the last one
// that it said to have written, in order, and perhaps one more.
func wantUpTo(t *testing.T, records []hook.Record, name string, last int) {
	t.Helper()
	n := 0
	for _, r := range records {
		if r.Handler != name {
			continue
		}
		if n++; r.Iteration != n {
			t.Fatalf("%s: line %d has number %d", name, n, r.Iteration)
		}
	}
	if n != last && n != last+1 {
		t.Errorf("%s: the log holds %d lines, %d were written", name, n, last)
	}
}

func TestKilledAppender(t *testing.T) {
	t.Parallel()
	for range 6 {
		n := 1 + rand.IntN(60)
		path := filepath.Join(t.TempDir(), "hook-log.jsonl")
		last := startAppender(t, path, "killed", "-1").killAfter(t, n)
		records, skipped := readAll(t, path)
		if skipped > 1 {
			t.Errorf("%d lines cannot be read", skipped)
		}
		wantUpTo(t, records, "killed", last)
		appendTo(t, openLog(t, hook.LogConfig{Path: path}), numbered("next", 1))
		again, _ := readAll(t, path)
		if len(again) < len(records)+1 || again[len(again)-1].Handler != "next" {
			t.Errorf("after %d lines were %d, and the new one is lost", len(records), len(again))
		}
	}
}

func TestLogIsARegularFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	if _, err := hook.OpenLog(hook.LogConfig{Path: path}); err == nil ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}

// Two processes append to one log; one is killed.
func TestTwoAppenders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	first, second := startAppender(t, path, "first", "-1"), startAppender(t, path, "second", "-1")
	last := map[string]int{"first": first.killAfter(t, 40), "second": second.killAfter(t, 60)}
	records, skipped := readAll(t, path)
	if skipped > 2 {
		t.Errorf("%d lines cannot be read", skipped)
	}
	for name, n := range last {
		wantUpTo(t, records, name, n)
	}
}

// Two processes put one log aside again and again; what was put aside last and
// what came since is whole.
func TestTwoAppendersPutAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hook-log.jsonl")
	first, second := startAppender(t, path, "first", "300000"), startAppender(t, path, "second", "300000")
	first.killAfter(t, 200)
	last := second.killAfter(t, 200)
	records, skipped := readAll(t, path)
	if skipped > 2 {
		t.Errorf("%d lines cannot be read", skipped)
	}
	_, aside := steps(records)
	before, newest := 0, 0
	for _, r := range records {
		if r.Handler != "second" {
			continue
		}
		if before > 0 && r.Iteration != before+1 {
			t.Errorf("line %d comes after %d", r.Iteration, before)
		}
		before, newest = r.Iteration, max(newest, r.Iteration)
	}
	if newest < last || aside == 0 {
		t.Errorf("the newest line is %d, %d were written; put aside %d times", newest, last, aside)
	}
}

// A crash between putting the log aside and beginning the new one.
func TestKilledWhilePuttingAside(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"hooklog.after_rename", "hooklog.after_append:9"} {
		path := filepath.Join(t.TempDir(), "hook-log.jsonl")
		a := startAppender(t, path, "killed", "100000", "PERDURE_FAILPOINT="+place)
		rest, err := io.ReadAll(a.said)
		if err != nil {
			t.Fatal(err)
		}
		last := strings.Count(string(rest), "\n")
		records, skipped := readAll(t, path)
		if skipped != 0 || last == 0 {
			t.Errorf("%s: %d lines cannot be read", place, skipped)
		}
		wantUpTo(t, records, "killed", last)
		appendTo(t, openLog(t, hook.LogConfig{Path: path}), numbered("next", 1))
		if again, _ := readAll(t, path); len(again) != len(records)+1 {
			t.Errorf("%s: %d lines became %d", place, len(records), len(again))
		}
	}
}
