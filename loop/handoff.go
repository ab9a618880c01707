package loop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
)

// HandoffConfig says how the work of iterations is handed over: from a session of
// an agent to the next one, and from an agent to another.
type HandoffConfig struct {
	// Folder, Snapshots and Thresholds are those of [ledger.Config].
	Folder, Snapshots string
	Thresholds        ledger.Thresholds
	// Program is the path of perdure, with which agents record their work. Empty:
	// their prompts do not mention it.
	Program string
	// Window is the size of an agent's context, in tokens, if the agent does not
	// report it. 0: [agent.DefaultWindow].
	Window int64
}

const (
	// maxHandedFiles is how many touched files of an iteration a handoff names.
	maxHandedFiles = 50
	// maxPartial is how much of an agent's last words a handoff keeps, in bytes.
	maxPartial = 200
	// maxAgentName bounds names of agents in handoffs, in bytes.
	maxAgentName = 200
)

// handoffTask is the ad-hoc item that the work of an iteration is recorded under:
// each has its own, so that nothing of one that was reverted leaks into the next.
func handoffTask(iteration int) string { return fmt.Sprintf("iteration-%d", iteration) }

func (r *run) handoffFile() string {
	return filepath.Join(r.e.dir(&r.l.Tree), handoff.FileName)
}

func (r *run) recorder() *ledger.Recorder {
	c := &r.e.cfg.Handoff
	return ledger.New(ledger.Config{Ledgers: ledger.NewStore(r.e.cfg.Store),
		Location: handoff.Location{File: r.handoffFile(), Root: r.files.Root()},
		Place:    handoff.Place("adhoc:" + handoffTask(r.state.Run.Number)), Folder: c.Folder, Snapshots: c.Snapshots,
		Thresholds: c.Thresholds, Agent: clip.Bytes(r.agentName(), maxAgentName)})
}

// handoffEnv is what `perdure handoff` finds the iteration's record by when the
// agent calls it.
func (r *run) handoffEnv() []string {
	env := []string{"PERDURE_AGENT=" + clip.Bytes(r.agentName(), maxAgentName), "PERDURE_HANDOFF_FILE=" + r.handoffFile(),
		"PERDURE_HANDOFF_ROOT=" + r.files.Root(), "PERDURE_HANDOFF_TASK=adhoc:" + handoffTask(r.state.Run.Number)}
	if program := r.e.cfg.Handoff.Program; program != "" { // behind what is there: the user's own comes first
		env = append(env, "PATH="+os.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(program))
	}
	return env
}

// beginHandoff makes the record of the iteration, unless it is there: then a
// process died after it was made.
func (r *run) beginHandoff(ctx context.Context) {
	if view, err := r.recorder().Look(ctx); err == nil && view.Open() {
		return
	}
	r.handed("the record is begun", r.startHandoff(ctx))
}

// startHandoff starts a new record. The file contains the current iteration only;
// the ledgers of all iterations are in the store.
func (r *run) startHandoff(ctx context.Context, more ...ledger.Op) error {
	if err := removeFile(r.handoffFile()); err != nil {
		return err
	}
	title, _, _ := strings.Cut(strings.TrimSpace(r.cfg.Task), "\n")
	err := handoff.Create(ctx, r.handoffFile(), handoff.Skeleton{SessionID: ID(&r.l.Tree), Now: time.Now(),
		Description: clip.Bytes(title, maxTitle),
		Place:       handoff.Place("adhoc:" + handoffTask(r.state.Run.Number))})
	if err != nil {
		return err
	}
	start := ledger.Op{Kind: ledger.OpStart, Title: clip.Bytes(title, maxTitle), Phase: handoff.PhaseImplementation}
	_, err = r.recorder().Apply(ctx, append([]ledger.Op{start}, more...)...)
	return err
}

// maxTitle is how much of a task its handoffs are called by, in bytes.
const maxTitle = 200

// handed takes an error of a handoff: an entry that cannot be recorded is reported and stops
// nothing, since the loop's own recovery does not rest on it.
func (r *run) handed(what string, err error) {
	if err != nil {
		r.e.cfg.Logger.Warn("handoff not recorded", "tree_id", string(r.l.Tree.ID), "iteration", r.state.Run.Number, "what",
			what, "error", err)
		r.note(EventHandoff, map[string]any{"iteration": r.state.Run.Number, "why": what,
			"error": clip.Bytes(err.Error(), 500)})
	}
}

// hand records why the work is handed over, with the files it touched so far.
func (r *run) hand(ctx context.Context, why string, op ledger.Op) {
	op.Partial = clip.Bytes(strings.TrimSpace(r.state.Run.Text), maxPartial)
	changes, err := r.files.DiffNow(ctx, r.state.Run.Before)
	if err != nil {
		r.handed(why, refusal(err))
		return
	}
	created, modified := touched(changes)
	_, err = r.recorder().Apply(ctx, ledger.Op{Kind: ledger.OpSave, Reason: handoff.ReasonPeriodic, Created: created,
		Modified: modified}, op)
	if err != nil {
		r.handed(why, err)
		return
	}
	r.note(EventHandoff, map[string]any{"iteration": r.state.Run.Number, "agent": r.agentName(), "why": why,
		"files": len(changes)})
	_, err = r.ask(ctx, hook.CheckpointWritten, "the work was recorded for the agent that continues it", map[string]any{
		"path": r.handoffFile(), "reason": why, "agent": r.agentName(), "files": len(changes)})
	r.handed(why, err)
}

// touched are the files that are there now, as far as a handoff names them.
func touched(changes []workspace.Change) (created, modified []string) {
	for _, c := range changes {
		switch {
		case len(created)+len(modified) >= maxHandedFiles || c.New == nil || c.New.Kind != workspace.KindFile,
			!utf8.ValidString(c.Path): // the whole record would be refused
		case c.Kind == workspace.Added:
			created = append(created, c.Path)
		default:
			modified = append(modified, c.Path)
		}
	}
	return created, modified
}

// handTurn records how a turn failed, before the failure is reported anywhere else,
// so that the agent that continues can read it.
func (r *run) handTurn(ctx context.Context, f *agent.Error) {
	if f == nil {
		return
	}
	text := clip.Bytes(f.Error(), 500)
	switch {
	case f.Class() == agent.ClassWait:
		r.hand(ctx, "rate_limit", ledger.Op{Kind: ledger.OpRateLimit, Text: text, Until: f.Until})
	case f.Kind == agent.KindOverflow:
		r.hand(ctx, "context_limit", ledger.Op{Kind: ledger.OpContext, Used: 1, Source: string(agent.SourceReported)})
	case f.Kind == agent.KindIdle || f.Kind == agent.KindTimeout:
		r.hand(ctx, "timeout", ledger.Op{Kind: ledger.OpFail, Text: text})
	case f.Class() == agent.ClassAgent && r.follows(f) != moveAgain:
		r.hand(ctx, "failure", ledger.Op{Kind: ledger.OpFail, Text: text})
	case f.Class() != agent.ClassCanceled:
		r.hand(ctx, "periodic", ledger.Op{Kind: ledger.OpSave, Reason: handoff.ReasonPeriodic})
	}
}

// reopenHandoff is for files that went back to what they were when a turn began:
// the record begins anew with what is still so.
func (r *run) reopenHandoff(ctx context.Context) error {
	view, err := r.recorder().Look(ctx)
	if err != nil || !view.Open() {
		return r.startHandoff(ctx)
	}
	l := &view.Ledger
	var ops []ledger.Op
	for _, s := range l.CompletedSteps {
		if s.Timestamp.Before(r.state.Run.KeptAt) {
			ops = append(ops, ledger.Op{Kind: ledger.OpStep, Text: s.Step, Created: s.FilesCreated, Modified: s.FilesModified,
				RunAgain: s.RunAgain})
		}
	}
	for _, d := range l.Decisions {
		ops = append(ops, ledger.Op{Kind: ledger.OpDecide, Text: d.Decision, Because: d.Rationale})
	}
	for _, a := range l.FailedApproaches {
		ops = append(ops, ledger.Op{Kind: ledger.OpTried, Text: a.What, Outcome: a.Outcome, Because: a.Why})
	}
	const most = 100 // entries that an agent can receive again
	ops = ops[max(0, len(ops)-most):]
	if _, err := r.recorder().Apply(ctx,
		ledger.Op{Kind: ledger.OpDone, Text: "the process died; the files went back, and " +
			"the work begins again"}); err != nil {
		return err
	}
	return r.startHandoff(ctx, ops...)
}

// endHandoff records what the iteration came to, and ends its record. It returns
// what the next iteration receives of it: nil when the agent recorded nothing.
func (r *run) endHandoff(ctx context.Context, out *state.Outcome, changes []workspace.Change) *handoff.Checkpoint {
	view, err := r.recorder().Look(ctx)
	if err != nil || !view.Open() {
		r.handed("the iteration ended", err)
		return nil
	}
	l := &view.Ledger
	var kept *handoff.Checkpoint
	if len(l.CompletedSteps)+len(l.Decisions)+len(l.FailedApproaches)+len(l.PendingSteps)+len(l.Blockers)+
		len(l.NextAction) > 0 {
		kept = new(handoff.Project(*l, 0))
	}
	created, modified := touched(changes)
	status := handoff.StatusFailed
	if out.Check.Passed {
		status = handoff.StatusPassed
	}
	said := firstOf(out.AgentText, out.AgentError, "no message")
	_, err = r.recorder().Apply(ctx,
		ledger.Op{Kind: ledger.OpStep, Text: fmt.Sprintf("Iteration %d: %s", out.Iteration, clip.Bytes(said, maxPartial)),
			Created: created, Modified: modified},
		ledger.Op{Kind: ledger.OpVerify, Text: "completion check", Status: status, RanBy: handoff.RanByEngine},
		ledger.Op{Kind: ledger.OpDone})
	r.handed("the iteration ended", err)
	return kept
}

// resumption is the prompt of a session that continues the iteration of another;
// nothing when there is nothing to continue.
func (r *run) resumption(ctx context.Context) string {
	out, err := r.recorder().Resume(ctx, ledger.ResumeConfig{})
	if err != nil {
		r.handed("the work is resumed", err)
		return ""
	}
	return out.Prompt
}

// writeHandoffs writes the decisions and failed approaches that earlier iterations
// recorded, and the pending steps of the last one unless it was reverted.
func writeHandoffs(b *strings.Builder, outcomes []state.Outcome, reverted func(i int) bool) {
	var decided, tried, pending []string
	for i := range outcomes {
		c := outcomes[i].Handoff
		if c == nil {
			continue
		}
		for _, d := range c.Decisions {
			decided = append(decided, joined(d.Decision, d.Rationale))
		}
		for _, f := range c.FailedApproaches {
			tried = append(tried, joined(f.What, firstOf(f.Outcome, f.Why)))
		}
		if i == 0 && !reverted(i) {
			pending = slices.Concat(c.PendingSteps, c.Blockers)
			if c.NextAction != "" {
				pending = append([]string{c.NextAction}, pending...)
			}
		}
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"Decisions made, to be respected", decided}, {"What was tried and failed", tried},
		{"What the last iteration left to do", pending}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(b, "\n# %s\n\n- %s\n", part.title, strings.Join(part.lines, "\n- "))
		}
	}
}

func joined(what, why string) string {
	if why == "" {
		return clip.OneLine(what)
	}
	return clip.OneLine(what) + ": " + clip.OneLine(why)
}
