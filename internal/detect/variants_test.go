package detect_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect"
)

// Ways in which checks and errors get lost among other changes, in all languages, and
// similar changes that lose nothing. Each begins with a name, a path and the patterns
// that block.
func TestVariants(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/forms/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no variants: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n=== ")[1:] {
			head, rest, _ := strings.Cut(part, "\n")
			words := strings.Fields(head)
			old, now, ok := strings.Cut(strings.TrimPrefix(rest, "--- old\n"), "\n--- new\n")
			if !ok || len(words) != 3 {
				t.Fatalf("%s: %q is not a variant", name, head)
			}
			t.Run(filepath.Base(name)+"/"+words[0], func(t *testing.T) {
				t.Parallel()
				checkVariant(t, words[1], words[2], old+"\n", strings.TrimSpace(now)+"\n")
			})
		}
	}
}

func checkVariant(t *testing.T, path, want, old, now string) {
	t.Helper()
	report := find(t, &detect.Input{Changes: edited(path, old, now)})
	var acts []string
	for i := range report.Findings {
		f := &report.Findings[i]
		if (f.Action == detect.Act || detect.OnlyWarns(f.Pattern)) && !slices.Contains(acts, f.Pattern) {
			acts = append(acts, f.Pattern)
		}
	}
	slices.Sort(acts)
	var wanted []string
	if want != "passes" {
		wanted = strings.Split(want, ",")
	}
	if diff := cmp.Diff(wanted, acts); diff != "" {
		list(t, report)
		t.Errorf("what acts differs (-want +got):\n%s", diff)
	}
}
