package daemon

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/command"
	"github.com/perdure/perdure/worker"
)

// placed tells the programs that a handler starts which task they work for: the
// command `perdure var` is then about this task's variables.
type placed struct{ worker.Handler }

// Handle adds to the environment of programs.
func (p placed) Handle(ctx context.Context, l *perdure.Lease) error {
	env := []string{"PERDURE_TREE=" + string(l.Tree.ID), "PERDURE_TASK=" + l.Task.ID.String()}
	return p.Handler.Handle(command.WithEnv(ctx, env), l)
}
