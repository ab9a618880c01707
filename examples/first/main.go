// Command first makes one durable task and runs it. Kill it at any instant and
// run it again: it continues with the same task, and a finished task stays finished.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

// shout does the work of a task; stop ends the worker.
type shout struct{ stop context.CancelFunc }

func (s shout) Handle(ctx context.Context, l *perdure.Lease) error {
	if err := l.Complete(ctx, perdure.Result{Text: strings.ToUpper(l.Task.Prompt)}); err != nil {
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
		Kind: "shout", IdempotencyKey: "first", Root: perdure.TaskSpec{Prompt: "to last"},
	}))
	running, stop := context.WithCancel(ctx)
	w := must(worker.New(worker.Config{
		Store: store, Session: session, Handlers: map[string]worker.Handler{"shout": shout{stop}},
	}))
	if tree.State.Terminal() {
		stop() // an earlier run finished it
	}
	if err := w.Run(running); err != nil {
		panic(err)
	}
	fmt.Println(must(store.Task(ctx, tree.Root)).Result)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
