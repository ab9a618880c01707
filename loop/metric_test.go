package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// shop is a Go module: Sub is covered by a test, Todo by one that fails.
func shop(b *bench) {
	b.Helper()
	b.ok(os.RemoveAll(filepath.Join(b.dir, "tests")))
	b.put("go.mod", "module example.com/shop\n\ngo 1.24\n")
	b.put("calc/calc.go", "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n\nfunc Sub(a, b int) int {\n"+
		"\tc := a\n\tc -= b\n\treturn c\n}\n")
	b.put("calc/calc_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n"+
		"\tif Add(1, 2) != 3 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n\n"+
		"func TestSub(t *testing.T) {\n\tif Sub(3, 2) != 1 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n")
	b.put("todo/todo.go", "package todo\n\nfunc Todo() int {\n\treturn 1\n}\n")
	b.put("todo/todo_test.go", "package todo\n\nimport \"testing\"\n\nfunc TestTodo(t *testing.T) {\n"+
		"\tif Todo() != 2 {\n\t\tt.Fatal(\"not yet\")\n\t}\n}\n")
}

const (
	todoDone  = "package todo\n\nfunc Todo() int {\n\treturn 2\n}\n"
	subUnused = "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n" +
		"\t\tt.Fatal(\"no\")\n\t}\n}\n\nfunc TestSub(t *testing.T) {}\n"
)

// goTest is for coverage alone: lost tests would be reported, too.
func goTest(c *config.Config) {
	c.Until, c.Types, c.Lint, c.Detection = "go test ./...", config.Off, config.Off, config.DetectionOff
	c.Env = []string{"GOCACHE"} // clean copies would build Go's library again
}

func (b *bench) metrics(iteration int) *metric.Metrics {
	b.Helper()
	all := b.outcomes()
	if iteration >= len(all) || all[iteration].Metrics == nil {
		b.Fatalf("iteration %d has no metrics", iteration)
	}
	return all[iteration].Metrics
}

// TestCoverageOfTheCheck: a test that is emptied keeps its name and loses its
// coverage. The loss goes to a person, who may accept it.
func TestCoverageOfTheCheck(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		if err := w.write("calc/calc_test.go", subUnused); err != nil {
			return err
		}
		return w.write("todo/todo.go", todoDone)
	})
	shop(b)
	b.launch(func(c *config.Config) {
		c.Until, c.Detection, c.Env = "go test ./...", config.DetectionOff, []string{"GOCACHE"}
	})
	b.work()
	before, now := b.metrics(0), b.metrics(1)
	if before.Coverage == nil || *before.Coverage != 100 || before.TypeErrors == nil || *before.TypeErrors != 0 ||
		*before.LintErrors != 0 || *before.Tests != 3 ||
		*before.Files != 5 || *before.Lines < 40 {
		t.Errorf("baseline: %+v", before)
	}
	if now.Coverage == nil || *now.Coverage >= 70 || now.Loss == nil || now.Loss.Still != 7 || now.Loss.Lost != 4 ||
		now.Loss.Unjudged != "" {
		t.Errorf("now: %+v, %+v", now, now.Loss)
	}
	out := b.outcomes()[1]
	if len(out.Regressions) != 1 || out.Regressions[0].Type != "coverage_regression" ||
		out.Regressions[0].Severity != "critical" ||
		!strings.Contains(out.Regressions[0].Text, "4 of 7 ") ||
		!strings.Contains(out.Regressions[0].Text, "(57.1 %): calc/calc.go 7-10") ||
		out.Regressions[0].Files[0] != "calc/calc.go" || !out.Check.Passed {
		t.Errorf("regressions: %+v", out.Regressions)
	}
	if left := b.read("coverage.out"); left != "" {
		t.Error("coverage was written into the workspace")
	}
	gates, err := b.store.Gates(t.Context(), b.tree.ID)
	if err != nil || len(gates) != 1 || gates[0].Kind != perdure.GateRecovery ||
		!strings.Contains(string(gates[0].Question), "calc/calc.go 7-10") {
		t.Fatalf("gates: %+v, %v", gates, err)
	}
	_, err = b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "approve", By: "me"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
		t.Errorf("%s", show(l))
	}
	b.sound()
}

// TestApprovedCoverage: what a person accepted is what later iterations are
// compared with.
func TestApprovedCoverage(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("calc/calc_test.go", subUnused), write("todo/todo.go", todoDone))
	shop(b)
	b.launch(goTest)
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	_, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "approve", By: "me"})
	b.ok(err)
	if l := b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Fatalf("%s", show(l))
	}
	out := b.outcomes()[2]
	if loss := out.Metrics.Loss; len(out.Regressions) != 0 || loss == nil || loss.Lost != 0 || loss.Still != 3 {
		t.Errorf("%+v, %+v", out.Regressions, loss)
	}
}

// TestCoverageComesBack: a loss that is not grave is named in the next prompt, and
// what was accepted or covered again is not a regression.
func TestCoverageComesBack(t *testing.T) {
	t.Parallel()
	covered := "package calc\n\nimport \"testing\"\n\nfunc TestAll(t *testing.T) {\n\tAdd(Sub(3, 2), 2)\n}\n\n" +
		"func TestAdd(t *testing.T) {}\n\nfunc TestSub(t *testing.T) {}\n"
	b := newBench(t, func(w *turn) error {
		if err := w.write("calc/calc_test.go", subUnused); err != nil {
			return err
		}
		return w.write("todo/todo.go", todoDone)
	}, write("calc/calc_test.go", covered))
	shop(b)
	var many strings.Builder
	for i := range 30 {
		many.WriteString(fmt.Sprintf("\tn = append(n, %d)\n", i))
	}
	b.put("many/many.go", "package many\n\nfunc Many() (n []int) {\n"+many.String()+"\treturn n\n}\n")
	b.put("many/many_test.go", "package many\n\nimport \"testing\"\n\nfunc TestMany(t *testing.T) {\n\tMany()\n}\n")
	b.launch(goTest)
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 2 {
		t.Fatalf("%s, %+v", show(l), b.outcomes())
	}
	out := b.outcomes()
	if g := out[1].Regressions; len(g) != 1 || g[0].Severity != "high" || len(out[2].Regressions) != 0 ||
		out[2].Metrics.Loss.Lost != 0 {
		t.Errorf("regressions: %+v, then %+v", g, out[2].Metrics.Loss)
	}
	if p := b.agent.prompts[1]; !strings.Contains(p, "# Lines that no test covers any more") ||
		!strings.Contains(p, "- calc/calc.go: 7-10") {
		t.Errorf("the prompt: %s", p)
	}
}

// TestCoverageOfFailingPackages: what a failing test may have covered does not
// count, and files that were renamed are followed.
func TestCoverageOfFailingPackages(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		if err := w.write("todo/todo_test.go", "package todo\n\nimport \"testing\"\n\nfunc TestTodo(t *testing.T) {\n"+
			"\tt.Fatal(\"not yet\")\n}\n"); err != nil {
			return err
		}
		return os.Rename(filepath.Join(w.dir, "calc/calc.go"), filepath.Join(w.dir, "calc/sums.go"))
	})
	shop(b)
	b.launch(goTest, func(c *config.Config) { c.MaxIterations = 1 })
	b.work()
	if m := b.metrics(1); m.Loss == nil || m.Loss.Still != 6 || m.Loss.Lost != 0 ||
		!strings.Contains(m.Loss.Unjudged, "left out") {
		t.Errorf("renamed: %+v", m.Loss)
	}
	if g := b.outcomes()[1].Regressions; len(g) != 0 {
		t.Errorf("regressions: %+v", g)
	}
}

// TestCoverageOfMovedFiles: a file that was moved and edited at once is followed,
// one that is gone lost nothing.
func TestCoverageOfMovedFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error {
		text, err := os.ReadFile(filepath.Join(w.dir, "lib.c"))
		if err != nil {
			return err
		}
		if err := w.write("src/lib.c", "new line 1;\nnew line 2;\n"+strings.Replace(string(text), "line 7;", "line seven;",
			1)); err != nil {
			return err
		}
		return errors.Join(w.remove("lib.c"), w.remove("old.c"), w.write("miss", "3\n22\n"), w.write("tests/b", "pass"))
	})
	var text strings.Builder
	for i := range 20 {
		text.WriteString(fmt.Sprintf("this is line %d;\n", i))
	}
	b.put("lib.c", text.String())
	b.put("old.c", "gone;\n")
	b.put("miss", "")
	b.launch(func(c *config.Config) {
		c.MaxIterations = 1
		c.Coverage = `for f in old.c lib.c src/lib.c; do test -e $f || continue; echo "SF:$f"; n=0
while read -r _; do n=$((n+1)); h=1; grep -qx $n miss && h=0; echo "DA:$n,$h"; done < $f; echo end_of_record; done > "$PERDURE_COVERAGE"`
	})
	b.work()
	m := b.metrics(1)
	if m.Loss == nil || m.Loss.Still != 19 || m.Loss.Lost != 2 || len(m.Loss.Files) != 1 ||
		m.Loss.Files[0].File != "src/lib.c" || m.Loss.Files[0].Lines != "3, 22" {
		t.Errorf("%+v", m.Loss)
	}
}

// TestCoverageMustNotDecide: tests that fail only while coverage is taken, and
// programs that do not run with it, do not keep a loop from its end.
func TestCoverageMustNotDecide(t *testing.T) {
	t.Parallel()
	t.Run("test", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, write("notes", "x"))
		shop(b)
		b.put("todo/todo.go", todoDone)
		b.put("calc/mode_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestMode(t *testing.T) {\n"+
			"\tif testing.CoverMode() != \"\" {\n\t\tt.Fatal(\"coverage\")\n\t}\n}\n")
		b.launch(goTest)
		if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
			t.Errorf("%s", show(l))
		}
		if c := b.outcomes()[1].Check; !c.Passed || c.Counts.Flaky != 1 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("program", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, write("todo/todo.go", todoDone))
		shop(b)
		b.put("calc/main_test.go", "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n"+
			"\tif testing.CoverMode() != \"\" {\n\t\tos.Exit(3)\n\t}\n\tm.Run()\n}\n")
		b.launch(goTest)
		if l := b.work(); l.Status != record.Completed || l.Iteration != 1 {
			t.Errorf("%s", show(l))
		}
		for i := range 2 {
			if m := b.metrics(i); m.Coverage != nil || !strings.Contains(m.Missing["coverage"], "fails when coverage is taken") {
				t.Errorf("%d: %+v", i, m)
			}
		}
	})
}

// lcov is a coverage command: of 200 lines in lib.c and 200 in auth/key.c those
// are not covered that miss and auth/miss name.
const lcov = `
awk 'BEGIN { split("lib.c auth/key.c", file); split("miss auth/miss", list)
for (f = 1; f <= 2; f++) { print "SF:" file[f]; while ((getline n < list[f]) > 0) missed[f, n]
for (i = 1; i <= 200; i++) print "DA:" i "," !((f, i) in missed); print "end_of_record" } }' > "$PERDURE_COVERAGE"`

// TestCoverageThresholds: exactly the threshold is not a regression, more is.
func TestCoverageThresholds(t *testing.T) {
	t.Parallel()
	lines := func(from, n int) string {
		var text strings.Builder
		for i := from; i < from+n; i++ {
			text.WriteString(fmt.Sprintln(i))
		}
		return text.String()
	}
	for name, c := range map[string]struct {
		lib, auth int // lines that are lost
		want      string
	}{
		"nothing":         {},
		"two percent":     {lib: 8},
		"more":            {lib: 9, want: "medium"},
		"five":            {lib: 20, want: "high"},
		"twenty":          {lib: 80, want: "critical"},
		"sensitive, half": {auth: 1},
		"sensitive, more": {auth: 2, want: "high"},
		"sensitive, five": {auth: 10, want: "critical"},
		"both":            {lib: 9, auth: 2, want: "high medium"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(w *turn) error {
				if err := w.write("miss", lines(50, c.lib)); err != nil {
					return err
				}
				return w.write("auth/miss", lines(50, c.auth))
			})
			var text strings.Builder
			for i := range 200 {
				text.WriteString(fmt.Sprintf("line %d;\n", i))
			}
			b.put("lib.c", text.String())
			b.put("auth/key.c", text.String())
			b.put("miss", "")
			b.put("auth/miss", "")
			b.put("tests/b", "pass")
			b.launch(func(cfg *config.Config) { cfg.Coverage, cfg.MaxIterations = lcov, 1 })
			b.work()
			out := b.outcomes()[1]
			var got []string
			for _, g := range out.Regressions {
				got = append(got, g.Severity)
				if g.Type != "coverage_regression" {
					t.Errorf("%+v", g)
				}
			}
			if strings.Join(got, " ") != c.want || out.Metrics.Loss.Lost != c.lib+c.auth ||
				out.Metrics.Loss.SensitiveLost != c.auth {
				t.Errorf("%+v, %+v", out.Regressions, out.Metrics)
			}
		})
	}
}

// TestMetricsThatCannotBeTaken are absent, never 0, and say why.
func TestMetricsThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.put("coverage", "mode: set\n")
	b.launch(func(c *config.Config) {
		c.CheckTimeout = 2 * time.Second
		// what the first run wrote does not count for a later one
		c.Coverage = `test -e tests/old || { echo "TN:" > "$PERDURE_COVERAGE"; touch tests/old; exit 0; }; :`
		c.Types, c.Lint = "no-such-checker --all", "while :; do sleep 1; done"
		c.Metrics = []config.Metric{{Name: "word", Command: "echo many"}, {Name: "infinite", Command: "echo Inf"},
			{Name: "fails", Command: "echo 1; exit 3"},
			{Name: "size", Command: "echo about; echo ' 12.5 '; echo noise >&2", Better: config.BetterDown}}
	})
	b.work()
	for i := range 2 {
		m := b.metrics(i)
		for name, want := range map[string]string{"types": "exit status 127", "lint": "stopped after 2s",
			"word": `"many"`, "infinite": `"Inf"`,
			"fails": "exit status 3", "coverage": "the input has no file"} {
			if i == 1 && name == "coverage" {
				want = "wrote no coverage to $PERDURE_COVERAGE"
			}
			if !strings.Contains(m.Missing[name], want) {
				t.Errorf("%d: %s is missing because %q", i, name, m.Missing[name])
			}
		}
		if m.TypeErrors != nil || m.LintErrors != nil || m.Coverage != nil || len(m.Custom) != 1 || m.Custom["size"] != 12.5 {
			t.Errorf("%d: %+v", i, m)
		}
	}
	if parts := b.outcomes()[1].Parts; parts["efficiency"] != 100 || len(parts) != 4 {
		t.Errorf("parts: %v", parts)
	}
}

// TestMetricsOff: nothing is run, and the tests decide alone.
func TestMetricsOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("todo/todo.go", todoDone))
	shop(b)
	b.launch(goTest, func(c *config.Config) { c.Coverage, c.Types, c.Lint = config.Off, config.Off, config.Off })
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s", show(l))
	}
	if m := b.metrics(1); m.Coverage != nil || m.TypeErrors != nil || m.LintErrors != nil || len(m.Missing) != 0 ||
		*m.Files != 5 {
		t.Errorf("%+v", m)
	}
}

// TestFindings: type errors and what the linter says are counted and rated.
func TestFindings(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("found", "a.c:1: error: one\na.c:2: warning: two\na.c:3: error: three\n"),
		write("tests/b", "pass"))
	b.put("found", "a.c:1: error: one\n")
	told := make(map[string]any)
	listen := func(name hook.Name) hook.Registration {
		return hook.Registration{Hook: name, Name: "listen",
			Handler: hook.Func(func(_ context.Context, m hook.Message) (hook.Reply, error) {
				for key, value := range m.Metadata.Inputs {
					told[fmt.Sprintf("%s %d %s", name, m.Metadata.Iteration, key)] = value
				}
				return hook.Reply{}, nil
			})}
	}
	b.restart(loop.EngineConfig{Handlers: []hook.Registration{listen(hook.PreIteration), listen(hook.PostIteration)}})
	b.launch(func(c *config.Config) {
		c.Types, c.Lint = "echo 'a.ts(1,2): error TS1: x'; exit 1; tsc", "cat found; exit 1"
		c.Metrics = []config.Metric{{Name: "up", Command: "wc -l < found", Better: config.BetterUp},
			{Name: "down", Command: "wc -l < found", Better: config.BetterDown}}
	})
	b.work()
	m, out := b.metrics(1), b.outcomes()[1]
	if *m.TypeErrors != 1 || m.TypeScriptErrors == nil || *m.LintErrors != 2 || *m.LintWarnings != 1 ||
		*b.metrics(0).LintErrors != 1 {
		t.Errorf("%+v", m)
	}
	if out.Parts["readability"] != 100-5-2 || out.Parts["efficiency"] != 50 {
		t.Errorf("parts: %v", out.Parts)
	}
	for key, want := range map[string]int{"pre_iteration 1 metrics": 1, "pre_iteration 2 metrics": 2,
		"pre_iteration 2 baseline_metrics": 1,
		"post_iteration 1 current":         2, "post_iteration 1 baseline": 1} {
		if m, ok := told[key].(*metric.Metrics); !ok || *m.LintErrors != want || m.Profile != "" {
			t.Errorf("%s: %+v", key, told[key])
		}
	}
	sum := 30*out.Parts["validation"] + 25*out.Parts["completeness"] + 25*out.Parts["correctness"] + 10*93 + 10*50
	if want := int(math.Round(float64(sum) / 100)); *out.Quality != want {
		t.Errorf("quality %d of %v, not %d", *out.Quality, out.Parts, want)
	}
}

// TestAbortStopsMetrics: neither the check nor a metric is waited for in a loop that
// is to end.
func TestAbortStopsMetrics(t *testing.T) {
	t.Parallel()
	for _, hang := range []string{"check", "metric"} {
		t.Run(hang, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, write("hang", "x"))
			started := filepath.Join(t.TempDir(), "started")
			b.ok(os.WriteFile(started, nil, 0o600))
			wait := "test -e hang && { echo x > " + started + "; while :; do sleep 1; done; }"
			b.launch(func(c *config.Config) {
				if hang == "check" {
					c.Until = wait + "; false"
				} else {
					c.Metrics = []config.Metric{{Name: "slow", Command: wait + "; echo 1"}}
				}
			})
			l := b.workUntil(started)
			if out := b.outcomes(); l.Status != record.Aborted || len(out) != 2 || !out[1].Check.Skipped ||
				out[1].Metrics != nil {
				t.Errorf("%s, %+v", show(l), out)
			}
		})
	}
}

// TestMetricsAfterPlain: a loop that was not watched, and is when it is resumed.
func TestMetricsAfterPlain(t *testing.T) {
	t.Parallel()
	var b *bench
	b = newBench(t, func(w *turn) error { b.ask(record.Pause); return w.write("x", "one\ntwo\n") },
		write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Plain = true })
	if l := b.work(); l.Status != record.Paused || b.outcomes()[1].Metrics != nil {
		t.Fatalf("%s", show(l))
	}
	b.resume(request(`{"plain":false,"lint":"echo; true"}`, ""))
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	if m := b.metrics(2); *m.Files != 3 || *m.Lines != 4 || m.LintErrors == nil {
		t.Errorf("%+v", m)
	}
}
