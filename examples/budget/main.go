// Command budget lets twenty tasks ask at once when the tree may make five calls.
// The store reserves each call before it is made, so exactly five are made. Kill it
// at any instant and run it again: it continues.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

const tasks, allowed = 20, 5

type spender struct {
	store *perdure.Store
	stop  context.CancelFunc
}

func (s spender) Handle(ctx context.Context, l *perdure.Lease) error {
	if l.Task.Parent == 0 {
		return s.root(ctx, l)
	}
	call, _, err := l.BeginCall(ctx, perdure.CallSpec{Model: "oracle", RequestHash: l.Task.Prompt})
	if errors.Is(err, perdure.ErrBudgetExceeded) {
		_, err = l.Fail(ctx, perdure.Failure{Kind: "budget", Message: err.Error()})
		return err
	}
	if err != nil {
		return err
	}
	if err := l.SettleCall(ctx, call.ID, perdure.CallResult{Response: "yes"}); err != nil {
		return err
	}
	return l.Complete(ctx, perdure.Result{Text: "yes"})
}

// root makes the children, waits for them, and completes when it is run again. It
// asks the store whether they exist: a number of the attempt, such as the fence,
// also counts attempts that died before they made them.
func (s spender) root(ctx context.Context, l *perdure.Lease) error {
	children, err := s.store.Tasks(ctx, perdure.TaskFilter{Tree: l.Tree.ID, Parent: &l.Task.ID, Limit: 1})
	if err != nil {
		return err
	}
	if len(children) == 0 {
		specs := make([]perdure.TaskSpec, tasks)
		for i := range specs {
			specs[i].Prompt = fmt.Sprintf("question %d", i)
		}
		_, err := l.Spawn(ctx, specs) // all of them or none
		return err
	}
	if err := l.Complete(ctx, perdure.Result{Text: "some of it", Partial: true}); err != nil {
		return err
	}
	s.stop()
	return nil
}

func main() {
	ctx := context.Background()
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	tree := must(store.CreateTree(ctx, perdure.TreeSpec{
		Kind: "budget", IdempotencyKey: "budget", Limits: perdure.Limits{Calls: allowed},
		Root: perdure.TaskSpec{Prompt: "spend"},
	}))
	running, stop := context.WithCancel(ctx)
	w := must(worker.New(worker.Config{
		Store: store, Session: session, Handlers: map[string]worker.Handler{"budget": spender{store, stop}},
	}))
	if tree.State.Terminal() {
		stop() // an earlier run finished it
	}
	if err := w.Run(running); err != nil {
		panic(err)
	}
	p := must(store.Progress(ctx, tree.ID))
	fmt.Println(p.Usage.Calls, "calls made,", p.Failed, "refused")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
