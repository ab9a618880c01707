package trial_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/verify/trial"
	"github.com/perdure/perdure/internal/workspace"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	os.Exit(m.Run())
}

// language is a project before and after an iteration, which also added the tests.
type language struct {
	check  string
	runner string // a program without which the test is skipped
	before map[string]string
	after  map[string]string
	// tests is the file of the tests, head what it begins with, and test how a test is written.
	tests, head, test string
	// empty are the bodies of tests that notice nothing, real those of honest ones.
	empty, real []string
}

func languages() map[string]language {
	script := language{check: "node --test", runner: "node", tests: "test/price.test.js",
		before: map[string]string{"package.json": `{"type":"module"}`,
			"src/price.js": `export function total(items) {
  return 0;
}
`},
		after: map[string]string{"src/price.js": `export function total(items) {
  let sum = 0;
  for (const i of items) {
    if (i.count > 0) {
      sum += i.price * i.count;
    }
  }
  return sum;
}
`},
		head: `import test from 'node:test';
import assert from 'node:assert/strict';
import { total } from '../src/price.js';
const items = [{ price: 2, count: 3 }, { price: 9, count: 0 }];
`,
		test: `test('%s', async () => {
  %s
});
`,
		empty: []string{"total(items);", "total(items); assert.ok(true);",
			"const t = total(items); assert.equal(t, t);",
			"try { assert.equal(total(items), -1); } catch {}", "Promise.resolve(total(items)).then(t => t === 6);",
			"const check = () => assert.equal(total(items), 6);",
			"if (total(items) === 6) assert.ok(total(items) === 6);"},
		real: []string{"assert.equal(total(items), 6);", "assert.ok(total(items) > 5);",
			"assert.equal(total([items[0]]), 6); assert.equal(total([]), 0);"}}
	types := script
	types.check, types.tests = "node --experimental-strip-types --test test/price.test.ts", "test/price.test.ts"
	types.before = map[string]string{"package.json": `{"type":"module"}`,
		"src/price.ts": `export function total(items: { price: number, count: number }[]): number {
  return 0;
}
`}
	types.after = map[string]string{"src/price.ts": `export function total(items: { price: number, count: number }[]): number {
  return items.filter(i => i.count > 0).map(i => i.price * i.count).reduce((a, b) => a + b, 0);
}
`}
	types.head = strings.ReplaceAll(script.head, "price.js", "price.ts")
	return map[string]language{"JavaScript": script, "TypeScript": types,
		"Python": {check: "pytest", runner: "pytest", tests: "test_price.py",
			before: map[string]string{"price.py": `def total(items):
    return 0
`},
			after: map[string]string{"price.py": `def total(items):
    result = 0
    for price, count in items:
        if count > 0:
            result += price * count
    return result
`},
			head: `import pytest
from price import total

ITEMS = [(2, 3), (9, 0)]
`, test: `

def test_%s():
    %s
`,
			empty: []string{"total(ITEMS)", "assert total(ITEMS) or True", "t = total(ITEMS)\n    assert t == t",
				`try:
        assert total(ITEMS) == -1
    except AssertionError:
        pass`,
				"def check():\n        assert total(ITEMS) == 6", "print(total(ITEMS) == 6)"},
			real: []string{"assert total(ITEMS) == 6", "assert total(ITEMS[:1]) == 6 and total([]) == 0",
				"assert [total([i]) for i in ITEMS] == [6, 0]"}},
		"Go": {check: "go test ./...", runner: "go", tests: "price_test.go",
			before: map[string]string{"go.mod": `module price

go 1.21
`,
				"price.go": `package price

type Item struct{ Price, Count int }

func Total(items []Item) int {
	return 0
}
`},
			after: map[string]string{"price.go": `package price

type Item struct{ Price, Count int }

func Total(items []Item) int {
	sum := 0
	for _, i := range items {
		if i.Count > 0 {
			sum += i.Price * i.Count
		}
	}
	return sum
}
`},
			head: `package price

import "testing"

var items = []Item{{2, 3}, {9, 0}}
`,
			test: `
func Test_%s(t *testing.T) {
	%s
}
`,
			empty: []string{"Total(items)", `if got := Total(items); got != got {
		t.Fatal(got)
	}`, "t.Log(Total(items) == 6)",
				`defer func() { _ = recover() }()
	if Total(items) != 6 {
		panic("wrong")
	}`,
				`_ = func() {
		if Total(items) != 6 {
			t.Fatal()
		}
	}`},
			real: []string{`if got := Total(items); got != 6 {
		t.Errorf("got %d", got)
	}`,
				`t.Run("one", func(t *testing.T) {
		if Total(items[:1]) != 6 {
			t.Error("wrong")
		}
	})`}}}
}

// Tests that assert nothing survive the mutations of the lines that came with them; honest ones do
// not.
func TestNewTestsHaveToNotice(t *testing.T) {
	for name, lang := range languages() {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(lang.runner); err != nil {
				t.Skipf("needs %s", lang.runner)
			}
			b := begin(t, &lang)
			trials := b.try(time.Hour)
			for _, got := range trials {
				id := got.Test[strings.LastIndexByte(got.Test, ':')+1:]
				want := trial.Killed
				if strings.Contains(id, "empty") {
					want = trial.Survived
				}
				if got.Result != want || got.File != lang.tests || got.Mutation == nil {
					t.Errorf("%s is %s in %q (%s) with %+v after %d, want %s", id, got.Result, got.File, got.Why,
						got.Mutation, got.Tried, want)
				}
			}
			if subtests := strings.Count(strings.Join(lang.real, ""), "t.Run"); len(trials) !=
				len(lang.empty)+len(lang.real)+subtests {
				t.Errorf("%d tests were tried, want %d", len(trials), len(lang.empty)+len(lang.real)+subtests)
			}
			if left := b.differences(); len(left) > 0 {
				t.Errorf("the workspace changed: %v", left)
			}
		})
	}
}

// Without time, or without a line that can be mutated, nothing is said about a test.
func TestTrialsThatEndEarly(t *testing.T) {
	lang := languages()["JavaScript"]
	lang.empty, lang.real = lang.empty[:1], lang.real[:1]
	b := begin(t, &lang)
	b.expect(b.try(1), "no time was left")
	lang.before, lang.after = map[string]string{"package.json": lang.before["package.json"],
		"src/price.js": lang.after["src/price.js"]}, nil
	b = begin(t, &lang)
	b.expect(b.try(time.Hour), "no line of code changed that can be mutated")
}

// bench is an iteration in a workspace.
type bench struct {
	*testing.T
	files   *workspace.Workspace
	lang    *language
	between evidence.Between
	report  *testreport.Report
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) put(files map[string]string) {
	for name, text := range files {
		name = filepath.Join(b.files.Root(), name)
		b.ok(os.MkdirAll(filepath.Dir(name), 0o700))
		b.ok(os.WriteFile(name, []byte(text), 0o600))
	}
}

// begin makes the iteration and runs its check.
func begin(t *testing.T, lang *language) *bench {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := workspace.Open(workspace.Config{Root: filepath.Join(dir, "work"), Dir: filepath.Join(dir, "store")})
	b := &bench{T: t, files: files, lang: lang}
	b.ok(err)
	b.put(lang.before)
	b.between.From = b.snapshot()
	text := lang.head
	for i, body := range lang.empty {
		text += fmt.Sprintf(lang.test, fmt.Sprintf("empty_%d", i), body)
	}
	for i, body := range lang.real {
		text += fmt.Sprintf(lang.test, fmt.Sprintf("real_%d", i), body)
	}
	b.put(lang.after)
	b.put(map[string]string{lang.tests: text})
	b.between.To = b.snapshot()
	b.between.Changes, err = files.Diff(t.Context(), b.between.From, b.between.To)
	b.ok(err)
	b.report, err = b.run(t.Context(), &metric.Runner{Root: files.Root(), Scratch: t.TempDir(),
		Env: environ.Base(os.Environ(), nil)}, nil, time.Hour)
	b.ok(err)
	if b.report == nil || len(b.report.Failing()) > 0 || len(b.report.Tests) == 0 {
		if lang.tests == "test/price.test.ts" {
			t.Skip("needs a node that runs TypeScript")
		}
		t.Fatalf("the tests do not pass: %+v", b.report)
	}
	return b
}

func (b *bench) snapshot() workspace.ID {
	id, _, err := b.files.Snapshot(b.Context())
	b.ok(err)
	return id
}

// differences returns the files that differ from the end of the iteration.
func (b *bench) differences() []workspace.Change {
	changes, err := b.files.DiffNow(b.Context(), b.between.To)
	b.ok(err)
	return changes
}

// run runs some tests of the check, or all.
func (b *bench) run(ctx context.Context, in *metric.Runner, tests []testreport.Test, limit time.Duration) (
	*testreport.Report, error) {
	command := project.Measure(b.lang.check, project.Config{Files: os.DirFS(in.Root), Scratch: in.Scratch,
		Installed: func(name string) bool { _, err := exec.LookPath(name); return err == nil }})
	if again, ok := command.Again(tests); ok {
		command = again
	}
	if err := command.Clear(in.Root); err != nil {
		return nil, err
	}
	ran, err := in.Run(ctx, &command, limit)
	if err != nil {
		return nil, err
	}
	defer ran.Close()
	found, err := command.Collect(in.Root, ran.Began)
	if err != nil {
		return nil, err
	}
	return ran.Results(in.Root, &command, found)
}

// try tries the new tests in a copy, as a loop does.
func (b *bench) try(budget time.Duration) []trial.Trial {
	cache, err := os.UserCacheDir()
	b.ok(err)
	env := append(environ.Base(os.Environ(), nil), "GOCACHE="+filepath.Join(cache, "go-build"),
		"GOMODCACHE="+b.TempDir())
	trials, err := trial.Do(b.Context(), &trial.Config{Files: b.files, Between: &b.between, Report: b.report,
		Budget: budget,
		Copy: func(ctx context.Context) (*cleancheck.Place, error) {
			return cleancheck.Copy(ctx, cleancheck.Config{Files: b.files, Temp: b.TempDir(), Env: env,
				Pass: []string{"GOCACHE"}}, b.between.To)
		},
		Run: func(ctx context.Context, at *cleancheck.Place, tests []testreport.Test, limit time.Duration) (
			*testreport.Report, error) {
			return b.run(ctx, &metric.Runner{Root: at.Root, Scratch: at.Scratch, Env: at.Env, Hold: []*os.File{at.Hold},
				Sandbox: at.Sandbox}, tests, limit)
		}})
	b.ok(err)
	return trials
}

// expect compares trials that found out nothing.
func (b *bench) expect(trials []trial.Trial, why string) {
	b.Helper()
	for _, got := range trials {
		if got.Result != trial.Undetermined || got.Why != why || got.Mutation != nil {
			b.Errorf("%+v, want undetermined because %q", got, why)
		}
	}
	if len(trials) != 2 {
		b.Errorf("%d trials, want 2", len(trials))
	}
}
