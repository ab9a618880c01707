//go:build unix

package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
	"github.com/perdure/perdure/internal/storage/filelock"
)

// raceVar keeps agents from sleeping a second at their end when they are built
// with the race detector.
const raceVar = "GORACE=atexit_sleep_ms=0"

// player is a configuration of this test binary as an agent; see play.
func player(t *testing.T, todo ...string) command.Config {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return command.Config{Program: exe, Args: todo, Env: []string{playVar + "=1", raceVar}, TempDir: t.TempDir()}
}

func newAgent(t *testing.T, cfg command.Config) *command.Agent {
	t.Helper()
	a, err := command.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newTurn(t *testing.T) *agent.Turn {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &agent.Turn{Prompt: "do it", Dir: dir}
}

// wantKind checks the kind of an error.
func wantKind(t *testing.T, err error, want agent.Kind) *agent.Error {
	t.Helper()
	var e *agent.Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Fatalf("error = %v, want kind %q", err, want)
	}
	return e
}

// wantGone checks that the process whose ID is in a file is no more.
func wantGone(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
}

func TestPromptOnStandardInput(t *testing.T) {
	t.Parallel()
	cfg := player(t, "cat", "env:PERDURE_TASK", "env:ORDER", "env:PWD", "pwd", "err:a warning", "out:last")
	cfg.Env = append(cfg.Env, "ORDER=config")
	turn := newTurn(t)
	turn.Env = []string{"PERDURE_TASK=t-1", "ORDER=turn"}
	turn.Prompt = "first\nsecond\n"
	var events []agent.Event
	turn.Observe = func(ev agent.Event) { events = append(events, ev) }
	res, err := newAgent(t, cfg).Run(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	want := &agent.Result{Text: "first\nsecond\nt-1\nturn\n" + turn.Dir + "\n" + turn.Dir + "\nlast\n"}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Error(diff)
	}
	var out, errs []string
	for _, ev := range events {
		switch ev.Kind {
		case agent.EventOutput:
			out = append(out, ev.Text)
		case agent.EventStderr:
			errs = append(errs, ev.Text)
		default:
			t.Errorf("event %+v", ev)
		}
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSuffix(want.Text, "\n"), "\n"), out); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a warning"}, errs); diff != "" {
		t.Error(diff)
	}
}

func TestPromptAsArgument(t *testing.T) {
	t.Parallel()
	turn := newTurn(t)
	turn.Prompt = "two words; $HOME"
	res, err := newAgent(t, player(t, "args", "--message={prompt}", "plain")).Run(t.Context(), turn)
	if err != nil || res.Text != "--message=two words; $HOME\nplain\n" {
		t.Errorf("%+v, %v", res, err)
	}
	turn.Prompt = strings.Repeat("x", 3<<20)
	_, err = newAgent(t, player(t, "args", "{prompt}")).Run(t.Context(), turn)
	if e := wantKind(t, err, agent.KindInvalid); !strings.Contains(e.Hint, "{prompt_file}") {
		t.Errorf("error = %+v", e)
	}
	// Arguments that are fine one by one and too long together.
	turn.Prompt = strings.Repeat("x", 100<<10)
	many := strings.Split(strings.Repeat("{prompt} ", 99)+"{prompt}", " ")
	_, err = newAgent(t, player(t, append([]string{"args"}, many...)...)).Run(t.Context(), turn)
	if e := wantKind(t, err, agent.KindInvalid); !strings.Contains(e.Hint, "{prompt_file}") {
		t.Errorf("error = %+v", e)
	}
}

func TestPromptAsFile(t *testing.T) {
	t.Parallel()
	turn := newTurn(t)
	turn.Prompt = strings.Repeat("x", 3<<20) + "end"
	for name, todo := range map[string][]string{
		"good": {"file:{prompt_file}"}, "bad": {"file:{prompt_file}", "exit:3"}, "killed": {"file:{prompt_file}", "kill"},
	} {
		cfg := player(t, todo...)
		res, err := newAgent(t, cfg).Run(t.Context(), turn)
		if (err == nil) != (name == "good") || !strings.HasSuffix(res.Text, "xend\n") {
			t.Errorf("%s: %v", name, err)
		}
		wantEmpty(t, cfg.TempDir)
	}
	short := newTurn(t)
	short.Prompt = "short"
	res, err := newAgent(t, player(t, "file:{prompt_file}")).Run(t.Context(), short)
	if err != nil || res.Text != "-rw------- short\n" {
		t.Errorf("%+v, %v", res, err)
	}
	// Also when the program could not be started at all.
	cfg := command.Config{Program: "./none", Args: []string{"{prompt_file}"}, TempDir: t.TempDir()}
	_, err = newAgent(t, cfg).Run(t.Context(), turn)
	wantKind(t, err, agent.KindNotFound)
	wantEmpty(t, cfg.TempDir)
}

// A file that a killed process left is removed by the next turn, one that is in
// use is not.
func TestLeftPromptFiles(t *testing.T) {
	t.Parallel()
	cfg := player(t, "out:ready", "cat", "file:{prompt_file}", "hang")
	cfg.Grace = -1
	left := filepath.Join(cfg.TempDir, "perdure-prompt-123.md")
	if err := os.WriteFile(left, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	turn := newTurn(t)
	var during []string
	turn.Observe = func(ev agent.Event) {
		if ev.Text != "ready" {
			return
		}
		second := cfg
		second.Args = []string{"file:{prompt_file}"}
		if _, err := newAgent(t, second).Run(t.Context(), newTurn(t)); err != nil {
			t.Error(err)
		}
		during, _ = filepath.Glob(filepath.Join(cfg.TempDir, "*"))
		cancel()
	}
	_, err := newAgent(t, cfg).Run(ctx, turn)
	wantKind(t, err, agent.KindCanceled)
	if len(during) != 1 || during[0] == left {
		t.Errorf("while a turn was under way there was %q", during)
	}
	wantEmpty(t, cfg.TempDir)
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) > 0 {
		t.Errorf("left: %q, %v", names, err)
	}
}

func TestPromptWithNUL(t *testing.T) {
	t.Parallel()
	for _, todo := range [][]string{{"cat"}, {"args", "{prompt}"}} {
		turn := newTurn(t)
		turn.Prompt = "a\x00b"
		res, err := newAgent(t, player(t, todo...)).Run(t.Context(), turn)
		if err != nil || strings.TrimSpace(res.Text) != "a\uFFFDb" || len(res.Notes) != 1 {
			t.Errorf("%v: %+v, %v", todo, res, err)
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		todo []string
		exit int
		text string
	}{
		{"status", []string{"out:partial", "err:key sk-abcdefghijklmnopqrstuvwx refused", "exit:3"}, 3,
			"key [redacted] refused: exit status 3"},
		{"the line that says it", []string{"err:Error: no fuel", "err:  at main", "exit:1"}, 1,
			"Error: no fuel: exit status 1"},
		{"signal", []string{"out:partial", "kill"}, -1, "ended by signal: killed"},
		{"shell's status", []string{"exit:127"}, 127, "exit status 127"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := newAgent(t, player(t, tt.todo...)).Run(t.Context(), newTurn(t))
			e := wantKind(t, err, agent.KindFailed)
			if e.Exit != tt.exit || !strings.HasSuffix(e.Error(), tt.text) || strings.Contains(e.Detail, "sk-abc") {
				t.Errorf("error = %v, %+v", e, e)
			}
			if strings.HasPrefix(tt.todo[0], "out:") && res.Text != "partial\n" {
				t.Errorf("result = %+v", res)
			}
		})
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		cfg  command.Config
		kind agent.Kind
		text string
	}{
		{command.Config{}, agent.KindInvalid, "Program is missing"},
		{command.Config{Preset: "copilot"}, agent.KindInvalid, "claude, codex, gemini, opencode"},
		{command.Config{Program: "cat", Model: "m"}, agent.KindInvalid, "Model"},
		{command.Config{Program: "cat", Permission: "some"}, agent.KindInvalid, `"some"`},
		{command.Config{Program: "cat", Args: []string{"a\x00b"}}, agent.KindInvalid, "NUL"},
		{command.Config{Program: "cat", MaxLineBytes: -1, MaxErrorBytes: -1}, agent.KindInvalid, "MaxErrorBytes"},
		{command.Config{Preset: "codex", Program: "cat", Args: []string{"{prompt}"}}, agent.KindInvalid, "placeholder"},
		{command.Config{Program: "no-such-program-here"}, agent.KindNotFound, `"no-such-program-here"`},
		{command.Config{Program: "/no/such/program"}, agent.KindNotFound, "/no/such/program"},
		{command.Config{Program: filepath.Dir(plain)}, agent.KindNotFound, "is a directory"},
		{command.Config{Program: plain}, agent.KindNotFound, "permission denied"},
	}
	for _, tt := range tests {
		_, err := command.New(tt.cfg)
		e := wantKind(t, err, tt.kind)
		if e.Class() != agent.ClassSetup || !strings.Contains(e.Error(), tt.text) {
			t.Errorf("%+v: error = %v, want %q", tt.cfg, e, tt.text)
		}
		if tt.kind == agent.KindNotFound && e.Hint == "" {
			t.Errorf("%v has no hint", e)
		}
	}
	_, err := command.New(command.Config{Preset: "codex", Program: "no-such-program-here"})
	if e := wantKind(t, err, agent.KindNotFound); !strings.Contains(e.Hint, "npm install") {
		t.Errorf("hint %q", e.Hint)
	}
}

func TestBadTurns(t *testing.T) {
	t.Parallel()
	a := newAgent(t, player(t, "cat"))
	good := newTurn(t)
	tests := []struct {
		name string
		turn agent.Turn
		kind agent.Kind
	}{
		{"relative folder", agent.Turn{Prompt: "p", Dir: "x"}, agent.KindInvalid},
		{"no folder", agent.Turn{Prompt: "p", Dir: filepath.Join(good.Dir, "none")}, agent.KindInvalid},
		{"no prompt", agent.Turn{Dir: good.Dir}, agent.KindInvalid},
		{"no sessions", agent.Turn{Prompt: "p", Dir: good.Dir, Session: "s"}, agent.KindSession},
	}
	for _, tt := range tests {
		_, err := a.Run(t.Context(), &tt.turn)
		wantKind(t, err, tt.kind)
	}
	// A session that would be taken for an option.
	_, err := newAgent(t, command.Config{Preset: "codex", Program: "cat"}).Run(t.Context(),
		&agent.Turn{Prompt: "p", Dir: good.Dir, Session: "--last"})
	wantKind(t, err, agent.KindSession)
	// The program lies in the workspace, and is not a program.
	if err := os.WriteFile(filepath.Join(good.Dir, "tool"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = newAgent(t, command.Config{Program: "./tool"}).Run(t.Context(), good)
	wantKind(t, err, agent.KindNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Run(ctx, good)
	wantKind(t, err, agent.KindCanceled)
}

// Cancelled agents are gone with all they started, also those that ignore
// SIGTERM and leave children that hold the pipes.
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, todo := range map[string][]string{
		"polite": {"hang"}, "stubborn": {"stubborn", "hang"}, "silent": {"close", "hang"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := newTurn(t)
			pid := filepath.Join(turn.Dir, "pid")
			cfg := player(t, append([]string{"err:begun", "leave:" + pid, "out:ready"}, todo...)...)
			cfg.Grace = time.Millisecond
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			cause := errors.New("user pressed Ctrl-C")
			turn.Observe = func(ev agent.Event) {
				if ev.Text == "ready" {
					cancel(cause)
				}
			}
			res, err := newAgent(t, cfg).Run(ctx, turn)
			e := wantKind(t, err, agent.KindCanceled)
			if !errors.Is(e, context.Canceled) || !errors.Is(e, cause) || !strings.Contains(e.Detail, "begun") ||
				res.Text != "ready\n" {
				t.Errorf("error = %v, detail %q, result %+v", e, e.Detail, res)
			}
			wantGone(t, pid)
		})
	}
}

func TestLeftChildrenAreStopped(t *testing.T) {
	t.Parallel()
	turn := newTurn(t)
	pid := filepath.Join(turn.Dir, "pid")
	cfg := player(t, "leave:"+pid, "out:done")
	cfg.Grace = time.Millisecond
	res, err := newAgent(t, cfg).Run(t.Context(), turn)
	if err != nil || res.Text != "done\n" {
		t.Errorf("%+v, %v", res, err)
	}
	wantGone(t, pid)
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	cfg := player(t, "out:begun", "stubborn", "hang")
	cfg.Grace = time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := newAgent(t, cfg).Run(ctx, newTurn(t))
	wantKind(t, err, agent.KindTimeout)

	turn := newTurn(t)
	turn.IdleTimeout = 50 * time.Millisecond
	res, err := newAgent(t, cfg).Run(t.Context(), turn)
	if e := wantKind(t, err, agent.KindIdle); e.Exit != 0 || e.Hint == "" || res == nil {
		t.Errorf("error = %+v, result %+v", e, res)
	}
}

// Files to hold stay open until the agent is gone.
func TestHold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	lock, other := open(), open()
	if err := filelock.TryLock(lock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turn := newTurn(t)
	turn.Hold = []*os.File{lock}
	turn.Observe = func(agent.Event) {
		_ = lock.Close() // as the death of this process would
		if held, err := filelock.Held(other); !held || err != nil {
			t.Errorf("while the agent runs: held %v, %v", held, err)
		}
		cancel()
	}
	_, err := newAgent(t, player(t, "out:running", "hang")).Run(ctx, turn)
	wantKind(t, err, agent.KindCanceled)
	if held, err := filelock.Held(other); held || err != nil {
		t.Errorf("afterwards: held %v, %v", held, err)
	}
	turn.Hold = []*os.File{nil}
	_, err = newAgent(t, player(t)).Run(t.Context(), turn)
	wantKind(t, err, agent.KindFailed)
}

// A GiB of output in one line without an end, and many short lines, neither
// stall a turn nor are kept.
func TestFlood(t *testing.T) {
	t.Parallel()
	for _, flood := range []string{"256:0", "96:128"} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		res, err := newAgent(t, player(t, "flood:"+flood, "out:", "out:end")).Run(t.Context(), newTurn(t))
		if err != nil || !strings.HasSuffix(res.Text, "x\nend\n") && !strings.HasSuffix(res.Text, "\n\nend\n") ||
			len(res.Text) > agent.MaxTextBytes || len(res.Notes) != 1 {
			t.Fatalf("%d bytes, notes %q, %v", len(res.Text), res.Notes, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
	}
}

func TestOddOutput(t *testing.T) {
	t.Parallel()
	res, err := newAgent(t, player(t, `raw:a\xffb\n`, `raw:no end`)).Run(t.Context(), newTurn(t))
	if err != nil || res.Text != "a\uFFFDb\nno end\n" || len(res.Notes) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	// It never reads a prompt that is larger than any pipe.
	turn := newTurn(t)
	turn.Prompt = strings.Repeat("x", 4<<20)
	res, err = newAgent(t, player(t, "out:fine")).Run(t.Context(), turn)
	if err != nil || res.Text != "fine\n" {
		t.Errorf("%+v, %v", res, err)
	}
	res, err = newAgent(t, player(t, "out:early", "close", "err:still here")).Run(t.Context(), newTurn(t))
	if err != nil || res.Text != "early\n" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t, player(t, "cat"))
	var wg sync.WaitGroup
	for i := range 8 {
		turn := newTurn(t)
		turn.Prompt = strings.Repeat(strconv.Itoa(i), 10_000)
		wg.Go(func() {
			res, err := a.Run(t.Context(), turn)
			if err != nil || res.Text != turn.Prompt+"\n" {
				t.Errorf("turn %v: %v", turn.Prompt[:1], err)
			}
		})
	}
	wg.Wait()
}
