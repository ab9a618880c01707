package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/record"
)

// shownIterations is how many iterations a prompt summarizes.
const shownIterations = 3

// shownMessages is how many failing tests' messages a prompt contains.
const shownMessages = 10

// indented formats text as an indented Markdown block.
func indented(text string) string {
	return "\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// recordWork asks the agent to record its work.
const recordWork = "\nRecord your work as you go, since your session may end at any time and another then continues " +
	"from that record: " +
	"`perdure handoff step \"what is done\" --modified FILE` after each step, `perdure handoff decide \"what\" " +
	"--because \"why\"`, " +
	"`perdure handoff tried \"what failed\"`, `perdure handoff pending \"what is left\"`; `perdure handoff skill` " +
	"explains.\n"

// prompt returns the agent's prompt: the task, the completion command, what the
// last iterations did, and the names of the failing checks.
func (r *run) prompt(ctx context.Context) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task\n\n%s\n\n# Done when\n\nThis command succeeds in the folder you are in:\n\n    %s\n\n",
		strings.TrimSpace(r.cfg.Task),
		strings.ReplaceAll(r.cfg.Until, "\n", "\n    "))
	b.WriteString("It is run for you after your turn. Tests that exist have to stay and to pass. If the tests are " +
		"wrong, or the task " +
		"cannot be done, end your last message with a line that begins \"" + reinforce.HonestExit +
		"\" and your evidence: that is a good answer, too.\n")
	if r.e.cfg.Handoff.Program != "" {
		b.WriteString(recordWork)
	}
	if r.state.Run.Turns > 0 || r.state.Run.Reopened {
		if text := r.resumption(ctx); text != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(text))
		}
	}
	last, err := r.e.records.LastIterations(ctx, r.l.Tree.ID, r.state.Run.Number, shownIterations)
	if err != nil {
		return "", err
	}
	if len(last) > 0 {
		now, err := r.checkNow(ctx, last)
		if err != nil {
			return "", err
		}
		writeIterations(&b, last, now)
		b.WriteString(lostCoverage(last))
		b.WriteString(warned(last))
	}
	if r.state.Reverted != "" {
		fmt.Fprintf(&b, "\n# Result of the last iteration\n\n%s\n", r.state.Reverted)
	}
	if r.state.Answer != "" {
		fmt.Fprintf(&b, "\n# Answer\n\n%s\n", r.state.Answer)
	}
	if f := r.state.Run.Failure; f != "" {
		fmt.Fprintf(&b, "\n# Your last turn\n\nIt ended early: %s\nIts file changes are kept. Continue from them.\n", f)
	}
	if r.state.Run.Reminder != "" {
		fmt.Fprintf(&b, "\n# Reminder\n\n%s\n", r.state.Run.Reminder)
	}
	if r.state.Run.Inject != "" {
		fmt.Fprintf(&b, "\n# Additional instructions\n\n%s\n", r.state.Run.Inject)
	}
	return b.String(), nil
}

// checkNow returns the check of the current files: that of the restored iteration,
// else that of the latest iteration that was not reverted. If that iteration was
// imported, its check is unknown, and the baseline's is returned.
func (r *run) checkNow(ctx context.Context, last []record.Iteration) (*state.Check, error) {
	o, err := r.broughtBack(ctx)
	if err != nil {
		return nil, err
	}
	if o != nil {
		return &o.Check, nil
	}
	now := slices.IndexFunc(last, func(it record.Iteration) bool { return it.Status != record.IterationReverted })
	newest, _ := state.ReadOutcome(&last[max(now, 0)]) // one that cannot be read says nothing
	if !newest.Imported {
		return &newest.Check, nil
	}
	baseline, err := r.outcome(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &baseline.Check, nil
}

// writeIterations writes the results of the check of the current files and a
// summary of the latest iterations, the latest first.
func writeIterations(b *strings.Builder, last []record.Iteration, c *state.Check) {
	outcomes := make([]state.Outcome, len(last))
	for i := range last {
		outcomes[i], _ = state.ReadOutcome(&last[i]) // one that cannot be read says nothing
	}
	if !c.Passed {
		b.WriteString("\n# Failing now\n\n")
		for i, id := range c.Failing {
			b.WriteString("- " + id + "\n")
			if i < len(c.Messages) && c.Messages[i] != "" && i < shownMessages {
				b.WriteString(indented(c.Messages[i]) + "\n")
			}
		}
		for _, suite := range c.Broken {
			b.WriteString("- could not run: " + strings.Replace(suite, "\n", "\n\n    ", 1) + "\n")
		}
		if len(c.Failing)+len(c.Broken) == 0 || c.Incomplete != "" {
			const shown = 2000
			fmt.Fprintf(b, "The command ended with exit status %d; the end of its output:\n\n    %s\n", c.Exit,
				strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(clip.End(c.Output, shown), "")), "\n", "\n    "))
		}
	}
	writeHandoffs(b, outcomes, func(i int) bool { return last[i].Status == record.IterationReverted })
	if !slices.ContainsFunc(outcomes, func(o state.Outcome) bool { return o.Iteration > 0 }) {
		return
	}
	b.WriteString("\n# Previous iterations\n\n")
	for i, o := range outcomes {
		if o.Iteration == 0 {
			continue
		}
		state := "the check failed"
		switch {
		case o.Check.Passed && onlyInCopy(&o):
			state = "the check passed here, and failed in a clean copy"
		case o.Check.Passed:
			state = "the check passed"
		case o.Check.Skipped:
			state = "the check was not run"
		}
		if last[i].Status == record.IterationReverted {
			state = "reverted"
		}
		fmt.Fprintf(b, "Iteration %d (%s; %s changed): %s\n\n", o.Iteration, state, human.Count(int64(o.Changed), "file"),
			clip.Bytes(firstOf(o.AgentText, o.AgentError, madeWorse(&o), "no message"), 1000))
	}
}

// madeWorse lists an iteration's regressions in one line; empty without any.
func madeWorse(o *state.Outcome) string {
	texts := make([]string, len(o.Regressions))
	for i := range o.Regressions {
		texts[i] = o.Regressions[i].Text
	}
	return strings.Join(texts, "; ")
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return strings.TrimSpace(t)
		}
	}
	return ""
}
