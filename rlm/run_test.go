package rlm_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

func TestAnswersDirectly(t *testing.T) {
	t.Parallel()
	m := script(t, "replies: [{match: 'capital', text: 'Paris'}]")
	b := newBench(t, models{"mock:m": m})
	tree := b.launch("What is the capital of France?", "", M{"model": "mock:m"})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || got.Partial || root.Result != "Paris" {
		t.Errorf("tree is %s (partial %v) with %q", got.State, got.Partial, root.Result)
	}
	if n := b.usage(tree.ID); n.Calls != 1 || n.InputTokens == 0 || n.UncertainCalls != 0 {
		t.Errorf("usage is %+v", n)
	}
	if n := len(b.tasks(tree.ID)); n != 1 {
		t.Errorf("%d tasks, want the root alone", n)
	}
}

func TestContextThatFitsIsReadAtOnce(t *testing.T) {
	t.Parallel()
	m := script(t, "replies: [{text: '{{prompt}}'}]")
	b := newBench(t, models{"mock:m": m})
	id := b.put(file{"a.txt", "first\n"}, file{"b/c.txt", "second\nthird\n"})
	tree := b.launch("Read this.", id, M{"model": "mock:m", "system": "Be brief."})
	_, root := b.finish(tree.ID, 1)
	for _, want := range []string{"Be brief.", "Read this.", `"a.txt" lines 1-1`, "first", `"b/c.txt" lines 1-2`, "second\nthird"} {
		if !strings.Contains(root.Result, want) {
			t.Errorf("the request does not hold %q:\n%s", want, root.Result)
		}
	}
	if n := len(b.tasks(tree.ID)); n != 1 {
		t.Errorf("%d tasks, want the root alone", n)
	}
}

// TestSplitReadsEveryByteOnce has each part answer with what it was given: put
// together, that is the context.
func TestSplitReadsEveryByteOnce(t *testing.T) {
	t.Parallel()
	m := echo(t)
	b := newBench(t, models{"mock:m": m})
	text := numbered(2000) // 80,000 bytes, 20,000 tokens
	id := b.put(file{"text.txt", text})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 500, "overlap_tokens": -1, "merge": "concatenate"})
	got, root := b.finish(tree.ID, 8)
	if got.State != perdure.Completed || got.Partial {
		t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
	}
	var at int64
	leaves := b.leaves(tree.ID)
	if len(leaves) < 40 {
		t.Errorf("%d parts of 500 tokens for 20,000", len(leaves))
	}
	var want []string
	for _, l := range leaves {
		if l.Context.Offset != at {
			t.Errorf("part %q begins at %d, the one before ended at %d", l.ID, l.Context.Offset, at)
		}
		if l.Context.Length > 2000 {
			t.Errorf("part %q has %d bytes", l.ID, l.Context.Length)
		}
		at += l.Context.Length
		want = append(want, l.Result)
	}
	if at != int64(len(text)) {
		t.Errorf("the parts end at %d of %d", at, len(text))
	}
	if n := m.Ledger().Totals(); n.Finished != len(leaves) || len(m.Ledger().Repeated()) != 0 {
		t.Errorf("%+v requests, %d repeated, for %d parts", n, len(m.Ledger().Repeated()), len(leaves))
	}
	if root.Result != strings.Join(want, "\n\n") {
		t.Error("the answer is not the parts' answers in the order of the text")
	}
	children := make(map[perdure.TaskID]int)
	for _, task := range b.tasks(tree.ID) {
		if children[task.Parent]++; children[task.Parent] > 10 {
			t.Errorf("task %q has more than 10 children", task.Parent)
		}
	}
}
