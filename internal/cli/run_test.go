package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/rlm"
)

// twoFiles returns a project with a script whose second answer waits until its file
// exists.
func twoFiles(t *testing.T) *project {
	t.Helper()
	p := newProject(t)
	p.write("in/a", "says one")
	p.write("in/b", "says two")
	p.write("model.sh", `cat > in.$$
if grep -q two in.$$; then
	echo > held
	while [ ! -e go ]; do sleep 0.02; done
fi
grep '^says' in.$$
`)
	return p
}

func batch(extra ...string) []string {
	return append([]string{"batch", "in/*", "Read {file}", "--model", "exec:sh model.sh", "--concurrency", "1"}, extra...)
}

var treePattern = regexp.MustCompile(`tree-[0-9a-f]{8}`)

// held waits until the script holds the second file's call.
func (p *project) held(r *ran) {
	p.t.Helper()
	for {
		select {
		case status := <-r.status:
			p.t.Fatalf("the command ended with %d:\n%s", status, &r.stderr)
		default:
		}
		if _, err := os.Stat(p.dir + "/held"); err == nil {
			return
		}
	}
}

// Ctrl-C waits for the running call; resume repeats nothing.
func TestInterruptKeepsTheCallUnderWay(t *testing.T) {
	t.Parallel()
	p := twoFiles(t)
	p.write("in/c", "says three")
	r := p.start(batch()...)
	p.held(r)
	r.interrupt()
	r.stderr.await(t, "stopping after")
	p.write("go", "")
	r.wait(t, env.StatusInterrupted)
	tree := treePattern.FindString(r.stderr.String())
	want := fmt.Sprintf("2 of 4 tasks done; `perdure resume %s`", tree)
	if !strings.Contains(r.stderr.String(), want) {
		t.Errorf("not said: %s\n%s", want, &r.stderr)
	}
	if r.stdout.String() != "" {
		t.Errorf("standard output has %q", &r.stdout)
	}
	stdout, stderr := p.run(0, "resume", tree)
	if !strings.Contains(stdout, "says three") || !strings.Contains(stderr, "3 calls") ||
		strings.Contains(stderr, "uncertain") {
		t.Errorf("resume printed\n%s%s", stdout, stderr)
	}
}

// A second Ctrl-C does not wait for anything.
func TestSecondInterruptStopsAtOnce(t *testing.T) {
	t.Parallel()
	p := twoFiles(t)
	r := p.start(batch()...)
	p.held(r)
	r.interrupt()
	r.stderr.await(t, "stopping after")
	r.interrupt()
	r.wait(t, env.StatusInterrupted)
	// Main returned while the command still runs. The command is ended here.
	p.write("go", "")
	r.stderr.await(t, "stopped: 2 of 3")
}

// A tree that is cancelled while its process waits to stop ends as cancelled.
func TestCancelWhileStopping(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.width = 100
	r := p.start("run", "x", "--model", "mock:delay=1h")
	r.stderr.await(t, "1 running")
	r.interrupt()
	r.stderr.await(t, "stopping after")
	p.run(0, "cancel", treePattern.FindString(r.stderr.String()))
	r.wait(t, env.StatusFailed) // the tree ended as cancelled
}

// Ctrl-C also ends a command that waits for standard input.
func TestInterruptWhileReading(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.width = 100
	in, out := io.Pipe()
	defer out.Close()
	p.stdin = in
	r := p.start("run", "x", "--model", "mock:echo", "--context", "-")
	r.stderr.await(t, "Ctrl-D")
	r.interrupt()
	r.wait(t, env.StatusInterrupted)
	if got := r.stderr.String(); strings.Contains(got, "tree-") || strings.Contains(got, "ERROR") {
		t.Errorf("it printed %q", got)
	}
	p.width = 0
	if _, stderr := p.run(0, "status"); !strings.Contains(stderr, "no trees") {
		t.Errorf("status printed %q", stderr)
	}
}

// An answer cannot control the terminal; in a file it is unchanged.
func TestAnswersAreNeutralisedOnTerminals(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("script.yaml", `replies: [{text: "\x1b]0;owned\x07done", repeat: -1}]`)
	stdout, _ := p.run(0, "run", "say", "--model", "mock:script.yaml")
	if stdout != "\x1b]0;owned\x07done\n" {
		t.Errorf("a file gets %q", stdout)
	}
	p.width = 80
	p.environ = []string{"NO_COLOR=1"}
	stdout, _ = p.run(0, "run", "say", "--model", "mock:script.yaml")
	if stdout != "␛]0;owned␇done\n" {
		t.Errorf("a terminal gets %q", stdout)
	}
	for _, args := range [][]string{{"show", "task-0001"}, {"status"}, {"events"}} {
		if stdout, _ := p.run(0, args...); strings.Contains(stdout, "\x1b]") {
			t.Errorf("%v prints %q", args, stdout)
		}
	}
}

func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	p := twoFiles(t)
	p.width = 100
	r := p.start(batch()...)
	p.held(r)
	r.stderr.await(t, "1 of 3 tasks, 1 running")
	p.write("go", "")
	r.wait(t, 0)
	// No part of the redrawn lines remains after the last one.
	if i := strings.LastIndex(r.stderr.String(), "running"); strings.Contains(r.stderr.String()[i:], "█") &&
		!strings.Contains(r.stderr.String()[i:], "\x1b[J") {
		t.Errorf("the bar stays: %q", r.stderr.String()[i:])
	}
}

// The flags of runs have the defaults of the executor's configuration.
func TestRunFlagsReachTheTree(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	stdout, _ := p.run(0, "run", "x", "--model", "mock:echo", "--sub-model", "mock:hash", "--planner", "none",
		"--strategy", "sequential", "--merge", "concatenate", "--policy", "fail", "--mode", "logged", "--name", "a name",
		"--concurrency", "2", "--max-depth", "0", "--max-nodes", "5", "--max-children", "7", "--max-attempts", "2",
		"--chunk-tokens", "500", "--overlap", "0", "--context-window", "2000",
		"--budget-usd", "1.5", "--budget-tokens", "100000", "--budget-calls", "9",
		"--timeout", "1h", "--call-timeout", "30s", "--call-retries", "0", "--temperature", "0", "--seed", "7", "--json")
	tree := treePattern.FindString(stdout)
	b := p.open()
	defer b.Close() //nolint:errcheck // only read
	got, err := b.Tree(t.Context(), treeIDOf(t, tree))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := rlm.ParseConfig(got.Config)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s %s %s %s %s %s %s %s %d %d %d %d %d %d %d %d %g %d %d %s %s %d %g %d", got.Name, cfg.Model,
		cfg.SubModel,
		cfg.Planner, cfg.Strategy, cfg.Merge, cfg.Policy, cfg.Mode, cfg.Concurrency, *cfg.MaxDepth, cfg.MaxNodes,
		cfg.MaxChildren,
		cfg.MaxAttempts, cfg.ChunkTokens, cfg.OverlapTokens, cfg.ContextWindow, cfg.BudgetUSD, cfg.BudgetTokens,
		cfg.BudgetCalls,
		durationText(cfg.Timeout), durationText(cfg.CallTimeout), *cfg.CallRetries, *cfg.Temperature, *cfg.Seed)
	const want = "a name mock:echo mock:hash none sequential concatenate fail logged 2 0 5 7 2 500 -1 2000 1.5 100000 " +
		"9 1h0m0s 30s 0 0 7"
	if text != want {
		t.Errorf("configuration\n%s\nwant\n%s", text, want)
	}
}

// The path of a model is made absolute, so that the tree can be resumed in any folder.
func TestAnchor(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("script.yaml", "replies: []")
	a := newApp(env.Process{Cwd: p.dir})
	for in, want := range map[string]string{
		"builtin:extract":   "builtin:extract",
		"openai:gpt":        "openai:gpt",
		"mock:echo":         "mock:echo",
		"mock:script.yaml":  "mock:" + p.dir + "/script.yaml",
		"mock:/x/y.yaml":    "mock:/x/y.yaml",
		"exec:./a.sh -v":    "exec:" + p.dir + "/a.sh -v",
		"exec:./a.sh":       "exec:" + p.dir + "/a.sh",
		"exec:sh -c 'a b'":  "exec:sh -c 'a b'",
		"exec:/bin/cat":     "exec:/bin/cat",
		"exec:python3 a.py": "exec:python3 a.py",
	} {
		if got := a.anchor(in); got != want {
			t.Errorf("anchor(%q) = %q, want %q", in, got, want)
		}
	}
	odd := newApp(env.Process{Cwd: "/with space"})
	if got := odd.anchor("exec:./a.sh x"); got != "exec:'/with space/a.sh' x" {
		t.Errorf("anchor in a folder with a space = %q", got)
	}
}

// A full disk behind standard output is an error, a closed pipe is not.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.run(0, "run", "x", "--model", "mock:echo")
	for _, test := range []struct {
		err  error
		want int
		says string
	}{
		{syscall.EPIPE, env.StatusFailed, ""}, // the reader knows
		{errors.New("no space left on device"), env.StatusFailed, "perdure: error: write result: no space left on device\n"},
	} {
		var stderr output
		process := env.Process{Args: []string{"events", "--json"}, Cwd: p.dir, Stdout: brokenWriter{test.err},
			Stderr: &stderr}
		if got := Main(t.Context(), process); got != test.want || stderr.String() != test.says {
			t.Errorf("%v: exit status %d, %q", test.err, got, &stderr)
		}
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }
