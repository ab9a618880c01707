package loop_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

func written(t testing.TB, write func(w io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type view func(s *loop.Summary, w io.Writer) error

// views are all that a summary writes.
func views() map[string]view {
	return map[string]view{
		"overview.txt":    func(s *loop.Summary, w io.Writer) error { return s.Overview(w, loop.Style{}) },
		"persistence.txt": func(s *loop.Summary, w io.Writer) error { return s.Persistence(w, loop.Style{}) },
		"regressions.txt": func(s *loop.Summary, w io.Writer) error { return s.Regressions(w, loop.Style{}) },
		"quality.txt":     func(s *loop.Summary, w io.Writer) error { return s.Quality(w, loop.Style{}) },
		"report.md":       func(s *loop.Summary, w io.Writer) error { return s.Report(w, "md") },
		"report.html":     func(s *loop.Summary, w io.Writer) error { return s.Report(w, "html") },
		"analytics.json": func(s *loop.Summary, w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(s.Analytics())
		},
		"list.txt": func(s *loop.Summary, w io.Writer) error {
			return loop.List(w, loop.Style{}, []loop.Row{s.Row()}, time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC))
		},
	}
}

// inputs are the loops of the golden files.
func inputs(c scene) map[string]loop.Input {
	crashed := c.input()
	crashed.Crashed = true
	return map[string]loop.Input{"running": c.input(), "asking": c.asking(), "done": c.done(), "crashed": crashed,
		"long": c.long(500)}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, in := range inputs(scene{t, "Fix the tests"}) {
		for ending, write := range views() {
			if name == "crashed" && ending != "overview.txt" || name == "long" && ending == "analytics.json" {
				continue
			}
			t.Run(name+"."+ending, func(t *testing.T) {
				t.Parallel()
				golden(t, name+"."+ending, written(t, func(w io.Writer) error { return write(loop.New(in), w) }))
			})
		}
	}
}

// The callbacks style, and change no letter.
func TestStyle(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.asking()
	plain := written(t, func(w io.Writer) error { return loop.New(in).Overview(w, loop.Style{}) })
	around := func(before, after string) func(string) string {
		return func(text string) string { return before + text + after }
	}
	styled := written(t, func(w io.Writer) error {
		return loop.New(in).Overview(w, loop.Style{Bold: around("\x01", "\x02"), Dim: around("\x03", "\x04")})
	})
	if bare := strings.NewReplacer("\x01", "", "\x02", "", "\x03", "", "\x04", "").Replace(styled); bare != plain {
		t.Errorf("styled:\n%s\nplain:\n%s", bare, plain)
	}
	if !strings.Contains(styled, "\x01fix-tests-a1b2c3d4\x02") || !strings.Contains(styled, "\x03") {
		t.Errorf("nothing is styled: %q", styled)
	}
}

// A summary that is given pages is the one that is given all at once.
func TestPages(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.long(250)
	for name, write := range views() {
		want := written(t, func(w io.Writer) error { return write(loop.New(in), w) })
		paged := in
		paged.Iterations = nil
		s := loop.New(paged)
		for from := 0; from < len(in.Iterations); from += 100 {
			s.Add(in.Iterations[from:min(from+100, len(in.Iterations))])
		}
		if !s.Whole() {
			t.Fatal("not whole")
		}
		if diff := cmp.Diff(want, written(t, func(w io.Writer) error { return write(s, w) })); diff != "" {
			t.Errorf("%s (-at once +in pages):\n%s", name, diff)
		}
	}
	paged := in
	paged.Iterations = in.Iterations[:7]
	d := loop.NewDraft(paged)
	d.Add(in.Iterations[7:100])
	d.Add(in.Iterations[100:])
	if diff := cmp.Diff(string(raw(t, loop.Document(in))), string(raw(t, d.State()))); diff != "" {
		t.Errorf("document (-at once +in pages):\n%s", diff)
	}
	if !d.Summary().Whole() {
		t.Error("the summary of a draft is not whole")
	}
}

// The baseline and the last iterations are enough for the overview; what would
// need all others is said of those that were looked at.
func TestOverviewOfTheLast(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.long(250)
	in.Iterations = append(in.Iterations[:1:1], in.Iterations[len(in.Iterations)-loop.OverviewIterations:]...)
	s := loop.New(in)
	got := written(t, func(w io.Writer) error { return s.Overview(w, loop.Style{}) })
	for _, want := range []string{"iteration 250 of 10000", "best of the last 30", "pkg/TestB", "last 30%"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if s.Whole() || s.Row().BestQuality != nil {
		t.Error("the best of all is told")
	}
	if q := written(t, func(w io.Writer) error { return s.Quality(w, loop.Style{}) }); strings.Contains(q, "BEST") ||
		!strings.Contains(q, "Not all") {
		t.Errorf("quality:\n%s", q)
	}
}

// A loop that has done nothing yet, or whose records cannot be read, is shown too.
func TestNothingThere(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.input()
	fresh, damaged := in, in
	fresh.Iterations, fresh.Gates, fresh.Loop.Iteration, fresh.Loop.Step, fresh.Loop.State = nil, nil, 0, "begin",
		json.RawMessage("{}")
	damaged.Tree.Config, damaged.Loop.State = json.RawMessage("[]"), json.RawMessage("7")
	damaged.Iterations, damaged.Gates = append(in.Iterations[:0:0], in.Iterations...), append(in.Gates[:0:0], in.Gates...)
	for i := range damaged.Iterations {
		damaged.Iterations[i].Data = json.RawMessage(`{"iteration":"x"}`)
	}
	damaged.Gates[0].Question = json.RawMessage("[")
	for _, in := range []loop.Input{fresh, damaged, {}} {
		for name, write := range views() {
			got := written(t, func(w io.Writer) error { return write(loop.New(in), w) })
			if got == "" || strings.Contains(got, "NaN") || strings.Contains(got, "%!") {
				t.Errorf("%s:\n%s", name, got)
			}
		}
		if in.Tree.ID != "" {
			valid(t, "loop-state", loop.Document(in))
		}
	}
}

// The views of the longest loop are not longer than people can read.
func TestLongest(t *testing.T) {
	t.Parallel()
	s := loop.New(scene{t, "Fix the tests"}.long(config.MaxIterationsCap))
	for name, write := range views() {
		most := map[string]int{"report.html": 500_000, "report.md": 120_000, "analytics.json": 100_000_000}[name]
		if most == 0 {
			most = 30_000
		}
		got := written(t, func(w io.Writer) error { return write(s, w) })
		if len(got) > most {
			t.Errorf("%s has %d bytes", name, len(got))
		}
		if strings.HasPrefix(name, "report.") && !strings.Contains(got, "The first 9,900 iterations are left out") {
			t.Errorf("%s does not say that iterations are left out", name)
		}
	}
}
