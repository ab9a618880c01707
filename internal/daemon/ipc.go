package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/rlm"
)

// IPCConfig says how existing clients of the daemon of the .aiwg layout are
// answered.
type IPCConfig struct {
	// Socket is the path of the Unix socket; empty answers none. A folder that is
	// missing is made, for the user only.
	Socket string
	// Run makes the configuration of a run whose task is for an agent, "" for
	// none; an error tells that nobody here is that agent. Nil: nobody is. It is
	// called from one goroutine at a time.
	Run func(agent string) (json.RawMessage, error)
}

// ipc is the part of a daemon that answers those clients.
type ipc struct {
	listener *server.Listener
	server   *rpc.Server
}

// openIPC listens, so that it is known before work begins whether that can be.
func (d *Daemon) openIPC() error {
	cfg := d.cfg.IPC
	if cfg.Socket == "" {
		return nil
	}
	dir := filepath.Dir(cfg.Socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "serve .aiwg clients",
			Msg: fmt.Sprintf("the folder %q cannot be made", dir), Err: err,
			Hint: "name another socket: --aiwg-ipc=PATH"}
	}
	const othersWrite = 0o022
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&othersWrite != 0 && info.Mode()&os.ModeSticky == 0 {
		d.log.Warn("others may put a socket of theirs in the place of this one: they may write to its folder", "path", dir)
	}
	srv, err := rpc.New(rpc.Config{Store: d.store, Execute: d.execution(cfg), Concurrency: d.cfg.Concurrency,
		DrainTimeout: d.cfg.DrainTimeout, Version: d.cfg.Version, Logger: d.log})
	if err != nil {
		return err
	}
	l, err := server.Listen(cfg.Socket)
	var own *perdure.Error
	if errors.As(err, &own) && own.Code != perdure.CodeConflict { // whose hint is about the daemon's own socket
		own.Hint = "name another place: --aiwg-ipc=PATH"
	}
	if err != nil {
		return err
	}
	d.ipc = &ipc{l, srv}
	return nil
}

// closeIPC removes the socket.
func (d *Daemon) closeIPC() error {
	if d.ipc == nil {
		return nil
	}
	return d.ipc.listener.Close()
}

// execution tells how tasks of clients are done here: by the model that is
// configured for their agent. The one that quotes passages of a context is none:
// they have no context.
func (d *Daemon) execution(cfg IPCConfig) func(agent string) (rpc.Execution, bool) {
	var mu sync.Mutex // held while Run is called
	return func(agent string) (rpc.Execution, bool) {
		raw, err := []byte(nil), errors.New("no model is configured")
		if cfg.Run != nil {
			mu.Lock()
			raw, err = cfg.Run(agent)
			mu.Unlock()
		}
		if err != nil {
			d.log.Debug("a task waits for a worker", "agent", agent, "error", err)
			return rpc.Execution{}, false
		}
		c, err := rlm.ParseConfig(raw)
		if err != nil || strings.HasPrefix(c.Model, "builtin:") {
			return rpc.Execution{}, false
		}
		whole, err := json.Marshal(c) // with the model of the agent
		if err != nil {
			return rpc.Execution{}, false
		}
		if err := d.executor.Check(&perdure.Tree{Config: whole}); err != nil {
			d.log.Warn("a task waits for a worker: its model cannot be asked here", "agent", agent, "error", err)
			return rpc.Execution{}, false
		}
		const micros = 1e6
		return rpc.Execution{Config: whole, Limits: perdure.Limits{MaxNodes: c.MaxNodes, Calls: c.BudgetCalls,
			Tokens:     c.BudgetTokens,
			CostMicros: int64(c.BudgetUSD*micros + 0.5), WallTime: time.Duration(c.Timeout)}}, true
	}
}

// driven refuses a tree whose task somebody outside does.
func driven(tree *perdure.Tree) error {
	if tree.Kind != rpc.Kind || rpc.Executes(tree) {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "execute tree",
		Msg:  fmt.Sprintf("the task of tree %q is done by whoever starts it over the socket for .aiwg clients", tree.ID),
		Hint: "task.start begins it; `perdure cancel " + string(tree.ID) + "` ends it"}
}
