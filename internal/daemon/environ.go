package daemon

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model/command"
	"github.com/perdure/perdure/worker"
)

// placed adds the tree and the task to the environment of the programs that a handler
// starts. `perdure var` then selects the variables of this task.
type placed struct{ worker.Handler }

// Handle calls the handler with the environment.
func (p placed) Handle(ctx context.Context, l *perdure.Lease) error {
	env := []string{"PERDURE_TREE=" + string(l.Tree.ID), "PERDURE_TASK=" + l.Task.ID.String()}
	return p.Handler.Handle(command.WithEnv(ctx, env), l)
}
