package loops_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	aiwgloops "github.com/perdure/perdure/internal/aiwg/loops"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	schemas "github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/testing/testdb"
)

const loopID = "ralph-fix-tests-a1b2c3d4"

// many is a loop of so many iterations, some of its documents long.
func many(id string, iterations, long int) map[string]string {
	dir := "ralph/loops/" + id + "/"
	files := map[string]string{dir +
		"hook-log.jsonl": strings.Repeat(`{"timestamp":"2026-02-02T21:10:05Z","hook_name":"pre_iteration","outcomes":[]}`+
		"\n", max(long/50, 1)),
		dir + "report.md": "# bytes \xff\x00 of any kind\n"}
	var history []string
	for i := 1; i <= iterations; i++ {
		history = append(history, fmt.Sprintf(`{"iteration":%d,"quality_score":%d.5,"artifacts":["%d.go"]}`, i, i%100, i))
		if i%100 == 1 {
			files[fmt.Sprintf("%siterations/iteration-%03d.json", dir, i)] = fmt.Sprintf(
				`{"iteration":%d,"loop_id":%q,"output":%q}`, i, id, strings.Repeat("o", long))
			files[fmt.Sprintf("%scheckpoints/iteration-%03d.json.gz", dir, i)] = fmt.Sprintf(
				`{"checkpoint_id":"c%d","iteration":%d,"description":"<&>"}`, i, i)
		}
	}
	files[dir+"state.json"] = fmt.Sprintf(
		`{"version":"2.0.0","loop_id":%q,"status":"completed","iteration":%d,"task":"many",`+
			`"started_at":"2026-02-02T21:00:00Z","completed_at":"2026-02-02T23:00:00Z","notes":%q,"iteration_history":[%s]}`,
		id, iterations, strings.Repeat("n", long), strings.Join(history, ","))
	return files
}

// What is exported, imported elsewhere and exported again is the same bytes, on
// both databases: whatever the size, and although many loops are there.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	files, _ := archive(t, "seed")
	plain, _ := archive(t, "plain")
	maps.Copy(files, plain)
	maps.Copy(files, many("ralph-many-0a0b0c0d", 1234, 100<<10))
	delete(files, "ralph/registry.json")
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		dir := folder(t, files)
		s := testdb.Open(t, cfg)
		r := importFrom(t, s, dir)
		if r.Loops != 7 || r.Iterations != 1234+7+4 || r.Count(aiwgtree.NotRead)+r.Count(aiwgtree.Corrected) > 0 {
			t.Errorf("%+v", r)
		}
		first := exportTo(t, s)
		exported := content(t, first)
		allSchemas(t).all(t, exported)
		const report = "ralph/loops/ralph-many-0a0b0c0d/report.md"
		if want := files[report]; exported[report] != want {
			t.Errorf("the report is %q, want %q", exported[report], want)
		}
		sameJSON(t, files, exported)
		roundTrip(t, s, dir, first)
	})
}

// sameJSON compares what files say: nothing of it was lost or added.
func sameJSON(t *testing.T, want, got map[string]string) {
	t.Helper()
	for name, text := range want {
		if folder, place, ok := strings.Cut(strings.TrimPrefix(name, "ralph/loops/"), "/"); ok { // exports have longer IDs
			id := aiwgloops.LayoutID(folder)
			name, text = "ralph/loops/"+id+"/"+place, strings.ReplaceAll(text, `"`+folder+`"`, `"`+id+`"`)
		}
		for _, null := range []string{`"timeout_minutes": null,`, `"pid": null,`} { // exports have none there
			text = strings.ReplaceAll(text, null, "")
		}
		other, there := got[name]
		if strings.HasSuffix(name, ".gz") && there {
			other = unpacked(t, other)
		}
		var a, b bytes.Buffer
		if filepath.Ext(name) == ".md" || name == "aiwg.yml" {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(text, "\n ", " "), "\n}", "}")) {
			if err := json.Compact(&a, []byte(line)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(other, "\n ", " "), "\n}", "}")) {
			if err := json.Compact(&b, []byte(line)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !there || strings.ReplaceAll(a.String(), "\u2028", `\u2028`) != b.String() {
			t.Errorf("%s: there %v\n%.500s\n%.500s", name, there, a.String(), b.String())
		}
	}
}

// An imported loop is not executed, and its tree shows what it is.
func TestLoopsAreRecords(t *testing.T) {
	t.Parallel()
	files, _ := archive(t, "seed")
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, folder(t, files))
	session := must[*perdure.Session](t)(s.OpenSession(t.Context(), "test"))
	if leases := must[[]*perdure.Lease](t)(session.Claim(t.Context(), perdure.ClaimRequest{Max: 10})); len(leases) > 0 {
		t.Errorf("%d tasks of records were claimed", len(leases))
	}
	for _, tree := range must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{})) {
		if tree.Kind != perdure.KindRecord || !aiwgloops.Belongs(&tree) {
			t.Errorf("%+v", tree)
		}
		root := must[perdure.Task](t)(s.Task(t.Context(), tree.Root))
		if tree.Name == loopID && (!strings.Contains(string(root.Metadata), `"state.json":{"version":"2.0.0"`) ||
			!strings.Contains(string(root.Metadata), `"kind":"loop"`)) {
			t.Errorf("the root does not hold the state: %.300s", root.Metadata)
		}
		for _, it := range must[[]perdure.Task](t)(
			s.Tasks(t.Context(), perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root})) {
			if it.Prompt == "iteration 2" && !strings.Contains(string(it.Data), `"what iteration 2 did"`) {
				t.Errorf("the iteration does not hold its file: %s", it.Data)
			}
		}
	}
}

// A loop that goes on where it comes from: new iterations are added, what is
// there stays, and what differs is listed.
func TestLoopGoesOn(t *testing.T) {
	t.Parallel()
	dir := "ralph/loops/on-0a0b0c0d/"
	state := `{"version":"2.0.0","loop_id":"on-0a0b0c0d","status":"running","iteration":%d,"task":"on",` +
		`"started_at":"2026-02-02T21:00:00Z"}`
	files := map[string]string{dir + "state.json": fmt.Sprintf(state, 2),
		dir + "iterations/iteration-001.json": `{"iteration":1,"quality_score":1}`}
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	if r := importFrom(t, s, folder(t, files)); r.Iterations != 2 {
		t.Fatalf("%+v", r)
	}
	files[dir+"state.json"] = fmt.Sprintf(state, 4)
	files[dir+"iterations/iteration-001.json"] = `{"iteration":1,"quality_score":2}`
	files[dir+"iterations/iteration-002.json"] = `{"iteration":2}`
	files[dir+"iterations/iteration-003.json"] = `{"iteration":3}`
	r := importFrom(t, s, folder(t, files))
	if r.Loops != 0 || r.PresentLoops != 1 || r.Iterations != 2 || r.PresentIterations != 2 ||
		r.Count(aiwgtree.Differs) != 3 {
		t.Errorf("%+v", r)
	}
	out := content(t, exportTo(t, s))
	const exported = "ralph/loops/ralph-on-0a0b0c0d/iterations/"
	if !strings.Contains(out[exported+"iteration-001.json"], `"quality_score": 1`) ||
		out[exported+"iteration-003.json"] == "" {
		t.Errorf("the store has %v", out)
	}
	if r := importFrom(t, s, folder(t, files)); total(r) > 0 || r.PresentIterations != 4 {
		t.Errorf("once more: %+v", r)
	}
	files[dir+"state.json"] = strings.Replace(fmt.Sprintf(state, 4), "running", "completed", 1)
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	if r := importFrom(t, other, folder(t, files)); r.Count(aiwgtree.Missing) != 1 || r.Iterations != 3 {
		t.Errorf("completed without a record of its last iteration: %+v", r)
	}
}

// A loop that is cancelled in the store is exported as aborted; one that had ended is
// not changed.
func TestCancelledLoop(t *testing.T) {
	t.Parallel()
	files, _ := archive(t, "plain")
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, folder(t, files))
	before := content(t, exportTo(t, s))
	for _, tree := range must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{})) {
		if !tree.State.Terminal() {
			must[int64](t)(s.CancelTree(t.Context(), tree.ID, "by the test"))
		}
	}
	first := exportTo(t, s)
	const paused = "ralph/loops/ralph-paused-0a0b0c0f/state.json"
	before[paused] = strings.Replace(before[paused], `"paused"`, `"aborted"`, 1)
	same(t, "after the cancellation", before, content(t, first))
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, other, first)
	same(t, "the round trip", content(t, first), content(t, exportTo(t, other)))
}

// Of two loops of one ID each comes in, and an export calls the second otherwise
// wherever it is named.
func TestTwoLoopsOfOneID(t *testing.T) {
	t.Parallel()
	files, _ := archive(t, "seed")
	delete(files, "aiwg.yml")
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, folder(t, files))
	state := "ralph/loops/" + loopID + "/state.json"
	second := maps.Clone(files)
	second[state] = strings.Replace(files[state], `"started_at": "2026-02-02T21`, `"started_at": "2026-02-03T21`, 1)
	if r := importFrom(t, s, folder(t, second)); r.Loops != 1 {
		t.Fatalf("%+v", r)
	}
	first := exportTo(t, s)
	out := content(t, first)
	allSchemas(t).all(t, out)
	renamed := 0
	for name, text := range out {
		if strings.HasSuffix(name, ".gz") {
			text = unpacked(t, text)
		}
		other := strings.HasPrefix(name, "ralph/") && !strings.HasPrefix(name, "ralph/loops/"+loopID+"/")
		if other && filepath.Ext(name) != ".md" {
			renamed++
			if strings.Contains(text, loopID) {
				if i := strings.Index(text, loopID); !regexp.MustCompile(`^ralph-fix-tests-a1b2c3d4-[0-9a-f]{8}`).MatchString(
					text[i:]) {
					t.Errorf("%s names the other loop: %.200s", name, text[max(i-100, 0):])
				}
			}
		}
	}
	if renamed != 9 {
		t.Errorf("%d files of the second loop: %v", renamed, slices.Sorted(maps.Keys(out)))
	}
	other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, other, first)
	same(t, "the round trip", out, content(t, exportTo(t, other)))
}

// Only the trees that are named are written.
func TestExportOneLoop(t *testing.T) {
	t.Parallel()
	files, _ := archive(t, "plain")
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, folder(t, files))
	for _, tree := range must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{})) {
		for name := range content(t, exportTo(t, s, tree.ID)) {
			if !strings.HasPrefix(name, "ralph/loops/"+aiwgloops.LayoutID(tree.Name)+"/") && name != "daemon/tasks.json" {
				t.Errorf("%s is in the export of %s", name, tree.Name)
			}
		}
	}
}

// The settings of a project are next to its folder .aiwg. No other file is read there,
// and links are not followed.
func TestSettingsBeside(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"ralph/loops/x-0a0b0c0d/state.json": `{"version":"2.0.0","loop_id":"x-0a0b0c0d","status":"paused","iteration":0}`})
	beside := filepath.Join(filepath.Dir(dir), "aiwg.yml")
	if err := os.WriteFile(beside, []byte("agent_persistence:\n  enabled: false # off\nrest: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(dir), beside} {
		s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		r := importFrom(t, s, path)
		if len(r.Settings) != 1 || r.Settings[0].Name != "enabled" || r.Settings[0].Value != "false" ||
			r.Settings[0].Line != 2 || r.Settings[0].Problem != "" || r.Count(aiwgtree.Left) != 1 {
			t.Errorf("%s: %+v", path, r)
		}
		if got, want := content(t, exportTo(t, s))["aiwg.yml"], "agent_persistence:\n  enabled: false # off\n"; got != want {
			t.Errorf("%s: exported as %q, want %q", path, got, want)
		}
	}
	if err := os.Remove(beside); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret.yml")
	if err := os.WriteFile(secret, []byte("agent_persistence:\n  enabled: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, beside); err != nil {
		t.Skipf("NOT TESTED without links: %v", err)
	}
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	if r := importFrom(t, s, dir); len(r.Settings) != 0 || r.Count(aiwgtree.NotRead) != 1 {
		t.Errorf("a link out of the folder: %+v", r)
	}
}

// The settings that were imported last are exported; the report counts all.
func TestSettingsTwice(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	for _, value := range []string{"true", "false", "true"} {
		importFrom(t, s, folder(t, map[string]string{"rlm/some.txt": "", "aiwg.yml": "agent_persistence:\n  enabled: " +
			value}))
	}
	dir := filepath.Join(t.TempDir(), "out")
	r := must[*aiwgtree.ExportReport](t)(aiwgtree.Export(t.Context(), s, aiwgtree.ExportConfig{Dir: dir}))
	if got := content(t, dir)["aiwg.yml"]; r.Settings != 2 || got != "agent_persistence:\n  enabled: false\n" {
		t.Errorf("%d sections, %q", r.Settings, got)
	}
}

// Files that are broken in one way each: what comes in and what is said.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	const state, good = "state.json", `{"version":"2.0.0","loop_id":"x-0a0b0c0d","status":"running","iteration":0}`
	packed := string(foreignPack(t,
		[]byte(`{"checkpoint_id":"a","iteration":1,"description":"`+
			strings.Repeat("long and not to be packed well 0123456789 ", 9)+`"}`)))
	wrongSum := packed[:len(packed)-8] + "\x00\x00\x00\x00" + packed[len(packed)-4:]
	bomb := string(foreignPack(t, make([]byte, 65<<20)))
	deep := strings.Repeat("[", 2000)
	for name, test := range map[string]struct {
		file, text string
		kind, says string
		loops      int
	}{
		"empty":   {state, "", aiwgtree.NotRead, "nothing was imported", 0},
		"half":    {state, good[:30], aiwgtree.NotRead, "the part before it was imported", 1},
		"no json": {state, "status: running", aiwgtree.NotRead, "nothing was imported", 0},
		"text":    {state, `"x"`, aiwgtree.NotRead, "want object", 0},
		"two":     {state, good + good, aiwgtree.NotRead, "after the end", 1},
		"bytes": {state, strings.Replace(good, "running", "run\xffning", 1), aiwgtree.Corrected,
			"not UTF-8", 1},
		"deep": {state, `{"x":` + deep, aiwgtree.NotRead, "nested deeper than 1000", 1},
		"another loop": {state, strings.Replace(good, "x-0a", "y-0a", 1), aiwgtree.Corrected,
			"kept as loop_id_as_given", 1},
		"truncated gz": {"checkpoints/iteration-001.json.gz", packed[:len(packed)-20], aiwgtree.NotRead,
			"the part before it was imported", 1},
		"gz head only":  {"checkpoints/iteration-001.json.gz", packed[:15], aiwgtree.NotRead, "nothing was imported", 0},
		"gz of nothing": {"checkpoints/iteration-001.json.gz", "\x1f\x8b", aiwgtree.NotRead, "nothing was imported", 0},
		"wrong sum":     {"checkpoints/iteration-001.json.gz", wrongSum, aiwgtree.NotRead, "invalid checksum", 1},
		"bomb": {"checkpoints/iteration-001.json.gz", bomb, aiwgtree.NotRead,
			"more than 67108864 bytes", 0},
		"packed twice": {"checkpoints/iteration-001.json.gz", string(foreignPack(t, []byte(packed))),
			aiwgtree.NotRead, "nothing was imported", 0},
		"name without a number": {"iterations/iteration-x.json", `{"iteration":1}`, aiwgtree.Left,
			"not a file of the layout", 0},
		"number beyond sense": {"iterations/iteration-99999999.json", `{"iteration":1}`, aiwgtree.Left,
			"not a file of the layout", 0},
		"name and number": {"iterations/iteration-002.json", `{"iteration":1}`, aiwgtree.Corrected, "the name of the file is used",
			1},
		"line": {"hook-log.jsonl", `{"hook_name":"a","timestamp":"2026-02-02T21:10:05Z"`, aiwgtree.NotRead,
			"invalid JSON in the line", 1},
		"line of another loop": {"hook-log.jsonl", `{"hook_name":"a","timestamp":"2026-02-02T21:10:05Z","loop_id":"y"}`,
			aiwgtree.Corrected, "kept as loop_id_as_given", 1},
		"analytics": {"analytics/analytics.json", `[1]`, aiwgtree.NotRead, "want object", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "ralph/loops/x-0a0b0c0d/" + test.file
			dir := folder(t, nil)
			for file, text := range map[string]string{path: test.text, "rlm/some.txt": "x"} {
				full := filepath.Join(dir, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			r := importFrom(t, s, dir)
			found := slices.ContainsFunc(r.Notes, func(n aiwgtree.Note) bool {
				return n.Kind == test.kind && n.File == path && strings.Contains(n.Message, test.says)
			})
			if !found || r.Loops != test.loops {
				t.Errorf("%d loops, want %d; notes %+v", r.Loops, test.loops, r.Notes)
			}
			first := exportTo(t, s)
			allSchemas(t).all(t, content(t, first))
			roundTrip(t, s, dir, first)
		})
	}
}

// Every beginning of a state and of a packed checkpoint gives what is whole in it.
func TestEveryTruncation(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	state := `{"version":"2.0.0","loop_id":"x-0a0b0c0d","status":"running","iteration":3,` +
		`"iteration_history":[{"iteration":1,"quality_score":4},{"iteration":2}],"recovery_attempts":12}`
	check := string(foreignPack(t, []byte(`{"checkpoint_id":"a","iteration":1,"description":"something"}`)))
	ends := []int{strings.Index(state, `1,"quality`) + 1, strings.Index(state, `2}],`) + 1}
	for cut := range max(len(state), len(check)) + 1 {
		files := map[string]string{"rlm/some.txt": "", "ralph/loops/x-0a0b0c0d/state.json": state[:min(cut, len(state))]}
		if cut > 1 {
			files["ralph/loops/y-0a0b0c0d/checkpoints/iteration-001.json.gz"] = check[:min(cut, len(check))]
		}
		r := must[*aiwgtree.Report](t)(
			aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: folder(t, files), DryRun: true}))
		whole := 0
		for _, end := range ends {
			if cut > end {
				whole++
			}
		}
		broken := 0
		for file, size := range map[string]int{"x-0a0b0c0d/state.json": len(state),
			"y-0a0b0c0d/checkpoints/iteration-001.json.gz": len(check)} {
			if files["ralph/loops/"+file] != "" && cut < size || file[0] == 'x' && cut == 0 {
				broken++
				if !slices.ContainsFunc(r.Notes,
					func(n aiwgtree.Note) bool { return n.Kind == aiwgtree.NotRead && n.File == "ralph/loops/"+file }) {
					t.Errorf("cut at %d: nothing is said of %s: %+v", cut, file, r.Notes)
				}
			}
		}
		if broken == 0 && r.Count(aiwgtree.NotRead) > 0 {
			t.Errorf("cut at %d: %+v", cut, r.Notes)
		}
		if r.Iterations < whole || cut >= len(state) && r.Iterations != 4 {
			t.Errorf("cut at %d: %d iterations, want %d and perhaps one under way: %+v", cut, r.Iterations, whole, r.Notes)
		}
	}
}

// A dry run says what an import then does, and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"seed", "odd"} {
		files, _ := archive(t, name)
		dir := folder(t, files)
		s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		dry := must[*aiwgtree.Report](t)(aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: dir, DryRun: true}))
		if trees := must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{})); len(trees) > 0 {
			t.Errorf("the dry run made %d trees", len(trees))
		}
		done := importFrom(t, s, dir)
		done.DryRun = true
		if a, b := must[[]byte](t)(json.Marshal(dry)), must[[]byte](t)(json.Marshal(done)); !bytes.Equal(a, b) {
			t.Errorf("the dry run said\n%s\nthe import\n%s", a, b)
		}
	}
}

// A tree of another program that calls itself a loop is a tree.
func TestTreesThatAreNoLoops(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree := func(id, kind string) string {
		return fmt.Sprintf(`{"version":"1.0.0",%s"kind":%q,"root_task":{"node_id":"task-12345678","task_id":"task-0001",`+
			`"prompt":"p","state":"completed","children":[]},"metadata":{"loop_id":"x","key":"agent_persistence"}}`, id, kind)
	}
	importFrom(t, s, folder(t, map[string]string{"rlm/trees/tree-12345678/tree.json": tree(`"tree_id":"tree-12345678",`,
		"loop"), "rlm/trees/odd/tree.json": tree("", "settings")}))
	for _, tree := range must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{})) {
		if aiwgloops.Belongs(&tree) {
			t.Errorf("%s", tree.Config)
		}
	}
	if out := content(t, exportTo(t, s)); out["rlm/trees/tree-12345678/tree.json"] == "" {
		t.Errorf("not exported: %v", slices.Sorted(maps.Keys(out)))
	}
}

// The schemas of loops use no more of JSON Schema than this package reads, or
// what it fits would not be valid.
func TestSubset(t *testing.T) {
	t.Parallel()
	known := []string{"$schema", "$id", "$comment", "$ref", "$defs", "title", "description", "examples", "type", "enum",
		"const", "pattern", "format", "minimum", "maximum",
		"minLength", "maxLength", "minProperties", "required", "properties", "additionalProperties", "propertyNames", "items"}
	var walk func(name, at string, v any)
	walk = func(name, at string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			t.Errorf("%s%s: %v is not a schema", name, at, v)
			return
		}
		for key, value := range m {
			top := at == "" && (key == "anyOf" && name == "persistence-extension" || key == "oneOf" &&
				name == "persistence-hooks")
			if !slices.Contains(known, key) && !top {
				t.Errorf("%s%s: %s is not read", name, at, key)
			}
			switch key {
			case "properties", "$defs":
				for sub, s := range value.(map[string]any) {
					walk(name, at+"/"+key+"/"+sub, s)
				}
			case "additionalProperties", "propertyNames", "items":
				walk(name, at+"/"+key, value)
			case "format":
				if value != "date-time" {
					t.Errorf("%s%s: the format %v is not read", name, at, value)
				}
			}
		}
	}
	for _, name := range []string{"loop-state", "persistence-extension", "loop-checkpoint", "iteration-analytics",
		"persistence-hooks"} {
		var doc any
		if err := json.Unmarshal(must[[]byte](t)(schemas.FS.ReadFile(name+".json")), &doc); err != nil {
			t.Fatal(err)
		}
		walk(name, "", doc)
	}
}

func archives(t testing.TB) []*txtar.Archive {
	t.Helper()
	var list []*txtar.Archive
	for _, name := range must[[]string](t)(filepath.Glob("testdata/*.txtar")) {
		list = append(list, must[*txtar.Archive](t)(txtar.ParseFile(name)))
	}
	return list
}
