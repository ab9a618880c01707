package python_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/enginetest"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

func TestMain(m *testing.M) {
	guard.Enter()
	if role := os.Getenv("PYTHON_TEST_ROLE"); role != "" {
		fmt.Print(withoutSandbox(role == "allowed"))
		return
	}
	testenv.Set()
	os.Exit(m.Run())
}

// shared is the engine of the sessions of all tests: it asks the interpreter once where it is.
var shared = sync.OnceValue(func() *python.Engine { return new(python.Engine) })

// start skips the test if there is no Python or no sandbox.
func start(t testing.TB, cfg python.Config) *enginetest.Bench {
	t.Helper()
	s, err := shared().Start(t.Context(), cfg)
	return enginetest.Start(t, s, err)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	enginetest.Conform(t, func(t testing.TB, c engine.Contents, lazyBytes int64) *enginetest.Bench {
		t.Helper()
		return start(t, python.Config{Contents: c, LazyBytes: lazyBytes})
	})
}

// A program that is no Python is named, with what to do.
func TestNoPython(t *testing.T) {
	t.Parallel()
	var e python.Engine
	_, err := e.Start(t.Context(), python.Config{Program: "true"})
	missing, ok := errors.AsType[*engine.Error](err)
	if !ok || missing.Kind != engine.KindMissing || !strings.Contains(missing.Error(), "true is not Python") ||
		!strings.Contains(missing.Hint, "--repl-python") {
		t.Errorf("%v", err)
	}
}

func TestBlocksShareANamespace(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	b.Run("import re\ndef twice(x):\n    return 2 * x\nn = 4")
	b.Prints("print(f'{twice(n):>4}', re.findall(r'\\d', 'a1b2'))", "   8 ['1', '2']\n")
	b.Prints("1 + 1", "")
	b.Prints("if n:\n    for i in range(3): print(i, end=' ')", "0 1 2 ")
}

func TestSubCalls(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	b.Prints("print(llm_query('a', model='m'), type(llm_query('b')) "+
		"is str)", "A True\n", enginetest.Text("A"), enginetest.Text("B"))
	b.Prints("print(llm_query_batched([1, 'b']))", "['x', 'y']\n", engine.Reply{Value: json.RawMessage(`["x","y"]`)})
	b.Prints("print(await rlm_query('c'), (await rlm_query_batched(['d']))[0])", "C D\n", enginetest.Text("C"),
		engine.Reply{Value: json.RawMessage(`["D"]`)})
	b.Prints("import asyncio\nprint(await asyncio.gather(llm_query('e'), "+
		"llm_query('f')))", "['E', 'F']\n", enginetest.Text("E"), enginetest.Text("F"))
	b.Prints("async def ask(p):\n    return await llm_query(p)\nprint(await ask('g'))", "G\n", enginetest.Text("G"))
	var got []string
	for _, r := range b.Asked {
		got = append(got, r.Function+" "+string(r.Args))
	}
	want := []string{
		`llm_query {"prompt": "a", "model": "m"}`, `llm_query {"prompt": "b", "model": null}`,
		`llm_query_batched {"prompts": ["1", "b"], "model": null}`, `rlm_query {"prompt": "c", "model": null}`,
		`rlm_query_batched {"prompts": ["d"], "model": null}`, `llm_query {"prompt": "e", "model": null}`,
		`llm_query {"prompt": "f", "model": null}`, `llm_query {"prompt": "g", "model": null}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	d := b.Run("llm_query('h')", engine.Reply{Err: "llm_query: no"})
	if d.Failure == nil || d.Failure.Type != "RuntimeError" || d.Failure.Message != "llm_query: no" {
		t.Errorf("a refusal of the host: %+v", d.Failure)
	}
	d = b.Run("import threading\nfound = []\ndef f():\n    try: llm_query('x')\n    except RuntimeError as " +
		"e: found.append(str(e))\n" +
		"t = threading.Thread(target=f); t.start(); t.join(); print(found)")
	if !strings.Contains(d.Output, "main thread") {
		t.Errorf("a call of another thread: %q, %+v", d.Output, d.Failure)
	}
}

// An exception keeps what was bound before it, and the traceback shows the code alone.
func TestException(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	d := b.Run("kept = [1]\nkept.append(2)\ndef f():\n    return 1 / 0\nf()\nlost = 3")
	f := d.Failure
	if f == nil || f.Type != "ZeroDivisionError" || f.Line != 4 || strings.Contains(f.Traceback, "exec(") ||
		!strings.Contains(f.Traceback, "line 4, in f") {
		t.Fatalf("%+v", f)
	}
	if len(d.Vars) != 2 || d.Vars[1].Name != "kept" || string(d.Vars[1].Value) != "[1,2]" {
		t.Errorf("variables %+v", d.Vars)
	}
	if d := b.Run("print(kept)\nfor"); d.Failure == nil || d.Failure.Type != "SyntaxError" ||
		d.Failure.Line != 2 || d.Output != "" {
		t.Errorf("a syntax error: %+v, %q", d.Failure, d.Output)
	}
	if d := b.Run("import sys\nsys.exit(3)"); d.Failure == nil || d.Failure.Type != "SystemExit" {
		t.Errorf("an exit: %+v", d.Failure)
	}
	b.Prints("print(kept)", "[1, 2]\n")
}

func TestFinals(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	for code, want := range map[string]engine.Final{
		"answer['content'] = 'a'\nanswer['ready'] = True\nanswer['content'] " +
			"= 'b'": {Value: json.RawMessage(`"a"`), Text: "a", By: "answer"},
		"answer = {'content': [1], 'ready': " +
			"True}": {Value: json.RawMessage(`[1]`), Text: "[1]", By: "answer"},
		"answer.update(ready=True, " +
			"content=5)": {Value: json.RawMessage(`5`), Text: "5", By: "answer"},
		"FINAL({'a': " +
			"None})": {Value: json.RawMessage(`{"a":null}`), Text: "{'a': None}", By: "FINAL"},
		"FINAL(1)\n" +
			"FINAL(2)": {Value: json.RawMessage(`1`),
			Text: "1", By: "FINAL"},
		"x = 'é'\n" +
			"FINAL_VAR('x')": {Value: json.RawMessage(`"\u00e9"`), Text: "é", By: "FINAL_VAR"},
		"x = {1}\n" +
			"FINAL_VAR(x)": {Value: json.RawMessage(`"{1}"`), Text: "{1}", By: "FINAL_VAR"},
		"SUBMIT(a=1, " +
			"b='c')": {Value: json.RawMessage(`{"a":1,"b":"c"}`), Text: "{'a': 1, 'b': 'c'}", By: "SUBMIT"},
		"done('ok')": {Value: json.RawMessage(`"ok"`), Text: "ok", By: "done"},
	} {
		if diff := cmp.Diff(&want, b.Run(code).Final); diff != "" {
			t.Errorf("%s\n%s", code, diff)
		}
		b.Run("answer['ready'] = False")
	}
	if d := b.Run("FINAL_VAR('missing')"); d.Failure == nil || d.Final != nil ||
		!strings.Contains(d.Failure.Message, "no variable") {
		t.Errorf("a missing variable: %+v", d)
	}
	if d := b.Run("answer['content'] = 'draft'"); d.Draft != "draft" || d.Final != nil {
		t.Errorf("a draft: %+v", d)
	}
}

// Names of the host are there again after a block that bound them to something else.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	b.Run("llm_query = None\nFINAL = 3\ncontext = 'mine'\ndel budget")
	b.Prints("print(callable(llm_query), callable(FINAL), context == '', callable(budget))", "True True True True\n")
	b.Run("x = 1")
	b.Prints("print(SHOW_VARS())", "x: int\n")
}

// JSON holds the values that it holds exactly; others have a text that is the same in every run.
func TestVariables(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	d := b.Run("import collections\na = {'b': [1, 2.5, None, True, 'é\\ud800']}\nc = (1, 2)\nd = {3, 1, 2}\n" +
		"e = {1: 2}\n" +
		"f = float('nan')\nclass G: pass\ng = G()\nh = collections.Counter('aab')\ni = 10**30\nj = 'x' * " +
		"100_000\nimport re\nk = re.compile('a')")
	got := make(map[string]string)
	for _, v := range d.Vars {
		got[v.Name] = v.Type + " " + string(v.Value) + v.Repr[:min(len(v.Repr), 30)]
	}
	want := map[string]string{"a": `dict {"b":[1,2.5,null,true,"\u00e9\ud800"]}`, "c": "tuple (1, 2)",
		"d": "set set(1, 2, 3)",
		"e": "dict {1: 2}", "f": "float nan", "G": "type <class G>", "g": "G <__main__.G object at 0x0>",
		"h": "Counter Counter({'a': 2, 'b': 1})", "i": "int 1000000000000000000000000000000",
		"j": `str "` + strings.Repeat("x", 29), "k": "Pattern re.compile('a')"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	d = b.Run("a['b'].append(3)\ndel c")
	if len(d.Vars) != 1 || d.Vars[0].Name != "a" || !cmp.Equal(d.Gone, []string{"c"}) {
		t.Errorf("changed %+v, gone %q", d.Vars, d.Gone)
	}
	if err := b.Set(t.Context(), []engine.Var{{Name: "n",
		Value: json.RawMessage(`{"x":[1,"\u00e9"]}`)}}); err != nil {
		t.Fatal(err)
	}
	if d := b.Prints("print(n)", "{'x': [1, 'é']}\n"); len(d.Vars) != 0 {
		t.Errorf("a variable that was set counts as changed: %+v", d.Vars)
	}
}

// random is code whose output would differ from run to run in an ordinary interpreter.
const random = `import time, datetime, random, uuid, secrets, os, locale
print(time.time(), time.monotonic(), time.perf_counter_ns(), time.strftime('%c'), time.localtime().tm_hour)
print(datetime.datetime.now(), datetime.date.today(), datetime.datetime.now(datetime.timezone.utc))
print(random.random(), random.SystemRandom().random(), random.sample(range(100), 3))
print(uuid.uuid4(), uuid.uuid1(), secrets.token_hex(4), os.urandom(3))
print({'a', 'b', 'c', 'd'}, hash('x'), object(), locale.getlocale())
begun = time.time()
time.sleep(100)
print(time.time() - begun, llm_query('x'), time.time(), isinstance(datetime.datetime.now(), datetime.datetime))
class A: pass
a = [A(), lambda: 1, iter([])]
print(a)
import tempfile
print(random.Random().random(), tempfile.mktemp(), random.seed(), random.random())
print(time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_MONOTONIC))
`

// The same blocks with the same replies give the same events, byte for byte.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	var runs [2]string
	for i := range runs {
		b := start(t, python.Config{})
		late := enginetest.Text("y")
		late.Clock = time.Unix(1_000_000_900, 0)
		var all []*engine.Done
		all = append(all, b.Run(random, late), b.Run("print(random.random(), time.time())"))
		raw, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = string(raw)
		if all[0].Failure != nil {
			t.Fatal(all[0].Failure)
		}
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(runs[0], "1000000900.001") || !strings.Contains(runs[0], "2001-09-09 01:46:40") {
		t.Errorf("the time is not that of the host: %s", runs[0])
	}
}

// The working folder has the same name in each process that has a /tmp of its own.
func TestWorkingFolder(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	if !slices.Contains(b.Sandbox().Layers, sandbox.LayerNamespaces) {
		t.Skip("no namespaces")
	}
	b.Prints("import os\nopen('a', 'w').write('x')\nprint(os.getcwd(), os.environ['PWD'], os.listdir())",
		"/tmp/work /tmp/work ['a']\n")
}

// A sleep of asyncio takes no time, like time.sleep: the clock that its loops read is not that of
// the machine.
func TestAsyncSleep(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	began := time.Now()
	b.Prints(`import asyncio, time
begun = time.time()
order = []
async def one(name, seconds):
    await asyncio.sleep(seconds)
    order.append(name)
await asyncio.gather(one('b', 3600), one('a', 60))
try:
    await asyncio.wait_for(asyncio.Event().wait(), 86400)
except asyncio.TimeoutError:
    order.append('timeout')
print(order, round((time.time() - begun) / 3600), await asyncio.to_thread(lambda: 'thread'))
`, "['a', 'b', 'timeout'] 25 thread\n")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	if d := b.Run("await asyncio.Event().wait()"); d.Failure == nil || d.Failure.Type != "RuntimeError" {
		t.Errorf("a wait without end: %+v", d.Failure)
	}
	b.Prints("print('on')", "on\n")
}

// A block that waits for nothing ends, but not one that waits for an answer.
func TestWaits(t *testing.T) {
	t.Parallel()
	cfg := python.Config{Limits: engine.Limits{CPU: time.Second}}
	b := start(t, cfg)
	for _, code := range []string{"import threading\nx = 1\nthreading.Event().wait()",
		"import os\nos.read(os.pipe()[0], 1)"} {
		if d := b.Run(code); d.Failure == nil || d.Failure.Type != "TimeoutError" {
			t.Errorf("%s: %+v", code, d.Failure)
		}
	}
	b.Prints("print(x)", "1\n")
	ev, err := b.Exec(t.Context(), engine.Block{Code: "print(llm_query('a'))"})
	if err != nil || ev.Request == nil {
		t.Fatal(ev, err)
	}
	// Until a block of another process that began later is ended.
	if d := start(t, cfg).Run("import threading\nthreading.Event().wait()"); d.Failure == nil {
		t.Error("a block that waits was not ended")
	}
	ev, err = b.Reply(t.Context(), engine.Reply{Value: json.RawMessage(`"b"`)})
	if err != nil || ev.Done == nil || ev.Done.Failure != nil {
		t.Errorf("after a long answer: %+v, %v", ev.Done, err)
	}
}

// A process that the code starts has a limit of its own.
func TestProcessorTimeOfChildren(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{Limits: engine.Limits{CPU: time.Second}})
	b.Prints(`import os, signal
child = os.fork()
while child == 0: pass
while True:
    try:
        status = os.waitpid(child, 0)[1]
        break
    except TimeoutError:
        pass
print(signal.Signals(os.WTERMSIG(status)).name)
`, "SIGXCPU\n")
}

func TestContext(t *testing.T) {
	t.Parallel()
	one := start(t, python.Config{Contents: engine.Contents{Text: &engine.File{Name: "a", Bytes: 7}}})
	one.Files = map[string]string{"a": "häuser"}
	one.Prints("print(type(context).__name__, len(context), context[1])", "str 6 ä\n")
	many := start(t, python.Config{Contents: engine.Contents{Files: []engine.File{{Name: "a", Bytes: 1},
		{Name: "b", Bytes: 2}}}})
	many.Files = map[string]string{"a": "x", "b": "yz"}
	many.Prints("print(context)", "{'a': 'x', 'b': 'yz'}\n")
	none := start(t, python.Config{})
	none.Prints("print(repr(context))", "''\n")
}

// part is the most that sessions of tests hold of a long context, and read of it at once.
const part = 64 << 10

// A context that is too long to be held is read in parts.
func TestLazyContext(t *testing.T) {
	t.Parallel()
	line := "zeile mit ä und €\n"
	whole := strings.Repeat(line, 60_000)
	b := start(t, python.Config{LazyBytes: part,
		Contents: engine.Contents{Text: &engine.File{Name: "a", Bytes: int64(len(whole))}}})
	b.Files = map[string]string{"a": whole}
	b.Prints("print(len(context), context[5:8], context[-4:-1], context.find('€'), 'zeile mit' in context, "+
		"'nirgends' in context)",
		"1080000  mi d € 16 True False\n")
	b.Prints("print(context.count('ä'), sum(1 for l in context.lines() if l.endswith('€')), context[0], "+
		"context.startswith('zeile'))",
		"60000 60000 z True\n")
	b.Prints("print(context.find('€', -9), context.find('€', -10**9, 20), context.find('€', None, -1079980), "+
		"context.find('z', 0, 0), context.startswith(('a', 'zeile')))",
		"1079998 16 16 -1 True\n")
	for _, code := range []string{"import re\nre.findall('a', context)", "str(context)", "context " +
		"+ 'a'", "context.upper()",
		"llm_query(context)"} {
		if d := b.Run(code); d.Failure == nil || d.Failure.Type != "TypeError" {
			t.Errorf("%s: %+v", code, d.Failure)
		}
	}
}

// The beginning of what is printed is kept, and all of it is counted.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{})
	d := b.Run("import os, sys\nfor i in range(1000): print('x' * 9999)\nos.write(1, b'lost')\nprint('e', " +
		"file=sys.stderr)")
	if d.Failure != nil || len(d.Output) != engine.MaxOutputBytes || d.OutputBytes != 10_000_002 {
		t.Errorf("kept %d of %d bytes, %+v", len(d.Output), d.OutputBytes, d.Failure)
	}
}

// Code that uses up what it is given is stopped, and the next block runs.
func TestLimits(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{Limits: engine.Limits{MemoryBytes: 512 << 20, CPU: time.Second, FileBytes: 1 << 20}})
	for code, want := range map[string]string{
		"a = bytearray(600 << 20)":                  "MemoryError",
		"while True: pass":                          "TimeoutError",
		"open('f', 'wb').write(bytes(2 << 20))":     "OSError",
		"def f(): f()\nf()":                         "RecursionError",
		"a = []\nwhile True: a.append('x' * 10**6)": "MemoryError",
	} {
		if d := b.Run(code); d.Failure == nil || d.Failure.Type != want {
			t.Errorf("%s: %+v, want %s", code, d.Failure, want)
		}
		b.Run("a = None")
	}
	b.Prints("print('on')", "on\n")
}

// An answer for which the memory is not enough is an exception like any other: the next request
// has the answer to itself.
func TestMemoryEndsInARequest(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{Limits: engine.Limits{MemoryBytes: 512 << 20}})
	b.Prints("held = []\ntry:\n    while True: held.append(bytearray(1 << 20))\nexcept MemoryError:\n"+
		"    del held[-4:]\ntry:\n    llm_query('a')\nexcept MemoryError:\n    held = None\n    print('caught')\n"+
		"print(llm_query('b'))", "caught\nB\n", enginetest.Text(strings.Repeat("x", 16<<20)),
		enginetest.Text("B"))
	b.Prints("print(llm_query('c'))", "C\n", enginetest.Text("C"))
}

// The limit of processor time ends code, but no exchange of frames: an answer that the code did
// not wait for would be that of its next request.
func TestProcessorTimeEndsInARequest(t *testing.T) {
	t.Parallel()
	b := start(t, python.Config{Limits: engine.Limits{CPU: time.Second}})
	b.Prints("import signal\nlong = 'a' * (1 << 22)\nsignal.setitimer(signal.ITIMER_PROF, 2e-3)\ntry:\n"+
		"    llm_query(long)\n    while True: pass\nexcept TimeoutError:\n    print('stopped')\n"+
		"print(llm_query('b'))", "stopped\nB\n",
		enginetest.Text(strings.Repeat("x", 1<<20)), enginetest.Text("B"))
	b.Prints("print(llm_query('c'))", "C\n", enginetest.Text("C"))
}

// A session whose process ends reports that, and leaves nothing behind.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"import os\nos._exit(0)",
		"import os\nos.write(4, b'\\xff\\xff\\xff\\xff')\nos.write(5, b'\\xff\\xff\\xff\\xff')",
		"import ctypes\nctypes.string_at(0)"} {
		b := start(t, python.Config{})
		_, err := b.Try(code)
		e, ok := errors.AsType[*engine.Error](err)
		if !ok || e.Kind != engine.KindKilled && e.Kind != engine.KindProtocol {
			t.Errorf("%s: %v", code, err)
		}
	}
	b := start(t, python.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	context.AfterFunc(ctx, func() {})
	go cancel()
	if _, err := b.Exec(ctx, engine.Block{Code: "while True: pass"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled block: %v", err)
	}
}

// TestScratchIsRemoved: the folder in which the code can write lives as long as its session.
func TestScratchIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := start(t, python.Config{})
	b.Prints("open('a', 'w').write('x')\nprint('on')", "on\n")
	folders := filepath.Join(os.TempDir(), "perdure-repl-*")
	if found, err := filepath.Glob(folders); err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(folders); err != nil || len(found) != 0 {
		t.Errorf("after the session: %v, %v", found, err)
	}
}

func BenchmarkStart(b *testing.B) {
	var e python.Engine
	for b.Loop() {
		s, err := e.Start(b.Context(), python.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	s := start(b, python.Config{})
	ev, err := s.Exec(b.Context(), engine.Block{Code: "while True: llm_query('a')"})
	for b.Loop() {
		if err != nil || ev.Request == nil {
			b.Fatal(ev, err)
		}
		ev, err = s.Reply(b.Context(), engine.Reply{Value: json.RawMessage(`"b"`)})
	}
}

// Folders of sessions whose program was killed are removed by the next session; those in use
// are not.
func TestStaleScratchIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	running := start(t, python.Config{})
	stale := filepath.Join(os.TempDir(), "perdure-repl-stale")
	if err := os.MkdirAll(filepath.Join(stale, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stale, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, python.Config{}).Prints("print('on')", "on\n")
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a killed program: %v", err)
	}
	running.Prints("open('a', 'w').write('x')\nprint('on')", "on\n")
}

// The parts of a long text: their characters are those of the whole, wherever
// it is divided for reading, and all of it is read about once.
func TestSlices(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("ab\u00fc\u20ac\U0001f600\n", 100_000)
	b := start(t, python.Config{LazyBytes: part,
		Contents: engine.Contents{Text: &engine.File{Name: "a", Bytes: int64(len(whole))}}})
	b.Files = map[string]string{"a": whole}
	b.Prints("n, bad = 0, 0\nfor i in range(0, 600000, 6000):\n    part = context[i:i + 6000]\n"+
		"    n += len(part)\n    if part[:6] != 'ab\u00fc\u20ac\U0001f600\\n' or part[-6:] != part[:6]:\n        bad += 1\n"+
		"print(n, bad)", "600000 0\n")
	if b.Read > len(whole)*5/4 {
		t.Errorf("%d bytes were read for a text of %d", b.Read, len(whole))
	}
	b.Prints("print([context[i:i + 2] for i in [599998, 3, 300001, 0]], len(context))",
		"['\U0001f600\\n', '\u20ac\U0001f600', 'b\u00fc', 'ab'] 600000\n")
}

// Occurrences of a text that overlaps itself are counted as in a text that is held, wherever a
// part ends.
func TestCountOverlapping(t *testing.T) {
	t.Parallel()
	for shift := range 3 {
		whole := strings.Repeat("-", part-3-shift) + "aaaaaaaaa-"
		b := start(t, python.Config{LazyBytes: part,
			Contents: engine.Contents{Text: &engine.File{Name: "a", Bytes: int64(len(whole))}}})
		b.Files = map[string]string{"a": whole}
		b.Prints("print(context.count('aa'), context.count('aaa'), context.count('a'))", "4 3 9\n")
	}
}

// A long text has the lines of a str, also where they end between two of its parts.
func TestLinesOfALongText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", part-1)
	for _, text := range []string{long + "\r\nb\u2028c\vd\u0085e\n\nf\r", long + "\nb\n", long + "yb", long + "x\n\n",
		long + long + long + "zzz\r\nb\r" + long + "\n"} {
		b := start(t, python.Config{LazyBytes: part,
			Contents: engine.Contents{Text: &engine.File{Name: "a", Bytes: int64(len(text))}}})
		b.Files = map[string]string{"a": text}
		b.Prints(fmt.Sprintf(`whole = context[:%d]
for name, args in [("splitlines", []), ("splitlines", [True]), ("split", ["\n"])]:
    print(list(getattr(context, name)(*args)) == getattr(whole, name)(*args))
print(list(context.lines()) == [line for line in whole.split("\n")][:whole.count("\n") + (whole[-1] != "\n")])
`, len(text)), strings.Repeat("True\n", 4))
	}
}

// Names that code binds stay bound, and the reserved ones are restored.
func TestNamesThatCodeBinds(t *testing.T) {
	t.Parallel()
	start(t, python.Config{KeepNames: true}).KeepsNames()
}
