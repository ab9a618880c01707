package transfer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/cli/env"
)

// counted holds the numbers of imported and of present objects.
func counted(r tree.Report) [7]int {
	return [7]int{r.Trees, r.Tasks, r.States, r.Variables, r.PresentTrees, r.PresentTasks, r.PresentStates}
}

// A folder is imported completely, once, also if its name contains characters of globs.
func TestLayoutThereAndBack(t *testing.T) {
	t.Parallel()
	from, to := newProject(t, "from"), newProject(t, "to [x]")
	s := from.store()
	made := from.lived(s)
	set(from, s, perdure.StateRef{Scope: perdure.ScopeGlobal}, "g", `true`)
	_, err := s.SaveCheckpoint(t.Context(), perdure.StateRef{Scope: perdure.ScopeGlobal}, "first", "")
	from.ok(err)
	out := filepath.Join(to.dir, "out", ".aiwg")
	if text := from.must("export", "--layout", "aiwg", out); text != "" {
		t.Errorf("standard output has %q", text)
	}

	if r := to.report(env.StatusDone, out, "--dry-run"); !r.DryRun || counted(r) != [7]int{1, 2, 2, 4} {
		t.Errorf("dry run: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(to.dir, ".perdure")); !os.IsNotExist(err) {
		t.Errorf("the dry run made a store: %v", err)
	}
	if r := to.report(env.StatusDone, "out"); r.DryRun || counted(r) != [7]int{1, 2, 2, 4} || r.Checkpoints != 3 {
		t.Errorf("import: %+v", r)
	}
	if r := to.report(env.StatusDone, "out"); counted(r) != [7]int{0, 0, 0, 0, 1, 2, 2} {
		t.Errorf("second import: %+v", r)
	}
	if r := to.report(env.StatusDone, "out", "--dry-run"); counted(r) != [7]int{0, 0, 0, 0, 1, 2, 2} {
		t.Errorf("dry run behind it: %+v", r)
	}

	got := to.store()
	trees, err := got.Trees(t.Context(), perdure.TreeFilter{})
	to.ok(err)
	if len(trees) != 1 || trees[0].Kind != perdure.KindRecord || trees[0].State != perdure.Completed {
		t.Fatalf("trees: %+v", trees)
	}
	root, err := got.Task(t.Context(), trees[0].Root)
	to.ok(err)
	if root.Prompt != "the question" || root.Result != "the answer to the question" {
		t.Errorf("root: %+v", root)
	}
	if diff := cmp.Diff(values(from, s, perdure.StateRef{Scope: perdure.ScopeTree, Tree: made.ID}),
		values(to, got, perdure.StateRef{Scope: perdure.ScopeTree, Tree: trees[0].ID})); diff != "" {
		t.Errorf("variables of the tree: -want +got\n%s", diff)
	}
}

func TestLayoutOfOneTree(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	s := p.store()
	p.lived(s)
	made := p.lived(s)
	p.must("export", "--layout", "aiwg", "out", string(made.ID), string(made.ID)) // twice is once
	if r := newProject(t, "other").report(env.StatusDone, filepath.Join(p.dir, "out")); r.Trees != 1 || r.Tasks != 2 {
		t.Errorf("%+v", r)
	}
	if _, _, status := p.run("export", "--layout", "aiwg", "out"); status == env.StatusDone {
		t.Error("a folder that is there was written over")
	}
}

// The flags select the place of a state, or else its document does.
func TestStateThereAndBack(t *testing.T) {
	t.Parallel()
	from := newProject(t, "from")
	s := from.store()
	made := from.lived(s)
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: made.ID}
	want := values(from, s, ref)
	file := filepath.Join(from.dir, "state.json")
	from.must("export", "--state", "--tree", string(made.ID), "-o", "state.json")
	for args, ref := range map[string]perdure.StateRef{
		"--scope global": {Scope: perdure.ScopeGlobal},
		"--session me":   {Scope: perdure.ScopeSession, Session: "me"},
		"--name short":   {Scope: perdure.ScopeTemporary, Name: "short"},
	} {
		to := newProject(t, "to")
		r := to.report(env.StatusDone, append([]string{"--state", file}, strings.Fields(args)...)...)
		if r.States != 1 || r.Variables != 3 {
			t.Errorf("%s: %+v", args, r)
		}
		if diff := cmp.Diff(want, values(to, to.store(), ref)); diff != "" {
			t.Errorf("%s: -want +got\n%s", args, diff)
		}
	}
}

func set(p *project, s *perdure.Store, ref perdure.StateRef, name, value string) {
	p.Helper()
	_, err := s.SetVar(p.Context(), ref, perdure.VarSpec{Name: name, Value: json.RawMessage(value)})
	p.ok(err)
}

func values(p *project, s *perdure.Store, ref perdure.StateRef) map[string]string {
	p.Helper()
	list, err := s.Vars(p.Context(), ref, perdure.VarFilter{})
	p.ok(err)
	all := make(map[string]string)
	for _, v := range list {
		all[v.Name] = string(v.Value)
	}
	return all
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	s := p.store()
	made, other := p.lived(s), p.lived(s)
	p.put("empty/readme", "")
	p.put("text", "not JSON")
	p.put("other.json", `{"name":"x"}`)
	p.put(".aiwg/ralph/loops/x-0a0b0c0d/state.json", `{"loop_id":"x"}`)
	p.put("state.json", `{"variables":{}}`)
	for _, test := range []struct {
		args   string
		status int
	}{
		{"", env.StatusUsage},
		{"a b", env.StatusUsage},
		{"nothing", env.StatusNotFound},
		{"empty", env.StatusUsage},
		{"empty --state", env.StatusUsage},
		{"other.json", env.StatusUsage},
		{".aiwg/ralph/loops/x-0a0b0c0d/state.json", env.StatusUsage},
		{"state.json --scope global", env.StatusUsage},
		{"state.json --state --scope world", env.StatusUsage},
		{"state.json --state --scope tree", env.StatusUsage},
		{"state.json --state --tree " + string(made.ID) + " --session s", env.StatusUsage},
		{"state.json --state --tree tree-00000000", env.StatusNotFound},
		{"state.json --state --task task-9999", env.StatusNotFound},
		{"state.json --state --tree " + string(made.ID) + " --task " + other.Root.String(), env.StatusNotFound},
	} {
		out, notes, status := p.run(append([]string{"import"}, strings.Fields(test.args)...)...)
		if status != test.status || out != "" || !strings.HasPrefix(notes, "perdure: error: ") {
			t.Errorf("import %s ended with status %d, want %d: %s%s", test.args, status, test.status, out, notes)
		}
	}
	if trees, err := s.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) != 2 {
		t.Errorf("%d trees, %v", len(trees), err)
	}
}

// Unreadable parts are listed with their places, and the others are imported.
func TestImportIncomplete(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	p.put(".aiwg/rlm/global-state.json", "{\n  \"variables\": {\"a\": {\"value\": }}\n}")
	p.put(".aiwg/rlm/sessions/s1/state.json", `{"session_id":"s1","variables":{"x":{"value":1}}}`)
	r := p.report(env.StatusIncomplete, ".")
	for _, note := range r.Notes {
		if note.Kind == tree.NotRead && (note.File != "rlm/global-state.json" || note.Line != 2 || note.Column == 0) {
			t.Errorf("note: %+v", note)
		}
	}
	if r.Count(tree.NotRead) == 0 {
		t.Errorf("nothing is said of what could not be read: %+v", r)
	}
	if got := values(p, p.store(), perdure.StateRef{Scope: perdure.ScopeSession, Session: "s1"}); got["x"] != "1" {
		t.Errorf("the other state has %v", got)
	}
	for _, args := range [][]string{{".aiwg/rlm/global-state.json"}, {"--state", ".aiwg/rlm/global-state.json"},
		{"--state", "--scope", "global", ".aiwg/rlm/global-state.json"}} {
		if r := p.report(env.StatusIncomplete, args...); r.Variables != 0 || r.Count(tree.NotRead) == 0 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// The text has one line for each note, at most a hundred of a kind, without control
// characters.
func TestImportPrints(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	for i := range 130 {
		p.put(fmt.Sprintf(".aiwg/rlm/extra-%03d.bin", i), "x")
	}
	p.put(".aiwg/rlm/sessions/s/state.json", `{"session_id":"s","variables":{"x":{"value":1}}}`)
	p.put(".aiwg/rlm/sessions/\x1b[31mred/state.json", `{"variables": [`)
	out, notes, status := p.run("import", ".aiwg")
	if status != env.StatusIncomplete || notes != "" {
		t.Errorf("status %d, %q", status, notes)
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("the output has an escape sequence: %q", out)
	}
	if shown := strings.Count(out, "extra-"); shown != 100 || !strings.Contains(out, "30 more") {
		t.Errorf("%d notes of one kind are shown:\n%s", shown, out)
	}
}

// The history and the checkpoints in the folder of a state are imported with it,
// whatever the name of the folder is.
func TestImportOneState(t *testing.T) {
	t.Parallel()
	from := newProject(t, "from")
	s := from.store()
	ref := perdure.StateRef{Scope: perdure.ScopeSession, Session: "s1"}
	for i := range 3 {
		set(from, s, ref, "n", fmt.Sprint(i))
		_, err := s.SaveCheckpoint(t.Context(), ref, fmt.Sprint("c", i), "")
		from.ok(err)
	}
	for _, name := range []string{"plain", "[a-b]*?"} {
		to := newProject(t, name)
		from.must("export", "--layout", "aiwg", filepath.Join(to.dir, ".aiwg"))
		to.put(".aiwg/rlm/sessions/s1/checkpoints/other.json",
			`{"checkpoint_id":"ckpt-0000beef","name":"beside","timestamp":"2026-01-02T03:04:05Z","state":{}}`)
		r := to.report(env.StatusDone, ".aiwg/rlm/sessions/s1/state.json")
		if r.States != 1 || r.Mutations != 3 || r.Checkpoints != 5 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// With --strict, a folder that is not as the schemas have it is refused as a whole, with
// every reason.
func TestImportStrict(t *testing.T) {
	t.Parallel()
	p := newProject(t, "p")
	p.put("state.json", `{"state_id":"state-00000001","variables":{}}`)
	out, notes, status := p.run("import", "--strict", "state.json")
	if status != env.StatusConflict || !strings.Contains(out, "nothing was imported") ||
		!strings.Contains(out, "state.json:1:1: state \"state-00000001\": there is no version") {
		t.Errorf("status %d: %s%s", status, out, notes)
	}
	if out := p.must("import", "state.json"); !strings.Contains(out, "imported 0 trees, 0 tasks, 1 state") {
		t.Errorf("without --strict: %s", out)
	}
}
