package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/verify/cleancheck"
)

// A check that passes in the workspace can fail in a clean copy because of the work, or
// because the copy lacks something that the check needs. One prompt says what is different
// there; then a person decides.

// onlyInCopy reports whether the only regression of an iteration is that its tests, or its
// check, fail in a clean copy.
func onlyInCopy(out *state.Outcome) bool {
	v := out.CleanCopy
	return v != nil && v.State == cleancheck.Failed && v.Type == detect.TestFailure && v.Differs != nil &&
		len(out.Regressions) == 1 && out.Regressions[0].Text == v.Why
}

// maxFailedInCopy is how many names of tests that failed in a clean copy are kept.
const maxFailedInCopy = 100

// failedAgain reports whether one of the tests that fail only in a clean copy, or the check
// as a whole, failed there in an earlier iteration of the loop. It records the tests.
func (r *run) failedAgain(out *state.Outcome) bool {
	if !onlyInCopy(out) {
		return false
	}
	names := failedInCopy(out)
	again := slices.ContainsFunc(names, func(name string) bool { return slices.Contains(r.state.FailedInCopy, name) })
	all := slices.Concat(names, r.state.FailedInCopy)
	slices.Sort(all)
	all = slices.Compact(all)
	r.state.FailedInCopy = all[:min(len(all), maxFailedInCopy)]
	return again
}

// failedInCopy returns the tests that fail only in a clean copy; the check if they are not
// known.
func failedInCopy(out *state.Outcome) []string {
	if tests := out.CleanCopy.Tests; len(tests) > 0 {
		return tests
	}
	return []string{out.Check.Command}
}

// failuresInCopy lists the tests that fail only in a clean copy, with what they printed.
func failuresInCopy(out *state.Outcome) string {
	const shown = 20
	var b strings.Builder
	names, d := failedInCopy(out), out.CleanCopy.Differs
	for i, name := range names[:min(len(names), shown)] {
		b.WriteString("- " + name + "\n")
		if i < len(d.Messages) && d.Messages[i] != "" {
			b.WriteString(indented(d.Messages[i]) + "\n")
		}
	}
	if len(names) > shown {
		fmt.Fprintf(&b, "- and %d more\n", len(names)-shown)
	}
	if d.Output != "" {
		b.WriteString("\nThe end of the output there:\n" + indented(d.Output))
	}
	return b.String()
}

// differentInCopy lists what is different in a clean copy.
func differentInCopy(out *state.Outcome) string {
	return "What is different there:\n\n- " + strings.Join(out.CleanCopy.Differs.Lines(), "\n- ") + "\n"
}

// onlyThere returns the text for a check, or some tests of one that fails, that fail only in
// a clean copy and not here.
func onlyThere(out *state.Outcome, here string) string {
	if out.Check.Passed {
		return "the check passes in " + here + " and fails only in a clean copy"
	}
	return "tests that pass in " + here + " fail only in a clean copy"
}

// copyAdvice is the part of the next prompt about a check that fails only in a clean copy.
func copyAdvice(out *state.Outcome) string {
	return "The task is not done: " + onlyThere(out, "this folder") + " of it. There fails:\n\n" + failuresInCopy(out) +
		"\n" + differentInCopy(out) + "\nChange the work so that it passes there, too: what a test needs has to be in the " +
		"project, or the test has to create it. If that is not possible, end your last message with a line that begins \"" +
		reinforce.HonestExit + "\" and say what the check needs."
}

// continued adds what is different in a clean copy to the prompt after a gate about it.
func (r *run) continued(ctx context.Context, g *perdure.Gate) error {
	if g.Kind != perdure.GateRecovery {
		return nil
	}
	out, err := r.outcome(ctx, g.Iteration)
	if err == nil && onlyInCopy(out) {
		r.state.Recoveries, r.state.Reverted = 0, copyAdvice(out)
	}
	return err
}

// copyGate asks a person what to do about a check that fails only in a clean copy.
func (r *run) copyGate(ctx context.Context, out *state.Outcome) (string, error) {
	id := ID(&r.l.Tree)
	failing := failedInCopy(out)
	title := fmt.Sprintf("iteration %d: %s: %s", out.Iteration, onlyThere(out, "the workspace"),
		strings.Join(failing[:min(len(failing), maxInTitle)], ", "))
	if len(failing) > maxInTitle {
		title += fmt.Sprintf(" and %d more", len(failing)-maxInTitle)
	}
	ways := []string{"`perdure loop resume " + id + " --sealed-setup COMMAND` prepares each copy by a command that has " +
		"the network"}
	if len(out.CleanCopy.Differs.Variables) > 0 {
		ways = slices.Insert(ways, 0, "`perdure loop resume "+id+" --env NAME` (or loop.env) passes a variable as it is; "+
			"its folder can then be written")
	}
	ways = append(ways, "`perdure loop resume "+id+" --sealed off` ends the checks in clean copies")
	then, options := answerContinue, []perdure.GateOption{
		{Answer: answerContinue, Effect: "the loop continues with these files; what is different in the copy and the " +
			"reason (--reason) are added to the next prompt"},
		{Answer: answerApprove, Effect: "the work is accepted although it fails in a clean copy, and the current test " +
			"results become the baseline"},
		{Answer: answerReject, Effect: "the files from before the iteration are restored, and the loop continues"},
		{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
	}
	if out.Check.Passed {
		then, options = answerRetry, slices.Insert(options, 0, perdure.GateOption{Answer: answerRetry,
			Effect: "the check is repeated in the workspace and in a clean copy, with the settings as they are then"})
	}
	return r.openGate(perdure.GateRecovery, perdure.GateQuestion{Title: clip.OneLine(title),
		Text: differentInCopy(out) + "\nTo give the check what it needs, use one of these, then answer " + then + ":\n\n- " +
			strings.Join(ways, "\n- ") + "\n\nThere fails:\n\n" + failuresInCopy(out),
		Diff: r.diff(ctx, out), Options: options})
}

// maxInTitle is how many tests the title of a gate names.
const maxInTitle = 5
