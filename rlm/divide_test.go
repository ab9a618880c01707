package rlm_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// limited is a model that reads fewer tokens than it is thought to.
const limited = "limit: %d\nreplies: [{text: '{{hash}}', repeat: -1}]"

// events counts the events of a tree by their kind.
func (b *bench) events(id perdure.TreeID) map[perdure.EventKind]int {
	b.Helper()
	counts := make(map[perdure.EventKind]int)
	for after := int64(0); ; {
		page, err := b.store.Events(b.Context(), perdure.EventFilter{Tree: id, After: after, Limit: 1000})
		b.ok(err)
		for _, e := range page {
			counts[e.Kind]++
			after = e.Seq
		}
		if len(page) < 1000 {
			return counts
		}
	}
}

// refused counts the calls that failed.
func (b *bench) refused(id perdure.TreeID) (refused, answered int) {
	b.Helper()
	for _, task := range b.tasks(id) {
		calls, err := b.store.Calls(b.Context(), task.ID)
		b.ok(err)
		for _, c := range calls {
			switch {
			case c.State == perdure.CallCompleted:
				answered++
			case c.Error != nil && c.Error.Kind == rlm.KindTooLong:
				refused++
			}
		}
	}
	return refused, answered
}

// TestTooLongIsDivided gives a run to a model that reads less than it is thought
// to: each text is read in smaller parts, all of it, and what was learned of the
// model saves the others the refusal.
func TestTooLongIsDivided(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		config M
	}{
		{"parallel", M{}},
		{"sequential", M{"strategy": "sequential"}},
		{"map-reduce", M{"strategy": "map-reduce"}},
		{"direct answer", M{"chunk_tokens": 0}},
		{"vote", M{"merge": "vote"}},
		{"samples", M{"merge": "vote", "chunk_tokens": 0}},
		{"narrow", M{"max_children": 2}},
		{"batch", M{"batch": true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, models{"mock:m": script(t, fmt.Sprintf(limited, 1200))})
			text := numbered(800) // 8,000 tokens
			id := b.put(file{"text.txt", text})
			config := M{"model": "mock:m", "chunk_tokens": 4000, "overlap_tokens": -1}
			maps.Copy(config, test.config)
			if config["chunk_tokens"] == 0 {
				delete(config, "chunk_tokens")
			}
			tree := b.launch("Read.", id, config)
			got, root := b.finish(tree.ID, 1)
			if got.State != perdure.Completed || got.Partial {
				t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
			}
			covered := make([]bool, len(text))
			for _, leaf := range b.leaves(tree.ID) {
				for i := leaf.Context.Offset; i < leaf.Context.Offset+leaf.Context.Length; i++ {
					covered[i] = true
				}
				if leaf.Context.SizeTokens > 1200 {
					t.Errorf("leaf %s has %d tokens", leaf.ID, leaf.Context.SizeTokens)
				}
			}
			for i, c := range covered {
				if !c {
					t.Fatalf("byte %d of the text was not read", i)
				}
			}
			refused, answered := b.refused(tree.ID)
			if refused == 0 || refused > 4 {
				t.Errorf("%d requests were refused (%d answered), want a few", refused, answered)
			}
			if n := b.events(tree.ID)[rlm.EventDivided]; n == 0 {
				t.Error("no event tells that a text was divided")
			}
			if notes := strings.Join(data(t, &root).Notes, "\n"); !strings.Contains(notes, "too long") {
				t.Errorf("the notes do not tell: %q", notes)
			}
		})
	}
}

// TestTooLongGoesToTheNext has a chain whose first model reads too little for the
// smallest part: the second one is asked then, and only then.
func TestTooLongGoesToTheNext(t *testing.T) {
	t.Parallel()
	small, large := script(t, fmt.Sprintf(limited, 200)), echo(t)
	chain, err := model.NewChain(model.Link{Name: "mock:small", Model: small},
		model.Link{Name: "mock:large", Model: large})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, models{"mock:small,mock:large": chain})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(200)}), M{"model": "mock:small,mock:large"})
	if got, root := b.finish(tree.ID, 1); got.State != perdure.Completed {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	leaves := b.leaves(tree.ID)
	by, few := large.Ledger().Totals().Finished, small.Ledger().Totals().Finished
	if by+few != len(leaves) || few > 1 || by < 4 {
		t.Errorf("the larger model was asked %d times, the smaller one answered %d, for %d parts", by, few, len(leaves))
	}
	for _, leaf := range leaves {
		if leaf.Context.SizeTokens > 700 {
			t.Errorf("the larger model was asked about %d tokens, before the text was divided", leaf.Context.SizeTokens)
		}
	}
}

// TestTooLongPrompt: what holds no text to divide fails, and says what to do.
func TestTooLongPrompt(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, fmt.Sprintf(limited, 1000))})
	long := strings.Repeat("word ", 2000)
	for name, id := range map[string]string{"without text": "", "with some": b.put(file{"text.txt", numbered(60)})} {
		tree := b.launch(long, id, M{"model": "mock:m"})
		got, root := b.finish(tree.ID, 1)
		if got.State != perdure.Failed || root.Error.Kind != rlm.KindTooLong ||
			!strings.Contains(root.Error.Message, "shorten the prompt") {
			t.Errorf("%s: tree is %s with %+v", name, got.State, root.Error)
		}
		if n := len(b.tasks(tree.ID)); n != 1 {
			t.Errorf("%s: %d tasks, want one", name, n)
		}
	}
}

// TestTooLongSummary summarizes results that the model cannot read at once,
// although it is thought to.
func TestTooLongSummary(t *testing.T) {
	t.Parallel()
	m := script(t, "limit: 1500\nreplies: [{match: 'parts? of one task', text: 'sum {{short}}'}, {text: '{{hash}}', "+
		"size: 1200, repeat: -1}]")
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(300)}),
		M{"model": "mock:m", "chunk_tokens": 400, "merge": "summarize"})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || got.Partial || !strings.HasPrefix(root.Result, "sum ") {
		t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	if notes := strings.Join(data(t, &root).Notes, "\n"); strings.Contains(notes, "middle") {
		t.Errorf("something was left out: %s", notes)
	}
	if refused, _ := b.refused(tree.ID); refused == 0 {
		t.Error("no request was refused: the test proves nothing")
	}
}

// TestDeathWhileDividing kills the process at each request of a run whose text
// are divided: no answer is asked for twice, and no refusal either once it is in
// the journal.
func TestDeathWhileDividing(t *testing.T) {
	t.Parallel()
	for _, merge := range []string{"merge", "summarize"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after the answer %v", merge, after), func(t *testing.T) {
				t.Parallel()
				text := "limit: 900\nreplies: [{match: 'parts? of one task', text: 'sum {{short}}'}, {text: '{{hash}}', size: " +
					"900, repeat: -1}]"
				m := &mortal{Model: script(t, text)}
				b := newBench(t, models{"mock:m": m})
				tree := b.launch("Read.", b.put(file{"text.txt", numbered(250)}),
					M{"model": "mock:m", "chunk_tokens": 1500, "merge": merge})
				deaths := 0
				for !b.die(m, tree.ID, 2, after) {
					deaths++
					b.close()
					b.open()
				}
				root, err := b.store.Task(t.Context(), tree.Root)
				b.ok(err)
				if root.State != perdure.Completed || deaths < 3 {
					t.Errorf("after %d deaths the root is %s: %+v", deaths, root.State, root.Error)
				}
				if got := m.Ledger().Repeated(); len(got) != 0 {
					t.Errorf("asked again: %+v", got)
				}
			})
		}
	}
}

// TestRetryKeepsDividedParts: when a person retries a tree of which a part below a
// divided text failed, its siblings are not asked again.
func TestRetryKeepsDividedParts(t *testing.T) {
	t.Parallel()
	m := script(t, "limit: 1200\nreplies: [{match: 'line 000150 ', status: 400, message: broken, repeat: 1}, {text: "+
		"'{{hash}}', repeat: -1}]")
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("Read.", b.put(file{"text.txt", numbered(400)}),
		M{"model": "mock:m", "policy": "fail", "overlap_tokens": -1})
	if got, root := b.finish(tree.ID, 1); got.State != perdure.Failed || m.Ledger().Totals().Finished == 0 {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	b.ok(b.store.RetryTask(t.Context(), tree.Root))
	if got, root := b.finish(tree.ID, 1); got.State != perdure.Completed || got.Partial {
		t.Fatalf("after the retry the tree is %s: %+v", got.State, root.Error)
	}
	if got := m.Ledger().Repeated(); len(got) != 0 {
		t.Errorf("asked again: %+v", got)
	}
}
