package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/loop/heldout"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// signalled is the exit status that a shell adds the number of a signal to.
const signalled = 128

// maxHeldOutput is how much of the end of the output of a held-out check is kept, in bytes.
const maxHeldOutput = 2000

// keepHeldOut stores the held-out check of a configuration outside of the store, and replaces it in the
// configuration by its name. One that is equal to that of old keeps its name.
func (e *Engine) keepHeldOut(cfg, old *config.Config) error {
	if cfg.HeldOut == "" || old != nil && cfg.HeldOut == old.HeldOut {
		return nil
	}
	if e.cfg.HeldOut == "" {
		return refuseHeldOut(errors.New("there is no folder of the user outside of the workspace to keep the held-out " +
			"check in: set HOME"))
	}
	check, err := parseHeldOut(cfg)
	if err != nil {
		return refuseHeldOut(err)
	}
	if old != nil && old.HeldOut != "" {
		if book, err := heldout.Open(e.cfg.HeldOut, old.HeldOut); err == nil && book.Check.Same(check) {
			cfg.HeldOut = old.HeldOut
			return nil
		}
	}
	book, err := heldout.Keep(e.cfg.HeldOut, check)
	if err != nil {
		return fmt.Errorf("store the held-out check outside of the workspace: %w", err)
	}
	cfg.HeldOut = book.Name
	return nil
}

// CheckHeldOut returns an error if the held-out check of a configuration cannot be run, or if the agent
// can change it, as Launch does: before a store is made.
func CheckHeldOut(cfg *config.Config) error {
	if cfg.HeldOut == "" {
		return nil
	}
	if _, err := parseHeldOut(cfg); err != nil {
		return refuseHeldOut(err)
	}
	return nil
}

func refuseHeldOut(err error) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "configure loop", Msg: err.Error(),
		Hint: "--held-out takes a folder or a command outside of the workspace, such as /home/me/held-out/check.sh"}
}

func parseHeldOut(cfg *config.Config) (*heldout.Check, error) {
	switch {
	case cfg.Plain:
		return nil, errors.New("a held-out check is part of the supervision, which --plain turns off")
	case strings.HasPrefix(cfg.HeldOut, heldout.Prefix):
		return nil, fmt.Errorf("%q is the name of a held-out check, not a command", cfg.HeldOut)
	}
	place := cfg.Workspace
	if cfg.WorktreeOf != "" {
		place = cfg.WorktreeOf
	}
	return heldout.Parse(cfg.HeldOut, place, cfg.Until)
}

// holdsOut reports whether the loop has a held-out check.
func (r *run) holdsOut() bool { return r.cfg.HeldOut != "" && !r.cfg.Plain }

// book opens the held-out check.
func (r *run) book() (*heldout.Book, error) {
	book, err := heldout.Open(r.e.cfg.HeldOut, r.cfg.HeldOut)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoBook
	}
	return book, err
}

var errNoBook = errors.New("the held-out check of this loop is not on this machine any more")

// pauseWithoutBook pauses a loop whose held-out check is gone.
func (r *run) pauseWithoutBook(err error) bool {
	if !errors.Is(err, errNoBook) {
		return false
	}
	r.pause("%s: `perdure loop resume %s --held-out COMMAND` sets it again, --held-out '' continues without it", err,
		ID(&r.l.Tree))
	return true
}

// holdOut runs the held-out check after an iteration.
func holdOut(ctx context.Context, r *run) (string, error) {
	t := &r.state.Run
	if !r.holdsOut() { // since the loop was resumed
		return stepJudge, nil
	}
	watched, stop := r.watchedFor(ctx, record.Abort, record.Revert)
	_, err := r.checkHeldOut(watched, t.Number, t.After, t.Check)
	cause := context.Cause(watched)
	stop()
	if _, ok := errors.AsType[*controlError](cause); ok { // it is not waited for
		return stepJudge, nil
	}
	if r.pauseWithoutBook(err) {
		return stepHeldOut, nil
	}
	return stepJudge, err
}

// checkHeldOut runs the held-out check on the files of an iteration, unless it ran on them already. An
// error is one of the machine; a check that cannot be run has a result that says so.
func (r *run) checkHeldOut(ctx context.Context, iteration int, of workspace.ID, seen *state.Check) (*heldout.Result,
	error) {
	book, err := r.book()
	if err != nil {
		return nil, err
	}
	known, err := book.Result(iteration)
	if err != nil || known != nil && known.Snapshot == of {
		return known, err
	}
	began := time.Now()
	result := &heldout.Result{Iteration: iteration, Snapshot: of, State: heldout.NotRun, Exit: -1,
		Exposed: r.hiding.exposed}
	if err := r.runHeldOut(ctx, book, result, seen); err != nil {
		return nil, err
	}
	result.TookMS, result.At = time.Since(began).Milliseconds(), began.UTC()
	err = book.Write(result)
	failpoint.Hit("heldout.written")
	return result, err
}

// runHeldOut runs the check in a copy and fills in the result.
func (r *run) runHeldOut(ctx context.Context, book *heldout.Book, result *heldout.Result, seen *state.Check) error {
	visible, err := r.savedResults(ctx, seen.Results)
	if err != nil {
		return err
	}
	at, err := r.heldOutCopy(ctx, &book.Check, result)
	if err != nil || at == nil {
		return err
	}
	defer func() { _ = at.Close() }() // the next copy removes what is left
	failpoint.Hit("heldout.copied")
	c, err := r.commandHeldOut(ctx, book, at, result)
	if err != nil || c == nil {
		return err
	}
	result.Exit, result.Output = c.Exit, clip.Suffix(c.Output, maxHeldOutput)
	switch {
	case c.TimedOut:
		result.Why = fmt.Sprintf("it did not end within %s (loop.check_timeout)", r.cfg.CheckTimeout)
	case c.Exit == metric.StatusNotFound || c.Exit == metric.StatusNotRunnable:
		result.Why = fmt.Sprintf("it cannot be run (exit status %d): %s", c.Exit, lastLine(c.Output))
	case c.Exit < 0 || c.report == nil && c.Exit > signalled:
		result.Why = fmt.Sprintf("it was ended by a signal (exit status %d)", c.Exit)
	default:
		held := &heldout.Run{Passed: r.passed(c), Report: c.report}
		if book.Check.Folder != "" {
			held.Report = book.Check.Own(c.report, visible)
		}
		result.Compare(&heldout.Run{Passed: seen.Passed, Report: visible}, held)
	}
	return nil
}

// passed reports whether a command and all its tests passed.
func (*run) passed(c *checked) bool {
	return c.Passed && (c.report == nil || c.report.Complete && len(c.report.Broken) == 0 && len(c.report.Failing()) == 0)
}

// heldOutCopy makes the copy for the check; nil with the reason in the result if there can be none.
func (r *run) heldOutCopy(ctx context.Context, check *heldout.Check, result *heldout.Result) (*cleancheck.Place,
	error) {
	cfg, err := r.cleanCopyConfig(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Machine = nil
	if cfg.Temp, err = heldOutTemp(); err != nil {
		return nil, err
	}
	at, err := cleancheck.Copy(ctx, *cfg, result.Snapshot)
	if err == nil {
		err = check.LayOver(at.Root)
		if err != nil {
			err = errors.Join(err, at.Close())
		}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		if _, ok := errors.AsType[*workspace.Error](err); ok {
			return nil, refusal(err)
		}
		result.Why = "no copy of the workspace could be made: " + err.Error()
		return nil, nil
	}
	result.Open = r.state.NoSandbox
	if at.Sandbox != nil {
		at.Sandbox.Readable = append(slices.Clip(at.Sandbox.Readable), check.Places(r.files.Root())...)
	}
	return at, nil
}

// heldOutTemp returns the folder for copies, with a name that does not change, so that it can be hidden.
func heldOutTemp() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("perdure-held-out-%d", max(os.Getuid(), 0)))
	return dir, os.MkdirAll(dir, 0o700)
}

// commandHeldOut runs the check in a copy, without a sandbox if the system refuses one; nil with the
// reason in the result if it cannot be run.
func (r *run) commandHeldOut(ctx context.Context, book *heldout.Book, at *cleancheck.Place, result *heldout.Result) (
	*checked, error) {
	if r.cfg.SealedSetup != "" {
		problem, err := r.setUpCopy(ctx, at)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			problem = err.Error()
		}
		if result.Why = problem; problem != "" {
			return nil, nil
		}
	}
	script := book.Check.Command
	if book.Check.Folder != "" {
		script = r.cfg.Until
	}
	for {
		in := r.runnerIn(at)
		command := project.Measure(script, project.Config{Files: os.DirFS(in.Root), Scratch: in.Scratch,
			Installed: installed})
		c, err := r.measured(ctx, in, &command)
		refused, sandboxed := errors.AsType[*sandbox.Error](err)
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case sandboxed && refused.Refused && at.Sandbox != nil:
			at.Sandbox, result.Open = nil, "the system refuses a sandbox: "+refused.Error()
			continue
		case sandboxed, errors.Is(err, guard.ErrGuardLost):
			result.Why = err.Error()
			return nil, nil
		}
		return nil, err
	}
}

// heldOutGate asks a person if the held-out check does not confirm an iteration that passes; "" if it
// does, or if the user accepted it.
func (r *run) heldOutGate(ctx context.Context, out *state.Outcome) (string, error) {
	if !r.holdsOut() || r.state.HeldOutAccepted == out.Iteration {
		return "", nil
	}
	result, err := r.checkHeldOut(ctx, out.Iteration, out.After, r.state.Run.Check)
	if r.pauseWithoutBook(err) {
		return stepSeal, nil
	}
	if err != nil || !result.Over(r.cfg.HeldOutGap) {
		return "", err
	}
	r.loop.Status, r.state.Reason = record.Running, ""
	// An agent can read the question, so it has no result.
	return r.openGate(perdure.GateHeldOut, perdure.GateQuestion{
		Title: fmt.Sprintf("the held-out check does not confirm iteration %d, whose check passes", out.Iteration),
		Text: "The results of the held-out check are not part of this question, because an agent can read it. " +
			"`perdure loop status " + ID(&r.l.Tree) + "` shows them to you.",
		Diff: r.diff(ctx, out),
		Options: []perdure.GateOption{
			{Answer: answerApprove, Effect: "the iteration is accepted, and the loop ends as completed"},
			{Answer: answerContinue, Effect: "the loop continues with these files; the reason (--reason) is added to the next " +
				"prompt, and nothing else of this gate is"},
			{Answer: answerReject, Effect: "the files from before the iteration are restored, and the loop continues"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}

// heldOutAnswered does what a person decided at a gate about the held-out check.
func (r *run) heldOutAnswered(ctx context.Context, g *perdure.Gate) (string, error) {
	if g.Answer == answerApprove {
		r.state.HeldOutAccepted = g.Iteration
		r.loop.Status = record.Completing
		return stepSeal, nil
	}
	out, err := r.outcome(ctx, g.Iteration) // rejected
	if err != nil {
		return "", err
	}
	r.state.Answer, r.state.Rejected, r.state.Recoveries = g.Reason, true, 0
	return stepNext, r.revert(ctx, out, nil)
}

// heldOutResults returns the results by iteration; nil without a held-out check.
func (r *run) heldOutResults() map[int]*heldout.Result {
	if !r.holdsOut() {
		return nil
	}
	book, err := r.book()
	if err != nil {
		return nil
	}
	return book.Results()
}

// heldOutCandidates returns all iterations that a loop may end with, because those that pass the
// held-out check go first.
func (r *run) heldOutCandidates(ctx context.Context) ([]record.Iteration, error) {
	const page = 500
	var all []record.Iteration
	for from := 1; ; {
		list, err := r.e.records.Briefs(ctx, r.l.Tree.ID, from, page)
		if all = append(all, list...); err != nil || len(list) < page {
			return all, err
		}
		from = list[page-1].Number + 1
	}
}

// withHeldOut returns the configuration as JSON with the held-out check stored elsewhere.
func (e *Engine) withHeldOut(cfg, old *config.Config, raw json.RawMessage) (json.RawMessage, error) {
	before := cfg.HeldOut
	if err := e.keepHeldOut(cfg, old); err != nil || cfg.HeldOut == before {
		return raw, err
	}
	return json.Marshal(cfg)
}

// noteHeldOut runs the held-out check before the first iteration, and says what it does not show.
func (r *run) noteHeldOut(ctx context.Context, check *state.Check) error {
	if !r.holdsOut() {
		return nil
	}
	book, err := r.book()
	if err != nil {
		return err
	}
	if _, err = r.checkHeldOut(ctx, 0, r.trusted(), check); err != nil {
		return err
	}
	if r.hiding.exposed != "" {
		r.note(EventWarning, map[string]any{"iteration": 0, "kind": "held_out",
			"message": "the files of the held-out check are not hidden from the agent: `perdure loop status` says why"})
	}
	if book.Check.IsExposed() {
		r.note(EventWarning, map[string]any{"iteration": 0, "kind": "held_out",
			"message": "the held-out check names no file outside of the workspace: the agent probably sees its tests"})
	}
	return nil
}
