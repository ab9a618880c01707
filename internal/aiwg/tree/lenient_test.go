package tree_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

var update = flag.Bool("update", false, "write what the imports of testdata give")

// unpack writes an archive as a folder .aiwg and returns what has to come of it.
func unpack(t testing.TB, archive *txtar.Archive) (dir, want string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), ".aiwg")
	for _, f := range archive.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, want
}

// Each archive is imported: the notes, and what is in the store then, are what
// it says. What is exported then is valid and survives a round trip.
func TestLenient(t *testing.T) {
	t.Parallel()
	files := must[[]string](t)(filepath.Glob("testdata/*.txtar"))
	if len(files) < 5 {
		t.Fatalf("%d archives", len(files))
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive := must[*txtar.Archive](t)(txtar.ParseFile(name))
			dir, want := unpack(t, archive)
			before := content(t, dir)
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			report := importFrom(t, s, dir)
			got := written(report) + inStore(t, s)
			if *update {
				for i := range archive.Files {
					if archive.Files[i].Name == "want" {
						archive.Files[i].Data = []byte(got)
					}
				}
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("differs (-want +got); go test ./internal/aiwg/tree -run Lenient -update writes it:\n%s", diff)
			}
			first := exportTo(t, s)
			validAll(t, first)
			again := importFrom(t, s, dir)
			if again.Trees+again.Tasks+again.States+again.Variables+again.Loops+again.Iterations > 0 {
				t.Errorf("the second import brought something: %+v", again)
			}
			if diff := gocmp.Diff(content(t, first), content(t, exportTo(t, s))); diff != "" {
				t.Errorf("the second import changed something:\n%.3000s", diff)
			}
			other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			if r := importFrom(t, other, first); r.Count(aiwgtree.Corrected) > 0 {
				t.Logf("corrected in what was exported: %s", written(r))
			}
			if diff := gocmp.Diff(content(t, first), content(t, exportTo(t, other))); diff != "" {
				t.Errorf("the round trip differs (-first +second):\n%.5000s", diff)
			}
			if r := importFrom(t, s, first); r.Trees+r.Tasks+r.States+r.Variables+r.Loops+r.Iterations > 0 {
				t.Errorf("importing the own export brought something: %+v", r)
			}
			if diff := gocmp.Diff(before, content(t, dir)); diff != "" {
				t.Errorf("the imported folder was changed:\n%s", diff)
			}
		})
	}
}

// written is a report for people.
func written(r *aiwgtree.Report) string {
	var out strings.Builder
	fmt.Fprintf(&out, "trees %d, tasks %d, states %d, variables %d, mutations %d, checkpoints %d, files %d\n", r.Trees,
		r.Tasks, r.States,
		r.Variables, r.Mutations, r.Checkpoints, r.Files)
	if r.Loops > 0 {
		fmt.Fprintf(&out, "loops %d, iterations %d, files %d\n", r.Loops, r.Iterations, r.Documents)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "%s %s:%d:%d %s\n", n.Kind, n.File, n.Line, n.Column, n.Message)
	}
	return out.String()
}

// inStore lists what a store holds, without IDs that were drawn.
func inStore(t testing.TB, s *perdure.Store) string {
	t.Helper()
	ctx := t.Context()
	var out bytes.Buffer
	trees := must[[]perdure.Tree](t)(s.Trees(ctx, perdure.TreeFilter{}))
	slices.SortFunc(trees, func(a, b perdure.Tree) int { return cmp.Compare(a.Root, b.Root) })
	for _, tree := range trees {
		fmt.Fprintf(&out, "tree %s %s\n", tree.Kind, tree.State)
		for _, task := range must[[]perdure.Task](t)(s.Tasks(ctx, perdure.TaskFilter{Tree: tree.ID})) {
			if task.Tree != tree.ID {
				continue
			}
			fmt.Fprintf(&out, "%s%s %s %q -> %q %v %s\n", strings.Repeat("  ", task.Depth+1), task.ID, task.State, task.Prompt,
				task.Result,
				task.Error, task.Metadata)
		}
		for _, info := range must[[]perdure.StateInfo](t)(s.States(ctx, tree.ID)) {
			listState(t, s, &out, info.Ref)
		}
	}
	for _, info := range must[[]perdure.StateInfo](t)(s.States(ctx, "")) {
		listState(t, s, &out, info.Ref)
	}
	return out.String()
}

func listState(t testing.TB, s *perdure.Store, out *bytes.Buffer, ref perdure.StateRef) {
	t.Helper()
	r := must[perdure.StateRecord](t)(s.StateRecord(t.Context(), ref))
	fmt.Fprintf(out, "state %s %s%s %q\n", ref.Scope, ref.Session, ref.Name, r.Foreign)
	for _, v := range r.Versions {
		state := "is"
		if v.Dead != 0 {
			state = "was"
		}
		fmt.Fprintf(out, "  %s %s %s %.60s\n", v.Name, state, v.Type, v.Value)
	}
	for _, m := range r.Mutations {
		fmt.Fprintf(out, "  %s %s %s %q\n", m.Operation, m.Name, m.To, m.Foreign)
	}
	for _, c := range r.Checkpoints {
		fmt.Fprintf(out, "  checkpoint %s %q\n", c.Name, c.Foreign)
	}
}
