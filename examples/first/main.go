// Command first makes one durable task and runs it. Kill it at any instant and
// run it again: a task that was finished stays finished.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

// shout does the work of a task; done ends the worker.
type shout struct{ done context.CancelFunc }

func (s shout) Handle(ctx context.Context, l *perdure.Lease) error {
	defer s.done()
	return l.Complete(ctx, perdure.Result{Text: strings.ToUpper(l.Task.Prompt)})
}

func main() {
	ctx, done := context.WithCancel(context.Background())
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	tree := must(store.CreateTree(ctx, perdure.TreeSpec{
		Kind: "shout", Owner: session, Root: perdure.TaskSpec{Prompt: "to last"},
	}))
	w := must(worker.New(worker.Config{
		Store: store, Session: session, Handlers: map[string]worker.Handler{"shout": shout{done}},
	}))
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	fmt.Println(must(store.Task(context.Background(), tree.Root)).Result)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
