package python_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

// Values without a text do not end the engine, whatever they are bound to.
func TestValuesWithoutText(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	for code, failure := range map[string]string{
		"x = 2 ** 20000":                                  "",
		"x = {'a': [2 ** 20000]}":                         "",
		"answer['content'] = 2 ** 20000":                  "",
		"answer = {'content': 2 ** 20000, 'ready': True}": "ValueError",
		"FINAL(2 ** 20000)":                               "ValueError",
		"class A:\n    def __str__(self): raise ValueError\nanswer['content'] = A()":            "",
		"class A:\n    def __repr__(self): raise SystemExit\nx = A()":                           "",
		"class E(Exception):\n    def __str__(self): raise SystemExit\nraise E()":               "E",
		"class M(type):\n    __name__ = property(lambda c: 1 // 0)\nclass A(metaclass=M): pass": "",
		"globals()[5] = 1": "",
	} {
		d, err := b.Try(code)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", code, err)
		case failure == "" && d.Failure != nil || failure != "" && (d.Failure == nil || d.Failure.Type != failure):
			t.Errorf("%s: %+v", code, d.Failure)
		case d.Final != nil:
			t.Errorf("%s: the answer is %+v", code, d.Final)
		}
		b.Run("answer['content'] = ''")
	}
	b.Prints("x = 2 ** 20000\nprint('on')", "on\n")
	if d := b.Run("x = 2 ** 20001"); len(d.Vars) != 1 || d.Vars[0].Name != "x" {
		t.Errorf("another number is not another value: %+v", d.Vars)
	}
}

// Loops of asyncio sleep by the clock of the code, which does not wait, and time-outs that other
// threads can end wait by that of the system.
func TestSleepsDoNotWait(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	began := time.Now()
	b.Prints("import asyncio, time\nbegan = time.time()\nawait asyncio.sleep(3600)\nprint(round(time.time() - began))",
		"3600\n")
	b.Prints("async def f():\n    await asyncio.sleep(60)\ntry:\n    await asyncio.wait_for(f(), 5)\n"+
		"except asyncio.TimeoutError:\n    print('late')", "late\n")
	b.Prints("def g():\n    return sum(range(10 ** 5))\n"+
		"print(await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, g), 3600))", "4999950000\n")
	b.Prints("import queue\ntry:\n    queue.Queue().get(timeout=0.01)\nexcept queue.Empty:\n    print('empty')", "empty\n")
	if waited := time.Since(began); waited > 30*time.Second {
		t.Errorf("it took %s", waited)
	}
}

// A block that waits for what does not come, or for a program that computes, is ended like one
// that computes itself.
func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"import threading\nthreading.Event().wait()",
		"import os\nif os.fork() == 0:\n    while True: pass\nos.wait()",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			b := start(t, python.Config{Limits: engine.Limits{Wait: 2 * time.Second}})
			_, err := b.Try(code)
			if e, ok := errors.AsType[*engine.Error](err); !ok || e.Kind != engine.KindTime || !strings.Contains(e.Msg, "2s") {
				t.Error(err)
			}
		})
	}
}

// Code that fills the disk is ended, also by many small files, and while a program that it started
// writes and the code itself waits for an answer.
func TestFilesEnd(t *testing.T) {
	t.Parallel()
	wants := func(t *testing.T, err error) {
		t.Helper()
		e, ok := errors.AsType[*engine.Error](err)
		if !ok || e.Kind != engine.KindFiles || !strings.Contains(e.Msg, "8 MiB") {
			t.Error(err)
		}
	}
	cfg := python.Config{Limits: engine.Limits{FolderBytes: 8 << 20}}
	for name, code := range map[string]string{
		"large": "for i in range(3):\n    open(str(i), 'wb').write(b'x' * (4 << 20))\nwhile True: pass",
		"small": "for i in range(3000):\n    open(str(i), 'w').close()\nwhile True: pass",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := start(t, cfg).Try(code)
			wants(t, err)
		})
	}
	t.Run("in the background", func(t *testing.T) {
		t.Parallel()
		b := start(t, cfg)
		ev, err := b.Exec(t.Context(), engine.Block{Code: `import os
if os.fork() == 0:
    for i in range(3): open(str(i), 'wb').write(b'x' * (4 << 20))
    os._exit(0)
while True: llm_query('a')
`})
		for err == nil && ev.Request != nil {
			ev, err = b.Reply(t.Context(), engine.Reply{Value: json.RawMessage(`"b"`)})
		}
		wants(t, err)
	})
}

// What the code prints to is that of the block, even if an earlier one replaced it.
func TestOutputIsRestored(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	b.Prints("import io, sys\nsys.stdout = io.StringIO()\nprint('held')", "")
	b.Prints("print('shown')", "shown\n")
	b.Prints("answer |= {'content': 'a'}", "")
	if d := b.Run("answer |= {'ready': True}"); d.Final == nil || d.Final.Text != "a" {
		t.Errorf("the answer is %+v", d.Final)
	}
}
