package rlm_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// gatedBench has a chain of two models of which the first is down.
func gatedBench(t *testing.T, second model.Model) *bench {
	t.Helper()
	chain, err := model.NewChain(model.Link{Name: "mock:a", Model: broken{}}, model.Link{Name: "mock:b", Model: second})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, models{"mock:a,mock:b": chain, "mock:a": broken{}})
	b.asking()
	return b
}

// asking has an executor that asks people.
func (b *bench) asking() {
	b.Helper()
	b.ok(b.exec.Close())
	var err error
	b.exec, err = rlm.New(rlm.ExecutorConfig{Store: b.store, Resolver: b.models, Gates: true})
	b.ok(err)
}

// rest works until nothing of the tree goes on any more.
func (b *bench) rest(id perdure.TreeID) {
	b.Helper()
	stop := b.work(4)
	defer stop()
	for {
		changed := b.store.Changed()
		runnable, err := b.store.Runnable(b.Context(), id)
		b.ok(err)
		if !runnable {
			return
		}
		<-changed
	}
}

// open returns the one unanswered gate of a tree.
func (b *bench) gate(id perdure.TreeID) perdure.Gate {
	b.Helper()
	list, err := b.store.Gates(b.Context(), id)
	b.ok(err)
	var open []perdure.Gate
	for _, g := range list {
		if g.AnsweredAt == nil {
			open = append(open, g)
		}
	}
	if len(open) != 1 {
		b.Fatalf("%d gates are open, want one: %+v", len(open), list)
	}
	problems, err := b.store.Check(b.Context())
	b.ok(err)
	if len(problems) > 0 {
		b.Fatalf("the store is not sound: %v", problems)
	}
	return open[0]
}

func (b *bench) decide(id perdure.TreeID, d perdure.GateDecision) perdure.Gate {
	b.Helper()
	d.By = "me"
	g, err := b.store.AnswerGate(b.Context(), id, b.gate(id).Number, d)
	b.ok(err)
	return g
}

// down is a model that does not answer about two of the parts at first.
const down = "replies: [{match: 'part [25] of', status: 400, message: down, repeat: 2}, {text: '{{hash}}', repeat: -1}]"

// launchToGate begins a run of which two parts wait at a gate.
func (b *bench) launchToGate() perdure.Tree {
	b.Helper()
	return b.toGate(M{})
}

// toGate does the same with more of a configuration.
func (b *bench) toGate(config M) perdure.Tree {
	b.Helper()
	maps.Copy(config, M{"model": "mock:a,mock:b", "chunk_tokens": 250, "max_attempts": 1})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(150)}), config)
	b.rest(tree.ID)
	if g := b.gate(tree.ID); g.Waiting != 2 || !g.Run || g.Kind != perdure.GateReassignment {
		b.Fatalf("gate is %+v", g)
	}
	p, err := b.store.Progress(b.Context(), tree.ID)
	b.ok(err)
	if p.Waiting != 3 || p.Running != 0 || p.Queued != 0 || p.Completed < 3 {
		b.Fatalf("progress at the gate: %+v", p)
	}
	return tree
}

// TestExhaustedChainWaits: all tasks for which no model is left wait at one gate,
// and what is decided there becomes of them.
func TestExhaustedChainWaits(t *testing.T) {
	t.Parallel()
	t.Run("retry", func(t *testing.T) {
		t.Parallel()
		m := script(t, down)
		b := gatedBench(t, m)
		tree := b.launchToGate()
		b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerRetry})
		if got, root := b.finish(tree.ID, 2); got.State != perdure.Completed || got.Partial {
			t.Errorf("tree is %s: %+v", got.State, root.Error)
		}
		if got := m.Ledger().Repeated(); len(got) != 0 {
			t.Errorf("asked again: %+v", got)
		}
	})
	t.Run("retry in vain", func(t *testing.T) {
		t.Parallel()
		b := gatedBench(t, script(t, strings.ReplaceAll(down, "repeat: 2", "repeat: 4")))
		tree := b.launchToGate()
		b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerRetry})
		b.rest(tree.ID)
		if g := b.gate(tree.ID); g.Number != 2 || g.Waiting != 2 {
			t.Errorf("after a retry in vain the gate is %+v", g)
		}
	})
	t.Run("skip", func(t *testing.T) {
		t.Parallel()
		b := gatedBench(t, script(t, down))
		tree := b.launchToGate()
		b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerSkip})
		got, root := b.finish(tree.ID, 2)
		missing := data(t, &root).Missing
		if got.State != perdure.Partial || len(missing) != 2 ||
			!strings.Contains(missing[0].Error, "skipped by me") {
			t.Errorf("tree is %s, partial %v, missing %+v", got.State, got.Partial, missing)
		}
		b.resumed(tree.ID, M{}) // the answer was for the parts as they were then
	})
	t.Run("abandon", func(t *testing.T) {
		t.Parallel()
		b := gatedBench(t, script(t, down))
		tree := b.launchToGate()
		b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerAbandon})
		if got, _ := b.finish(tree.ID, 2); got.State != perdure.Cancelled {
			t.Errorf("tree is %s", got.State)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		b := gatedBench(t, script(t, down))
		tree := b.launchToGate()
		_, err := b.store.CancelTree(t.Context(), tree.ID, "no")
		b.ok(err)
		if list, err := b.store.OpenGates(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("open gates of a tree that has ended: %+v, %v", list, err)
		}
		if _, err := b.store.AnswerGate(t.Context(), tree.ID, 1,
			perdure.GateDecision{Answer: perdure.AnswerRetry}); !errors.Is(err, perdure.ErrConflict) {
			t.Errorf("answer to a tree that has ended: %v", err)
		}
	})
}

// TestTimeLimitEndsAtAGate: what waits at a gate ends with the tree's time, and the
// tree with the finished parts.
func TestTimeLimitEndsAtAGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gatedBench(t, script(t, strings.ReplaceAll(down, "repeat: 2", "repeat: 4")))
		tree, other := b.toGate(M{"timeout": "20s"}), b.toGate(M{"timeout": "1h"})
		b.ok(b.store.ExpireGates(t.Context()))
		if g := b.gate(tree.ID); g.Waiting != 2 {
			t.Fatalf("before its time is over the gate is %+v", g)
		}
		<-time.After(20 * time.Second)
		for range 2 { // what was let go on waits no more
			b.ok(b.store.ExpireGates(t.Context()))
		}
		if g := b.gate(other.ID); g.Waiting != 2 {
			t.Errorf("the gate of another tree is %+v", g)
		}
		got, root := b.finish(tree.ID, 2)
		missing := data(t, &root).Missing
		if got.State != perdure.Partial || len(missing) != 2 ||
			!strings.Contains(missing[0].Error, "time limit passed") {
			t.Errorf("tree is %s, partial %v, missing %+v", got.State, got.Partial, missing)
		}
		if list, err := b.store.OpenGates(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("open gates: %+v, %v", list, err)
		}
	})
}

// TestByHand: what a person writes is the result of one task, and the gate stays for
// the others.
func TestByHand(t *testing.T) {
	t.Parallel()
	b := gatedBench(t, script(t, down))
	tree := b.launchToGate()
	refuse := func(want error, d perdure.GateDecision) {
		t.Helper()
		if _, err := b.store.AnswerGate(t.Context(), tree.ID, 1, d); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", d, err, want)
		}
	}
	refuse(perdure.ErrInvalid, perdure.GateDecision{Answer: perdure.AnswerManual, Text: "which?"})
	refuse(perdure.ErrInvalid, perdure.GateDecision{Answer: perdure.AnswerManual})
	refuse(perdure.ErrInvalid, perdure.GateDecision{Answer: perdure.AnswerRetry, Text: "x"})
	refuse(perdure.ErrNotFound, perdure.GateDecision{Answer: perdure.AnswerManual, Text: "x", Task: tree.Root})
	waiters, err := b.store.GateTasks(t.Context(), tree.ID, 1, 10)
	b.ok(err)
	for i, w := range waiters {
		g := b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerManual, Text: fmt.Sprintf("hand %d", i),
			Task: w.Task})
		if (g.AnsweredAt != nil) != (i == len(waiters)-1) {
			t.Errorf("after answer %d the gate is %+v", i, g)
		}
	}
	refuse(perdure.ErrConflict, perdure.GateDecision{Answer: perdure.AnswerRetry})
	got, root := b.finish(tree.ID, 2)
	if got.State != perdure.Completed || got.Partial || !strings.Contains(root.Result, "hand 0") ||
		!strings.Contains(root.Result, "hand 1") {
		t.Errorf("tree is %s, partial %v: %q", got.State, got.Partial, root.Result)
	}
	if notes := strings.Join(data(t, &root).Notes, "\n"); !strings.Contains(notes, "was written by me") {
		t.Errorf("the notes do not tell: %q", notes)
	}
}

// TestByHandSatisfiesTheSchema: what a person writes is checked like any result.
func TestByHandSatisfiesTheSchema(t *testing.T) {
	t.Parallel()
	b := gatedBench(t, script(t, "replies: [{status: 500, repeat: -1}]"))
	tree := b.launch("Count.", "",
		M{"model": "mock:a,mock:b", "max_attempts": 1, "schema": M{"type": "object", "required": []string{"n"}}})
	b.rest(tree.ID)
	b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerManual, Text: "none"})
	b.rest(tree.ID)
	if g := b.gate(tree.ID); g.Number != 2 || !strings.Contains(string(g.Question), "not valid against the schema") {
		t.Fatalf("gate is %+v: %s", g, g.Question)
	}
	b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerManual, Text: `{"n": 4}`})
	if got, root := b.finish(tree.ID, 1); got.State != perdure.Completed ||
		string(data(t, &root).Structured) != `{"n":4}` {
		t.Errorf("tree is %s with %s", got.State, data(t, &root).Structured)
	}
}

// TestWhoIsAsked: no gate opens for a single model, or when failures are wanted.
func TestWhoIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config M
		reply  string
		asked  bool
	}{
		"a chain":                      {M{"model": "mock:a,mock:b"}, "status: 500", true},
		"a chain that refuses":         {M{"model": "mock:a,mock:b"}, "status: 400", true},
		"a chain, to fail":             {M{"model": "mock:a,mock:b", "on_exhausted": "fail"}, "status: 500", false},
		"one model":                    {M{"model": "mock:a"}, "status: 500", false},
		"one model, to ask":            {M{"model": "mock:a", "on_exhausted": "gate"}, "status: 500", true},
		"a key that is wrong, all say": {M{"model": "mock:c,mock:d"}, "status: 401", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := gatedBench(t, script(t, "replies: [{"+c.reply+", repeat: -1}]"))
			wrong := script(t, "replies: [{status: 401, repeat: -1}]")
			chain, err := model.NewChain(model.Link{Name: "mock:c", Model: wrong}, model.Link{Name: "mock:d", Model: wrong})
			b.ok(err)
			b.models["mock:c,mock:d"] = chain
			c.config["max_attempts"] = 1
			tree := b.launch("Say.", "", c.config)
			b.rest(tree.ID)
			got, err := b.store.Tree(t.Context(), tree.ID)
			b.ok(err)
			if asked := got.State == perdure.Running; asked != c.asked {
				t.Errorf("tree is %s", got.State)
			}
		})
	}
}
