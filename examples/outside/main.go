// Command outside uses perdure from a module of its own. One worker runs a task of
// its own kind, a question that a program answers, and a loop in which an agent edits
// a folder until a check passes. Killed and run again, it continues with those.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	agentcommand "github.com/perdure/perdure/agent/command"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/model"
	modelcommand "github.com/perdure/perdure/model/command"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/worker"
)

// shout is the handler of the program's own tasks.
type shout struct{}

func (shout) Handle(ctx context.Context, l *perdure.Lease) error {
	return l.Complete(ctx, perdure.Result{Text: strings.ToUpper(l.Task.Prompt)})
}

// programs finds models and agents by name: the name is a command line.
type programs struct{}

func (programs) Resolve(name string, _ rlm.ModelOptions) (model.Model, error) {
	return modelcommand.New(modelcommand.Config{Command: name, Shell: true})
}

func (programs) Agent(spec loop.AgentSpec) (agent.Agent, error) {
	return agentcommand.New(agentcommand.Config{Program: "sh", Args: []string{"-c", spec.Name}})
}

func main() {
	worker.EnterGuard() // first, because models, agents and checks are programs
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: outside FOLDER")
		os.Exit(2)
	}
	ctx := context.Background()
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "outside"))
	questions := must(rlm.New(rlm.ExecutorConfig{Store: store, Resolver: programs{}}))
	defer questions.Close()
	loops := must(loop.New(ctx, loop.EngineConfig{Store: store, Agents: programs{}, Dir: ".perdure/loops"}))

	trees := must(store.Trees(ctx, perdure.TreeFilter{Active: true}))
	if len(trees) == 0 { // otherwise an earlier run was killed
		trees = []perdure.Tree{
			must(store.CreateTree(ctx, perdure.TreeSpec{Kind: "shout", Root: perdure.TaskSpec{Prompt: "to last"}})),
			must(questions.Launch(ctx, rlm.LaunchRequest{
				Prompt: "How many words are these?", Config: []byte(`{"model": "wc -w"}`),
			})),
			must(loops.Launch(ctx, loop.LaunchRequest{Config: config.Config{
				Task: "Write the word done into a file.", Agent: "echo done > note.txt",
				Until: "grep -rq done .", Workspace: must(filepath.Abs(os.Args[1])), EvenIfGreen: true,
			}})),
		}
	}
	w := must(worker.New(worker.Config{Store: store, Session: session, Handlers: map[string]worker.Handler{
		"shout": shout{}, rlm.KindRun: questions, perdure.KindLoop: loops,
	}}))
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	for _, tree := range trees {
		root := result(ctx, store, tree)
		fmt.Printf("%s %s: %s\n", tree.Kind, root.State, strings.TrimSpace(root.Result))
	}
	stop()
	if err := <-ended; err != nil {
		panic(err)
	}
}

// result waits for the end of a tree and returns its root.
func result(ctx context.Context, store *perdure.Store, tree perdure.Tree) perdure.Task {
	for !tree.State.Terminal() {
		changed := store.Changed() // before the tree is read, so that no change is missed
		if tree = must(store.Tree(ctx, tree.ID)); !tree.State.Terminal() {
			<-changed
		}
	}
	return must(store.Task(ctx, tree.Root))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
