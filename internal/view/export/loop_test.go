package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/view/export"
	"github.com/perdure/perdure/loop/record"
)

// looped is a loop with a baseline, some iterations and a gate. The first two
// have the same results.
func looped(t *testing.T, s *perdure.Store, iterations int) perdure.TreeID {
	t.Helper()
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := s.CreateTree(ctx,
		perdure.TreeSpec{Kind: perdure.KindLoop, Name: "fix-it", Root: perdure.TaskSpec{Prompt: "Fix it"}})
	ok(err)
	session, err := s.OpenSession(ctx, "test")
	ok(err)
	t.Cleanup(func() { _ = session.Close(t.Context()) }) // the store closes it too
	leases, err := session.Claim(ctx, perdure.ClaimRequest{Max: 1})
	ok(err)
	records := record.New(s)
	ok(records.Create(ctx, record.Loop{Tree: tree.ID, Place: ":/x", Status: record.Running, Step: "begin",
		State: json.RawMessage("{}")}))
	l, err := records.Loop(ctx, tree.ID)
	ok(err)
	for n := range iterations + 1 {
		ref, err := s.PutBlob(ctx, strings.NewReader(fmt.Sprintf("results %d <&>", max(n, 1))))
		ok(err)
		data, err := json.Marshal(&state.Outcome{Iteration: n, Check: state.Check{Results: ref.Hash}})
		ok(err)
		l.Iteration = n
		change := record.Change{Loop: &l, Iteration: &record.Iteration{Number: n, Task: leases[0].Task.ID,
			Status: record.IterationKept, Data: data}, Blobs: []perdure.BlobRef{ref}}
		if n == 1 {
			change.FalseAlarms = []record.FalseAlarm{{Fingerprint: "0123456789abcdef", Iteration: 1, By: "ann"}}
			change.Gate = &perdure.Gate{Iteration: n, Kind: perdure.GateStuck,
				Question: json.RawMessage(`{"title":"stuck","options":[]}`)}
		}
		ok(records.Save(ctx, leases[0], change))
	}
	return tree.ID
}

// An export of a loop has its rows and the results of its tests, which nothing
// but these rows name.
func TestExportLoop(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		const iterations = 120 // more than a page
		id := looped(t, s, iterations)
		var out bytes.Buffer
		if err := export.Write(t.Context(), s, &out, export.Config{Tree: id, WithoutContext: true}); err != nil {
			t.Fatal(err)
		}
		lines := read(t, out.Bytes())
		checkEnd(t, out.Bytes(), lines)
		counts := lines[len(lines)-1].Counts
		delete(counts, "event")
		want := map[string]int64{"manifest": 1, "tree": 1, "loop": 1, "iteration": iterations + 1, "blob": iterations,
			"content": iterations, "gate": 1, "false_alarm": 1, "task": 1}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		results := ""
		for _, l := range lines {
			if l.Type == "content" {
				results += *l.Text
			}
		}
		if !strings.HasPrefix(results, "results 1 <&>results 2 <&>") ||
			!strings.HasSuffix(results, fmt.Sprintf("results %d <&>", iterations)) {
			t.Errorf("the results are %.100q", results)
		}
	})
}

// A loop whose process died before it began is a tree like others.
func TestExportLoopNeverBegun(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree, err := s.CreateTree(t.Context(),
		perdure.TreeSpec{Kind: perdure.KindLoop, Root: perdure.TaskSpec{Prompt: "Fix it"}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := export.Write(t.Context(), s, &out, export.Config{Tree: tree.ID}); err != nil {
		t.Fatal(err)
	}
	checkEnd(t, out.Bytes(), read(t, out.Bytes()))
}

// A run that waits at a gate is exported with it.
func TestExportGateOfARun(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "Why?"}})
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.OpenSession(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(t.Context()) }) // the store closes it too
	leases, err := session.Claim(t.Context(), perdure.ClaimRequest{Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = leases[0].WaitAtGate(t.Context(), perdure.GateReassignment,
		perdure.GateQuestion{Title: "?", Text: "no model answers"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := export.Write(t.Context(), s, &out, export.Config{Tree: tree.ID}); err != nil {
		t.Fatal(err)
	}
	lines := read(t, out.Bytes())
	checkEnd(t, out.Bytes(), lines)
	if n := lines[len(lines)-1].Counts["gate"]; n != 1 || !strings.Contains(out.String(), "no model answers") {
		t.Errorf("%d gates:\n%s", n, &out)
	}
}
