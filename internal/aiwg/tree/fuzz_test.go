package tree_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// FuzzRead: whatever stands in the files, reading them ends and tells places
// that are there. TestDamagedImport goes on with what was read.
func FuzzRead(f *testing.F) {
	for _, archive := range archives(f) {
		files := make(map[string][]byte)
		for _, file := range archive.Files {
			base := filepath.Base(file.Name)
			if base == "state.json" {
				base = filepath.Base(filepath.Dir(filepath.Dir(file.Name)))
			}
			files[base] = file.Data
		}
		f.Add(files["tasks.json"], files["tree.json"], files["global-state.json"], files["history.jsonl"])
		f.Add(files["tasks.json"], files["tree.json"], files["states"], []byte(nil))
	}
	s := testdb.Open(f, perdure.Config{Dir: f.TempDir()})
	f.Fuzz(func(t *testing.T, tasks, tree, state, history []byte) {
		archive := txtar.Archive{Files: []txtar.File{{Name: "rlm/some.txt"}, {Name: "daemon/tasks.json", Data: tasks},
			{Name: "rlm/trees/tree-12345678/tree.json", Data: tree}, {Name: "rlm/trees/tree-12345678/state.json", Data: state},
			{Name: "rlm/states/s/state.json", Data: state}, {Name: "rlm/states/s/history.jsonl", Data: history}}}
		dir, _ := unpack(t, &archive)
		r, err := aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: dir, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range r.Notes {
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == n.File })
			if i < 0 || n.Line > bytes.Count(archive.Files[i].Data, []byte("\n"))+1 || n.Line < 0 || n.Column < 0 {
				t.Errorf("a note tells of no place: %+v", n)
			}
		}
	})
}

func archives(t testing.TB) []*txtar.Archive {
	t.Helper()
	var list []*txtar.Archive
	for _, name := range must[[]string](t)(filepath.Glob("testdata/*.txtar")) {
		list = append(list, must[*txtar.Archive](t)(txtar.ParseFile(name)))
	}
	return list
}

func number(t *testing.T, name string, byDefault int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	return must[int](t)(strconv.Atoi(text))
}

// TestDamagedImport imports files in which parts are missing, doubled, exchanged or
// overwritten: the store stays sound, importing again brings nothing, and what
// is exported then is valid and survives a round trip. PERDURE_DAMAGE_ROUNDS
// sets how often (10), PERDURE_DAMAGE_SEED repeats a run.
func TestDamagedImport(t *testing.T) {
	t.Parallel()
	rounds, seed := number(t, "PERDURE_DAMAGE_ROUNDS", 10), number(t, "PERDURE_DAMAGE_SEED", int(rand.Uint32()))
	t.Logf("PERDURE_DAMAGE_SEED=%d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	all := archives(t)
	from := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	lived(t, from)
	own := &txtar.Archive{}
	files := content(t, exportTo(t, from))
	for _, name := range sorted(files) {
		own.Files = append(own.Files, txtar.File{Name: name, Data: []byte(files[name])})
	}
	all = append(all, own)
	for i := range rounds {
		archive := &txtar.Archive{Files: slices.Clone(all[r.IntN(len(all))].Files)}
		for range 1 + r.IntN(6) {
			f := &archive.Files[r.IntN(len(archive.Files))]
			f.Data = damaged(r, f.Data)
		}
		if !survives(t, archive) {
			t.Fatalf("round %d", i)
		}
	}
}

func sorted(files map[string]string) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// damaged returns the text with one part changed.
func damaged(r *rand.Rand, text []byte) []byte {
	if len(text) == 0 {
		return []byte("{")
	}
	a, b := r.IntN(len(text)), r.IntN(len(text))
	a, b = min(a, b), min(max(a, b), min(a, b)+60)
	words := []string{"null", `""`, "[]", "{}", "-1", "1e9", "true", `"task-0001"`, `"tree-12345678"`, `"completed"`,
		`"queued"`, `"2030-01-01T00:00:00Z"`, `"file:x"`}
	switch r.IntN(7) {
	case 0: // cut
		return text[:a]
	case 1: // a part is missing
		return slices.Concat(text[:a], text[b:])
	case 2: // a part is doubled
		return slices.Concat(text[:b], text[a:])
	case 3: // zeros, as after a power loss
		return slices.Concat(text[:a], make([]byte, b-a), text[b:])
	case 4: // a line is there twice
		lines := bytes.SplitAfter(text, []byte("\n"))
		i := r.IntN(len(lines))
		return bytes.Join(slices.Insert(lines, r.IntN(len(lines)), lines[i]), nil)
	case 5: // digits are others
		out := slices.Clone(text)
		for i := a; i < len(out); i++ {
			if out[i] >= '0' && out[i] <= '9' {
				out[i] = byte('0' + r.IntN(10))
				break
			}
		}
		return out
	}
	// A value is another one: what follows the next colon.
	at := bytes.IndexByte(text[a:], ':')
	if at < 0 {
		return text
	}
	at += a + 1
	end := bytes.IndexAny(text[at:], ",}\n")
	if end < 0 {
		return text
	}
	return slices.Concat(text[:at], []byte(words[r.IntN(len(words))]), text[at+end:])
}

func survives(t *testing.T, archive *txtar.Archive) bool {
	t.Helper()
	dir, _ := unpack(t, &txtar.Archive{Files: append(slices.Clone(archive.Files), txtar.File{Name: "rlm/some.txt"})})
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, dir)
	if again := importFrom(t, s, dir); again.Trees+again.Tasks+again.States+again.Variables+again.Loops+
		again.Iterations > 0 {
		t.Errorf("the second import brought something: %+v", again)
	}
	first := exportTo(t, s)
	validAll(t, first)
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, other, first)
	sameFiles(t, content(t, first), content(t, exportTo(t, other)))
	if t.Failed() {
		t.Logf("the damaged files:\n%.20000s", txtar.Format(archive))
	}
	return !t.Failed()
}
