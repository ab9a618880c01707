package tree_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/schematest"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

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

func set(t testing.TB, s *perdure.Store, ref perdure.StateRef, name, value string) {
	t.Helper()
	_, err := s.SetVar(t.Context(), ref,
		perdure.VarSpec{Name: name, Value: json.RawMessage(value), Description: "is " + name})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t testing.TB, s *perdure.Store, ref perdure.StateRef, name string) {
	t.Helper()
	if _, err := s.SaveCheckpoint(t.Context(), ref, name, "at "+name); err != nil {
		t.Fatal(err)
	}
}

// lived fills a store with everything that there is to move.
func lived(t testing.TB, s *perdure.Store) perdure.TreeID {
	t.Helper()
	ctx := t.Context()
	tree := must[perdure.Tree](t)(
		s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Name: "the <first>",
			Config: json.RawMessage(`{"model":"mock:m","n":1.50}`),
			Limits: perdure.Limits{MaxNodes: 7}, Root: perdure.TaskSpec{Prompt: "ask & tell\u2028", Agent: "a",
				Metadata: json.RawMessage(`{"own":{"x":"<y>"}}`)}}))
	session := must[*perdure.Session](t)(s.OpenSession(ctx, "test"))
	leases := must[[]*perdure.Lease](t)(session.Claim(ctx, perdure.ClaimRequest{Max: 1}))
	kids := must[[]perdure.TaskID](t)(
		leases[0].Spawn(ctx, []perdure.TaskSpec{{Prompt: "one", Strategy: perdure.Sequential}, {Prompt: "two", Priority: 3},
			{Prompt: "three", Context: perdure.ContextRef{Type: "slice", Source: "book", Offset: 3, Length: 9, SizeTokens: 4}}}))
	root := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
	below := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: kids[0]}
	set(t, s, root, "plan", `{"b": 1, "a": [1, 2.50, "<x>"]}`)
	set(t, s, root, "long", `"`+strings.Repeat("l", perdure.MaxInlineBytes)+`"`)
	set(t, s, below, "n", `1`)
	set(t, s, below, "n", `2`)
	check(t, s, root, "first")
	set(t, s, root, "long", `["`+strings.Repeat("m", perdure.MaxInlineBytes)+`"]`)
	set(t, s, root, "gone", `null`)
	set(t, s, below, "n", `3`)
	if err := s.DeleteVar(ctx, root, "plan", perdure.Cause{Source: "test", Reason: "a reason"}); err != nil {
		t.Fatal(err)
	}
	must[perdure.Variable](t)(s.RenameVar(ctx, root, "gone", "renamed", perdure.Cause{}))
	check(t, s, below, "own")
	must[perdure.RollbackReport](t)(s.Rollback(ctx, root, "first", perdure.Cause{Source: "test"}))
	must[perdure.Variable](t)(s.IncrVar(ctx, root, "count", "5", perdure.Cause{}))
	finish(t, session, kids)
	other := must[perdure.Tree](t)(
		s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "not begun"}}))
	must[[]perdure.TaskID](t)(s.Submit(ctx, other.Root, perdure.TaskSpec{Prompt: "nor this"}))
	set(t, s, perdure.StateRef{Scope: perdure.ScopeGlobal}, "g", `true`)
	set(t, s, perdure.StateRef{Scope: perdure.ScopeGlobal}, "prompt", `"here it is a name like others"`)
	set(t, s, perdure.StateRef{Scope: perdure.ScopeSession, Session: "sess-1"}, "s", `"x"`)
	set(t, s, perdure.StateRef{Scope: perdure.ScopeSession, Session: "odd/../name"}, "s", `"y"`)
	set(t, s, perdure.StateRef{Scope: perdure.ScopeTemporary, Name: "tmp"}, "t", `[]`)
	_, err := s.SetVar(ctx, perdure.StateRef{Scope: perdure.ScopeTemporary, Name: "tmp"},
		perdure.VarSpec{Name: "soon", Value: json.RawMessage(`1`), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return tree.ID
}

// finish completes a child, fails one and cancels one, then completes the root.
func finish(t testing.TB, session *perdure.Session, kids []perdure.TaskID) {
	t.Helper()
	for {
		leases := must[[]*perdure.Lease](t)(session.Claim(t.Context(), perdure.ClaimRequest{Max: 1}))
		if len(leases) == 0 {
			return
		}
		l := leases[0]
		call, _, err := l.BeginCall(t.Context(), perdure.CallSpec{Model: "mock:m", RequestHash: "h"})
		if err == nil {
			err = l.SettleCall(t.Context(), call.ID, perdure.CallResult{Response: "r", Tries: 1, InputTokens: 3,
				OutputTokens: 2, CostMicros: new(int64)})
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.Task.ID == kids[1] {
			_, err = l.Fail(t.Context(), perdure.Failure{Kind: "model", Message: "refused <it>"})
		} else {
			err = l.Complete(t.Context(), perdure.Result{Text: "done " + l.Task.Prompt, Data: json.RawMessage(`{"y":[1]}`),
				Partial: true})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func exportTo(t testing.TB, s *perdure.Store, trees ...perdure.TreeID) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	report := func(_ context.Context, id perdure.TreeID, w io.Writer) error {
		p, err := s.Progress(t.Context(), id)
		if err == nil {
			_, err = io.WriteString(w, "# "+s.Dir()+" made this of "+p.CreatedAt.String()+"\n")
		}
		return err
	}
	if _, err := aiwgtree.Export(t.Context(), s, aiwgtree.ExportConfig{Dir: dir, Trees: trees, Report: report}); err !=
		nil {
		t.Fatal(err)
	}
	return dir
}

func importFrom(t testing.TB, s *perdure.Store, path string) *aiwgtree.Report {
	t.Helper()
	r, err := aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := statetest.Sound(t.Context(), s); err != nil {
		t.Error(err)
	}
	return r
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

// What is exported, imported elsewhere and exported again is the same bytes, and
// all of it is valid.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		a := testdb.Open(t, cfg)
		lived(t, a)
		first := exportTo(t, a)
		validAll(t, first)
		b := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		// Numbers of the other store are others.
		set(t, b, perdure.StateRef{Scope: perdure.ScopeTemporary, Name: "shifts"}, "numbers", "1")
		r := importFrom(t, b, first)
		want := aiwgtree.Report{Path: first, Trees: 2, Tasks: 6, States: 7, Variables: r.Variables, Mutations: r.Mutations,
			Checkpoints: 9,
			Files:       3, Notes: []aiwgtree.Note{}}
		if diff := cmp.Diff(&want, r); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		second := exportTo(t, b)
		have := content(t, second)
		for name := range have {
			if strings.HasPrefix(name, "rlm/temp/shifts/") {
				delete(have, name)
			}
		}
		if diff := cmp.Diff(content(t, first), have); diff != "" {
			t.Errorf("the second export differs (-first +second):\n%.8000s", diff)
		}
		for _, s := range []*perdure.Store{a, b} { // what is there already
			before := content(t, exportTo(t, s))
			r = importFrom(t, s, first)
			if r.Trees+r.Tasks+r.States+r.Variables > 0 || r.PresentTrees != 2 || r.PresentTasks != 6 ||
				r.PresentStates != 7 || len(r.Notes) > 0 {
				t.Errorf("the second import: %+v", r)
			}
			if diff := cmp.Diff(before, content(t, exportTo(t, s))); diff != "" {
				t.Errorf("the second import changed something:\n%.3000s", diff)
			}
		}
	})
}

// TestExportPartial: a partial tree is written as completed, a status that readers of the layout
// know, with a flag, and is partial again after an import.
func TestExportPartial(t *testing.T) {
	t.Parallel()
	a, b := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree := must[perdure.Tree](t)(a.CreateTree(t.Context(),
		perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}}))
	session := must[*perdure.Session](t)(a.OpenSession(t.Context(), "test"))
	leases := must[[]*perdure.Lease](t)(session.Claim(t.Context(), perdure.ClaimRequest{Max: 1}))
	if err := leases[0].Complete(t.Context(), perdure.Result{Text: "half", Partial: true}); err != nil {
		t.Fatal(err)
	}
	dir := exportTo(t, a)
	validAll(t, dir)
	text := content(t, dir)["rlm/trees/"+string(tree.ID)+"/tree.json"]
	var doc struct {
		Metadata struct {
			Status  string
			Partial bool
		}
	}
	err := json.Unmarshal([]byte(text), &doc)
	if err != nil || doc.Metadata.Status != "completed" || !doc.Metadata.Partial {
		t.Errorf("the export is %s, %v", text, err)
	}
	importFrom(t, b, dir)
	if got := must[perdure.Tree](t)(b.Tree(t.Context(), tree.ID)); !got.Partial {
		t.Errorf("the imported tree is %+v", got)
	}
}

// An export that fails leaves nothing, so that the same command works after the fault is mended.
func TestFailedExportLeavesNothing(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	lived(t, s)
	full := errors.New("the disk is full")
	outer := t.TempDir()
	for dir, want := range map[string][]string{filepath.Join(outer, "new"): nil, t.TempDir(): {}} {
		written := false
		cfg := aiwgtree.ExportConfig{Dir: dir, Report: func(context.Context, perdure.TreeID, io.Writer) error {
			written = len(content(t, dir)) > 0
			return full
		}}
		if _, err := aiwgtree.Export(t.Context(), s, cfg); !errors.Is(err, full) || !written {
			t.Fatalf("the export failed with %v; files were written: %v", err, written)
		}
		var left []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if len(left) > 0 || errors.Is(err, fs.ErrNotExist) != (want == nil) {
			t.Errorf("left in %s: %q, %v", dir, left, err)
		}
		cfg.Report = nil
		must[*aiwgtree.ExportReport](t)(aiwgtree.Export(t.Context(), s, cfg))
	}
}

// Rollbacks go on working where a history was imported.
func TestImportedHistoryWorks(t *testing.T) {
	t.Parallel()
	a, b := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	id := lived(t, a)
	importFrom(t, b, exportTo(t, a))
	tree := must[perdure.Tree](t)(b.Tree(t.Context(), id))
	root := perdure.StateRef{Scope: perdure.ScopeTree, Tree: id}
	list := must[[]perdure.Mutation](t)(b.History(t.Context(), root, perdure.HistoryFilter{}))
	for _, m := range list {
		if m.Operation == "rollback" {
			must[perdure.RollbackReport](t)(b.Rollback(t.Context(), root, m.ID.String(), perdure.Cause{}))
		}
	}
	for name, want := range map[string]string{"renamed": "null",
		"long": `["` + strings.Repeat("m", perdure.MaxInlineBytes) + `"]`} {
		v := must[perdure.Variable](t)(b.Var(t.Context(), root, name))
		if string(v.Value) != want {
			t.Errorf("%s is %.50s", name, v.Value)
		}
	}
	kids := must[[]perdure.Task](t)(b.Tasks(t.Context(), perdure.TaskFilter{Tree: id, Parent: &tree.Root}))
	v := must[perdure.Variable](t)(
		b.Var(t.Context(), perdure.StateRef{Scope: perdure.ScopeTree, Tree: id, Task: kids[0].ID}, "n"))
	if string(v.Value) != "3" {
		t.Errorf("n of the child is %s, want 3 as before the rollback", v.Value)
	}
}

// validAll holds every JSON file of a layout against its published schema.
func validAll(t testing.TB, dir string) {
	t.Helper()
	compile := func(name string) *schematest.Schema { return schematest.Published(t, name) }
	tasks, tree, state := compile("tasks-file"), compile("rlm-task-tree"), compile("rlm-state")
	node, snapshot := compile("task-record"), compile("state-checkpoint")
	loop := compile("loop-state") // aiwgloop's tests hold the rest of loops against schemas
	for name, text := range content(t, dir) {
		var schema *schematest.Schema
		base := filepath.Base(name)
		switch {
		case strings.HasPrefix(name, "ralph/") && base == "state.json":
			schema = loop
		case strings.HasPrefix(name, "ralph/"):
			continue
		case base == "tasks.json":
			schema = tasks
		case base == "tree.json":
			schema = tree
		case base == "state.json" || base == "global-state.json":
			schema = state
		case strings.Contains(name, "/nodes/"):
			schema = node
		case strings.Contains(name, "/checkpoints/"):
			schema = snapshot
		default:
			continue
		}
		if err := schema.ValidateJSON([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
