// Command budget lets twenty tasks at once ask for what five calls are allowed
// for: the store reserves before each call, so exactly five are made.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

const tasks, allowed = 20, 5

type spender struct {
	calls, refused atomic.Int64
	done           context.CancelFunc
}

func (s *spender) Handle(ctx context.Context, l *perdure.Lease) error {
	if l.Task.Parent == 0 {
		return s.root(ctx, l)
	}
	call, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: "oracle", RequestHash: l.Task.Prompt})
	if errors.Is(err, perdure.ErrBudgetExceeded) {
		s.refused.Add(1)
		_, err = l.Fail(ctx, perdure.Failure{Kind: "budget", Message: err.Error()})
		return err
	}
	if err != nil {
		return err
	}
	s.calls.Add(1)
	if err := l.SettleCall(ctx, call.ID, perdure.CallResult{Response: "yes"}); err != nil {
		return err
	}
	return l.Complete(ctx, perdure.Result{Text: "yes"})
}

// root spawns the others the first time and completes the second.
func (s *spender) root(ctx context.Context, l *perdure.Lease) error {
	if l.Fence() == 1 {
		specs := make([]perdure.TaskSpec, tasks)
		for i := range specs {
			specs[i].Prompt = fmt.Sprintf("question %d", i)
		}
		_, err := l.Spawn(ctx, specs)
		return err
	}
	defer s.done()
	return l.Complete(ctx, perdure.Result{Text: "some of it", Partial: true})
}

func main() {
	ctx, done := context.WithCancel(context.Background())
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	must(store.CreateTree(ctx, perdure.TreeSpec{
		Kind: "budget", Owner: session, Limits: perdure.Limits{Calls: allowed}, Root: perdure.TaskSpec{Prompt: "spend"},
	}))
	s := &spender{done: done}
	w := must(worker.New(worker.Config{Store: store, Session: session, Handlers: map[string]worker.Handler{"budget": s}}))
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	fmt.Println(s.calls.Load(), "calls made,", s.refused.Load(), "refused")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
