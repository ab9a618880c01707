//go:build unix

package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/loop/hook"
)

func newCommand(t *testing.T, cfg hook.CommandConfig) *hook.Command {
	t.Helper()
	c, err := hook.NewCommand(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sh(t *testing.T, line string) *hook.Command {
	t.Helper()
	return newCommand(t, hook.CommandConfig{Shell: line})
}

func TestCommandGetsTheMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newCommand(t, hook.CommandConfig{
		Shell: `cat >got; echo "$PERDURE_HOOK $PERDURE_LOOP $PERDURE_ITERATION $A" >env; pwd >dir`,
		Dir:   dir, Env: []string{"A=mine", "PERDURE_HOOK=forged"},
	})
	reply, err := c.Handle(t.Context(), message(hook.PreIteration, map[string]any{"risk_patterns": []string{"<b>"}}))
	if err != nil || reply.Metadata.Verdict != hook.Allow || reply.Content != "" {
		t.Fatalf("%+v, %v", reply, err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := read("env"); got != "pre_iteration fix-tests-a1b2c3d4 5 mine\n" {
		t.Errorf("environment: %q", got)
	}
	if got, want := read("dir"), dir; !strings.HasSuffix(strings.TrimSpace(got), want) {
		t.Errorf("folder: %q", got)
	}
	want := `{"role":"user","content":"what do you say?","metadata":{"hook_name":"pre_iteration",` +
		`"loop_id":"fix-tests-a1b2c3d4","iteration":5,"inputs":{"risk_patterns":["<b>"]}}}` + "\n"
	if got := read("got"); got != want {
		t.Errorf("standard input: %s", got)
	}
}

func TestCommandReplies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, line string
		verdict    hook.Verdict
		content    string
	}{
		{"nothing", `true`, hook.Allow, ""},
		{"blanks", `echo; echo " "`, hook.Allow, ""},
		{"talks to people", `echo working >&2`, hook.Allow, ""},
		{"JSON", `echo '{"content":"careful","metadata":{"verdict":"WARN"}}'`, hook.Warn, "careful"},
		{"JSON in parts", `printf '\n{"content":"no",'; printf '"metadata":{"verdict":"BLOCK"}}\n\n'`, hook.Block, "no"},
		{"exit status 2", `echo "first"; echo "  second" >&2; echo third >&2; exit 2`, hook.Block, "second\nthird"},
		{"exit status 2 without a word", `exit 2`, hook.Block, "the handler gave no reason"},
		{"exit status 2 beside JSON", `echo '{"metadata":{"verdict":"ALLOW"}}'; echo no >&2; exit 2`, hook.Block, "no"},
		{"reason with a secret", `echo "token=abcdefghijk is wrong: Bearer abcdefghijk" >&2; exit 2`, hook.Block,
			"token=abcdefghijk is wrong: Bearer [redacted]"},
		{"bytes that are not text", `printf 'a\377\000b' >&2; exit 2`, hook.Block, "a\uFFFD\uFFFDb"},
		{"does not read", `exec <&-; exit 2`, hook.Block, "the handler gave no reason"},
		{"a long reason", `yes reason | head -c 67108864 >&2; echo end >&2; exit 2`, hook.Block, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			large := message(hook.OnError, map[string]any{"error_message": strings.Repeat("x", 1<<20)})
			got, err := sh(t, tt.line).Handle(t.Context(), large)
			if err != nil || got.Metadata.Verdict != tt.verdict {
				t.Fatalf("%+v, %v; want %s", got, err, tt.verdict)
			}
			if tt.name == "a long reason" {
				if n := len(got.Content); n > 8<<10 || !strings.HasSuffix(got.Content, "end") {
					t.Errorf("%d bytes of reason", n)
				}
				return
			}
			if got.Content != tt.content {
				t.Errorf("content %q, want %q", got.Content, tt.content)
			}
		})
	}
}

func TestCommandFaults(t *testing.T) {
	t.Parallel()
	ok := `{"metadata":{"verdict":"ALLOW"}}`
	tests := []struct {
		name, line string
		kind       hook.FaultKind
		want       string
	}{
		{"text", `echo fine`, hook.FaultReply, "not a JSON object"},
		{"text before JSON", `echo note; echo '` + ok + `'`, hook.FaultReply, "not a JSON object"},
		{"text behind JSON", `echo '` + ok + `'; echo done`, hook.FaultReply, "after the end of the value"},
		{"two replies", `echo '` + ok + ok + `'`, hook.FaultReply, "after the end of the value"},
		{"cut off", `echo '{"metadata":{"verdict":'`, hook.FaultReply, "not a JSON object"},
		{"keys twice", `echo '{"metadata":{"verdict":"BLOCK","verdict":"ALLOW"}}'`, hook.FaultReply,
			"metadata.verdict: the name appears twice"},
		{"unknown verdict", `echo '{"metadata":{"verdict":"DENY"}}'`, hook.FaultReply, `"DENY"`},
		{"another value", `echo '"ALLOW"'`, hook.FaultReply, "not a JSON object"},
		{"deep", `echo '{"metadata":{"verdict":"ALLOW","details":` + strings.Repeat(`{"a":`, 100) + "1" +
			strings.Repeat("}", 102) + `'`, hook.FaultTooLarge, "depth: exceeds the limit of 64"},
		{"exit status 1", `echo '` + ok + `'; echo "cannot: $(echo api_key=sk-verysecretverysecret)" >&2; exit 1`,
			hook.FaultExit, "exit status 1"},
		{"exit status 3", `exit 3`, hook.FaultExit, "exit status 3"},
		{"signal", `kill -9 $$`, hook.FaultExit, "killed"},
		{"missing in the shell", `no-such-program-here`, hook.FaultExit, "exit status 127"},
		{"writes for ever", `cat /dev/zero`, hook.FaultTooLarge, "standard output: exceeds the limit of 1048576"},
		{"writes 1 GB", `head -c 1073741824 /dev/zero; exit 0`, hook.FaultTooLarge, "standard output: exceeds the limit"},
		{"writes a little too much", `head -c 1048577 /dev/zero`, hook.FaultTooLarge, "standard output: exceeds the limit"},
		{"writes too much and holds on", `trap "" TERM PIPE; head -c 2000000 /dev/zero; while :; do :; done`,
			hook.FaultTooLarge, "standard output"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := newCommand(t, hook.CommandConfig{Shell: tt.line, Grace: -1}).Handle(t.Context(),
				message(hook.OnError, nil))
			f := wantFault(t, err, tt.kind)
			if !strings.Contains(f.Error(), tt.want) || strings.Contains(f.Error()+f.Detail, "verysecret") {
				t.Errorf("error is %v, want %q", f, tt.want)
			}
		})
	}
}

func TestCommandThatCannotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []hook.CommandConfig{
		{Program: "no-such-program-here"}, {Program: plain}, {Program: "./missing", Dir: dir}, {Program: dir},
		{Program: "true", Dir: filepath.Join(dir, "missing")},
	} {
		_, err := newCommand(t, cfg).Handle(t.Context(), message(hook.OnError, nil))
		wantFault(t, err, hook.FaultStart)
	}
	_, err := newCommand(t, hook.CommandConfig{Program: "true"}).Handle(t.Context(),
		message(hook.OnError, map[string]any{"a": make(chan int)}))
	wantFault(t, err, hook.FaultMessage)
}

func TestCommandConfigFaults(t *testing.T) {
	t.Parallel()
	for _, cfg := range []hook.CommandConfig{
		{}, {Shell: " "}, {Shell: "a\x00"}, {Program: "a", Shell: "b"}, {Shell: "a", Args: []string{"b"}},
		{Program: "a", MaxReply: -1}, {Program: "a", MaxReply: hook.MaxReplyBytes + 1},
	} {
		if _, err := hook.NewCommand(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	got, err := newCommand(t, hook.CommandConfig{Program: "echo", Args: []string{`{"metadata":{"verdict":"BLOCK"}}`},
		MaxReply: 33}).Handle(t.Context(), message(hook.OnError, nil))
	if err != nil || got.Metadata.Verdict != hook.Block {
		t.Errorf("without a shell: %+v, %v", got, err)
	}
	_, err = newCommand(t, hook.CommandConfig{Program: "echo", Args: []string{`{"metadata":{"verdict":"BLOCK"}}`},
		MaxReply: 32}).Handle(t.Context(), message(hook.OnError, nil))
	wantFault(t, err, hook.FaultTooLarge)
}

// family tells its own process and those of its children through the pipe, all
// of which ignore what can be ignored; one has left the group and lost its
// parent. Then it hangs.
const family = `
trap '' TERM HUP INT
sh -c 'trap "" TERM HUP INT; echo $$ >pipe; sleep 1000' &
(sh -c 'trap "" TERM HUP INT; echo $$ >pipe; sleep 1000' &)
echo $$ >pipe
while :; do sleep 1000; done`

func TestHangingCommandIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"canceled", "timeout"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Skipf("no named pipes here: %v", err)
			}
			pipe, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if how == "timeout" {
				// Its end is the handler's; that it comes late enough for all
				// processes to be there does not matter.
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			ended := make(chan error, 1)
			go func() {
				_, err := newCommand(t, hook.CommandConfig{Shell: family, Dir: dir, Grace: 10 * time.Millisecond}).Handle(ctx,
					message(hook.OnError, nil))
				ended <- err
			}()
			var pids []string
			if how == "canceled" {
				pids = strings.Fields(readLines(t, pipe, 3))
				stop()
			}
			wantFault(t, <-ended, hook.FaultKind(how))
			for _, pid := range pids {
				n, err := strconv.Atoi(pid)
				if err != nil {
					t.Fatal(err)
				}
				if err := syscall.Kill(n, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("process %d: %v, want that it is gone", n, err)
				}
			}
		})
	}
}

func readLines(t *testing.T, f *os.File, n int) string {
	t.Helper()
	var text []byte
	buf := make([]byte, 64)
	for strings.Count(string(text), "\n") < n {
		got, err := f.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, buf[:got]...)
	}
	return string(text)
}

// A lock on a file that a program's guard holds is free when the program is
// gone, and not before.
func TestCommandHoldsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"started", "end"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skipf("no named pipes here: %v", err)
		}
	}
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	started, end, lock, other := open("started"), open("end"), open("lock"), open("lock")
	if err := filelock.TryLock(lock); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		c := hook.CommandConfig{Shell: "echo >started; read line <end", Dir: dir, Hold: []*os.File{lock}}
		_, err := newCommand(t, c).Handle(t.Context(), message(hook.OnError, nil))
		ended <- err
	}()
	readLines(t, started, 1)
	_ = lock.Close()
	if err := filelock.TryLock(other); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("while the program runs: %v", err)
	}
	if _, err := end.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := filelock.TryLock(other); err != nil {
		t.Errorf("when the program is gone: %v", err)
	}
}

// What a program leaves behind does not outlive its reply.
func TestCommandLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newCommand(t, hook.CommandConfig{
		Shell: `sh -c 'echo $$ >pid; exec sleep 1000' & while ! test -s pid; do :; done; echo no >&2; exit 2`, Dir: dir})
	got, err := c.Handle(t.Context(), message(hook.OnError, nil))
	if err != nil || got.Metadata.Verdict != hook.Block || got.Content != "no" {
		t.Fatalf("%+v, %v", got, err)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v, want that it is gone", n, err)
	}
}

// The runner ends a program that hangs, and fails closed where it has to.
func TestRunnerEndsCommands(t *testing.T) {
	t.Parallel()
	for name, want := range map[hook.Name]hook.Verdict{hook.PreToolCall: hook.Block, hook.PostIteration: hook.Allow} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			regs, err := hook.Settings{
				{Hook: name, Command: `trap "" TERM; while :; do sleep 1000; done`, Timeout: 50 * time.Millisecond},
				{Hook: name, Name: "second",
					Command: `echo '{"metadata":{"verdict":"ALLOW","inject":"go on","state_changes":{"status":"completed"}}}'`},
			}.Handlers(hook.Place{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, hook.Config{Handlers: regs})
			got, err := r.Run(t.Context(), message(name, nil))
			if err != nil || got.Verdict != want || got.Inject != "go on" || len(got.Faults()) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if rec := got.Faults()[0]; rec.Handler != "hooks[0]" || rec.Kind != hook.KindCommand ||
				rec.Fault.Kind != hook.FaultTimeout {
				t.Errorf("%+v %+v", rec, rec.Fault)
			}
			if rec := got.Records[1]; rec.Handler != "second" || rec.StateChanges != nil {
				t.Errorf("a program changed the state: %+v", rec)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a program said before it failed is kept, the end of it.
func TestDetailOfFaults(t *testing.T) {
	t.Parallel()
	r := newRunner(t, hook.Config{
		Handlers: []hook.Registration{
			at(hook.OnError, "h", sh(t, `yes before | head -n 20000 >&2; echo "no disk" >&2; exit 1`))}})
	got, err := r.Run(t.Context(), message(hook.OnError, nil))
	if err != nil || len(got.Faults()) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	f := got.Faults()[0].Fault
	if f.Message != "no disk: the program ended: exit status 1" || len(f.Detail) > 2<<10 ||
		!strings.HasSuffix(f.Detail, "no disk") {
		t.Errorf("%+v", f)
	}
}

// A reply written by this package is understood by it.
func TestCommandWritesWhatEncodeWrites(t *testing.T) {
	t.Parallel()
	want := full("mind it")
	want.Metadata.StateChanges = nil
	want.Metadata.Extra = map[string]json.RawMessage{"artifacts": json.RawMessage(`["a"]`)}
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := newCommand(t, hook.CommandConfig{Program: "printf", Args: []string{"%s", string(text)}}).Handle(
		t.Context(), message(hook.OnError, nil))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := got.Encode(); err != nil || string(again) != string(text) {
		t.Errorf("%s, %v; want %s", again, err, text)
	}
}
