// Command wordcount counts the words of files: a task for each, at once, and
// one that waits for them and adds up. Stopped in the midst of it and started
// again, it counts only what is missing.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

type counter struct {
	store *perdure.Store
	done  context.CancelFunc
}

func (c counter) Handle(ctx context.Context, l *perdure.Lease) error {
	if l.Task.Parent != 0 {
		text, err := os.ReadFile(l.Task.Prompt)
		if err != nil {
			return err // another attempt later, three in all
		}
		return l.Complete(ctx, perdure.Result{Text: strconv.Itoa(len(strings.Fields(string(text))))})
	}
	parts, err := c.store.Tasks(ctx, perdure.TaskFilter{Tree: l.Tree.ID, Parent: &l.Task.ID})
	if err != nil {
		return err
	}
	if len(parts) == 0 { // the first time: all parts or none, and no slot is held meanwhile
		var specs []perdure.TaskSpec
		for _, file := range strings.Split(l.Task.Prompt, "\n") {
			specs = append(specs, perdure.TaskSpec{Prompt: file})
		}
		_, err := l.Spawn(ctx, specs)
		return err
	}
	defer c.done()
	total := 0
	for _, part := range parts {
		n, _ := strconv.Atoi(part.Result) // "" of one that failed for good
		total += n
		fmt.Printf("%7d %s\n", n, part.Prompt)
	}
	fmt.Printf("%7d total\n", total)
	return l.Complete(ctx, perdure.Result{Text: strconv.Itoa(total)})
}

func main() {
	ctx, done := context.WithCancel(context.Background())
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	if open := must(store.Trees(ctx, perdure.TreeFilter{Kind: "wordcount", Active: true})); len(open) == 0 {
		must(store.CreateTree(ctx, perdure.TreeSpec{
			Kind: "wordcount", Root: perdure.TaskSpec{Prompt: strings.Join(os.Args[1:], "\n")},
		}))
	}
	w := must(worker.New(worker.Config{
		Store: store, Session: session, Handlers: map[string]worker.Handler{"wordcount": counter{store, done}},
	}))
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
