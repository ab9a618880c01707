package loop

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/record"
)

// Read reads what a store knows of a loop but for its iterations. A loop of which
// the process died before its first row is CodeNotFound.
func Read(ctx context.Context, store *perdure.Store, tree *perdure.Tree) (Input, error) {
	records := record.New(store)
	in := Input{Tree: *tree, Now: time.Now()}
	var err error
	if in.Loop, err = records.Loop(ctx, tree.ID); err != nil {
		return in, err
	}
	if in.Document, err = records.Document(ctx, tree.ID); err != nil && perdure.CodeOf(err) != perdure.CodeNotFound {
		return in, err
	}
	if in.FalseAlarms, err = records.FalseAlarms(ctx, tree.ID); err != nil {
		return in, err
	}
	if in.Gates, err = store.Gates(ctx, tree.ID); err != nil {
		return in, err
	}
	if in.Progress, err = store.Progress(ctx, tree.ID); err != nil {
		return in, err
	}
	if !in.Lost() {
		return in, nil
	}
	// Between two steps no process has the lease of the loop for a moment.
	now, err := records.Loop(ctx, tree.ID)
	if err != nil {
		return in, err
	}
	progress, err := store.Progress(ctx, tree.ID)
	in.Crashed = now.Version == in.Loop.Version && progress.Running == 0
	return in, err
}

// Lost reports whether the loop should be running and no process has its lease. A loop that
// stands at a gate is not lost, also after the answer: its process may exit there.
func (in *Input) Lost() bool {
	standing, err := state.Read(in.Loop.State)
	runs := in.Loop.Status == record.Running || in.Loop.Status == record.Completing
	gates := readGates(in.Gates)
	return err == nil && runs && in.Progress.Running == 0 && gates.waiting() == nil && in.Loop.Step != stepGate &&
		standing.Run.Waits == 0 && !in.Tree.State.Terminal()
}
