package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/branch"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// CheckCommits returns an error if a loop cannot make commits in a folder, or no worktree of it
// although one is asked for.
func CheckCommits(ctx context.Context, dir string, worktree bool) error {
	repo, err := branch.Open(ctx, branch.Config{Root: dir, Environ: os.Environ()})
	if err == nil {
		err = repo.Usable(ctx)
	}
	if err == nil && worktree {
		err = repo.CanAddWorktree(ctx)
	}
	return unusable(err)
}

// unusable returns a problem with a repository as an error of a request.
func unusable(err error) error {
	if problem, ok := errors.AsType[*branch.Error](err); ok {
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: problem.Error(), Hint: problem.Hint, Err: err}
	}
	return err
}

// checkCommits returns an error if a loop makes commits and cannot.
func checkCommits(ctx context.Context, cfg *config.Config) error {
	if !cfg.Commit && !cfg.Worktree {
		return nil
	}
	return CheckCommits(ctx, cfg.Workspace, cfg.Worktree)
}

// afterIteration returns the step after an iteration.
func (r *run) afterIteration() string {
	if r.cfg.Commit {
		return stepCommit
	}
	return stepDecide
}

// repository opens the repository of the workspace for commits.
func (r *run) repository(ctx context.Context) (*branch.Repository, error) {
	return branch.Open(ctx, branch.Config{Root: r.files.Root(), Scratch: r.e.dir(&r.l.Tree), Environ: os.Environ()})
}

// startBranch creates the branch of the loop for a snapshot of the workspace as it is now.
func (r *run) startBranch(ctx context.Context, id workspace.ID) error {
	repo, err := r.repository(ctx)
	if err != nil {
		return err
	}
	loop := ID(&r.l.Tree)
	at, err := repo.Start(ctx, r.files, branch.Name(loop), branch.Entry{Snapshot: id, Optional: true,
		Message: message("Uncommitted changes from before the loop", "", "Perdure-Loop: "+loop)})
	if err == nil {
		r.state.Branch = &at
	}
	return err
}

// pauseForBranch pauses the loop because of a problem with its branch. It returns the errors
// of the workspace and of the store, which are not such problems.
func (r *run) pauseForBranch(err error) error {
	_, files := errors.AsType[*workspace.Error](err)
	_, store := errors.AsType[*perdure.Error](err)
	if files || store || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	hint := ""
	if problem, ok := errors.AsType[*branch.Error](err); ok && problem.Hint != "" {
		hint = " (" + problem.Hint + ")"
	}
	r.pause("no commit was made: %[1]s%[2]s; `perdure loop resume %[3]s` tries again, `perdure loop resume %[3]s "+
		"--commit=false` continues without commits", err, hint, ID(&r.l.Tree))
	return nil
}

// commit makes the commit of the iteration that ended. If the files were changed between
// the iterations, a further commit before it has these changes. It can be interrupted and
// called again.
func commit(ctx context.Context, r *run) (string, error) {
	old, out, err := r.iteration(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	if !r.cfg.Commit || out.After == "" || out.Commit != "" {
		return stepDecide, nil
	}
	if err := r.commitIteration(ctx, out); err != nil {
		return stepCommit, r.pauseForBranch(err)
	}
	at := r.state.Branch
	r.note(EventCommitted, map[string]any{"iteration": out.Iteration, "commit": at.Head, "branch": at.Branch})
	return stepDecide, r.amend(ctx, old.Status, func(o *state.Outcome) { o.Commit = at.Head })
}

func (r *run) commitIteration(ctx context.Context, out *state.Outcome) error {
	repo, err := r.repository(ctx)
	if err != nil {
		return err
	}
	loop := ID(&r.l.Tree)
	at := r.state.Branch
	if at == nil { // commits were turned on when the loop was resumed
		first := branch.Entry{Snapshot: out.Before, Optional: true,
			Message: message(fmt.Sprintf("Files from before iteration %d", out.Iteration), "", "Perdure-Loop: "+loop)}
		start, err := repo.Start(ctx, r.files, branch.Name(loop), first)
		if err != nil {
			return err
		}
		at = &start
	}
	between, err := r.sinceLast(ctx, out)
	if err != nil {
		return err
	}
	next, err := repo.Add(ctx, r.files, *at, []branch.Entry{
		{Snapshot: out.Before, Optional: true, Message: message(between, "", "Perdure-Loop: "+loop)},
		{Snapshot: out.After, Message: iterationMessage(loop, out)}})
	if err == nil {
		r.state.Branch = &next
	}
	return err
}

// sinceLast returns the subject of a commit with the changes between the end of the branch and
// the beginning of an iteration.
func (r *run) sinceLast(ctx context.Context, out *state.Outcome) (string, error) {
	last, err := r.outcomeRow(ctx, out.Iteration-1)
	if err != nil {
		return "", err
	}
	if last != nil && last.Status == record.IterationReverted {
		return fmt.Sprintf("Revert iteration %d", last.Number), nil
	}
	if last != nil {
		before, err := state.ReadOutcome(last)
		if err != nil {
			return "", err
		}
		if before.After == out.Before { // the loop stood at a gate with the files of its best iteration
			return fmt.Sprintf("Restore iteration %d, which was approved", last.Number), nil
		}
	}
	return fmt.Sprintf("Changes before iteration %d", out.Iteration), nil
}

// outcomeRow returns the row of an iteration; nil if it has none.
func (r *run) outcomeRow(ctx context.Context, number int) (*record.Iteration, error) {
	list, err := r.e.records.Iterations(ctx, r.l.Tree.ID, number, 1)
	if err != nil || len(list) == 0 || list[0].Number != number {
		return nil, err
	}
	return &list[0], nil
}

// commitEnd makes the branch end with the files that the loop leaves.
func (r *run) commitEnd(ctx context.Context, reverted bool) error {
	switch n := r.state.Selected; {
	case reverted:
		return r.commitLeft(ctx, restoreFirst, r.state.SelectedReason, 0)
	case n > 0 && n != r.state.Run.Number:
		return r.commitLeft(ctx, restoreBest(n), r.state.SelectedReason, n)
	}
	return r.commitLeft(ctx, "Files at the end of the loop", r.state.SelectedReason, 0)
}

// restoreFirst and restoreBest are subjects of commits that restore files.
const restoreFirst = "Restore the files from before the loop"

func restoreBest(iteration int) string {
	return fmt.Sprintf("Restore iteration %d, the best", iteration)
}

// commitLeft makes the branch end with the files as they are now, which are those of an
// iteration if selected is not 0. A problem with the branch is a warning: the loop ends, or
// stops at its gate, all the same.
func (r *run) commitLeft(ctx context.Context, subject, why string, selected int) error {
	at := r.state.Branch
	if !r.cfg.Commit || at == nil || r.fault != nil {
		return nil
	}
	id, _, err := r.files.Snapshot(ctx)
	if err != nil {
		return refusal(err)
	}
	trailers := []string{"Perdure-Loop: " + ID(&r.l.Tree)}
	if selected > 0 {
		trailers = append(trailers, fmt.Sprintf("Perdure-Selected: %d", selected))
	}
	repo, err := r.repository(ctx)
	var next branch.Position
	if err == nil {
		next, err = repo.Add(ctx, r.files, *at, []branch.Entry{{Snapshot: id, Optional: true,
			Message: message(subject, why, trailers...)}})
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.note(EventWarning, map[string]any{"iteration": r.state.Run.Number, "kind": "commit", "message": fmt.Sprintf(
			"the files as they are now are not on the branch %s: %s", at.Branch, err)})
	case next.Head != at.Head:
		r.note(EventCommitted, map[string]any{"iteration": r.state.Run.Number, "final": true, "commit": next.Head,
			"branch": next.Branch, "text": subject})
		r.state.Branch = &next
	default:
		r.state.Branch = &next
	}
	return nil
}

// Limits of the message of a commit, in bytes.
const (
	maxCommitText  = 4 << 10
	maxCommitAgent = 200
)

// message returns the message of a commit: a subject, a text in which control characters
// are shown as signs, and trailers.
func message(subject, text string, trailers ...string) string {
	var b strings.Builder
	b.WriteString(clip.OneLine(subject) + "\n\n")
	if text = strings.TrimSpace(clip.Bytes(text, maxCommitText)); text != "" {
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
			b.WriteString(strings.TrimRight(human.Visible(line), " \t") + "\n")
		}
		b.WriteString("\n")
	}
	b.WriteString(strings.Join(trailers, "\n") + "\n")
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// iterationMessage returns the message of the commit of an iteration.
func iterationMessage(loop string, out *state.Outcome) string {
	did, said := "fails", "failed"
	switch c := &out.Check; {
	case c.Skipped:
		did, said = "was not run", "not run"
	case c.Passed:
		did, said = "passes", "passed"
	case len(c.Failing) > 0:
		did += " (" + human.Count(len(c.Failing), "test") + ")"
	}
	subject := fmt.Sprintf("Iteration %d: check %s", out.Iteration, did)
	trailers := []string{"Perdure-Loop: " + loop, fmt.Sprintf("Perdure-Iteration: %d", out.Iteration),
		"Perdure-Check: " + said}
	switch {
	case out.Quality == nil:
	case out.Void():
		subject += fmt.Sprintf(", quality %d%% is void", *out.Quality)
		trailers = append(trailers, "Perdure-Quality: void")
	default:
		subject += fmt.Sprintf(", quality %d%%", *out.Quality)
		trailers = append(trailers, fmt.Sprintf("Perdure-Quality: %d", *out.Quality))
	}
	if out.Agent != "" {
		trailers = append(trailers, "Perdure-Agent: "+human.OneLine(clip.Bytes(out.Agent, maxCommitAgent)))
	}
	for _, g := range out.Regressions {
		if line := "Perdure-Regression: " + g.Type; !slices.Contains(trailers, line) {
			trailers = append(trailers, line)
		}
	}
	return message(subject, out.AgentText, trailers...)
}
