package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loopimport"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// openLoops creates the engine of loops. Each loop has a folder for its snapshots and its
// log of hooks.
func (d *Daemon) openLoops(ctx context.Context) error {
	agents := d.cfg.Agents
	agents.Logger = d.log
	handlers, err := d.cfg.LoopHooks.Handlers(hook.Place{Dir: d.cfg.HookDir, Hold: d.hold()})
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program that agents run as their hook: %w", err)
	}
	dir := cmp.Or(d.cfg.LoopDir, filepath.Join(d.cfg.Dir, "loops"))
	cfg := loop.EngineConfig{Store: d.store, Agents: NewAgents(agents), Permission: agents.Permission,
		Price: d.models.costOf,
		Dir:   dir, Copies: copies.Loops(d.cfg.Copies, dir), Worktrees: userdir.Worktrees(os.Getenv),
		Sockets: userdir.Sockets(os.Getenv), HeldOut: userdir.HeldOut(os.Getenv),
		Handoff: d.cfg.Handoff, Rate: d.models.Rate, Reminders: d.cfg.Reminders, Handlers: append(handlers, d.handlers()...),
		Hook: []string{program, "hook"}, Hold: d.hold(), Ended: d.reportLoop, Logger: d.log}
	if d.tokensShown() || d.cfg.Notify.UsesTokens {
		cfg.TokenReplaced = d.tokenReplaced
	}
	d.engine, err = loop.New(ctx, cfg)
	return err
}

// hold returns the files that guard processes hold open until the programs that this
// process started have ended.
func (d *Daemon) hold() []*os.File {
	if d.session == nil || d.session.LockFile() == nil {
		return nil
	}
	return []*os.File{d.session.LockFile()}
}

// ImportLoop imports a loop into the store of a configuration. A daemon can run meanwhile.
func ImportLoop(ctx context.Context, cfg Config, req loopimport.Request) (in loopimport.Imported, err error) {
	if cfg.DSN != "" {
		cfg.Dir = "" // the database holds everything
	}
	d, err := Open(ctx, cfg)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, d.Close(ctx)) }()
	return loopimport.Import(ctx, d.store, d.engine, req)
}

// launchLoop creates a loop from the configuration in the request.
func (d *Daemon) launchLoop(ctx context.Context, req server.LaunchRequest) (perdure.Tree, error) {
	cfg, err := config.Parse(req.Config)
	if err != nil {
		return perdure.Tree{}, err
	}
	if cfg.Approver == perdure.ApproverToken && !d.tokensShown() {
		return perdure.Tree{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "start loop",
			Msg:  "approver is token, and this process has no terminal and sends no notices to show tokens",
			Hint: "set loop.notify.command or loop.notify.webhook, or run the loop in a terminal; `perdure serve` too"}
	}
	return d.engine.Launch(ctx, loop.LaunchRequest{Config: cfg, Owner: req.Owner, IdempotencyKey: req.IdempotencyKey,
		Request: req.Request})
}

// reportLoop writes the report of an ended loop into its folder.
func (d *Daemon) reportLoop(ctx context.Context, tree *perdure.Tree, dir string) error {
	records := record.New(d.store)
	in := loopview.Input{Tree: *tree, Now: time.Now()}
	var err error
	if in.Loop, err = records.Loop(ctx, tree.ID); err != nil {
		return err
	}
	if in.Gates, err = d.store.Gates(ctx, tree.ID); err != nil {
		return err
	}
	if in.FalseAlarms, err = records.FalseAlarms(ctx, tree.ID); err != nil {
		return err
	}
	if in.Progress, err = d.store.Progress(ctx, tree.ID); err != nil {
		return err
	}
	if err = in.Load(ctx, records, loopview.ViewReport, true); err != nil {
		return err
	}
	sum := loopview.New(in)
	var text bytes.Buffer
	if err := sum.Report(&text, "md"); err != nil {
		return err
	}
	figures, err := json.MarshalIndent(sum.Analytics(), "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.WriteFile(filepath.Join(dir, "report.md"), text.Bytes(), 0o600),
		atomicfile.WriteFile(filepath.Join(dir, "analytics.json"), append(figures, '\n'), 0o600))
}
