package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/worker"
)

const (
	// loopFiles of loopFileBytes are in the workspace, 500 to a folder.
	loopFiles     = 50_000
	loopFileBytes = 4096
	// loopChanges are the files that a turn changes.
	loopChanges = 20
	// iterationTime is the iteration that the overhead is a share of.
	iterationTime = 60 * time.Second
)

// loops measures what the engine adds to an iteration on a large workspace: all
// of its time but the agent's and the check's.
func loops(b *bench, round int) error {
	n := cmp.Or(b.n, 10)
	dir := filepath.Join(b.dir, fmt.Sprintf("loop-%d", round))
	defer os.RemoveAll(dir) //nolint:errcheck // measured and done with
	if err := workspaceOf(b.ctx, filepath.Join(dir, "work")); err != nil {
		return err
	}
	if err := b.disk(); err != nil {
		return err
	}
	store, err := perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(dir, "store"), DSN: b.dsn})
	if err != nil {
		return err
	}
	defer store.Close()
	added, err := b.iterations(store, dir, n, false)
	if err != nil {
		return err
	}
	values := map[string]any{"iterations": len(added), "files": loopFiles, "changed": loopChanges}
	quantiles(added, values)
	var total time.Duration
	for _, took := range added {
		total += took
	}
	values["percent_of_60_s"] = rounded(float64(total) / float64(len(added)) / float64(iterationTime) * 100)
	return b.print("loop-overhead", "50,000 files of 4 KiB in a git repository, 20 changed in each turn; what is not "+
		"agent or check", round, values)
}

// workspaceOf makes a folder with many files, committed.
func workspaceOf(ctx context.Context, dir string) error {
	for i := range loopFiles {
		name := filepath.Join(dir, fmt.Sprint("d", i/500), fmt.Sprintf("f%d.txt", i))
		if i%500 == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return err
			}
		}
		text := strings.Repeat(fmt.Sprintf("%07d\n", i), loopFileBytes/8)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	git := exec.CommandContext(ctx, "sh", "-c", "git init -q . && git add . && git -c user.name=b -c "+
		"user.email=b@localhost commit -q -m b")
	git.Dir = dir
	if out, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("commit workspace: %w: %s", err, out)
	}
	return nil
}

type editor struct{ turn int }

// Agent is the editor itself.
func (e *editor) Agent(loop.AgentSpec) (agent.Agent, error) { return e, nil }

// Run changes files.
func (e *editor) Run(_ context.Context, t *agent.Turn) (*agent.Result, error) {
	e.turn++
	for i := range loopChanges {
		at := (e.turn*loopChanges + i) * 37 % loopFiles
		name := filepath.Join(t.Dir, fmt.Sprint("d", at/500), fmt.Sprintf("f%d.txt", at))
		if err := os.WriteFile(name, []byte(fmt.Sprintf("turn %d\n", e.turn)), 0o600); err != nil {
			return nil, err
		}
	}
	return &agent.Result{Text: "done"}, nil
}

// iterations runs a loop that never gets there, and returns what the engine added
// to each iteration; plain turns the supervision off.
func (b *bench) iterations(store *perdure.Store, dir string, n int, plain bool) ([]time.Duration, error) {
	engine, err := loop.New(b.ctx,
		loop.EngineConfig{Store: store, Agents: &editor{}, Dir: filepath.Join(dir, "store", "loops")})
	if err != nil {
		return nil, err
	}
	tree, err := engine.Launch(b.ctx,
		loop.LaunchRequest{Config: config.Config{Task: "Change files", Until: "false", Workspace: filepath.Join(dir, "work"),
			Agent: "editor", MaxIterations: n, KeepLast: true, Plain: plain}})
	if err != nil {
		return nil, err
	}
	session, err := store.OpenSession(b.ctx, "bench")
	if err != nil {
		return nil, err
	}
	w, err := worker.New(worker.Config{Store: store, Session: session,
		Handlers: map[string]worker.Handler{perdure.KindLoop: engine}})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	waiting, cancel := context.WithCancel(b.ctx)
	go func() {
		ended <- w.Run(ctx)
		cancel() // no process continues the loop
	}()
	err = waitUntil(waiting, store, func() (bool, error) {
		t, err := store.Tree(waiting, tree.ID)
		return t.State.Terminal(), err
	})
	stop()
	if err := errors.Join(err, <-ended, session.Close(b.ctx)); err != nil {
		return nil, err
	}
	return addedTo(b.ctx, record.New(store), tree.ID, n)
}

// addedTo is the time from the end of an iteration to that of the next one,
// without its agent's and its check's. That of the first is not known.
func addedTo(ctx context.Context, records *record.Records, id perdure.TreeID, n int) ([]time.Duration, error) {
	list, err := records.Iterations(ctx, id, 1, n)
	if err != nil {
		return nil, err
	}
	var added []time.Duration
	for i := 1; i < len(list); i++ {
		var o state.Outcome
		if err := json.Unmarshal(list[i].Data, &o); err != nil {
			return nil, err
		}
		added = append(added, list[i].EndedAt.Sub(*list[i-1].EndedAt)-time.Duration(
			o.Times.Agent+o.Times.Check)*time.Millisecond)
	}
	return added, nil
}
