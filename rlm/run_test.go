package rlm_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
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
	for _, want := range []string{"Be brief.", "Read this.", `"a.txt" lines 1-1`, "first", `"b/c.txt" lines 1-2`,
		"second\nthird"} {
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

func TestSequentialSeesEarlierResults(t *testing.T) {
	t.Parallel()
	m := script(t, `replies: [{match: 'line 0*(\d+) ', text: 'part from {{1}}'}]`)
	b := newBench(t, models{"mock:m": m})
	id := b.put(file{"text.txt", numbered(300)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "strategy": "sequential", "chunk_tokens": 250, "overlap_tokens": -1,
		"max_children": 3, "mode": "logged"})
	got, root := b.finish(tree.ID, 8)
	if got.State != perdure.Completed {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	if m.Ledger().Peak() != 1 {
		t.Errorf("%d calls at once", m.Ledger().Peak())
	}
	leaves := b.leaves(tree.ID)
	for i, l := range leaves {
		calls, err := b.store.Calls(t.Context(), l.ID)
		b.ok(err)
		if len(calls) != 1 {
			t.Fatalf("%d calls of task %q", len(calls), l.ID)
		}
		request := string(calls[0].Data)
		for k, other := range leaves {
			if has := strings.Contains(request, other.Result+`\n`); has != (k < i) {
				t.Errorf("part %d sees the result of part %d: %v", i, k, has)
			}
		}
		if i > 0 && l.StartedAt.Before(leaves[i-1].CompletedAt) {
			t.Errorf("part %d began before part %d had ended", i, i-1)
		}
	}
}

// failing answers as echo does but for parts that hold one of the words.
func failing(t *testing.T, words string) models {
	t.Helper()
	return models{"mock:m": script(t, `replies:
  - {match: '(`+words+`) of', status: 400, message: no, repeat: -1}
  - {match: 'line 0*(\d+) ', text: 'part from {{1}}', repeat: -1}`)}
}

func TestPartialPolicyMergesWhatThereIs(t *testing.T) {
	t.Parallel()
	b := newBench(t, failing(t, "line 000003|line 000100"))
	id := b.put(file{"text.txt", numbered(300)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 250, "overlap_tokens": -1, "max_children": 3})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Partial {
		t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
	}
	parts := len(b.leaves(tree.ID))
	missing := data(t, &root).Missing
	if len(missing) != 2 || !strings.Contains(missing[0].Error, "no") ||
		!strings.HasPrefix(missing[0].Prompt, "[part 1 of ") {
		t.Errorf("missing are %+v", missing)
	}
	if n := strings.Count(root.Result, "part from"); n != parts-2 {
		t.Errorf("%d of %d parts are in the answer:\n%s", n, parts, root.Result)
	}
	if n := b.usage(tree.ID).Calls; int(n) != parts {
		t.Errorf("%d calls for %d parts, two of which the model refused for good", n, parts)
	}
}

func TestAllPartsFailed(t *testing.T) {
	t.Parallel()
	b := newBench(t, failing(t, `line 0\d+`))
	id := b.put(file{"text.txt", numbered(300)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 250, "max_children": 3})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Failed || root.Error == nil || root.Error.Kind != rlm.KindModel {
		t.Errorf("tree is %s with %+v", got.State, root.Error)
	}
}

// TestFailPolicyStops lets one part fail: the run fails, and what came before is
// kept. After a retry the parts that were never read are read, and no other.
func TestFailPolicyStops(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, `replies:
  - {match: 'line 000100 of', status: 400, message: no, repeat: 1}
  - {match: 'line 0*(\d+) ', text: 'part from {{1}}', repeat: -1}`)})
	id := b.put(file{"text.txt", numbered(300)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 250, "overlap_tokens": -1, "strategy": "sequential",
		"max_children": 3})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Failed || root.Error == nil || root.Error.Kind != rlm.KindModel {
		t.Fatalf("tree is %s with %+v", got.State, root.Error)
	}
	var plan struct {
		Node struct {
			Total int `json:"total"`
		} `json:"rlm"`
	}
	b.ok(json.Unmarshal(root.Metadata, &plan))
	parts := plan.Node.Total
	if calls := b.usage(tree.ID).Calls; parts < 10 || int(calls) != 5 {
		t.Errorf("%d calls of %d, the fifth failed", calls, parts)
	}
	b.ok(b.store.RetryTask(t.Context(), tree.Root))
	got, root = b.finish(tree.ID, 4)
	if got.State != perdure.Completed || got.Partial {
		t.Fatalf("after the retry the tree is %s, partial %v, with %+v", got.State, got.Partial, root.Error)
	}
	if n := strings.Count(root.Result, "part from"); n != parts {
		t.Errorf("%d of %d parts are in the answer:\n%s", n, parts, root.Result)
	}
	if n := b.usage(tree.ID).Calls; int(n) != parts+1 {
		t.Errorf("%d calls for %d parts of which one failed once", n, parts)
	}
}

func TestBatchAnswersForEachFile(t *testing.T) {
	t.Parallel()
	m := script(t, `replies:
  - {match: 'line 0*(\d+) of(?s:.*)\sSum up (\S+)\.', text: '{{2}} from {{1}}', repeat: -1}
  - {text: '?', repeat: -1}`)
	b := newBench(t, models{"mock:m": m})
	id := b.put(file{"a.txt", "line 7 of a\n"}, file{"empty.txt", ""}, file{"big.txt", numbered(200)},
		file{"z/c.txt", "line 9 of c\n"})
	tree := b.launch("Sum up {file}.", id, M{"model": "mock:m", "batch": true, "chunk_tokens": 500,
		"overlap_tokens": -1, "file_merge": "concatenate",
		"max_children": 2})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || got.Partial {
		t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
	}
	children, err := b.store.Tasks(t.Context(), perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root})
	b.ok(err)
	var prompts []string
	for _, c := range children {
		prompts = append(prompts, c.Prompt)
	}
	if diff := cmp.Diff([]string{"Sum up a.txt.", "Sum up empty.txt.", "Sum up big.txt.", "Sum up z/c.txt."},
		prompts); diff != "" {
		t.Error(diff)
	}
	want := "## a.txt\n\na.txt from 7\n\n## empty.txt\n\n(the file is empty)\n\n## big.txt\n\nbig.txt from "
	if !strings.HasPrefix(root.Result, want) || !strings.HasSuffix(root.Result, "\n\n## z/c.txt\n\nz/c.txt from 9") {
		t.Errorf("answer is %q", root.Result)
	}
}

func TestRetriesWhatMayPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, "replies: [{status: 503}, {text: fine}]")})
	tree := b.launch("p", "", M{"model": "mock:m"})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "fine" || root.Attempts != 2 {
		t.Errorf("tree is %s after %d attempts: %+v", got.State, root.Attempts, root.Error)
	}
	calls, err := b.store.Calls(t.Context(), tree.Root)
	b.ok(err)
	if len(calls) != 2 || calls[0].State != perdure.CallFailed || calls[1].State != perdure.CallCompleted {
		t.Errorf("calls are %+v", calls)
	}
}

func TestUnavailableModelHasItsKind(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, "replies: [{status: 401, message: no key, repeat: -1}]")})
	tree := b.launch("p", "", M{"model": "mock:m"})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Failed || root.Error.Kind != rlm.KindUnavailable || root.Attempts != 1 {
		t.Errorf("tree is %s after %d attempts: %+v", got.State, root.Attempts, root.Error)
	}
}

func TestLongAnswersAreStreamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, "replies: [{text: 'word ', size: 60000}]")})
	tree := b.launch("p", "", M{"model": "mock:m"})
	_, root := b.finish(tree.ID, 1)
	if len(root.Result) != 60_000 || len(root.Output) < 30_000 || !strings.HasPrefix(root.Result, root.Output) {
		t.Errorf("%d bytes were streamed of %d", len(root.Output), len(root.Result))
	}
}

func TestUnreadableModelOutputIsKeptReadable(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": script(t, "replies: [{text: fine, invalid_utf8: true}]")})
	tree := b.launch("p", "", M{"model": "mock:m"})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || !strings.HasPrefix(root.Result, "fine") || len(data(t, &root).Notes) != 1 {
		t.Errorf("tree is %s with %q, %s", got.State, root.Result, root.Data)
	}
}

func TestDamagedContextFailsTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	id := b.put(file{"text.txt", numbered(1000)})
	tree := b.launch("Read.", id, M{"model": "mock:m", "chunk_tokens": 2000})
	c, err := b.store.Context(t.Context(), id)
	b.ok(err)
	b.ok(filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(strings.ReplaceAll(path, string(filepath.Separator), ""),
			c.Pack[2:]) {
			return err
		}
		return errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 1000))
	}))
	b.close()
	b.open()
	got, root := b.finish(tree.ID, 2)
	if got.State != perdure.Failed || root.Error.Kind != string(perdure.CodeDamaged) || root.Attempts != 1 {
		t.Errorf("tree is %s after %d attempts: %+v", got.State, root.Attempts, root.Error)
	}
	if _, err := b.tryLaunch("Read.", id, M{"model": "mock:m"}); !errors.Is(err, perdure.ErrDamaged) {
		t.Errorf("launched on it: %v", err)
	}
}
