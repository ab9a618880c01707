package starlark_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/enginetest"
	"github.com/perdure/perdure/rlm/internal/repl/engine/starlark"
)

func TestMain(m *testing.M) {
	guard.Enter()
	starlark.Enter()
	os.Exit(m.Run())
}

func start(t testing.TB, cfg starlark.Config) *enginetest.Bench {
	t.Helper()
	s, err := starlark.Start(t.Context(), cfg)
	return enginetest.Start(t, s, err)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	enginetest.Conform(t, func(t testing.TB, c engine.Contents, lazyBytes int64) *enginetest.Bench {
		t.Helper()
		return start(t, starlark.Config{Contents: c, LazyBytes: lazyBytes})
	})
}

// Code that exceeds a limit ends with an error that names it, and the session goes on.
func TestLimits(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"while True: pass": "processor time",
		"a = []\nwhile True: a.append('x' * 1000 + str(len(a)))": "MiB of memory",
		"def f(): return f()\nf()":                               "deep",
	} {
		limits := engine.Limits{MemoryBytes: 256 << 20}
		if want == "processor time" {
			limits.CPU = time.Second
		}
		b := start(t, starlark.Config{Limits: limits})
		if d := b.Run(code); d.Failure == nil || !strings.Contains(d.Failure.Message, want) {
			t.Errorf("%s: %+v", code, d.Failure)
		}
		b.Run("a = None")
		b.Prints("print('on')", "on\n")
	}
}

// An engine that ends while it runs code is an error: because the code needs much memory at once, or
// because the block is cancelled.
func TestKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "linux" {
		b := start(t, starlark.Config{Limits: engine.Limits{MemoryBytes: 64 << 20}})
		_, err := b.Try("x = [0] * (1 << 27)")
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Kind != engine.KindKilled {
			t.Errorf("a list of 2 GiB: %v", err)
		}
	}
	b := start(t, starlark.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := b.Exec(ctx, engine.Block{Code: "while True: pass"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled block: %v", err)
	}
}

// What Starlark does not have is a failure that says so.
func TestOtherLanguage(t *testing.T) {
	t.Parallel()
	b := start(t, starlark.Config{})
	for code, want := range map[string]string{
		"import os":                        "SyntaxError",
		"try:\n    pass\nexcept: pass":     "SyntaxError",
		"print(f'{1}')":                    "SyntaxError",
		"open('/etc/passwd')":              "NameError",
		"load('x', 'y')":                   "Error",
		"re.search('(?=a)', 'a')":          "Error",
		"class A: pass":                    "SyntaxError",
		"x = 'a' * (1 << 40)":              "Error",
		"[1].remove(5)":                    "Error",
		"answer.clear()":                   "Error",
		"llm_query()":                      "Error",
		"grep(regex={1: 2})":               "Error",
		"json.decode('{')":                 "Error",
		"round('x')":                       "Error",
		"re.sub('a', 3, 'a')":              "Error",
		"re.compile('a').search('a', 'b')": "Error",
	} {
		if d := b.Run(code); d.Failure == nil || d.Failure.Type != want {
			t.Errorf("%s: %+v", code, d.Failure)
		}
	}
}

// A long text is searched as one that is held: between two bytes, and with occurrences that
// overlap wherever a part ends.
func TestLongText(t *testing.T) {
	t.Parallel()
	for shift := range 3 {
		const part = 64 << 10
		whole := strings.Repeat("-", part-3-shift) + "aaaaaaaaa-"
		b := start(t, starlark.Config{LazyBytes: part,
			Contents: engine.Contents{Text: &engine.File{Name: "a", Bytes: int64(len(whole))}}})
		b.Files = map[string]string{"a": whole}
		b.Prints("print(context.count('aa'), context.count('aaa'), context.count('a', -3), context.count('-', 2, 4))\n"+
			"n = len(context)\nprint(context.find('a', -2) - n, context.find('-', -2) - n, context.find('a', None, -10), "+
			"context.find('a', 0, -9) - n)", "4 3 2 2\n-2 -1 -1 -10\n")
	}
}

// A function that re.sub calls is like other code of the block: what it prints is output, and the
// limits hold. Errors of patterns are the same in each session.
func TestFunctionsInPatterns(t *testing.T) {
	t.Parallel()
	b := start(t, starlark.Config{Limits: engine.Limits{CPU: time.Second}})
	b.Prints("def f(m):\n    print(m.group())\n    return 'c'\nprint(re.sub('[ab]', f, 'a-b'))", "a\nb\nc-c\n")
	d := b.Run("def f(m):\n    while True: pass\nre.sub('a', f, 'a')")
	if d.Failure == nil || !strings.Contains(d.Failure.Message, "processor time") {
		t.Errorf("a function that does not end: %+v", d.Failure)
	}
	for range 20 {
		d := b.Run("re.compile('(', flags=re.M | re.I | re.S)")
		if d.Failure == nil || !strings.Contains(d.Failure.Message, "(?ims:") {
			t.Fatalf("a pattern that is not valid: %+v", d.Failure)
		}
	}
	for n := 990; n < 1005; n++ { // about as deep as package regexp allows
		b.Run(fmt.Sprintf("re.compile('(' * %[1]d + ')' * %[1]d)", n))
	}
	b.Prints("print('on')", "on\n")
}

// Names that code binds stay bound, and the reserved ones are restored.
func TestNamesThatCodeBinds(t *testing.T) {
	t.Parallel()
	start(t, starlark.Config{KeepNames: true}).KeepsNames()
}
