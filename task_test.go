package perdure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func states() []perdure.State {
	return []perdure.State{perdure.Queued, perdure.Running, perdure.Waiting, perdure.Completed, perdure.Failed,
		perdure.Cancelled}
}

func TestTransitionTable(t *testing.T) {
	t.Parallel()
	want := map[perdure.State]string{
		perdure.Queued:    "running cancelled",
		perdure.Running:   "queued running waiting completed failed cancelled",
		perdure.Waiting:   "queued failed cancelled",
		perdure.Failed:    "queued waiting",
		perdure.Completed: "queued waiting",
		perdure.Cancelled: "queued waiting",
	}
	for _, from := range states() {
		var may []string
		for _, to := range states() {
			if from.CanBecome(to) {
				may = append(may, string(to))
			}
		}
		if got := strings.Join(may, " "); got != want[from] {
			t.Errorf("%s may become %q, want %q", from, got, want[from])
		}
		if from.Terminal() != (from == perdure.Completed || from == perdure.Failed || from == perdure.Cancelled) {
			t.Errorf("%s.Terminal() = %v", from, from.Terminal())
		}
	}
	if perdure.State("other").CanBecome(perdure.Queued) {
		t.Error("an unknown state may become queued")
	}
}

// bring makes a task of a state, with the lease that brought it there.
func bring(t *testing.T, s *perdure.Store, state perdure.State) *perdure.Lease {
	t.Helper()
	ctx := t.Context()
	r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{MaxAttempts: 1}})
	var err error
	switch state {
	case perdure.Queued:
		err = r.root.Release(ctx)
	case perdure.Running:
		t.Fatal("the lease of a running task is good")
	case perdure.Waiting:
		submit(t, s, r.tree.Root, 1)
		err = r.root.Wait(ctx)
	case perdure.Completed:
		complete(t, r.root, "")
	case perdure.Failed:
		fail(t, r.root, perdure.Failure{})
	case perdure.Cancelled:
		_, err = s.CancelTask(ctx, r.tree.Root, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := readTask(t, s, r.tree.Root).State; got != state {
		t.Fatalf("task is %s, want %s", got, state)
	}
	return r.root
}

// requests are all ways to ask for a state.
func requests() map[string]struct {
	to  perdure.State
	ask func(ctx context.Context, s *perdure.Store, l *perdure.Lease) error
} {
	type request = struct {
		to  perdure.State
		ask func(ctx context.Context, s *perdure.Store, l *perdure.Lease) error
	}
	return map[string]request{
		"release": {perdure.Queued, func(ctx context.Context, _ *perdure.Store, l *perdure.Lease) error {
			return l.Release(ctx)
		}},
		"retry": {perdure.Queued, func(ctx context.Context, s *perdure.Store, l *perdure.Lease) error {
			return s.RetryTask(ctx, l.Task.ID)
		}},
		"wait": {perdure.Waiting, func(ctx context.Context, _ *perdure.Store, l *perdure.Lease) error { return l.Wait(ctx) }},
		"spawn": {perdure.Waiting, func(ctx context.Context, _ *perdure.Store, l *perdure.Lease) error {
			_, err := l.Spawn(ctx, make([]perdure.TaskSpec, 2))
			return err
		}},
		"complete": {perdure.Completed, func(ctx context.Context, _ *perdure.Store, l *perdure.Lease) error {
			return l.Complete(ctx, perdure.Result{Text: "late"})
		}},
		"fail": {perdure.Failed, func(ctx context.Context, _ *perdure.Store, l *perdure.Lease) error {
			_, err := l.Fail(ctx, perdure.Failure{Kind: "late"})
			return err
		}},
		"cancel": {perdure.Cancelled, func(ctx context.Context, s *perdure.Store, l *perdure.Lease) error {
			_, err := s.CancelTask(ctx, l.Task.ID, "late")
			return err
		}},
	}
}

// What the table does not have is refused, by an error that names the task, the
// state it is in and the state asked for, and changes nothing.
func TestRefusedTransitions(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for _, from := range states() {
			if from == perdure.Running {
				continue
			}
			for name, r := range requests() {
				if r.ask == nil || name == "cancel" && from.CanBecome(perdure.Cancelled) || name == "retry" &&
					from == perdure.Failed {
					continue
				}
				l := bring(t, s, from)
				before := dump(t, s)
				err := r.ask(t.Context(), s, l)
				var state *perdure.StateError
				if !errors.As(err, &state) {
					t.Errorf("%s of a task that is %s: %v, want a StateError", name, from, err)
					continue
				}
				if *state != (perdure.StateError{Task: l.Task.ID, Is: from, Want: r.to}) {
					t.Errorf("%s of a task that is %s: %+v", name, from, *state)
				}
				for _, word := range []string{l.Task.ID.String(), string(from), string(r.to)} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%s of a task that is %s: %v does not name %s", name, from, err, word)
					}
				}
				if diff := cmp.Diff(before, dump(t, s)); diff != "" {
					t.Errorf("%s of a task that is %s changed:\n%s", name, from, diff)
				}
			}
		}
		sound(t, s)
	})
}

// A task completes only after its children, so a root after all descendants.
func TestCompleteAfterChildren(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		submit(t, s, r.tree.Root, 1)
		before := dump(t, s)
		wantCode(t, "complete over a child", r.root.Complete(t.Context(), perdure.Result{}), perdure.CodeConflict)
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Errorf("the refusal changed:\n%s", diff)
		}
		complete(t, claimOne(t, r.ss), "")
		complete(t, r.root, "")
		sound(t, s)
	})
}

// Spawn is one transaction: all children and the wait, or nothing.
func TestSpawn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{Limits: perdure.Limits{MaxNodes: 3}})
		before := dump(t, s)
		_, err := r.root.Spawn(t.Context(), make([]perdure.TaskSpec, 3))
		wantCode(t, "spawn over the limit", err, perdure.CodeBudgetExceeded)
		if got := readTask(t, s, r.tree.Root); got.State != perdure.Running || got.Pending != 0 {
			t.Errorf("after the refusal the task is %s with %d children", got.State, got.Pending)
		}
		if len(dump(t, s)) != len(before)+1 { // the event about the limit
			t.Error("the refusal left rows")
		}
		ids, err := r.root.Spawn(t.Context(), make([]perdure.TaskSpec, 2))
		if err != nil || len(ids) != 2 {
			t.Fatalf("spawned %v, %v", ids, err)
		}
		if got := readTask(t, s, r.tree.Root); got.State != perdure.Waiting || got.Pending != 2 {
			t.Errorf("the parent is %s with %d children", got.State, got.Pending)
		}
		_, err = r.root.Spawn(t.Context(), nil)
		wantCode(t, "spawn of nothing", err, perdure.CodeInvalid)
		sound(t, s)
	})
}

// Tasks of a parallel parent do not wait for each other, however few are claimed.
func TestParallelWaitsForNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Strategy: perdure.Parallel}})
		all := submit(t, s, r.tree.Root, 3)
		claim(t, r.ss, 1)
		for _, id := range all {
			if got := readTask(t, s, id); got.WaitsFor != 0 {
				t.Errorf("%s waits for %s", id, got.WaitsFor)
			}
		}
	})
}

// The next step of a sequence is not claimable before the previous one ended,
// whatever is added, left out or cancelled meanwhile.
func TestSequence(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{
			Root: perdure.TaskSpec{Strategy: perdure.Sequential, Policy: perdure.PolicyPartial}})
		steps := submit(t, s, r.tree.Root, 3)
		first := claim(t, r.ss, 5)
		if len(first) != 1 || first[0].Task.ID != steps[0] {
			t.Fatalf("claimed %d tasks, want the first step", len(first))
		}
		if got := readTask(t, s, steps[1]); got.State != perdure.Queued || got.WaitsFor != steps[0] || !got.ReadyAt.IsZero() {
			t.Errorf("second step: %s, waits for %s", got.State, got.WaitsFor)
		}
		if _, err := s.CancelTask(ctx, steps[1], "not needed"); err != nil {
			t.Fatal(err)
		}
		if got := readTask(t, s, steps[2]); got.WaitsFor != steps[0] {
			t.Errorf("third step waits for %s, want the first", got.WaitsFor)
		}
		if got := claim(t, r.ss, 5); len(got) != 0 {
			t.Fatalf("claimed %s while the first step runs", got[0].Task.ID)
		}
		if _, err := s.CancelTask(ctx, steps[2], "not needed"); err != nil {
			t.Fatal(err)
		}
		added := submit(t, s, r.tree.Root, 1)
		if got := claim(t, r.ss, 5); len(got) != 0 {
			t.Fatalf("claimed %s, which was added while the first step runs", got[0].Task.ID)
		}
		complete(t, first[0], "")
		if got := claimOne(t, r.ss); got.Task.ID != added[0] {
			t.Errorf("claimed %s, want the added step", got.Task.ID)
		}
		sound(t, s)
	})
}

// A step that is added and the end of the step before it may share a
// transaction.
func TestSequenceTogether(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Strategy: perdure.Sequential}})
		submit(t, s, r.tree.Root, 1)
		step := claimOne(t, r.ss)
		release := perdure.HoldWriter(ctx, s)
		errs := make(chan error, 2)
		go func() {
			_, err := s.Submit(ctx, r.tree.Root, perdure.TaskSpec{})
			errs <- err
		}()
		awaitQueue(s, 1)
		go func() { errs <- step.Complete(ctx, perdure.Result{}) }()
		awaitQueue(s, 2)
		if err := errors.Join(release(), <-errs, <-errs); err != nil {
			t.Fatal(err)
		}
		complete(t, claimOne(t, r.ss), "")
		sound(t, s)
	})
}

// The first child without a result cancels the others when the policy is fail,
// and only then.
func TestPolicies(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		for _, policy := range []perdure.Policy{perdure.PolicyFail, perdure.PolicyPartial} {
			r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Policy: policy}})
			ids, err := r.root.Spawn(t.Context(), []perdure.TaskSpec{{MaxAttempts: 1}, {}, {}})
			if err != nil {
				t.Fatal(err)
			}
			children := claim(t, r.ss, 3)
			below := submit(t, s, ids[1], 1)[0]
			fail(t, children[0], perdure.Failure{Retry: true})
			want, parent := perdure.Running, perdure.Waiting
			if policy == perdure.PolicyFail {
				want, parent = perdure.Cancelled, perdure.Queued
			}
			if got := readTask(t, s, ids[1]).State; got != want {
				t.Errorf("%s: a sibling is %s, want %s", policy, got, want)
			}
			if got := readTask(t, s, below).State.Terminal(); got != (policy == perdure.PolicyFail) {
				t.Errorf("%s: a task below a sibling is terminal: %v", policy, got)
			}
			if got := readTask(t, s, r.tree.Root).State; got != parent {
				t.Errorf("%s: the parent is %s, want %s", policy, got, parent)
			}
			if err := children[1].Complete(t.Context(), perdure.Result{}); policy == perdure.PolicyFail {
				wantCode(t, "complete a cancelled sibling", err, perdure.CodeLeaseLost)
			}
			if _, err := s.CancelTree(t.Context(), r.tree.ID, ""); err != nil {
				t.Fatal(err)
			}
		}
		sound(t, s)
	})
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		tree := createTree(t, s, perdure.TreeSpec{})
		ss := openSession(t, s)
		for attempt := 1; attempt <= perdure.DefaultMaxAttempts; attempt++ {
			l := claimOne(t, ss)
			if l.Task.Attempts != attempt {
				t.Errorf("attempt %d, want %d", l.Task.Attempts, attempt)
			}
			retried := fail(t, l, perdure.Failure{Kind: "model", Message: "no", Retry: true})
			if retried != (attempt < perdure.DefaultMaxAttempts) {
				t.Errorf("attempt %d: retried %v", attempt, retried)
			}
		}
		task := readTask(t, s, tree.Root)
		if task.State != perdure.Failed || task.Error == nil ||
			*task.Error != (perdure.TaskError{Kind: "model", Message: "no"}) {
			t.Errorf("the task is %s, %+v", task.State, task.Error)
		}
		if err := s.RetryTask(ctx, tree.Root); err != nil {
			t.Fatal(err)
		}
		l := claimOne(t, ss)
		if fail(t, l, perdure.Failure{Retry: true, After: time.Hour}) {
			t.Error("a person's retry gave more than one attempt")
		}
		if got, err := s.Tree(ctx, tree.ID); err != nil || got.State != perdure.Failed || got.CompletedAt == nil {
			t.Errorf("tree %+v, %v", got, err)
		}
		sound(t, s)
	})
}

// A retry is not claimable before its time.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		fail(t, r.root, perdure.Failure{Retry: true, After: time.Hour})
		if got := claim(t, r.ss, 1); len(got) != 0 {
			t.Error("claimed an hour early")
		}
		if got := time.Until(readTask(t, s, r.tree.Root).ReadyAt); got < 50*time.Minute || got > 61*time.Minute {
			t.Errorf("ready in %v, want an hour", got)
		}
	})
}

// A retry by a person queues the failed ancestors too; what is final stays so.
func TestRetryTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		r := leased(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{MaxAttempts: 1}})
		ids, err := r.root.Spawn(ctx, []perdure.TaskSpec{{MaxAttempts: 1}, {MaxAttempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		children := claim(t, r.ss, 2)
		complete(t, children[0], "kept")
		fail(t, children[1], perdure.Failure{})
		fail(t, claimOne(t, r.ss), perdure.Failure{Kind: "incomplete"})
		if err := s.RetryTask(ctx, ids[1]); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[perdure.TaskID]perdure.State{ids[0]: perdure.Completed, ids[1]: perdure.Queued,
			r.tree.Root: perdure.Waiting} {
			if got := readTask(t, s, id); got.State != want {
				t.Errorf("%s is %s, want %s", id, got.State, want)
			}
		}
		if got, err := s.Tree(ctx, r.tree.ID); err != nil || got.State != perdure.Running || got.CompletedAt != nil {
			t.Errorf("tree %+v, %v", got, err)
		}
		sound(t, s)
		if _, err := s.CancelTask(ctx, r.tree.Root, ""); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "retry below a cancelled root", s.RetryTask(ctx, ids[1]), perdure.CodeConflict)
		wantCode(t, "retry of nothing", s.RetryTask(ctx, 999), perdure.CodeNotFound)
	})
}

// An idempotency key makes a second creation return the first tree.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		first := createTree(t, s, perdure.TreeSpec{IdempotencyKey: "k"})
		again := createTree(t, s, perdure.TreeSpec{IdempotencyKey: "k"})
		other := createTree(t, s, perdure.TreeSpec{IdempotencyKey: "l"})
		if first.ID != again.ID || first.ID == other.ID {
			t.Errorf("trees %s, %s, %s", first.ID, again.ID, other.ID)
		}
		asked := createTree(t, s, perdure.TreeSpec{IdempotencyKey: "m", Request: "a"})
		same := createTree(t, s, perdure.TreeSpec{IdempotencyKey: "m", Request: "a"})
		open := createTree(t, s, perdure.TreeSpec{IdempotencyKey: "m"})
		if asked.ID != same.ID || asked.ID != open.ID {
			t.Errorf("trees of one request %s, %s, %s", asked.ID, same.ID, open.ID)
		}
		_, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"},
			IdempotencyKey: "m", Request: "b"})
		wantCode(t, "another request with the same key", err, perdure.CodeConflict)
	})
}

// What cannot be kept is refused before anything is written.
func TestInvalidSpecs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", perdure.MaxPromptBytes+1)
	specs := map[string]perdure.TaskSpec{
		"prompt too long":      {Prompt: long},
		"prompt not text":      {Prompt: "a\xffb"},
		"prompt with NUL":      {Prompt: "a\x00b"},
		"agent too long":       {Agent: long[:perdure.MaxAgentBytes+1]},
		"priority too high":    {Priority: perdure.MaxPriority + 1},
		"negative attempts":    {MaxAttempts: -1},
		"unknown strategy":     {Strategy: "fast"},
		"unknown policy":       {Policy: "hope"},
		"metadata not object":  {Metadata: json.RawMessage(`[]`)},
		"metadata null":        {Metadata: json.RawMessage(`null`)},
		"metadata broken":      {Metadata: json.RawMessage(`{`)},
		"metadata too long":    {Metadata: json.RawMessage(`{"a":"` + long[:perdure.MaxMetadataBytes] + `"}`)},
		"context source bytes": {Context: perdure.ContextRef{Source: "\xff"}},
	}
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		before := dump(t, s)
		for name, spec := range specs {
			_, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: spec})
			wantCode(t, name, err, perdure.CodeInvalid)
			_, err = s.Submit(t.Context(), r.tree.Root, perdure.TaskSpec{}, spec)
			wantCode(t, name, err, perdure.CodeInvalid)
		}
		for name, spec := range map[string]perdure.TreeSpec{
			"no kind": {}, "negative limit": {Kind: "run", Limits: perdure.Limits{Calls: -1}},
			"config": {Kind: "run", Config: json.RawMessage(`3`)}, "name": {Kind: "run", Name: "\xff"},
		} {
			_, err := s.CreateTree(t.Context(), spec)
			wantCode(t, name, err, perdure.CodeInvalid)
		}
		_, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Contexts: []string{"ctx-0000000000000000"}})
		wantCode(t, "unknown context", err, perdure.CodeNotFound)
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Errorf("a refusal changed:\n%s", diff)
		}
	})
}

// Pages of trees and tasks follow each other; a cursor that is not there is an
// error and not an empty page.
func TestPages(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		ctx := t.Context()
		tree := createTree(t, s, perdure.TreeSpec{})
		ids := submit(t, s, tree.Root, 7)
		var got []perdure.TaskID
		for after := perdure.TaskID(0); ; after = got[len(got)-1] {
			page, err := s.Tasks(ctx, perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root, After: after, Limit: 3})
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range page {
				got = append(got, task.ID)
			}
			if len(page) < 3 {
				break
			}
		}
		if diff := cmp.Diff(ids, got); diff != "" {
			t.Errorf("children: -want +got\n%s", diff)
		}
		_, err := s.Tasks(ctx, perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root, After: 999})
		wantCode(t, "unknown task", err, perdure.CodeNotFound)
		_, err = s.Tasks(ctx, perdure.TaskFilter{Tree: "tree-00000000"})
		wantCode(t, "unknown tree", err, perdure.CodeNotFound)
		_, err = s.Trees(ctx, perdure.TreeFilter{Before: "tree-00000000"})
		wantCode(t, "unknown cursor", err, perdure.CodeNotFound)
		_, err = s.Events(ctx, perdure.EventFilter{Tree: "tree-00000000"})
		wantCode(t, "events of an unknown tree", err, perdure.CodeNotFound)
		_, err = s.Task(ctx, 999)
		wantCode(t, "unknown task", err, perdure.CodeNotFound)
		ss := openSession(t, s)
		claim(t, ss, 4)
		for limit, want := range map[int]int{0: 4, 2: 2, 10: 4, -1: 4} {
			active, err := s.Active(ctx, tree.ID, limit)
			if err != nil || len(active) != want {
				t.Errorf("active, limit %d: %d tasks, %v", limit, len(active), err)
			}
		}
	})
}

// Errors carry their codes through wrapping, and hints are found.
func TestErrors(t *testing.T) {
	t.Parallel()
	inner := &perdure.Error{Code: perdure.CodeConflict, Op: "do it", Msg: "no", Hint: "wait"}
	err := fmt.Errorf("outside: %w", &perdure.Error{Code: perdure.CodeLeaseLost, Op: "claim", Err: inner})
	if perdure.CodeOf(err) != perdure.CodeLeaseLost || perdure.HintOf(err) != "wait" ||
		!errors.Is(err, perdure.ErrConflict) ||
		errors.Is(err, perdure.ErrNotFound) || err.Error() != "outside: claim: do it: no" {
		t.Errorf("%v: %s, %q", err, perdure.CodeOf(err), perdure.HintOf(err))
	}
	if perdure.CodeOf(nil) != "" || perdure.CodeOf(errors.New("x")) != perdure.CodeInternal || perdure.HintOf(nil) != "" {
		t.Error("code of nothing or of a stranger")
	}
}
