package loops_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/schematest"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

var update = flag.Bool("update", false, "write what the imports of testdata give")

// must fails the test for an error of what is only a preparation.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// foreignPack packs as another program does: with a time and a name.
func foreignPack(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Name, z.ModTime = "some.json", time.Unix(1770066000, 0)
	_ = must[int](t)(z.Write(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// folder writes files as a folder .aiwg; names that end in .gz are packed unless
// they are already.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".aiwg")
	for name, text := range files {
		raw := []byte(text)
		if strings.HasSuffix(name, ".gz") && !strings.HasPrefix(text, "\x1f\x8b") {
			raw = foreignPack(t, raw)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func archive(t testing.TB, name string) (files map[string]string, want string) {
	t.Helper()
	files = make(map[string]string)
	for _, f := range must[*txtar.Archive](t)(txtar.ParseFile(filepath.Join("testdata", name+".txtar"))).Files {
		if f.Name == "want" {
			want = string(f.Data)
		} else {
			files[f.Name] = string(f.Data)
		}
	}
	return files, want
}

func importFrom(t testing.TB, s *perdure.Store, path string) *aiwgtree.Report {
	t.Helper()
	r := must[*aiwgtree.Report](t)(aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: path}))
	if err := statetest.Sound(t.Context(), s); err != nil {
		t.Error(err)
	}
	return r
}

func exportTo(t testing.TB, s *perdure.Store, trees ...perdure.TreeID) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	must[*aiwgtree.ExportReport](t)(aiwgtree.Export(t.Context(), s, aiwgtree.ExportConfig{Dir: dir, Trees: trees}))
	return dir
}

// content reads a folder: names and bytes.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// same compares two folders.
func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	for name, text := range want {
		if other, there := got[name]; !there || other != text {
			t.Errorf("%s: %s differs (%d bytes, there %v with %d):\n%.2000s", what, name, len(text), there, len(other),
				cmp.Diff(text, other))
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s: %s is more", what, name)
		}
	}
}

// validators hold files of loops against their schemas.
type validators struct{ state, extension, checkpoint, analytics, hooks *schematest.Schema }

func allSchemas(t testing.TB) *validators {
	t.Helper()
	schema := func(name string) *schematest.Schema { return schematest.Published(t, name) }
	return &validators{schema("loop-state"), schema("persistence-extension"), schema("loop-checkpoint"),
		schema("iteration-analytics"), schema("persistence-hooks")}
}

func (v *validators) check(t testing.TB, s *schematest.Schema, name, text string) {
	t.Helper()
	if err := s.ValidateJSON([]byte(text)); err != nil {
		t.Errorf("%s is not valid: %v\n%.1000s", name, err, text)
	}
}

// all holds every file of a layout against its schema.
func (v *validators) all(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		switch base := filepath.Base(name); {
		case !strings.HasPrefix(name, "ralph/loops/"):
		case base == "state.json":
			v.check(t, v.state, name, text)
		case base == "analytics.json":
			v.check(t, v.analytics, name, text)
		case strings.Contains(name, "/iterations/"):
			v.check(t, v.extension, name, `{"iteration_history":[`+text+`]}`)
		case strings.Contains(name, "/checkpoints/"):
			v.check(t, v.checkpoint, name, unpacked(t, text))
		case base == "hook-log.jsonl":
			for line := range strings.Lines(text) {
				v.check(t, v.hooks, name, line)
			}
		case base != "report.md":
			t.Errorf("a file that nobody knows: %s", name)
		}
	}
}

func unpacked(t testing.TB, text string) string {
	t.Helper()
	z := must[*gzip.Reader](t)(gzip.NewReader(strings.NewReader(text)))
	var out bytes.Buffer
	_ = must[int64](t)(out.ReadFrom(z))
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("a packed file has the name %q and the time %v", z.Name, z.ModTime)
	}
	return out.String()
}

// written returns the report of an import and the loops of the store.
func written(t testing.TB, s *perdure.Store, r *aiwgtree.Report) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "loops %d, iterations %d, files %d\n", r.Loops, r.Iterations, r.Documents)
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "%s %s:%d:%d %s\n", n.Kind, n.File, n.Line, n.Column, n.Message)
	}
	for _, n := range r.Settings {
		fmt.Fprintf(&out, "setting %s:%d %s = %s %s\n", n.File, n.Line, n.Name, n.Value, n.Problem)
	}
	trees := must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{}))
	slices.SortFunc(trees, func(a, b perdure.Tree) int { return strings.Compare(a.Name, b.Name) })
	for _, tree := range trees {
		fmt.Fprintf(&out, "tree %s %s %s\n", tree.Name, tree.Kind, tree.State)
		for _, task := range must[[]perdure.Task](t)(s.Tasks(t.Context(), perdure.TaskFilter{Tree: tree.ID, Limit: 1000})) {
			if tree.Name == "aiwg.yml" {
				task.CreatedAt, task.Result = time.Unix(0, 0).UTC(), fmt.Sprintf("%d bytes", len(task.Result))
			}
			fmt.Fprintf(&out, "%s%s %q %s %q %v $%v %v\n", strings.Repeat("  ", task.Depth+1), task.State, task.Prompt,
				task.CreatedAt.Format(time.RFC3339), task.Result, task.Error,
				task.Usage.CostUSD, task.Active)
			if task.Output != "" {
				fmt.Fprintf(&out, "    says %q\n", task.Output)
			}
		}
	}
	return out.String()
}

func total(r *aiwgtree.Report) int {
	return r.Trees + r.Tasks + r.States + r.Variables + r.Loops + r.Iterations
}

// Each archive is imported: the notes, and what is in the store then, are what
// it says. What is exported then is what it says too, is valid and survives a
// round trip.
func TestArchives(t *testing.T) {
	t.Parallel()
	valid := allSchemas(t)
	for _, name := range []string{"seed", "plain", "odd"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, want := archive(t, name)
			dir := folder(t, files)
			before := content(t, dir)
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			got := written(t, s, importFrom(t, s, dir))
			first := exportTo(t, s)
			exported := content(t, first)
			valid.all(t, exported)
			for _, file := range slices.Sorted(mapsKeys(exported)) {
				text := exported[file]
				if strings.HasSuffix(file, ".gz") {
					text = unpacked(t, text)
				}
				if file != "daemon/tasks.json" && name != "seed" {
					var short bytes.Buffer
					if json.Compact(&short, []byte(text)) == nil && filepath.Ext(file) != ".jsonl" {
						text = short.String() + "\n"
					}
					got += "file " + file + "\n" + text
				}
			}
			if *update {
				writeWant(t, name, got)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("differs (-want +got); go test ./internal/aiwg/loops -run Archives -update writes it:\n%s", diff)
			}
			roundTrip(t, s, dir, first)
			same(t, "the imported folder", before, content(t, dir))
		})
	}
}

func mapsKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func writeWant(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txtar")
	a := must[*txtar.Archive](t)(txtar.ParseFile(path))
	a.Files[len(a.Files)-1].Data = []byte(got)
	if err := os.WriteFile(path, txtar.Format(a), 0o600); err != nil {
		t.Fatal(err)
	}
}

// roundTrip imports what was exported of a store into another one, and both it
// and the source once more into the store.
func roundTrip(t *testing.T, s *perdure.Store, source, first string) {
	t.Helper()
	if again := importFrom(t, s, source); total(again) > 0 {
		t.Errorf("the second import brought something: %+v", again)
	}
	same(t, "after the second import", content(t, first), content(t, exportTo(t, s)))
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r := importFrom(t, other, first)
	for _, n := range r.Notes {
		stays := slices.ContainsFunc([]string{"several records; all are kept", "kept in the document only",
			"the name of the file is used",
			"was kept as text"},
			func(says string) bool { return strings.Contains(n.Message, says) })
		if n.Kind != aiwgtree.Missing && n.Kind != aiwgtree.Default && !stays { // missing times stay missing
			t.Errorf("of what was exported: %+v", n)
		}
	}
	same(t, "the round trip", content(t, first), content(t, exportTo(t, other)))
	if own := importFrom(t, s, first); total(own) > 0 || own.Count(aiwgtree.Differs) > 0 {
		t.Errorf("importing the own export brought something: %+v", own)
	}
}
