// Command crash asks ten questions and kills itself during some of them. It is
// started again until the work is done: no answer is lost, and no question whose
// answer was recorded is asked again.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/worker"
)

const questions, deadly = 10, 4 // it dies in each fourth question that it asks

type asker struct{ stop context.CancelFunc }

func (a asker) Handle(ctx context.Context, l *perdure.Lease) error {
	var answers []string
	asked := 0
	for i := range questions {
		question := fmt.Sprintf("question %d", i)
		call, replayed, err := l.BeginCall(ctx, perdure.CallSpec{Position: i, Model: "oracle", RequestHash: question})
		if err != nil {
			return err
		}
		if replayed { // the journal has the answer of an earlier life
			answers = append(answers, call.Response)
			continue
		}
		if asked++; asked == deadly {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill() // while the question is out
		}
		fmt.Println("asked", question)
		answer := strings.ToUpper(question)
		if err := l.SettleCall(ctx, call.ID, perdure.CallResult{Response: answer}); err != nil {
			return err
		}
		answers = append(answers, answer)
	}
	if err := l.Complete(ctx, perdure.Result{Text: strings.Join(answers, ", ")}); err != nil {
		return err
	}
	a.stop()
	return nil
}

func main() {
	if len(os.Args) == 1 { // the parent starts lives until one succeeds
		for range questions {
			life := exec.Command(must(os.Executable()), "life")
			life.Stdout, life.Stderr = os.Stdout, os.Stderr
			err := life.Run()
			if err == nil {
				return
			}
			fmt.Println(err)
		}
		os.Exit(1)
	}
	ctx := context.Background()
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	tree := must(store.CreateTree(ctx, perdure.TreeSpec{
		Kind: "crash", IdempotencyKey: "crash", Root: perdure.TaskSpec{Prompt: "ask"},
	}))
	running, stop := context.WithCancel(ctx)
	w := must(worker.New(worker.Config{
		Store: store, Session: session, Handlers: map[string]worker.Handler{"crash": asker{stop}},
	}))
	if tree.State.Terminal() {
		stop() // an earlier life finished it
	}
	if err := w.Run(running); err != nil {
		panic(err)
	}
	answers := strings.Split(must(store.Task(ctx, tree.Root)).Result, ", ")
	fmt.Println(len(answers), "answers, the last is", answers[len(answers)-1])
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
