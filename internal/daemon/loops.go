package daemon

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/server"
	"github.com/perdure/perdure/loop"
)

// openLoops makes the engine of loops. Each keeps its snapshots and its log of
// hooks in a folder of its own.
func (d *Daemon) openLoops() error {
	agents := d.cfg.Agents
	agents.Logger = d.log
	var hold []*os.File
	if d.session != nil && d.session.LockFile() != nil {
		hold = append(hold, d.session.LockFile())
	}
	engine, err := loop.New(loop.EngineConfig{Store: d.store, Agents: NewAgents(agents), Dir: cmp.Or(d.cfg.LoopDir, filepath.Join(d.cfg.Dir, "loops")), Hold: hold, Logger: d.log})
	d.engine = engine
	return err
}

// launchLoop creates a loop. Its configuration is the whole request.
func (d *Daemon) launchLoop(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	cfg, err := loop.ParseConfig(req.Config)
	if err != nil {
		return perdure.Tree{}, err
	}
	return d.engine.Launch(ctx, loop.LaunchRequest{Config: cfg, Owner: req.Owner})
}
