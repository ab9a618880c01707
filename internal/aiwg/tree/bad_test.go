package tree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// notes returns those of a kind that say something.
func notes(r *tree.Report, kind, says string) []tree.Note {
	var found []tree.Note
	for _, n := range r.Notes {
		if n.Kind == kind && strings.Contains(n.Message, says) {
			found = append(found, n)
		}
	}
	return found
}

// References lead nowhere but into the folder, also not through links, and what
// is not a file is not opened.
func TestReferencesStayInside(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{
		{Name: "rlm/inside.json", Data: []byte(`"inside"`)},
		{Name: "rlm/global-state.json", Data: []byte(`{"version":"1.0.0","state_id":"state-00000001","variables":{
			"up": {"name":"up","value":"file:../secret.json","type":"file_path"},
			"link": {"name":"link","value":"file:.aiwg/rlm/link.json","type":"file_path"},
			"linked": {"name":"linked","value":"file:.aiwg/rlm/out/secret.json","type":"file_path"},
			"within": {"name":"within","value":"file:.aiwg/rlm/within.json","type":"file_path"},
			"absolute": {"name":"absolute","value":"file:ABSOLUTE/rlm/inside.json","type":"file_path"},
			"beside": {"name":"beside","value":"file:inside.json","type":"file_path"}}}`)},
	}})
	outside := filepath.Dir(dir)
	secret := filepath.Join(outside, "secret.json")
	if err := os.WriteFile(secret, []byte(`"secret"`), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link.json": secret, "out": outside, "within.json": "inside.json"} {
		if err := os.Symlink(target, filepath.Join(dir, "rlm", link)); err != nil {
			t.Skipf("NOT TESTED without links: %v", err)
		}
	}
	name := filepath.Join(dir, "rlm", "global-state.json")
	text := must[[]byte](t)(os.ReadFile(name))
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), "ABSOLUTE", dir, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := importFrom(t, s, dir)
	for name, want := range map[string]string{"up": `"file:../secret.json"`, "link": `"file:.aiwg/rlm/link.json"`,
		"linked": `"file:.aiwg/rlm/out/secret.json"`,
		"within": `"inside"`, "absolute": `"inside"`, "beside": `"inside"`} {
		v := must[perdure.Variable](t)(s.Var(t.Context(), perdure.StateRef{Scope: perdure.ScopeGlobal}, name))
		if string(v.Value) != want {
			t.Errorf("%s is %s, want %s", name, v.Value, want)
		}
	}
	if got := notes(r, tree.NotRead, "the reference was kept"); len(got) != 3 {
		t.Errorf("notes %+v, want one for each of three", got)
	}
	// Files that are links out of the folder are not read either.
	if err := os.Symlink(secret, filepath.Join(dir, "rlm", "sessions")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "daemon"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "daemon", "tasks.json")); err != nil {
		t.Fatal(err)
	}
	if r = importFrom(t, s, dir); r.Tasks != 0 || len(notes(r, tree.NotRead, "cannot be read")) != 1 {
		t.Errorf("a link as the file of tasks: %+v", r)
	}
}

// What is beyond the limits of a state is listed, and the rest comes in.
func TestLimitsOfStates(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	vars := make(map[string]any)
	for i := range perdure.MaxVariables + 2 {
		name := fmt.Sprintf("v%04d", i)
		vars[name] = map[string]any{"name": name, "value": i, "type": "number"}
	}
	long := strings.Repeat("n", perdure.MaxVariableName+1)
	var mutations, checkpoints []any
	for i := range perdure.MaxHistory + 5 {
		mutations = append(mutations, map[string]any{"mutation_id": fmt.Sprintf("mut-%08x", i), "operation": "update",
			"variable_name": "v0000",
			"new_value":     i, "timestamp": "2026-02-09T10:00:00Z"})
	}
	for i := range perdure.MaxCheckpoints + 3 {
		checkpoints = append(checkpoints, map[string]any{"checkpoint_id": fmt.Sprintf("ckpt-%08x", i), "name": "c",
			"timestamp": "2026-02-09T10:00:00Z"})
	}
	doc := func(id string, vars, history any) []byte {
		raw, err := json.Marshal(map[string]any{"version": "1.0.0", "state_id": id, "variables": vars, "history": history})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{
		{Name: "rlm/sessions/many/state.json",
			Data: doc("state-00000001", vars, map[string]any{"mutations": mutations, "checkpoints": checkpoints})},
		{Name: "rlm/sessions/long/state.json", Data: doc("state-00000002", map[string]any{
			long:          map[string]any{"name": long, "value": 1, "type": "number"},
			long + "more": map[string]any{"name": long + "more", "value": 2, "type": "number"},
			"huge": map[string]any{"name": "huge", "value": strings.Repeat("h", perdure.MaxVariableBytes),
				"type": "text"},
			"large": map[string]any{"name": "large", "value": strings.Repeat("l", perdure.MaxPayloadBytes),
				"type": "text"},
		}, nil)},
	}})
	r := importFrom(t, s, dir)
	many := must[perdure.StateInfo](t)(
		s.State(t.Context(), perdure.StateRef{Scope: perdure.ScopeSession, Session: "many"}))
	if many.Variables != perdure.MaxVariables || many.Checkpoints != perdure.MaxCheckpoints {
		t.Errorf("the large state is %+v", many)
	}
	for kind, says := range map[string][]string{
		tree.NotRead: {`"v1000" exceeds the limit of 1000`, `"v1001" exceeds`,
			"has 103 checkpoints; the oldest 3",
			"has a value of 67108866 bytes, the limit is 67108864"},
		tree.Corrected: {"has 10005 entries; the oldest 5", "not a valid variable name"},
	} {
		for _, say := range says {
			if len(notes(r, kind, say)) == 0 {
				t.Errorf("no note of kind %s says %q: %.2000s", kind, say, written(r))
			}
		}
	}
	ref := perdure.StateRef{Scope: perdure.ScopeSession, Session: "long"}
	for name, want := range map[string]string{long[:perdure.MaxVariableName]: "1",
		long[:perdure.MaxVariableName-2] + "_2": "2"} {
		if v, err := s.Var(t.Context(), ref, name); err != nil || string(v.Value) != want {
			t.Errorf("%.20s… of %d characters is %s, %v", name, len(name), v.Value, err)
		}
	}
	if v := must[perdure.Variable](t)(s.Var(t.Context(), ref, "large")); v.Size != perdure.MaxPayloadBytes+2 {
		t.Errorf("the large value has %d bytes", v.Size)
	}
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	first := exportTo(t, s)
	validAll(t, first)
	importFrom(t, other, first)
	sameFiles(t, content(t, first), content(t, exportTo(t, other)))
}

func sameFiles(t *testing.T, want, got map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs: %d bytes, then %d", name, len(text), len(got[name]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, then %d", len(want), len(got))
	}
}

// Every beginning of a file of tasks gives the tasks that are whole in it.
func TestEveryTruncation(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	text := `{"version": 1, "tasks": [
 {"id": "task-0001", "prompt": "a \" b", "state": "completed", "result": null, "createdAt": "2026-02-09T10:00:00Z"},
 {"id": "task-0002", "prompt": "b", "state": "queued", "priority": -5, "createdAt": "2026-02-09T10:00:00Z", "metadata": {"x": [1, true]}}
]}`
	ends := []int{strings.Index(text, "},\n {") + 1, strings.LastIndex(text, "}\n]") + 1}
	for cut := range len(text) + 1 {
		dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "daemon/tasks.json", Data: []byte(text[:cut])}}})
		r, err := tree.Import(t.Context(), s, tree.ImportConfig{Path: dir, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, end := range ends {
			if cut >= end {
				want++
			}
		}
		if r.Tasks+r.PresentTasks != want {
			t.Errorf("cut at %d: %d tasks, want %d: %s", cut, r.Tasks, want, written(r))
		}
		if whole := cut == len(text); whole == (r.Count(tree.NotRead) > 0) {
			t.Errorf("cut at %d: %s", cut, written(r))
		}
	}
}

// One file of each kind is read by itself.
func TestImportFiles(t *testing.T) {
	t.Parallel()
	a := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	id := lived(t, a)
	dir := exportTo(t, a, id)
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r := importFrom(t, s, filepath.Join(dir, "rlm", "trees", string(id), "tree.json"))
	if r.Trees != 1 || r.Tasks != 4 {
		t.Errorf("tree.json: %+v", r)
	}
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	if r = importFrom(t, other, filepath.Join(dir, "daemon", "tasks.json")); r.Trees != 1 || r.Tasks != 4 ||
		r.States != 2 {
		t.Errorf("tasks.json: %+v", r)
	}
	state := stateText(t, a, perdure.StateRef{Scope: perdure.ScopeTree, Tree: id})
	alone := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(alone, state, 0o600); err != nil {
		t.Fatal(err)
	}
	validAll(t, filepath.Dir(alone))
	third := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r, err := tree.Import(t.Context(), third,
		tree.ImportConfig{Path: alone, State: true, Ref: perdure.StateRef{Scope: perdure.ScopeSession, Session: "x"}})
	if err != nil || r.States != 1 || r.Checkpoints != 2 {
		t.Fatalf("state.json: %+v, %v", r, err)
	}
	if err := statetest.Sound(t.Context(), third); err != nil {
		t.Error(err)
	}
	again := stateText(t, third, perdure.StateRef{Scope: perdure.ScopeSession, Session: "x"})
	if !strings.Contains(string(again), `"rollback"`) || !strings.Contains(string(again), `"count"`) {
		t.Errorf("the state did not come in whole: %s", again)
	}
	for _, path := range []string{"nowhere", t.TempDir(), filepath.Join(dir, "rlm", "trees", string(id), "report.md")} {
		r, err := tree.Import(t.Context(), s, tree.ImportConfig{Path: path})
		if err == nil && r.Count(tree.NotRead) == 0 {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

// A dry run says what an import then does, and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	dir, _ := unpack(t, must[*txtar.Archive](t)(txtar.ParseFile("testdata/seed_tasks.txtar")))
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	dry := must[*tree.Report](t)(tree.Import(t.Context(), s, tree.ImportConfig{Path: dir, DryRun: true}))
	if trees := must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{})); len(trees) != 0 {
		t.Errorf("the dry run made %d trees", len(trees))
	}
	if wet := importFrom(t, s, dir); written(wet) != written(dry) {
		t.Errorf("the dry run said\n%sthe import\n%s", written(dry), written(wet))
	}
}

// stateText is the document of a state, which is indented as all files are.
func stateText(t testing.TB, s *perdure.Store, ref perdure.StateRef) []byte {
	t.Helper()
	var out, lines bytes.Buffer
	if err := tree.ExportState(t.Context(), s, ref, &out); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	err := errors.Join(json.Compact(&compact, out.Bytes()), json.Indent(&lines, compact.Bytes(), "", "  "))
	if err != nil || lines.String()+"\n" != out.String() {
		t.Errorf("the document is not indented as usual: %v\n%s", err, out.Bytes())
	}
	return out.Bytes()
}

// A state with many checkpoints of large values is written with little memory, and an error
// of the writer ends it.
func TestExportStateStreams(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	ref := perdure.StateRef{Scope: perdure.ScopeSession, Session: "large"}
	const size, checkpoints = 1 << 20, 20
	set(t, s, ref, "large", `"`+strings.Repeat("l", size)+`"`)
	for i := range checkpoints {
		check(t, s, ref, fmt.Sprint("c", i))
	}
	var out counter
	if err := tree.ExportState(t.Context(), s, ref, &out); err != nil {
		t.Fatal(err)
	}
	if out.bytes < checkpoints*size || out.most > 8*size {
		t.Errorf("wrote %d bytes, at most %d at once", out.bytes, out.most)
	}
	out.limit = 2 * size
	if err := tree.ExportState(t.Context(), s, ref, &out); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

var errFull = errors.New("full")

// counter counts the written bytes, and the most of one call.
type counter struct{ bytes, most, limit int }

func (c *counter) Write(p []byte) (int, error) {
	if c.limit > 0 && c.bytes > c.limit {
		return 0, errFull
	}
	c.bytes += len(p)
	c.most = max(c.most, len(p))
	return len(p), nil
}

// What a history names is truncated to the limits of the store: the ID of a checkpoint that
// becomes its name and description, and the names in mutations.
func TestLongNamesInHistory(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	const when = "2026-02-09T10:00:00Z"
	raw, err := json.Marshal(map[string]any{"version": "1.0.0", "state_id": "state-00000001",
		"variables": map[string]any{}, "history": map[string]any{
			"checkpoints": []any{map[string]any{"checkpoint_id": strings.Repeat("c", 5000), "timestamp": when}},
			"mutations": []any{map[string]any{"mutation_id": "mut-00000001", "operation": "rename", "timestamp": when,
				"variable_name": strings.Repeat("v", 5000), "metadata": map[string]any{"to": strings.Repeat("w", 5000)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := unpack(t, &txtar.Archive{Files: []txtar.File{{Name: "rlm/sessions/one/state.json", Data: raw}}})
	importFrom(t, s, dir)
	ref := perdure.StateRef{Scope: perdure.ScopeSession, Session: "one"}
	list, err := s.Checkpoints(t.Context(), ref)
	if err != nil || len(list) != 1 || len(list[0].Name) != 256 || len(list[0].Description) != 4096 {
		t.Errorf("%d checkpoints, %v, want one with a name and a description at their limits", len(list), err)
	}
	past := must[[]perdure.Mutation](t)(s.History(t.Context(), ref, perdure.HistoryFilter{}))
	if len(past) != 1 || len(past[0].Name) != 256 || len(past[0].To) != 256 {
		t.Errorf("%d mutations, want one with names at their limits", len(past))
	}
}
