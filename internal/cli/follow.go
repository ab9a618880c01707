package cli

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

// How often progress is looked at: it costs microseconds in process and one
// small request with a daemon.
const (
	lookTerminal = 100 * time.Millisecond
	lookPlain    = 500 * time.Millisecond
)

// follow shows how far trees are until all have ended. The error is that of ctx
// when it ends before, or of a server that cannot be reached.
func (a *app) follow(ctx context.Context, b *env.Backend, ids []perdure.TreeID, view *progressView) error {
	waiting, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- waitAll(waiting, b, ids) }()
	every := lookPlain
	if a.Err.Terminal {
		every = lookTerminal
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
			<-ended //nolint:errcheck // it was stopped: the cause tells why
			return context.Cause(ctx)
		case <-tick.C:
			shown := snapshots(ctx, b, ids)
			rest, err := gates.look(ctx, ids, shown, view)
			if err != nil {
				stop()
				<-ended //nolint:errcheck // it was stopped: what it waits for is a person
				return err
			}
			if !rest { // else somebody types
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

// maxShownTrees bounds the trees whose progress is shown at once.
const maxShownTrees = 10

// snapshots asks for the progress of trees that have not ended. What cannot be
// read is left out: it is only a look.
func snapshots(ctx context.Context, b *env.Backend, ids []perdure.TreeID) []snapshot {
	var all []snapshot
	for _, id := range ids {
		s, err := b.Status(ctx, id)
		if err != nil || s.State.Terminal() && len(ids) > 1 {
			continue
		}
		shown := snapshot{progress: s.Progress, active: s.Active, slowest: s.Slowest, gate: s.Gate}
		if len(all) == 0 { // they are the process's, not the tree's
			shown.notes = s.Pauses
		}
		all = append(all, shown)
		if len(all) == maxShownTrees {
			break
		}
	}
	return all
}
