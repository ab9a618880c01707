package loop_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/testing/testdb"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// saved has the rows of an input in a store, and a log of hooks in a folder of
// loops.
func saved(t testing.TB, s *perdure.Store, in *loopview.Input, dir string) perdure.Tree {
	t.Helper()
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: perdure.KindLoop, Name: in.Tree.Name, Config: in.Tree.Config,
		Root: perdure.TaskSpec{Prompt: "Fix it"}})
	ok(err)
	session, err := s.OpenSession(ctx, "test")
	ok(err)
	t.Cleanup(func() { _ = session.Close(ctx) }) // the store closes it too
	leases, err := session.Claim(ctx, perdure.ClaimRequest{Max: 1})
	ok(err)
	records := record.New(s)
	row := in.Loop
	row.Tree = tree.ID
	row.Place += string(tree.ID)
	ok(records.Create(ctx, row))
	now, err := records.Loop(ctx, tree.ID)
	ok(err)
	row.Version = now.Version
	for i := range in.Iterations {
		ok(records.Save(ctx, leases[0], record.Change{Loop: &row, Iteration: &in.Iterations[i]}))
	}
	for i := range in.Gates {
		g := in.Gates[i]
		ok(records.Save(ctx, leases[0], record.Change{Loop: &row, Gate: &g}))
		if in.Gates[i].Answer != "" {
			_, err := s.AnswerGate(ctx, tree.ID, g.Number,
				perdure.GateDecision{Answer: g.Answer, By: g.AnsweredBy, Reason: g.Reason})
			ok(err)
		}
	}
	if in.Loop.Status.Ended() {
		ok(leases[0].Complete(ctx, perdure.Result{Text: "done"}))
	}
	log, err := hook.OpenLog(hook.LogConfig{Path: filepath.Join(dir, loop.ID(&tree), "hook-log.jsonl")})
	ok(err)
	for n := range 3 {
		ok(log.Append(hook.Record{Time: when(n), Hook: hook.PreIteration, LoopID: loop.ID(&tree), Iteration: n,
			Handler: "<built in>", Kind: "built-in", Verdict: hook.Allow,
			StateChanges: map[string]any{"reinforcement_level": "MINIMAL\u2028"}}))
	}
	ok(log.Close())
	return tree
}

// exported are the files of a store in the layout.
func exported(t testing.TB, s *perdure.Store, dir string) (folder string, files map[string]string) {
	t.Helper()
	folder, files = filepath.Join(t.TempDir(), ".aiwg"), make(map[string]string)
	if _, err := aiwgtree.Export(t.Context(), s,
		aiwgtree.ExportConfig{Dir: folder, Loop: loopview.Layout(t.Context(), s, dir)}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(path[len(folder)+1:])] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder, files
}

// checkLayout holds the files of a loop against their schemas.
func checkLayout(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		inside := strings.SplitN(name, "/", 4)
		if inside[0] != "ralph" {
			continue
		}
		place, schema := inside[3], ""
		switch {
		case place == "state.json":
			schema = "loop-state"
			valid(t, "persistence-extension", json.RawMessage(text))
		case place == "analytics/analytics.json":
			schema = "iteration-analytics"
		case strings.HasPrefix(place, "checkpoints/"):
			z, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			unpacked, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			schema, text = "loop-checkpoint", string(unpacked)
		default:
			continue
		}
		valid(t, schema, json.RawMessage(text))
	}
}

// What runs here goes out in the layout: valid, read elsewhere without a
// correction, and from there the same bytes.
func TestLayoutRoundTrip(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		loops := t.TempDir()
		ended, asking := scene{t, "Fix <the> tests & \u2028 \ufffd it"}.done(), scene{t, "Ask"}.asking()
		first := saved(t, s, &ended, loops)
		saved(t, s, &asking, loops)
		if _, err := s.CreateTree(t.Context(),
			perdure.TreeSpec{Kind: perdure.KindLoop, Root: perdure.TaskSpec{Prompt: "never begun"}}); err != nil {
			t.Fatal(err)
		}
		folder, files := exported(t, s, loops)
		checkLayout(t, files)
		place := "ralph/loops/ralph-" + loop.ID(&first) + "/"
		for _, name := range []string{"state.json", "analytics/analytics.json", "analytics/report.md", "hook-log.jsonl",
			"iterations/iteration-008.json", "checkpoints/iteration-008.json.gz"} {
			if files[place+name] == "" {
				t.Errorf("there is no %s", name)
			}
		}
		if strings.Count(files["daemon/tasks.json"], `"id":`) != 1 {
			t.Errorf("the file of tasks has parts of loops: %.300s", files["daemon/tasks.json"])
		}
		if n := strings.Count(files[place+"hook-log.jsonl"], "\n"); n != 3 {
			t.Errorf("the log has %d lines, want 3", n)
		}

		// It comes back to where it is from, and is known there.
		r, err := aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: folder})
		if err != nil || r.PresentLoops != 2 || r.Loops != 0 {
			t.Errorf("imported where it is from: %+v, %v", r, err)
		}
		other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		if r, err = aiwgtree.Import(t.Context(), other, aiwgtree.ImportConfig{Path: folder}); err != nil || r.Loops != 2 ||
			r.Iterations != 8+7 {
			t.Fatalf("imported elsewhere: %+v, %v", r, err)
		}
		for _, n := range r.Notes {
			t.Errorf("imported elsewhere: %+v", n)
		}
		_, again := exported(t, other, loops)
		for name := range files {
			if !strings.HasPrefix(name, "ralph/") {
				delete(files, name)
				delete(again, name)
			}
		}
		if diff := cmp.Diff(files, again); diff != "" {
			t.Errorf("not the same bytes again (-first +again):\n%.3000s", diff)
		}
	})
}

// In the layout snapshots are files, as other programs expect; which they are
// here is next to it.
func TestLayoutPaths(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	in := scene{t, "Fix it"}.done()
	tree := saved(t, s, &in, t.TempDir())
	_, files := exported(t, s, t.TempDir())
	place := "ralph/loops/ralph-" + loop.ID(&tree) + "/"
	var d struct {
		Best           map[string]any `json:"best_iteration"`
		LastCheckpoint string         `json:"last_checkpoint"`
		Report         string         `json:"completion_report_path"`
	}
	if err := json.Unmarshal([]byte(files[place+"state.json"]), &d); err != nil {
		t.Fatal(err)
	}
	if d.Best["snapshot_path"] != ".aiwg/"+place+"iterations/iteration-008.json" || d.Best["snapshot_id"] != "after-8" {
		t.Errorf("best: %v", d.Best)
	}
	for _, path := range []string{d.LastCheckpoint, d.Report} {
		if files[strings.TrimPrefix(path, ".aiwg/")] == "" {
			t.Errorf("%q is not there", path)
		}
	}
	var it struct {
		Record state.Outcome `json:"record"`
	}
	if err := json.Unmarshal([]byte(files[place+"iterations/iteration-007.json"]), &it); err != nil {
		t.Fatal(err)
	}
	if it.Record.AgentText == "" || len(it.Record.Regressions) == 0 {
		t.Errorf("the file of an iteration lacks what the store has of it: %+v", it.Record)
	}
	if !bytes.Contains([]byte(files[place+"analytics/report.md"]), []byte("Fix it")) {
		t.Error("the report is of something else")
	}
}
