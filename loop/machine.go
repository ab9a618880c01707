package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/checkfile"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// The steps. Those of the first group are the root's, those of the second an
// iteration's.
const (
	stepWorktree = "worktree"
	stepBegin    = "begin"
	stepBaseline = "baseline"
	stepNext     = "next"
	stepCommit   = "commit"
	stepDecide   = "decide"
	stepDiagnose = "diagnose"
	stepAdapt    = "adapt"
	stepEscalate = "escalate"
	stepGate     = "gate"
	stepComplete = "complete"
	stepSeal     = "seal"
	stepSelect   = "select"
	stepVerify   = "verify"
	stepFinish   = "finish"
	stepEnded    = "ended"

	stepPrepare = "prepare"
	stepAct     = "act"
	stepMeasure = "measure"
	stepHeldOut = "held_out"
	stepJudge   = "judge"
	stepContain = "contain" // instead of measure and judge
)

// step does one thing and says what comes next. What it leaves in r is written
// down with that, in one transaction; until then nothing has happened, so a step
// may be begun again.
type step func(ctx context.Context, r *run) (next string, err error)

// steps are the root's steps, or an iteration's.
func steps(root bool) map[string]step {
	if root {
		return map[string]step{stepWorktree: makeWorktree, stepBegin: begin, stepBaseline: baseline, stepNext: next,
			stepCommit: commit, stepDecide: decide, stepDiagnose: diagnose,
			stepAdapt: adapt, stepEscalate: escalate, stepGate: waitForGate, stepComplete: complete,
			stepSeal:   checkCompletion,
			stepSelect: choose, stepVerify: verify, stepFinish: finish}
	}
	return map[string]step{stepPrepare: prepare, stepAct: act, stepMeasure: measure, stepHeldOut: holdOut,
		stepJudge: judge, stepContain: contain}
}

// run is a loop while one of its tasks is worked on.
type run struct {
	e        *Engine
	l        *perdure.Lease
	cfg      config.Config
	loop     record.Loop
	state    state.State
	files    *workspace.Workspace
	fault    error       // why there are no files
	home     os.FileInfo // of the loop's folder
	putBacks int64       // of the store, at the last look
	// uncopied is set after a warning that the copies outside of the workspace are not current.
	uncopied bool
	// checkFiles are the files that the check writes; never nil.
	checkFiles *checkfile.Files
	hiding     confinement
	hooks      *hook.Runner
	log        *hook.Log

	warnings warnings
	change   record.Change // what the current step stores in addition to the state
	// needy is set with a pause that needs a notice.
	needy bool
	// parked, when set, is until when there is nothing to do.
	parked *time.Time
}

// Handle does the steps of a root or of an iteration until the other is to go
// on. It can be interrupted at any point and be called again for the same task.
func (e *Engine) Handle(ctx context.Context, l *perdure.Lease) (err error) {
	root := l.Task.ID == l.Tree.Root
	if root && l.Task.Pending > 0 {
		return l.Wait(ctx)
	}
	r, err := e.load(ctx, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(context.WithoutCancel(ctx))) }()
	mine := steps(root)
	for {
		if _, err := r.checkStore(ctx); err != nil {
			return err
		}
		if parkIfPaused, err := r.parkIfPaused(ctx, root); parkIfPaused || err != nil {
			return err
		}
		do, ok := mine[r.loop.Step]
		switch {
		case ok:
		case r.loop.Step == stepEnded && root:
			return r.settle(ctx)
		case root:
			return r.iterate(ctx)
		default:
			return l.Complete(ctx, perdure.Result{Text: r.summary()})
		}
		if err := r.step(ctx, do); err != nil {
			return err
		}
		if r.parked != nil {
			return r.e.records.Park(ctx, r.l, *r.parked, r.loop.Step == stepGate)
		}
	}
}

// step does a step and writes down what came of it.
func (r *run) step(ctx context.Context, do step) error {
	name := r.loop.Step
	r.change = record.Change{}
	failpoint.Hit("loop." + name)
	next, err := name, r.fault
	if err == nil || !r.needsFiles() {
		next, err = do(ctx, r)
	}
	if lost := r.afterProgram(ctx, "a program", r.snapshotChecked(ctx)); lost != nil {
		return lost
	}
	err = r.e.withWorktree(err, &r.l.Tree, &r.cfg)
	if fault, ok := errors.AsType[*workspace.Error](err); ok && ctx.Err() == nil { // the user has to fix it
		r.change = record.Change{}
		r.pause("%s", strings.TrimSuffix(fmt.Sprintf("%s (%s)", fault, fault.Hint), " ()"))
		next, err = name, nil
	}
	if errors.Is(err, guard.ErrGuardLost) && ctx.Err() == nil {
		r.change = record.Change{}
		r.pause("a command of step %s killed the guard process that ends what it starts; remove that from the command, "+
			"then resume", name)
		next, err = name, nil
	}
	if err == nil && r.needy {
		_, err = r.ask(ctx, hook.LoopPaused, r.state.Reason, map[string]any{"reason": r.state.Reason})
	}
	if err != nil {
		return err
	}
	r.needy = false
	r.loop.Step = next
	failpoint.Hit("loop." + name + ".done")
	return r.save(ctx)
}

// save writes down the state as it is.
func (r *run) save(ctx context.Context) error {
	raw, err := json.Marshal(&r.state)
	if err != nil {
		return err
	}
	r.loop.State = raw
	r.change.Events = append(r.change.Events, r.warnings.take()...)
	r.change.Loop = &r.loop
	err = r.e.records.Save(ctx, r.l, r.change)
	r.change = record.Change{}
	return err
}

// note leaves an event.
func (r *run) note(kind perdure.EventKind, data map[string]any) {
	r.change.Events = append(r.change.Events, record.Event{Kind: kind, Data: data})
}

func (e *Engine) load(ctx context.Context, l *perdure.Lease) (*run, error) {
	row, err := e.records.Loop(ctx, l.Tree.ID)
	if errors.Is(err, perdure.ErrNotFound) {
		return nil, fail("not_started", "the process died while it started the loop; nothing was done")
	}
	if err != nil {
		return nil, err
	}
	cfg, err := config.Of(&l.Tree, &row)
	if err != nil {
		return nil, err
	}
	r := &run{e: e, l: l, cfg: cfg, loop: row}
	if err := json.Unmarshal(r.loop.State, &r.state); err != nil {
		return nil, fail("damaged", "the state of the loop cannot be read: %s", err)
	}
	r.enrol()
	if _, err := r.checkStore(ctx); err != nil {
		return nil, err
	}
	e.copies.Do(func() { r.keepCopies(ctx) })
	r.openFiles()
	r.hiding = r.confine(ctx)
	if err := r.excludeCheckFiles(ctx); err != nil {
		return nil, err
	}
	if r.log, err = hook.OpenLog(hook.LogConfig{Path: filepath.Join(e.dir(&l.Tree), "hook-log.jsonl")}); err != nil {
		return nil, err
	}
	r.hooks, err = hook.New(hook.Config{Handlers: e.cfg.Handlers, Log: r.log, Observe: r.warnings.observe,
		LatencyBudget: r.cfg.DetectionBudget, OverheadPercent: -1, Logger: e.cfg.Logger})
	if err != nil {
		return nil, errors.Join(err, r.log.Close())
	}
	return r, nil
}

// openFiles opens the workspace. If that fails, each step that needs the files fails, until
// the problem is fixed.
func (r *run) openFiles() {
	var err error
	r.files, err = workspace.Open(workspace.Config{Root: r.cfg.Workspace,
		Dir: filepath.Join(r.e.dir(&r.l.Tree), snapshotsName), Copy: r.snapshotCopies(), CopyFailed: r.notCopied,
		Logger: r.e.cfg.Logger})
	r.fault = refusal(err)
}

// needsFiles reports whether the next step needs the workspace. A loop can be aborted without
// it.
func (r *run) needsFiles() bool {
	switch r.loop.Step {
	case stepWorktree:
		return false
	case stepFinish:
		return r.state.Verdict != string(record.Aborted) && (r.state.Verdict != verdictRevert || r.state.Baseline != "")
	}
	return true
}

func (r *run) close(ctx context.Context) error {
	return errors.Join(r.hooks.Close(ctx), r.log.Close())
}

// maxSpawns is how often a task is made for one iteration: more than once only
// when a task ended before its steps did, or when the process died just then.
const maxSpawns = 3

// iterate makes a task for the iteration, which its steps are done in.
func (r *run) iterate(ctx context.Context) error {
	if r.state.Run.Spawns >= maxSpawns {
		err := r.step(ctx, func(context.Context, *run) (string, error) {
			r.pause("iteration %d did not end, %d times; `perdure tree %s` shows its tasks", r.state.Run.Number, maxSpawns,
				r.l.Tree.ID)
			r.state.Run.Spawns = 0
			return r.loop.Step, nil
		})
		if err != nil {
			return err
		}
		return r.e.records.Park(ctx, r.l, *r.parked, r.loop.Step == stepGate)
	}
	r.state.Run.Spawns++
	if err := r.save(ctx); err != nil {
		return err
	}
	failpoint.Hit("loop.spawn")
	meta, err := json.Marshal(map[string]int{"iteration": r.state.Run.Number})
	if err != nil {
		return err
	}
	_, err = r.l.Spawn(ctx, []perdure.TaskSpec{{Prompt: r.cfg.Task, Agent: r.agentName(), Metadata: meta}})
	return err
}
