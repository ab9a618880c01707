package cli

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

// How often progress is queried, on a terminal and elsewhere.
const (
	pollTerminal = 100 * time.Millisecond
	pollPlain    = 500 * time.Millisecond
)

// follow shows the progress of trees until all have ended. It returns the cause of
// ctx if that ends before, or the error of a server that cannot be reached.
func (a *app) follow(ctx context.Context, b *env.Backend, ids []perdure.TreeID, view *progressView) error {
	waiting, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- waitAll(waiting, b, ids) }()
	every := pollPlain
	if a.Err.Terminal {
		every = pollTerminal
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	gates := a.watchGates(waiting, b)
	for {
		select {
		case err := <-ended:
			stop()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		case <-ctx.Done():
			stop()
			<-ended //nolint:errcheck // the cause of ctx is returned
			return context.Cause(ctx)
		case <-tick.C:
			shown := snapshots(ctx, b, ids)
			blocked, err := gates.blocked(ctx, ids, shown, view)
			if err != nil {
				stop()
				<-ended //nolint:errcheck // it was stopped here
				return err
			}
			if !blocked { // else the user types an answer
				view.update(time.Now(), shown...)
			}
		}
	}
}

func waitAll(ctx context.Context, b *env.Backend, ids []perdure.TreeID) error {
	for _, id := range ids {
		if _, err := b.WaitTree(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// maxShownTrees bounds the number of trees whose progress is shown.
const maxShownTrees = 10

// snapshots returns the progress of the trees that have not ended, without those that
// cannot be read.
func snapshots(ctx context.Context, b *env.Backend, ids []perdure.TreeID) []snapshot {
	var all []snapshot
	for _, id := range ids {
		s, err := b.Status(ctx, id)
		if err != nil || s.State.Terminal() && len(ids) > 1 {
			continue
		}
		shown := snapshot{progress: s.Progress, active: s.Active, slowest: s.Slowest, gate: s.Gate}
		if len(all) == 0 { // pauses are those of the process
			shown.notes = s.Pauses
		}
		all = append(all, shown)
		if len(all) == maxShownTrees {
			break
		}
	}
	return all
}
