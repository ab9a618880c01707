package loop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// varied is a long loop with every kind of event that views show.
func (c scene) varied(n int) loopview.Input {
	c.Helper()
	in := c.long(n)
	for i := range in.Iterations {
		it := &in.Iterations[i]
		if i == 0 || i%100 == 0 {
			continue
		}
		*it = c.iteration(i, 20+(i*37)%70, func(o *state.Outcome) {
			switch {
			case i%41 == 0:
				o.Check.Passed = true
			case i%23 == 0:
				o.Quality = nil
			case i%4 == 0:
				o.Regressions, o.Accepted = []regression.Regression{
					{Type: "assertion_weakening", Severity: "odd", Text: c.Text}}, i%2 == 0
			case i%37 == 0 && i < n-60:
				o.AgentError = "crashed: " + c.Text
			}
			if i%31 == 0 && i < n-60 { // the last error of all is one of these
				o.Retried = []state.TurnError{{At: when(i), Message: "idle: " + c.Text}, {At: when(i), Message: c.Text}}
			}
			if i == n/3 {
				o.CleanCopy = &cleancheck.Verdict{State: cleancheck.Partly, Why: c.Text, Runs: 2, Copied: 7, CopyMS: 8, TookMS: 9,
					Held: map[string]int{"x": 1}}
			}
			if i%90 == 0 {
				o.Warnings = []string{"slow", "slower " + c.Text}
			}
			if i%5 == 0 {
				o.Risky, o.Denied, o.Sight = []policy.Risky{{Tool: "bash"}, {Tool: "edit"}}, 1, agent.SightObserved
			}
			if i > n/2 {
				o.Agent += "2"
			}
			o.Findings = []detect.Finding{{Pattern: "assertions-fewer", File: c.Text, Line: i, Message: "fewer",
				Action: detect.Warn}}
		})
		if i%37 == 0 {
			it.Status = record.IterationFailed
		}
	}
	in.Iterations[n].Status, in.Iterations[n].EndedAt, in.Iterations[n].Quality = record.IterationRunning, nil, nil
	return in
}

// stored is the loop of an input in a store; the input has then no iterations.
func stored(t *testing.T, s *perdure.Store, in loopview.Input) (whole, bare loopview.Input) {
	t.Helper()
	b := record.Beginning{Loop: in.Loop, Iterations: in.Iterations}
	tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: perdure.KindLoop, Name: in.Tree.Name,
		Config: in.Tree.Config, Root: perdure.TaskSpec{Prompt: "Fix it"}, InTx: b.InTx})
	if err != nil {
		t.Fatal(err)
	}
	tree.CreatedAt, tree.CompletedAt = in.Tree.CreatedAt, in.Tree.CompletedAt
	in.Tree, in.Loop.Tree = tree, tree.ID
	bare = in
	bare.Iterations = nil
	return in, bare
}

// What a view reads of a long loop says what all iterations say.
func TestLoad(t *testing.T) {
	t.Parallel()
	const n = 257
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		records := record.New(s)
		for _, selection := range []config.Selection{config.HighestQualityVerified, config.HighestQuality,
			config.MostRecentAboveThreshold} {
			for _, verified := range []bool{false, true} {
				c := scene{t, "Fix the tests"}
				in := c.varied(n)
				in.Loop.Place = fmt.Sprintf(":/project/%s/%v", selection, verified)
				in.Tree.Config = raw(t, &config.Config{Task: c.Text, Until: c.Text, Workspace: "/project", Agent: c.Text,
					Selection: selection, RequireVerification: verified,
					QualityThreshold: 70, MaxIterations: config.MaxIterationsCap})
				whole, bare := stored(t, s, in)
				summary := loopview.New(whole)
				for name, v := range map[string]loopview.View{"persistence.txt": loopview.ViewPersistence,
					"regressions.txt": loopview.ViewRegressions, "quality.txt": loopview.ViewQuality,
					"report.md": loopview.ViewReport, "report.html": loopview.ViewReport, "analytics.json": loopview.ViewReport,
					"overview.txt": loopview.ViewOverview} {
					if (verified || selection != config.HighestQualityVerified) && v != loopview.ViewPersistence {
						continue // what differs is the best one
					}
					part := bare
					if err := part.Load(t.Context(), records, v, false); err != nil {
						t.Fatal(err)
					}
					want := written(t, func(w io.Writer) error { return views()[name](summary, w) })
					got := written(t, func(w io.Writer) error { return views()[name](loopview.New(part), w) })
					if name == "overview.txt" {
						want, got = withoutWarnings(want), withoutWarnings(got)
					}
					if name == "regressions.txt" &&
						(!strings.Contains(want, "are left out") ||
							!strings.Contains(want, fmt.Sprintf("Warnings of iteration %d", n-1))) {
						t.Errorf("nothing is left out of, or there is no warning in %s", want)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s, selection %s, verified %v: -of all iterations +as loaded\n%s", name, selection, verified, diff)
					}
				}
				row := bare
				if err := row.Load(t.Context(), records, loopview.ViewRow, false); err != nil {
					t.Fatal(err)
				}
				if want, got := summary.Row(), loopview.New(row).Row(); want.BestQuality == nil ||
					cmp.Diff(want, got) != "" {
					t.Errorf("row, selection %s, verified %v: %s", selection, verified, cmp.Diff(want, got))
				}
				if selection == config.HighestQualityVerified {
					wantDocument(t, records, whole, bare)
				}
			}
		}
	})
}

// withoutWarnings removes the warnings, which are of the last iterations only.
func withoutWarnings(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  Warning ") {
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}

// wantDocument compares a document of the last iterations with the one of all.
func wantDocument(t *testing.T, records *record.Records, whole, bare loopview.Input) {
	t.Helper()
	document := func(in loopview.Input) (d map[string]json.RawMessage) {
		if err := json.Unmarshal(raw(t, loopview.Document(in)), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	part, full := bare, bare
	for in, all := range map[*loopview.Input]bool{&part: false, &full: true} {
		if err := in.Load(t.Context(), records, loopview.ViewDocument, all); err != nil {
			t.Fatal(err)
		}
	}
	want, got := document(whole), document(part)
	if got := document(full); !maps.EqualFunc(want, got, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Errorf("the full document: -of all iterations +as loaded\n%s", cmp.Diff(want, got))
	}
	omitted := whole.Loop.Iteration - loopview.DocumentIterations
	if string(got["omitted_iterations"]) != fmt.Sprint(omitted) {
		t.Errorf("omitted are %s, want %d", got["omitted_iterations"], omitted)
	}
	for name := range got {
		switch name {
		case "omitted_iterations":
		case "progress":
			var was, is struct {
				Checks json.RawMessage `json:"completion_checks"`
			}
			if err := json.Unmarshal(want[name], &was); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(got[name], &is); err != nil {
				t.Fatal(err)
			}
			wantLast(t, name, was.Checks, is.Checks, omitted)
		case "iteration_history", "regression_events", "recovery_history", "error_history", "risky_actions":
			wantLast(t, name, want[name], got[name], omitted)
		default:
			if diff := cmp.Diff(string(want[name]), string(got[name])); diff != "" {
				t.Errorf("%s: -of all iterations +as loaded\n%s", name, diff)
			}
		}
	}
}

// wantLast compares a list with the entries of another one that are of later
// iterations, or of the baseline.
func wantLast(t *testing.T, name string, whole, part json.RawMessage, omitted int) {
	t.Helper()
	var all, got, want []map[string]any
	if err := json.Unmarshal(whole, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(part, &got); err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		if n := int(entry["iteration"].(float64)); n == 0 || n > omitted {
			want = append(want, entry)
		}
	}
	if len(want)+len(got) > 0 && !reflect.DeepEqual(want, got) {
		t.Errorf("%s: -of all iterations +as loaded\n%s", name, cmp.Diff(want, got))
	}
}

// Of a loop of few iterations, and with full, all are read.
func TestLoadWhole(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	records := record.New(s)
	c := scene{t, "Fix the tests"}
	small, smallBare := stored(t, s, c.input())
	for v := loopview.ViewRow; v <= loopview.ViewDocument; v++ {
		part := smallBare
		if err := part.Load(t.Context(), records, v, false); err != nil || part.History != nil ||
			len(part.Iterations) != len(small.Iterations) {
			t.Errorf("view %d of a small loop: %d iterations, %+v, %v", v, len(part.Iterations), part.History, err)
		}
	}
	long := c.varied(120)
	long.Loop.Place = ":/long"
	whole, bare := stored(t, s, long)
	all := loopview.Style{All: true}
	for v, write := range map[loopview.View]view{
		loopview.ViewQuality:     func(s *loopview.Summary, w io.Writer) error { return s.Quality(w, all) },
		loopview.ViewRegressions: func(s *loopview.Summary, w io.Writer) error { return s.Regressions(w, all) },
	} {
		part := bare
		if err := part.Load(t.Context(), records, v, true); err != nil {
			t.Fatal(err)
		}
		want := written(t, func(w io.Writer) error { return write(loopview.New(whole), w) })
		if diff := cmp.Diff(want, written(t, func(w io.Writer) error { return write(loopview.New(part), w) })); diff != "" {
			t.Errorf("view %d: -of all iterations +as loaded\n%s", v, diff)
		}
		if strings.Contains(want, "left out") || strings.Contains(want, "Iterations 1 to") ||
			!strings.Contains(want, "Iteration 32") && !strings.Contains(want, "Iteration  32") {
			t.Errorf("view %d does not show all:\n%s", v, want)
		}
	}
}
