package metric_test

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/process/guard"
)

func TestMain(m *testing.M) {
	guard.Enter()
	goleak.VerifyTestMain(m)
}

// alternating is a script that prints each line on the other stream than the line before.
const alternating = `i=0; while [ $i -lt 3000 ]; do echo "suite $i" >&2; echo "test $i"; i=$((i+1)); done`

// Lines of a command whose results are read from both streams keep their order: cargo prints
// the name of a suite to standard error, and its tests to standard output.
func TestOrderOfStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]project.Command{
		"results on both streams": {Results: []project.Result{{Format: project.FormatCargo, Stream: project.Both}}},
		"unknown command":         {Weak: "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Script, c.Dir = alternating, "."
			ran := run(t, &c)
			lines := bufio.NewScanner(rewound(t, ran.Both))
			for i := range 3000 {
				for _, what := range []string{"suite", "test"} {
					if want := fmt.Sprintf("%s %d", what, i); !lines.Scan() || lines.Text() != want {
						t.Fatalf("line %q, want %q", lines.Text(), want)
					}
				}
			}
		})
	}
}

// Standard output is apart for a command whose results it contains, or that has none.
func TestStreamsApart(t *testing.T) {
	t.Parallel()
	stdout := project.Result{Format: project.FormatGo, Stream: project.Stdout}
	for name, results := range map[string][]project.Result{
		"results on standard output": {stdout},
		"results on each":            {stdout, {Format: project.FormatCargo, Stream: project.Both}},
		"no results":                 nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := run(t, &project.Command{Script: "echo a; echo b >&2", Dir: ".", Results: results})
			text, err := io.ReadAll(rewound(t, ran.Stdout))
			if err != nil || string(text) != "a\n" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

func run(t *testing.T, c *project.Command) *metric.Ran {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	r := metric.Runner{Root: t.TempDir(), Scratch: t.TempDir()}
	ran, err := r.Run(t.Context(), c, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ran.Close)
	return ran
}

func rewound(t *testing.T, f io.ReadSeeker) io.Reader {
	t.Helper()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return f
}
