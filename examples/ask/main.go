// Command ask asks a question about files and folders through the recursive
// executor, with its own model: any value with a Generate method is one. This one
// answers with the first line of each document. Asked again about the same files,
// also after a kill, it continues and does not repeat a call.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/worker"
)

type firstLine struct{}

func (firstLine) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	var lines []string
	for _, d := range req.Documents {
		line, _, _ := strings.Cut(d.Text, "\n")
		lines = append(lines, fmt.Sprintf("%s begins with %q", d.File, line))
	}
	return &model.Response{Text: strings.Join(lines, "\n"), Tries: 1}, nil
}

// Resolve knows one model, whatever it is called.
func (m firstLine) Resolve(string, rlm.ModelOptions) (model.Model, error) { return m, nil }

func main() {
	if len(os.Args) == 1 {
		fmt.Fprintln(os.Stderr, "usage: ask FILE|FOLDER...")
		os.Exit(2)
	}
	ctx := context.Background()
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	executor := must(rlm.New(rlm.ExecutorConfig{Store: store, Resolver: firstLine{}}))
	defer executor.Close()
	text := must(rlm.PutContext(ctx, store, ".", os.Args[1:]...))
	tree := must(executor.Launch(ctx, rlm.LaunchRequest{
		Prompt: "How do they begin?", ContextID: text.ID, IdempotencyKey: text.ID, Config: []byte(`{"model": "first-line"}`),
	}))
	trees := []perdure.TreeID{tree.ID}
	w := must(worker.New(worker.Config{
		Store: store, Session: session, Handlers: map[string]worker.Handler{rlm.KindRun: executor},
		Trees: func() []perdure.TreeID { return trees },
	}))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	for !tree.State.Terminal() {
		changed := store.Changed() // before the tree is read, so that no change is missed
		if tree = must(store.Tree(ctx, tree.ID)); !tree.State.Terminal() {
			<-changed
		}
	}
	stop()
	if err := <-ended; err != nil {
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
