package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/testing/testdb"
)

// These tests need real processes: their memory, their descendants, their
// signals, and disks of their own.

// program is the program under test, to run in a folder.
func (p *place) program(args ...string) *exec.Cmd {
	p.t.Helper()
	path, err := exec.LookPath("perdure")
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.env...)
	return cmd
}

// ended runs a process and returns its exit status.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// until waits for something that other processes do.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

// TestProgramWritesTooMuch: the program is stopped, and memory is bounded.
func TestProgramWritesTooMuch(t *testing.T) {
	t.Parallel()
	// The race detector multiplies memory; the answer that is kept until it is
	// too large has 10 MiB.
	const most = 512 << 10 // KiB
	for name, c := range map[string]struct {
		status         int
		model, pattern string
	}{
		"answer": {1, `exec:sh -c 'yes abcdefg | head -c 1000000000'`, "answer is larger than 10485760 bytes"},
		"errors": {1, `exec:sh -c 'yes abcdefg | head -c 100000000 >&2; exit 3'`, "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			cmd := p.program("run", "x", "--model", c.model, "--call-retries", "0", "--max-attempts", "1")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			status, took := measured(t, cmd)
			if status != c.status {
				t.Errorf("status %d", status)
			}
			if err := toldOnce(stderr.String(), c.pattern); err != nil {
				t.Errorf("%v:\n%s", err, &stderr)
			}
			if took > most {
				t.Errorf("it took %d KiB of memory, at most %d are fine", took, most)
			}
		})
	}
}

// measured runs a command as the child of a small process, and returns its exit
// status and the most memory it took in KiB. The kernel counts the memory of
// the process that starts another as the other's own, and that of these tests
// is large.
func measured(t *testing.T, cmd *exec.Cmd) (status int, kib int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report")
	cmd.Args = append([]string{self}, cmd.Args...)
	cmd.Args[1], cmd.Path = cmd.Path, self
	cmd.Env = append(cmd.Env, roleEnv+"=measure "+report)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(raw), &status, &kib); err != nil {
		t.Fatal(err)
	}
	return status, kib
}

// TestProgramLeavesNothing: no descendant of a program runs after the end of the
// command, also if it has another session or ignores signals.
func TestProgramLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		script string
		killed bool // instead of left alone
	}{
		"hangs":         {status: 7, script: "echo $$ >> pids; exec sleep 1000"},
		"does not stop": {status: 7, script: "trap '' TERM INT; echo $$ >> pids; while :; do sleep 0.01; done"},
		"forks": {status: 7, script: `sh -c 'echo $$ >> pids; exec sleep 1000' &
			setsid sh -c 'echo $$ >> pids; exec sleep 1000' & echo $$ >> pids; wait`},
		"forks and answers": {status: 0, script: `sh -c 'echo $$ >> pids; exec sleep 1000' > /dev/null &
			(setsid sh -c 'echo $$ >> pids; exec sleep 1000' > /dev/null &)
			while [ "$(wc -l < pids)" -lt 2 ]; do sleep 0.01; done; echo done`},
		"is left": {status: -1, killed: true, script: `sh -c 'echo $$ >> pids; exec sleep 1000' &
			setsid sh -c 'echo $$ >> pids; exec sleep 1000' & echo $$ >> pids; touch forked; wait`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write("model.sh", c.script)
			p.write("pids", "")
			timeout := "300ms"
			if c.status == 0 || c.killed {
				timeout = "10m"
			}
			cmd := p.program("run", "x", "--model", "exec:sh model.sh", "--call-timeout", timeout, "--call-retries", "0",
				"--max-attempts", "1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.killed {
				until(t, "the program has forked", func() bool { return len(pids(t, p)) == 3 })
				_ = cmd.Process.Kill()
			}
			_ = cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			for _, pid := range pids(t, p) {
				until(t, fmt.Sprintf("process %d is gone", pid), func() bool { return gone(pid) })
			}
		})
	}
}

// pids are those that a script has written.
func pids(t *testing.T, p *place) []int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pid)
	}
	return all
}

// gone reports whether a process has ended, reaped or not.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(after, []byte("Z"))
}

// TestBrokenPipe: a reader that has enough is not a fault, and the run is finished.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--json"}, nil} {
		p := newPlace(t)
		cmd := p.program(append([]string{"run", "x", "--model", "mock:size=1000000"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, readErr := io.ReadFull(out, make([]byte, 10))
		if err := errors.Join(readErr, out.Close()); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("run %v: %v\n%s", args, err, &stderr)
		}
		if list := p.good("status"); !strings.Contains(list, "completed") {
			t.Errorf("the run was not finished:\n%s", list)
		}
	}
}

// TestFullOutput: an answer that cannot be written is an error, and not lost.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testdb.Missing(t, "devfull", "/dev/full is not there")
	}
	defer full.Close()
	cmd := p.program("run", "x", "--model", "mock:text=kept", "--json")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	if status := ended(t, cmd); status != 1 || !strings.Contains(stderr.String(), "error: write result: ") {
		t.Errorf("status %d\n%s", status, &stderr)
	}
	tree := regexp.MustCompile(`tree-[0-9a-f]{8}`).FindString(stderr.String())
	if out := p.good("resume", tree); !strings.Contains(out, "kept") {
		t.Errorf("the answer is %q", out)
	}
}

// text is a context of many parts.
func (p *place) text() {
	for i := range 15 {
		var b strings.Builder
		for line := range 40 {
			fmt.Fprintf(&b, "line %d of file %d speaks of lease number %d and of nothing else of note\n", line, i, i*100+line)
		}
		p.write(fmt.Sprintf("text/%02d.txt", i), b.String())
	}
}

func extractArgs() []string {
	return []string{"run", "lease number 1234", "--context", "text", "--chunk-tokens", "300", "--max-nodes", "5000",
		"--json"}
}

// answered returns the output of a run without the parts that differ between runs.
func answered(t *testing.T, out []byte) string {
	t.Helper()
	var r struct {
		State     string
		Answer    string
		Citations json.RawMessage
		Missing   []json.RawMessage
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.State != "completed" || len(r.Missing) > 0 || !strings.Contains(r.Answer, "lease number 1234") {
		t.Errorf("the run is %s, misses %d, answers %s", r.State, len(r.Missing), r.Answer)
	}
	return r.Answer + string(r.Citations)
}

// TestTwoRunsAtOnce: two runs in one folder, and one that is killed concurrently, have
// the answer of a single run.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	alone := newPlace(t)
	alone.text()
	want := answered(t, []byte(alone.good(extractArgs()...)))

	p := newPlace(t)
	p.text()
	victim := p.program(append(extractArgs(), "--concurrency", "1")...)
	program, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	victim.Path, victim.Env = program, append(victim.Env, "PERDURE_FAILPOINT=call.after_settle:20")
	var head bytes.Buffer
	victim.Stderr = &head
	if err := victim.Run(); !killed(err) {
		t.Fatalf("the run was not killed: %v\n%s", err, &head)
	}
	tree, _, _ := strings.Cut(head.String(), "\n")
	outs := make(chan []byte, 3)
	for _, args := range [][]string{extractArgs(), extractArgs(), {"resume", tree, "--json"}} {
		cmd := p.program(args...)
		go func() {
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%v: %v", args, err)
			}
			outs <- out
		}()
	}
	for range 3 {
		if got := answered(t, <-outs); got != want {
			t.Errorf("the answer is\n%s\nand not\n%s", got, want)
		}
	}
	if out := p.good("doctor"); !strings.Contains(out, "sound") {
		t.Error(out)
	}
}
