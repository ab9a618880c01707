package record_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
	"github.com/perdure/perdure/loop/record"
)

func TestMain(m *testing.M) {
	testenv.Set()
	os.Exit(m.Run())
}

// bench is a loop whose root is leased.
type bench struct {
	*testing.T
	store   *perdure.Store
	records *record.Records
	session *perdure.Session
	tree    perdure.Tree
	loop    record.Loop
	lease   *perdure.Lease
}

func newBench(t *testing.T, store *perdure.Store) *bench {
	t.Helper()
	b := &bench{T: t, store: store, records: record.New(store)}
	var err error
	b.session, err = store.OpenSession(t.Context(), "test")
	b.ok(err)
	t.Cleanup(func() { _ = b.session.Close(t.Context()) })
	b.tree = b.create()
	b.loop = record.Loop{Tree: b.tree.ID, Place: "here:/w", Status: record.Running, Step: "start",
		State: json.RawMessage(`{"n":1}`)}
	b.ok(b.records.Create(t.Context(), b.loop))
	b.loop, err = b.records.Loop(t.Context(), b.tree.ID)
	b.ok(err)
	b.lease = b.claim()
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) create() perdure.Tree {
	b.Helper()
	tree, err := b.store.CreateTree(b.Context(),
		perdure.TreeSpec{Kind: perdure.KindLoop, Root: perdure.TaskSpec{Prompt: "fix it"}})
	b.ok(err)
	return tree
}

func (b *bench) claim() *perdure.Lease {
	b.Helper()
	leases, err := b.session.Claim(b.Context(), perdure.ClaimRequest{Max: 1, Trees: []perdure.TreeID{b.tree.ID}})
	b.ok(err)
	if len(leases) == 0 {
		return nil
	}
	return leases[0]
}

func (b *bench) kinds() []perdure.EventKind {
	b.Helper()
	events, err := b.store.Events(b.Context(), perdure.EventFilter{Tree: b.tree.ID})
	b.ok(err)
	var kinds []perdure.EventKind
	for _, e := range events {
		if strings.HasPrefix(string(e.Kind), "loop.") {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

func code(err error) perdure.Code { return perdure.CodeOf(err) }

func TestSaveAll(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		quality, ended := 85, time.Now().UTC().Truncate(time.Microsecond)
		ref, err := store.PutBlob(t.Context(), strings.NewReader("results"))
		b.ok(err)
		b.loop.Step, b.loop.Iteration, b.loop.State = "act", 1, json.RawMessage(`{"n":2}`)
		it := record.Iteration{Number: 1, Task: b.lease.Task.ID, Status: record.IterationKept, Quality: &quality,
			Data: json.RawMessage(`{"a":1}`), EndedAt: &ended}
		gate := perdure.Gate{Iteration: 1, Kind: perdure.GateRecovery,
			Question: json.RawMessage(`{"title":"Why?","options":[{"answer":"approve","effect":"go on"},{"answer":"reject"}]}`)}
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Iteration: &it, Gate: &gate,
			Blobs:  []perdure.BlobRef{ref},
			Events: []record.Event{{Kind: "loop.step", Data: map[string]any{"step": "act"}}}}))
		got, err := b.records.Loop(t.Context(), b.tree.ID)
		b.ok(err)
		if diff := cmp.Diff(b.loop, got); diff != "" {
			t.Error(diff)
		}
		its, err := b.records.Iterations(t.Context(), b.tree.ID, 0, 10)
		b.ok(err)
		if diff := cmp.Diff([]record.Iteration{it}, its, cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
			t.Error(diff)
		}
		open, err := b.store.OpenGates(t.Context())
		b.ok(err)
		if len(open) != 1 || open[0].Number != 1 || open[0].Tree != b.tree.ID || open[0].Kind != perdure.GateRecovery {
			t.Errorf("open gates: %+v", open)
		}
		if diff := cmp.Diff([]perdure.EventKind{perdure.EventLoopGateOpened, "loop.step"}, b.kinds()); diff != "" {
			t.Error(diff)
		}
		if problems, err := store.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("the store: %v, %v", problems, err)
		}
	})
}

// TestSaveIsAllOrNothing: what refuses one part of a change keeps out the rest.
func TestSaveIsAllOrNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		it := &record.Iteration{Number: 1, Status: record.IterationRunning, Data: json.RawMessage(`{}`)}
		gone := perdure.BlobRef{Hash: strings.Repeat("ab", 32), Size: 1}
		before := b.loop
		for name, c := range map[string]struct {
			change record.Change
			want   perdure.Code
		}{
			"a blob that is gone": {record.Change{Loop: &b.loop, Iteration: it, Blobs: []perdure.BlobRef{gone}},
				perdure.CodeNotFound},
			"state that is none": {record.Change{Loop: &record.Loop{Tree: b.tree.ID, State: json.RawMessage(`{`)},
				Iteration: it}, perdure.CodeInvalid},
			"a long record": {record.Change{Loop: &b.loop, Iteration: &record.Iteration{Number: 2,
				Data: json.RawMessage(`"` + strings.Repeat("x", record.MaxIterationBytes) + `"`)}}, perdure.CodeInvalid},
			"an event that is none": {record.Change{Loop: &b.loop, Iteration: it,
				Events: []record.Event{{Kind: "loop.x", Data: 7}}}, perdure.CodeInvalid},
		} {
			if err := b.records.Save(t.Context(), b.lease, c.change); code(err) != c.want {
				t.Errorf("%s: %v", name, err)
			}
		}
		old := before
		old.Version--
		if err := b.records.Save(t.Context(), b.lease,
			record.Change{Loop: &old, Iteration: it}); code(err) != perdure.CodeConflict {
			t.Errorf("an old version: %v", err)
		}
		b.ok(b.lease.Release(t.Context()))
		if err := b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Iteration: it}); !errors.Is(err,
			perdure.ErrLeaseLost) {
			t.Errorf("without the lease: %v", err)
		}
		got, err := b.records.Loop(t.Context(), b.tree.ID)
		b.ok(err)
		its, err := b.records.Iterations(t.Context(), b.tree.ID, 0, 10)
		b.ok(err)
		briefs, err := b.records.Briefs(t.Context(), b.tree.ID, 0, 10)
		b.ok(err)
		if got.Version != before.Version || len(its) != 0 || len(briefs) != 0 || len(b.kinds()) != 0 {
			t.Errorf("something was kept: %+v, %+v, %v", got, its, b.kinds())
		}
	})
}

// TestOneLoopInAPlace: a second one is refused by the name of the first, until
// that has ended.
func TestOneLoopInAPlace(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		b.ok(b.records.Create(t.Context(), b.loop)) // again, after a crash
		second := b.loop
		second.Tree = b.create().ID
		err := b.records.Create(t.Context(), second)
		if code(err) != perdure.CodeConflict || !strings.Contains(err.Error(), string(b.tree.ID)) {
			t.Errorf("a second loop: %v", err)
		}
		for place, refused := range map[string]bool{b.loop.Place + "/sub": true, "here:/": true, b.loop.Place + "2": false,
			"other" + b.loop.Place: false} {
			beside := second
			beside.Tree, beside.Place = b.create().ID, place
			err := b.records.Create(t.Context(), beside)
			if refused != (code(err) == perdure.CodeConflict) {
				t.Errorf("a loop in %q beside one in %q: %v", place, b.loop.Place, err)
			}
		}
		b.loop.Status = record.Aborted
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop}))
		b.ok(b.records.Create(t.Context(), second))
		if err := b.records.Ask(t.Context(), b.tree.ID, record.Pause); code(err) != perdure.CodeConflict {
			t.Errorf("a request to a loop that has ended: %v", err)
		}
		list, err := b.records.Loops(t.Context(), 10)
		b.ok(err)
		if len(list) != 4 || list[2].Tree != second.Tree || list[3].Status != record.Aborted {
			t.Errorf("loops: %+v", list)
		}
	})
}

// TestGateWakesItsLoop: a parked loop is not claimed until its gate is answered, and
// only an answer that the gate takes is one.
func TestGateWakesItsLoop(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		gate := perdure.Gate{Kind: perdure.GateStuck,
			Question: json.RawMessage(`{"title":"?","options":[{"answer":"abort"},{"answer":"continue"}]}`)}
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Gate: &gate}))
		b.ok(b.lease.Park(t.Context(), time.Now().Add(1000*time.Hour)))
		if l := b.claim(); l != nil {
			t.Fatal("a parked task is claimed")
		}
		if _, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1,
			perdure.GateDecision{Answer: "approve"}); code(err) != perdure.CodeInvalid {
			t.Errorf("an answer that is none: %v", err)
		}
		if _, err := b.store.AnswerGate(t.Context(), b.tree.ID, 2,
			perdure.GateDecision{Answer: "abort"}); code(err) != perdure.CodeNotFound {
			t.Errorf("a gate that is none: %v", err)
		}
		if l := b.claim(); l != nil {
			t.Fatal("a refused answer woke the loop")
		}
		g, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1, perdure.GateDecision{Answer: "continue", By: "ann",
			Reason: "seen"})
		b.ok(err)
		if g.Answer != "continue" || g.AnsweredBy != "ann" || g.AnsweredAt == nil {
			t.Errorf("answered: %+v", g)
		}
		if _, err := b.store.AnswerGate(t.Context(), b.tree.ID, 1,
			perdure.GateDecision{Answer: "abort"}); code(err) != perdure.CodeConflict {
			t.Errorf("a second answer: %v", err)
		}
		if open, err := b.store.OpenGates(t.Context()); err != nil || len(open) != 0 {
			t.Errorf("open gates: %+v, %v", open, err)
		}
		l := b.claim()
		if l == nil || l.Task.Attempts != 1 {
			t.Fatalf("the loop does not go on: %+v", l)
		}
	})
}

// TestControl: a control request wakes a parked loop, is read with it, and is gone once
// it was handled.
func TestControl(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		b.ok(b.lease.Park(t.Context(), time.Now().Add(time.Hour)))
		b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Pause))
		if b.lease = b.claim(); b.lease == nil {
			t.Fatal("the request does not wake the loop")
		}
		got, err := b.records.Loop(t.Context(), b.tree.ID)
		b.ok(err)
		if got.Control != record.Pause {
			t.Fatalf("the request is %q", got.Control)
		}
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &got})) // not handled yet
		if got, err = b.records.Loop(t.Context(), b.tree.ID); err != nil || got.Control != record.Pause {
			t.Fatalf("the request is %q, %v", got.Control, err)
		}
		got.Status = record.Paused
		b.ok(b.records.Ask(t.Context(), b.tree.ID, record.Abort)) // while it pauses
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &got, Fulfilled: record.Pause}))
		if got, err = b.records.Loop(t.Context(), b.tree.ID); err != nil || got.Control != record.Abort {
			t.Errorf("a request was lost: %q, %v", got.Control, err)
		}
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &got, Fulfilled: record.Abort}))
		if got, err = b.records.Loop(t.Context(), b.tree.ID); err != nil || got.Control != record.NoControl ||
			got.Status != record.Paused {
			t.Errorf("loop is %+v, %v", got, err)
		}
	})
}

// TestLoopsGoWithTheirTrees: retention leaves nothing of them.
func TestLoopsGoWithTheirTrees(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		it := &record.Iteration{Number: 1, Status: record.IterationKept, Data: json.RawMessage(`{}`)}
		gate := &perdure.Gate{Kind: perdure.GateStuck, Question: json.RawMessage(`{"title":"?","options":[]}`)}
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Iteration: it, Gate: gate,
			FalseAlarms: []record.FalseAlarm{{Fingerprint: "0123456789abcdef"}}}))
		b.ok(b.lease.Complete(t.Context(), perdure.Result{Text: "done"}))
		b.ok(store.RemoveTree(t.Context(), b.tree.ID))
		if _, err := store.Prune(t.Context(), perdure.PruneRequest{}); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"loop", "iteration", "brief", "gate", "false_alarm"} {
			var n int64
			b.ok(store.Reader().QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
			if n != 0 {
				t.Errorf("%d rows of %s are left", n, table)
			}
		}
	})
}

func TestNoLoop(t *testing.T) {
	t.Parallel()
	store := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r := record.New(store)
	if _, err := r.Loop(t.Context(), "tree-00000000"); code(err) != perdure.CodeNotFound {
		t.Errorf("Loop: %v", err)
	}
	if err := r.Ask(t.Context(), "tree-00000000", record.Pause); code(err) != perdure.CodeNotFound {
		t.Errorf("Ask: %v", err)
	}
	if list, err := store.Gates(t.Context(), "tree-00000000"); err != nil || len(list) != 0 {
		t.Errorf("Gates: %v, %v", list, err)
	}
}

func TestLimitsChange(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Limits: &perdure.Limits{Tokens: 10}}))
		if _, _, err := b.lease.BeginCall(t.Context(), perdure.CallSpec{Model: "m", RequestHash: "1",
			ReserveTokens: 11}); code(err) != perdure.CodeBudgetExceeded {
			t.Errorf("a call beyond the new limit: %v", err)
		}
		tree, err := store.Tree(t.Context(), b.tree.ID)
		b.ok(err)
		if tree.Limits.Tokens != 10 {
			t.Errorf("limits of the tree: %+v", tree.Limits)
		}
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Limits: &perdure.Limits{Tokens: 100}}))
		if _, _, err := b.lease.BeginCall(t.Context(), perdure.CallSpec{Model: "m", RequestHash: "1",
			ReserveTokens: 11}); err != nil {
			t.Errorf("a call within the raised limit: %v", err)
		}
	})
}
