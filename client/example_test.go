package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Ask a daemon to run a prompt, follow what happens, and print the answer.
func Example() {
	ctx := context.Background()
	c, err := client.New(client.Config{Socket: ".perdure/perdure.sock"})
	if err != nil {
		slog.Error("make client", "error", err)
		return
	}
	defer c.Close()
	tree, err := c.CreateTree(ctx, client.TreeRequest{Prompt: "What does this project do?"})
	if err != nil {
		slog.Error("create tree", "error", err, "hint", perdure.HintOf(err))
		return
	}
	for event, err := range c.Events(ctx, 0, tree.ID) {
		if err != nil {
			slog.Error("follow events", "error", err)
			return
		}
		fmt.Fprintln(os.Stderr, event.Time, event.Task, event.Kind)
		if event.Kind == perdure.EventTreeCompleted || event.Kind == perdure.EventTreeFailed {
			break
		}
	}
	result, err := c.Result(ctx, tree.ID)
	if err != nil {
		slog.Error("read result", "error", err)
		return
	}
	fmt.Println(result.Text())
	for _, where := range result.Citations {
		fmt.Printf("%s:%d-%d\n", where.File, where.StartLine, where.EndLine)
	}
}

// Tell by its code why a request failed.
func ExampleClient_Ping() {
	c, err := client.New(client.Config{Socket: "/nonexistent/perdure.sock"})
	if err != nil {
		slog.Error("make client", "error", err)
		return
	}
	err = c.Ping(context.Background())
	fmt.Println(perdure.CodeOf(err), "-", perdure.HintOf(err))
	// Output: unavailable - start one with `perdure serve`
}
