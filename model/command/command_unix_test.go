//go:build unix

package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/command"
)

func newModel(t *testing.T, cfg command.Config) *command.Model {
	t.Helper()
	m, err := command.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantKind checks the kind of an error.
func wantKind(t *testing.T, err error, want model.Kind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != want {
		t.Fatalf("error = %v, want kind %q", err, want)
	}
	return e
}

func request() *model.Request {
	return &model.Request{
		System: "be brief", Prompt: "what is it?",
		Documents: []model.Document{{File: "a b.txt", StartLine: 3, Text: "one\ntwo\n"}},
	}
}

func TestProgramGetsTheRequest(t *testing.T) {
	t.Parallel()
	var heard strings.Builder
	req := request()
	req.OnText = func(text string) { heard.WriteString(text) }
	got, err := newModel(t, command.Config{Command: "cat"}).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	text := model.RenderAll(req)
	n := model.EstimateTokens(len(text))
	want := &model.Response{
		Text: text, StopReason: "stop", Tries: 1,
		Usage: model.Usage{InputTokens: n, OutputTokens: n, Estimated: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if heard.String() != text {
		t.Errorf("heard %q", heard.String())
	}
}

func TestNoShellUnlessAsked(t *testing.T) {
	t.Parallel()
	plain, err := newModel(t, command.Config{Command: `echo $HOME "a  b" *`}).Generate(t.Context(), &model.Request{})
	if err != nil || plain.Text != "$HOME a  b *\n" {
		t.Errorf("without a shell: %+v, %v", plain, err)
	}
	shell, err := newModel(t, command.Config{Command: `echo one | tr o 0`, Shell: true}).Generate(t.Context(),
		&model.Request{})
	if err != nil || shell.Text != "0ne\n" {
		t.Errorf("with a shell: %+v, %v", shell, err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	m := newModel(t, command.Config{
		Command: `echo $A $B $C; pwd`, Shell: true, Env: []string{"A=config", "B=config"}, Dir: "/",
	})
	ctx := command.WithEnv(t.Context(), []string{"B=first", "C=first"})
	ctx = command.WithEnv(ctx, []string{"C=second"})
	got, err := m.Generate(ctx, &model.Request{})
	if err != nil || got.Text != "config first second\n/\n" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBadCommands(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		cfg  command.Config
		kind model.Kind
		text string
	}{
		{command.Config{}, model.KindInvalid, "empty"},
		{command.Config{Command: " \t"}, model.KindInvalid, "empty"},
		{command.Config{Command: `"" a`}, model.KindInvalid, "name of the program is empty"},
		{command.Config{Command: "a\x00b"}, model.KindInvalid, "NUL"},
		{command.Config{Command: "cat | wc"}, model.KindInvalid, "column 5"},
		{command.Config{Command: "cat 'x"}, model.KindInvalid, "column 5"},
		{command.Config{Command: "cat", MaxResponseBytes: -1, Window: -1}, model.KindInvalid, "Window"},
		{command.Config{Command: "no-such-program-here -x"}, model.KindNotFound, `"no-such-program-here"`},
		{command.Config{Command: "/no/such/program"}, model.KindNotFound, "/no/such/program"},
		{command.Config{Command: filepath.Dir(plain)}, model.KindNotFound, "is a directory"},
		{command.Config{Command: plain}, model.KindNotFound, "permission denied"},
	}
	for _, tt := range tests {
		_, err := command.New(tt.cfg)
		e := wantKind(t, err, tt.kind)
		if e.Retryable() || !strings.Contains(e.Error(), tt.text) {
			t.Errorf("%+v: error = %v, want %q, not to be tried again", tt.cfg, e, tt.text)
		}
		if tt.kind == model.KindNotFound && e.Hint == "" {
			t.Errorf("%v has no hint", e)
		}
	}
}

func TestProgramThatVanished(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	m := newModel(t, command.Config{Command: path})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := m.Generate(t.Context(), &model.Request{})
	wantKind(t, err, model.KindNotFound)

	_, err = newModel(t, command.Config{Command: "no-such-program-here", Shell: true}).Generate(t.Context(),
		&model.Request{})
	wantKind(t, err, model.KindNotFound)
}

func TestFailureKeepsStandardError(t *testing.T) {
	t.Parallel()
	m := newModel(t, command.Config{
		Command: `cat >/dev/null; echo partial; seq 1 10000 >&2; echo "key sk-abcdefghijklmnopqrstuvwx refused" >&2;` +
			` exit 3`,
		Shell:         true,
		MaxErrorBytes: 200,
	})
	_, err := m.Generate(t.Context(), request())
	e := wantKind(t, err, model.KindFailed)
	if e.Status != 3 || e.Retryable() || e.Hint == "" {
		t.Errorf("error = %+v, want status 3, not to be tried again, with a hint", e)
	}
	if !strings.Contains(e.Error(), "exit status 3") || !strings.Contains(e.Error(), "key [redacted] refused") {
		t.Errorf("error = %v", e)
	}
	if !strings.Contains(e.Detail, "\n10000\n") || len(e.Detail) > 210 || !strings.HasPrefix(e.Detail, "…") {
		t.Errorf("detail has %d bytes: %q", len(e.Detail), e.Detail)
	}
	if strings.Contains(e.Detail+e.Error(), "sk-abc") {
		t.Error("a key was not masked")
	}
}

func TestProgramThatIgnoresItsInput(t *testing.T) {
	t.Parallel()
	req := &model.Request{Prompt: strings.Repeat("x", 4<<20)}
	got, err := newModel(t, command.Config{Command: "echo fine"}).Generate(t.Context(), req)
	if err != nil || got.Text != "fine\n" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestHugeAnswer(t *testing.T) {
	t.Parallel()
	m := newModel(t, command.Config{Command: "head -c 1073741824 /dev/zero", MaxResponseBytes: 1 << 20})
	_, err := m.Generate(t.Context(), &model.Request{})
	if e := wantKind(t, err, model.KindTooLarge); e.Retryable() || !strings.Contains(e.Error(), "1048576 bytes") {
		t.Errorf("error = %v", e)
	}
}

func TestAnswerThatIsNotText(t *testing.T) {
	t.Parallel()
	got, err := newModel(t, command.Config{Command: `printf 'a\377\000b'`}).Generate(t.Context(), &model.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != "a\uFFFD\uFFFDb" || len(got.Notes) != 1 {
		t.Errorf("answer %q, notes %q", got.Text, got.Notes)
	}
}

// TestHangingProgram uses a real limit: the program is a process.
func TestHangingProgram(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pids")
	m := newModel(t, command.Config{
		Command: `trap '' TERM; sh -c 'trap "" TERM; sleep 1000' & echo $$ $! >"$PIDS"; echo begun >&2; echo ready; sleep ` +
			`1000`,
		Shell: true, Env: []string{"PIDS=" + pidFile}, Grace: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	req := &model.Request{OnText: func(string) { once.Do(cancel) }} // it is running now
	_, err := m.Generate(ctx, req)
	e := wantKind(t, err, model.KindCanceled)
	if !errors.Is(e, context.Canceled) || !strings.Contains(e.Detail, "begun") {
		t.Errorf("error = %+v", e)
	}
	pids, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(pids)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there (%v)", pid, err)
		}
	}
}

func TestTimeLimitOfAGuardedProgram(t *testing.T) {
	t.Parallel()
	g, err := model.NewGuarded(model.GuardedConfig{
		Model: newModel(t, command.Config{Command: "sleep 1000", Window: 123}), Name: "exec:sleep",
		Timeout: 20 * time.Millisecond, InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Generate(t.Context(), &model.Request{})
	if e := wantKind(t, err, model.KindTimeout); e.Tries != model.DefaultMaxTimeouts {
		t.Errorf("error = %v after %d tries", e, e.Tries)
	}
	if w, ok := model.AsWindower(g); !ok || w.Window() != 123 {
		t.Error("the window was lost")
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	m := newModel(t, command.Config{Command: "cat"})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			prompt := strings.Repeat(strconv.Itoa(i), 100_000)
			got, err := m.Generate(t.Context(), &model.Request{Prompt: prompt})
			if err != nil || got.Text != prompt {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}
