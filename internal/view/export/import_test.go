package export_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/view/export"
)

// exportTree is the export of a tree.
func exportTree(t *testing.T, s *perdure.Store, id perdure.TreeID) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := export.Write(t.Context(), s, &out, export.Config{Tree: id}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// keptLines returns the lines of an export that an import keeps, without what is new in a record: its
// kind, and the IDs of calls.
func keptLines(t *testing.T, raw []byte) []string {
	t.Helper()
	var kept []string
	for l := range strings.Lines(string(raw)) {
		var line map[string]any
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatal(err)
		}
		switch line["type"] {
		case "event", "end", "manifest":
			continue
		case "tree":
			delete(line["tree"].(map[string]any), "kind")      //nolint:forcetypeassert // a test
			delete(line["tree"].(map[string]any), "placement") //nolint:forcetypeassert // a test
		case "call":
			delete(line["call"].(map[string]any), "call_id") //nolint:forcetypeassert // a test
		case "context":
			delete(line["context"].(map[string]any), "created_at") //nolint:forcetypeassert // a test
		}
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, string(text))
	}
	return kept
}

// An exported tree is equal in another store, its costs too, and the log of that store is sound.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	from := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	id := finished(t, from)
	raw := exportTree(t, from, id)
	testdb.Each(t, func(t *testing.T, to *perdure.Store) {
		for i := range 2 {
			got, err := export.Import(t.Context(), export.ImportConfig{Store: to, File: bytes.NewReader(raw)})
			if err != nil || got.Tree != id || got.Tasks != 3 || got.Calls < 3 || got.Present != (i == 1) {
				t.Fatalf("import %d: %+v, %v", i, got, err)
			}
		}
		if diff := gocmp.Diff(keptLines(t, raw), keptLines(t, exportTree(t, to, id))); diff != "" {
			t.Errorf("-exported +imported:\n%s", diff)
		}
		was, err := from.Progress(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		is, err := to.Progress(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(was.Usage, is.Usage); diff != "" {
			t.Errorf("usage: -exported +imported:\n%s", diff)
		}
		if diff := gocmp.Diff(byDepth(was.Costs), byDepth(is.Costs)); diff != "" {
			t.Errorf("costs: -exported +imported:\n%s", diff)
		}
	})
	got, err := export.Import(t.Context(), export.ImportConfig{Store: from, File: bytes.NewReader(raw)})
	if err != nil || !got.Present || got.Tree != id || got.Added > 0 {
		t.Errorf("into its own store: %+v, %v", got, err)
	}
}

// byDepth sorts lines of costs, which are in the order of the calls.
func byDepth(lines []perdure.CostLine) []perdure.CostLine {
	slices.SortFunc(lines, func(a, b perdure.CostLine) int {
		return cmp.Or(a.Depth-b.Depth, strings.Compare(a.Model, b.Model))
	})
	return lines
}

// cutReader fails at an offset when it is read for the second time.
type cutReader struct {
	io.ReadSeeker
	at    int64
	reads int
}

func (c *cutReader) Seek(offset int64, whence int) (int64, error) {
	c.reads++
	return c.ReadSeeker.Seek(offset, whence)
}

func (c *cutReader) Read(p []byte) (int, error) {
	at, err := c.ReadSeeker.Seek(0, io.SeekCurrent)
	if err == nil && c.reads >= 4 && at >= c.at {
		return 0, errors.New("the process was killed")
	}
	return c.ReadSeeker.Read(p)
}

// A large export is imported in parts. An import that broke off is completed by the next one, also if
// other trees have the IDs of its tasks.
func TestImportCompletes(t *testing.T) {
	t.Parallel()
	from, to := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree, err := from.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "root"}})
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]perdure.TaskSpec, 1500)
	for i := range specs {
		specs[i].Prompt = fmt.Sprintf("part %d of the question", i)
	}
	made, err := from.Submit(t.Context(), tree.Root, specs...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.Submit(t.Context(), made[1400], perdure.TaskSpec{Prompt: "below"}); err != nil {
		t.Fatal(err)
	}
	other := perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "other"}}
	if _, err := to.CreateTree(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	raw := exportTree(t, from, tree.ID)
	broken := &cutReader{ReadSeeker: bytes.NewReader(raw), at: int64(len(raw)) * 6 / 10}
	if got, err := export.Import(t.Context(), export.ImportConfig{Store: to, File: broken}); err == nil {
		t.Fatalf("imported %+v", got)
	}
	got, err := export.Import(t.Context(), export.ImportConfig{Store: to, File: bytes.NewReader(raw)})
	if err != nil || !got.Present || got.Added == 0 || got.Added >= 1502 || got.Tasks != 1502 {
		t.Fatalf("%+v, %v", got, err)
	}
	prompts := func(s *perdure.Store, id perdure.TreeID) []string {
		list, err := s.Tasks(t.Context(), perdure.TaskFilter{Tree: id, Limit: 2000})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for i := range list {
			all = append(all, fmt.Sprintf("%d %d %s", list[i].Depth, list[i].Position, list[i].Prompt))
		}
		return all
	}
	if diff := gocmp.Diff(prompts(from, tree.ID), prompts(to, got.Tree)); diff != "" {
		t.Errorf("-exported +imported:\n%s", diff)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	s, to := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	id := finished(t, s)
	raw := exportTree(t, s, id)
	var without bytes.Buffer
	if err := export.Write(t.Context(), s, &without, export.Config{Tree: id, WithoutContext: true}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"empty": {}, "cut": raw[:len(raw)-10], "without its end": raw[:bytes.LastIndex(raw[:len(raw)-1], []byte("\n"))+1],
		"changed":         bytes.Replace(raw, []byte("mock:m"), []byte("mock:n"), 1),
		"twice":           append(raw[:len(raw):len(raw)], raw...),
		"without context": without.Bytes(), "with more": append(raw[:len(raw):len(raw)], '\n'),
	} {
		got, err := export.Import(t.Context(), export.ImportConfig{Store: to, File: bytes.NewReader(text)})
		if perdure.CodeOf(err) != perdure.CodeInvalid {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if trees, err := to.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) > 0 {
		t.Errorf("imported %v, %v", trees, err)
	}
}
