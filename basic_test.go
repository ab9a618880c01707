package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure"
)

func open(t *testing.T) *perdure.Store {
	t.Helper()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTreeRuns(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "do it"}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, ctx, ss, tree)
	p, err := s.Progress(ctx, tree.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p.State != perdure.Completed || p.Completed != 4 || p.Usage.Calls != 3 {
		t.Errorf("progress = %+v", p)
	}
	problems, err := s.Check(ctx)
	if err != nil || len(problems) > 0 {
		t.Errorf("check: %v %v", problems, err)
	}
	events, err := s.Events(ctx, perdure.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has number %d", i, e.Seq)
		}
	}
}

func run(t *testing.T, ctx context.Context, ss *perdure.Session, tree perdure.Tree) {
	t.Helper()
	for range 100 {
		leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(leases) == 0 {
			return
		}
		for _, l := range leases {
			if err := step(ctx, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("tree does not end")
}

func step(ctx context.Context, l *perdure.Lease) error {
	if l.Task.Depth == 0 && l.Task.Usage.Calls == 0 && l.Fence() == 1 {
		specs := make([]perdure.TaskSpec, 3)
		for i := range specs {
			specs[i].Prompt = fmt.Sprint("part ", i)
		}
		_, err := l.Spawn(ctx, specs)
		return err
	}
	if l.Task.Depth > 0 {
		call, replayed, err := l.BeginCall(ctx, perdure.CallSpec{Model: "m", RequestHash: "h", ReserveTokens: 10})
		if err != nil || replayed {
			return errors.Join(err, fmt.Errorf("replayed %v", replayed))
		}
		if err := l.SettleCall(ctx, call.ID, perdure.CallResult{Response: "yes", InputTokens: 3}); err != nil {
			return err
		}
	}
	return l.Complete(ctx, perdure.Result{Text: "done"})
}
