// Command wordcount counts the words of files: one task for each file, run
// concurrently, and one that waits for them and adds up. Kill it at any instant and
// run it again with the same files: it counts only those that are missing.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

type counter struct {
	store *perdure.Store
	stop  context.CancelFunc
}

func (c counter) Handle(ctx context.Context, l *perdure.Lease) error {
	if l.Task.Parent != 0 {
		text, err := os.ReadFile(l.Task.Prompt)
		if err != nil {
			return err // it is tried again, three times in all
		}
		return l.Complete(ctx, perdure.Result{Text: strconv.Itoa(len(strings.Fields(string(text))))})
	}
	parts, err := c.parts(ctx, l.Tree)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		var specs []perdure.TaskSpec
		for file := range strings.SplitSeq(l.Task.Prompt, "\n") {
			specs = append(specs, perdure.TaskSpec{Prompt: file})
		}
		_, err := l.Spawn(ctx, specs) // all of them or none; this task is run again when they have ended
		return err
	}
	total := 0
	for _, part := range parts {
		n, _ := strconv.Atoi(part.Result) // empty for a file that could not be read
		total += n
	}
	if err := l.Complete(ctx, perdure.Result{Text: strconv.Itoa(total)}); err != nil {
		return err
	}
	c.stop()
	return nil
}

// parts returns the tasks of the files, in their order.
func (c counter) parts(ctx context.Context, tree perdure.Tree) (all []perdure.Task, err error) {
	filter := perdure.TaskFilter{Tree: tree.ID, Parent: &tree.Root, Limit: 1000}
	for {
		page, err := c.store.Tasks(ctx, filter)
		all = append(all, page...)
		if err != nil || len(page) < filter.Limit {
			return all, err
		}
		filter.After = page[len(page)-1].ID
	}
}

func main() {
	if len(os.Args) == 1 {
		fmt.Fprintln(os.Stderr, "usage: wordcount FILE...")
		os.Exit(2)
	}
	ctx, prompt := context.Background(), strings.Join(os.Args[1:], "\n")
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	var tree perdure.Tree
	open := must(store.Trees(ctx, perdure.TreeFilter{Kind: "wordcount", Active: true}))
	i := slices.IndexFunc(open, func(t perdure.Tree) bool { return must(store.Task(ctx, t.Root)).Prompt == prompt })
	if i >= 0 {
		tree = open[i] // of a run that was killed
	} else {
		tree = must(store.CreateTree(ctx, perdure.TreeSpec{Kind: "wordcount", Root: perdure.TaskSpec{Prompt: prompt}}))
	}
	running, stop := context.WithCancel(ctx)
	c := counter{store, stop}
	w := must(worker.New(worker.Config{
		Store: store, Session: session, Handlers: map[string]worker.Handler{"wordcount": c},
		Trees: func() []perdure.TreeID { return []perdure.TreeID{tree.ID} },
	}))
	if err := w.Run(running); err != nil {
		panic(err)
	}
	for _, part := range must(c.parts(ctx, tree)) {
		fmt.Printf("%7s %s\n", part.Result, part.Prompt)
	}
	fmt.Printf("%7s total\n", must(store.Task(ctx, tree.Root)).Result)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
