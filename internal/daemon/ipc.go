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

// IPCConfig configures the socket for clients of the .aiwg daemon.
type IPCConfig struct {
	// Socket is the path of the Unix socket; empty: none. Its folder is created if it
	// is missing, for the user only.
	Socket string
	// Run returns the configuration of a run whose task is for an agent, or for "". It
	// returns an error if the settings have no such agent. It is called from one
	// goroutine at a time. Nil: there are no agents.
	Run func(agent string) (json.RawMessage, error)
}

// ipc is the server of these clients.
type ipc struct {
	listener *server.Listener
	server   *rpc.Server
}

// openIPC listens on the socket, so that errors are reported before any work begins.
func (d *Daemon) openIPC() error {
	cfg := d.cfg.IPC
	if cfg.Socket == "" {
		return nil
	}
	dir := filepath.Dir(cfg.Socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "serve .aiwg clients",
			Msg: fmt.Sprintf("cannot create the folder %q", dir), Err: err,
			Hint: "choose another socket with --aiwg-ipc=PATH"}
	}
	const othersWrite = 0o022
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&othersWrite != 0 && info.Mode()&os.ModeSticky == 0 {
		d.log.Warn("the folder of the socket is writable for other users, who can replace the socket", "path", dir)
	}
	srv, err := rpc.New(rpc.Config{Store: d.store, Execute: d.execution(cfg), Concurrency: d.cfg.Concurrency,
		DrainTimeout: d.cfg.DrainTimeout, Version: d.cfg.Version, Logger: d.log})
	if err != nil {
		return err
	}
	l, err := server.Listen(cfg.Socket)
	// The hint of a conflict is right for this socket too.
	if own, ok := errors.AsType[*perdure.Error](err); ok && own.Code != perdure.CodeConflict {
		own.Hint = "choose another socket with --aiwg-ipc=PATH"
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

// execution returns a function that returns how the tasks of clients are executed here: by
// the model that is configured for their agent. builtin:extract is not used, because it
// only quotes a context and these tasks have none.
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
			d.log.Warn("a task waits for a worker: its model is not available here", "agent", agent, "error", err)
			return rpc.Execution{}, false
		}
		const micros = 1e6
		return rpc.Execution{Config: whole, Limits: perdure.Limits{MaxNodes: c.MaxNodes, Calls: c.BudgetCalls,
			Tokens: c.BudgetTokens, CostMicros: int64(c.BudgetUSD*micros + 0.5), WallTime: time.Duration(c.Timeout)}}, true
	}
}

// checkOwner returns an error for a tree whose task a client of the .aiwg socket executes.
func checkOwner(tree *perdure.Tree) error {
	if tree.Kind != rpc.Kind || rpc.Executes(tree) {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "execute tree",
		Msg:  fmt.Sprintf("the task of tree %q is executed by the .aiwg client that starts it", tree.ID),
		Hint: "the method task.start starts it; `perdure cancel " + string(tree.ID) + "` ends it"}
}
