// Command crash asks ten questions, dies by kill -9 after some of them, again
// and again, and is started anew until the work is done: no answer is lost, and
// none that was recorded is asked for twice.
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

type asker struct{ done context.CancelFunc }

func (a asker) Handle(ctx context.Context, l *perdure.Lease) error {
	var answers []string
	asked := 0
	for i := range questions {
		question := fmt.Sprintf("question %d", i)
		call, replayed, err := l.BeginCall(ctx, perdure.CallSpec{Position: i, Model: "oracle", RequestHash: question})
		if err != nil {
			return err
		}
		if replayed { // the journal has the answer of a life before
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
	defer a.done()
	fmt.Println(len(answers), "answers, the last is", answers[questions-1])
	return l.Complete(ctx, perdure.Result{Text: strings.Join(answers, ", ")})
}

func main() {
	if len(os.Args) == 1 { // the parent starts lives until one ends well
		for {
			life := exec.Command(os.Args[0], "life")
			life.Stdout, life.Stderr = os.Stdout, os.Stderr
			err := life.Run()
			if err == nil {
				return
			}
			fmt.Println(err)
		}
	}
	ctx, done := context.WithCancel(context.Background())
	store := must(perdure.Open(ctx, perdure.Config{Dir: ".perdure"}))
	defer store.Close()
	session := must(store.OpenSession(ctx, "example"))
	must(store.CreateTree(ctx, perdure.TreeSpec{Kind: "crash", Root: perdure.TaskSpec{Prompt: "ask"}, IdempotencyKey: "the only one"}))
	w := must(worker.New(worker.Config{Store: store, Session: session, Handlers: map[string]worker.Handler{"crash": asker{done}}}))
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
