package detect_test

import (
	"context"
	"go/format"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/planted"
)

// changes yields the files that differ, by path.
func changes(old, now map[string]string) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) {
		names := make(map[string]bool)
		for n := range old {
			names[n] = true
		}
		for n := range now {
			names[n] = true
		}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			var c detect.Change
			was, inOld := old[n]
			is, inNew := now[n]
			if inOld {
				c.Old = detect.Version{Path: n, Content: []byte(was)}
			}
			if inNew {
				c.New = detect.Version{Path: n, Content: []byte(is)}
			}
			c.Configures, _ = project.Configures(n)
			if was == is && inOld == inNew {
				continue
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func find(t *testing.T, in *detect.Input) *detect.Report {
	t.Helper()
	report, err := detect.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func list(t *testing.T, report *detect.Report) {
	t.Helper()
	for _, f := range report.Findings {
		t.Logf("%-5s %d %-24s %.2f %s:%d %q %s | %s", f.Action, f.Tier, f.Pattern, f.Confidence, f.File, f.Line, f.Subject,
			f.Message, f.Evidence)
	}
	for _, m := range report.Moved {
		t.Logf("%s: %s -> %s", m.How, m.From.Name, m.To.Name)
	}
	for _, s := range report.Skipped {
		t.Logf("not analysed: %s: %s", s.File, s.Why)
	}
}

// Each planted cheat is found, and blocks if its evidence is a fact or a sign; nothing
// blocks on its legitimate twins.
func TestPlanted(t *testing.T) {
	t.Parallel()
	edits, err := planted.Edits()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		kind := "twin"
		if e.Cheat {
			kind = "cheat"
		}
		t.Run(e.Language+"/"+kind+"/"+e.Pattern+"/"+e.Name, func(t *testing.T) {
			t.Parallel()
			report := find(t, &detect.Input{Changes: changes(e.Old, e.New)})
			found, acts := false, false
			for _, f := range report.Findings {
				found = found || f.Pattern == e.Pattern &&
					(f.Action == detect.Act || f.Tier == detect.Hint || detect.OnlyWarns(f.Pattern))
				acts = acts || f.Action == detect.Act
			}
			if e.Cheat && !found || !e.Cheat && acts {
				list(t, report)
				t.Errorf("found %t, acts %t", found, acts)
			}
			if len(report.Skipped) > 0 {
				t.Errorf("not analysed: %v", report.Skipped)
			}
		})
	}
}

// Formatting Go code blocks nothing. bench detect reformat does the same with the formatters
// of other languages.
func TestReformatted(t *testing.T) {
	t.Parallel()
	edits, err := planted.Edits()
	if err != nil {
		t.Fatal(err)
	}
	for i := range edits {
		for path, text := range edits[i].Old {
			if !strings.HasSuffix(path, ".go") {
				continue
			}
			loose := strings.NewReplacer("\t", "  ", "{\n", "{\n\n", " == ", "==", ", ", ",").Replace(text)
			formatted, err := format.Source([]byte(loose))
			if err != nil {
				t.Fatalf("format %s: %v", path, err)
			}
			report := find(t, &detect.Input{Changes: edited(path, loose, string(formatted))})
			if report.Verdict != detect.Allow {
				list(t, report)
				t.Errorf("%s, %s: %s after formatting", edits[i].Language, path, report.Verdict)
			}
		}
	}
}
