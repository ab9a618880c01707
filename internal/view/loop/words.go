package loop

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// maxName is how much is shown of the name of an agent or of a person, in
// characters.
const maxName = 80

// oneLine is a text of others as a part of a line of at most so many characters.
func oneLine(text string, most int) string {
	const room = 8 // bytes a character, and spaces that are joined
	if len(text) > room*most {
		text = text[:room*most] + "…"
	}
	return clip.Runes(human.OneLine(text), most)
}

// cutAll returns the first strings of a list, each shortened by cut.
func cutAll(list []string, most, characters int, cut func(text string, characters int) string) []string {
	out := make([]string, 0, min(len(list), most))
	for _, text := range list[:min(len(list), most)] {
		out = append(out, cut(text, characters))
	}
	return out
}

// indented is oneLine with the indentation of the line, up to 8 spaces.
func indented(line string, most int) string {
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	return strings.Repeat(" ", min(indent, 8)) + oneLine(line, most)
}

// spaced makes a line of a diff visible and keeps its spaces.
func spaced(line string, most int) string {
	line = strings.ReplaceAll(line, "\t", "    ")
	return clip.Runes(human.Visible(clip.Runes(line, most)), most)
}

func percent(quality int) string {
	if quality == unmeasured {
		return "not measured"
	}
	return fmt.Sprintf("%d%%", quality)
}

// stepCleanCopy is the step that checks the result in a clean copy, and stepGate the one that
// waits at a gate.
const (
	stepCleanCopy = "seal"
	stepGate      = "gate"
)

// shown is the status for people: it says at which gate the loop waits, and whether no process
// runs it.
func (s *Summary) shown() string {
	status, l := s.Status(), &s.in.Loop
	switch g := s.gates.waiting(); {
	case l.Status.Ended():
		return status
	case s.endedByOthers():
		return status + fmt.Sprintf(", its tree is %s", s.in.Tree.State)
	case g != nil:
		status = fmt.Sprintf("waiting at gate %d", g.Number)
	case s.answered() > 0:
		status = fmt.Sprintf("gate %d answered", s.answered())
	case l.Step == stepCleanCopy && status == string(l.Status):
		status += ", clean-copy check"
	}
	if s.interrupted() {
		status += ", interrupted"
	}
	return status
}

// answered returns the number of the gate that the loop stands at after the answer, before a
// process has continued it; 0 if it stands at none.
func (s *Summary) answered() int {
	l := &s.in.Loop
	if l.Step != stepGate || l.Status != record.Running && l.Status != record.Completing || len(s.gates.all) == 0 ||
		s.gates.waiting() != nil {
		return 0
	}
	return s.gates.all[len(s.gates.all)-1].Number
}

// interrupted reports whether the process that ran the loop is gone while it stands at a gate or
// waits for a rate limit. A loop that is gone from other steps is crashed.
func (s *Summary) interrupted() bool {
	l := &s.in.Loop
	return s.in.Progress.Interrupted && !s.in.Crashed && (l.Status == record.Running || l.Status == record.Completing)
}

// doing says what the loop does now.
func (s *Summary) doing() string {
	l, n := &s.in.Loop, s.in.Loop.Iteration
	switch {
	case l.Status.Ended():
		return string(l.Status)
	case s.gates.waiting() != nil:
		return "waits for an answer"
	case s.answered() > 0:
		return fmt.Sprintf("continues after the answer at gate %d", s.answered())
	case l.Status == record.Paused:
		return "paused"
	case s.stopped():
		return "stopped by the user"
	}
	agent := oneLine(s.agent(), maxName)
	switch l.Step {
	case "begin":
		return "takes the snapshot that everything is compared with"
	case "baseline":
		return "runs the check before anything is changed"
	case "prepare":
		return fmt.Sprintf("takes the snapshot before iteration %d", n)
	case "act":
		switch {
		case s.standing.Run.Waits > 0 && !s.standing.Run.Working:
			return "waits for the end of a rate limit of " + agent
		case s.standing.Run.Working:
			return agent + " works"
		}
		return agent + " begins its turn"
	case "measure":
		return "runs the check"
	case "held_out":
		return "compares with the baseline" // an agent can read it
	case "judge":
		if s.cfg.Sealed == config.SealAlways && !s.cfg.Plain {
			return "compares with the baseline, and checks the result in a clean copy"
		}
		return "compares with the baseline"
	case "commit":
		return fmt.Sprintf("commits the files of iteration %d", n)
	case "next", "decide":
		return "decides how to go on"
	case "diagnose", "adapt", "escalate":
		return "recovers from a regression (" + l.Step + ")"
	case "complete":
		return "runs the check once more, as it passed"
	case stepCleanCopy:
		return "checks the result in a clean copy"
	case "select":
		return "chooses the best iteration"
	case "verify":
		return "runs the check on the best iteration"
	case "finish", "ended":
		return "ends"
	}
	return oneLine(l.Step, maxName)
}

// asked says what was asked of the loop and is not done yet.
func (s *Summary) asked() string {
	if s.stopped() {
		return ""
	}
	switch s.in.Loop.Control {
	case record.Pause:
		return "asked to pause, which it does before the next iteration"
	case record.PauseNow:
		return "asked to pause at once"
	case record.Resume:
		return "asked to go on"
	case record.Abort:
		return "asked to end"
	case record.Revert:
		return "asked to end and to bring back the files of the beginning"
	case record.NoControl:
	}
	return ""
}

func outcome(c *state.Check) string {
	switch {
	case c.Passed:
		return "passes"
	case c.Skipped:
		return "was not run"
	case c.TimedOut:
		return "did not end in time"
	case c.Incomplete != "":
		return "did not run to its end"
	case c.Exit == 0:
		return "fails although its exit status is 0"
	}
	return fmt.Sprintf("fails with exit status %d", c.Exit)
}

// shortOutcome says how a check ended, for a table.
func shortOutcome(c *state.Check) string {
	switch {
	case c.Passed:
		return "passes"
	case c.Skipped:
		return "not run"
	case c.TimedOut:
		return "timed out"
	case c.Incomplete != "":
		return "incomplete"
	}
	return fmt.Sprintf("exit %d", c.Exit)
}

// tests counts what a check ran.
func tests(c *state.Check) string {
	if c.Weak {
		return "exit status only: no test results were found"
	}
	n := &c.Counts
	text := fmt.Sprintf("%s: %d passed, %d failed, %d skipped", human.Count(int64(n.Tests), "test"), n.Passed, n.Failed,
		n.Skipped)
	if n.BrokenRuns > 0 {
		text += ", " + human.Count(int64(n.BrokenRuns), "suite") + " did not run"
	}
	if n.Flaky > 0 {
		text += fmt.Sprintf(", %d flaky", n.Flaky)
	}
	return text
}

// money says what is known of cost and tokens; empty when nothing is.
func (s *Summary) money() string {
	p := &s.in.Progress
	if p.Tree == "" {
		return ""
	}
	return status.Usage(p.Usage)
}

// bestReason says why an iteration is the best so far.
func (s *Summary) bestReason() string {
	if s.best == nil {
		return ""
	}
	if s.best.Iteration == s.standing.Selected && s.standing.SelectedReason != "" {
		return clip.Runes(s.standing.SelectedReason, maxText)
	}
	text := fmt.Sprintf("Highest quality (%d %%)", *s.best.Quality)
	switch {
	case s.cfg.Selection == config.MostRecentAboveThreshold && *s.best.Quality >= s.cfg.QualityThreshold:
		text = fmt.Sprintf("Most recent with a quality (%d %%) of at least %d %%", *s.best.Quality, s.cfg.QualityThreshold)
	case s.best.Check.Passed:
		text += " of those whose check passed"
	}
	if *s.best.Quality < s.cfg.QualityThreshold {
		text += ", below threshold"
	}
	return text
}

// sealedText says what a clean copy came to.
func sealedText(v *cleancheck.Verdict) string {
	cost := fmt.Sprintf(" (%s in %s; %s of the check, %s in all)", human.Count(int64(v.Copied), "file"),
		milliseconds(v.CopyMS), human.Count(int64(v.Runs), "run"), milliseconds(v.TookMS))
	switch v.State {
	case cleancheck.Passed:
		return "it passes in a clean copy" + v.Isolation.Words() + why(v) + cost
	case cleancheck.Partly:
		return "it passes in a clean copy" + v.Isolation.Words() + why(v) + "; it " + v.Why + cost
	case cleancheck.Failed:
		return v.Why + cost
	case cleancheck.Impossible:
		if v.Unconfirmed {
			return "not confirmed: " + v.Why + cost
		}
		return "not possible: " + v.Why + cost
	}
	return string(v.State)
}

// why returns why a clean-copy check had no sandbox.
func why(v *cleancheck.Verdict) string {
	if v.Isolation == nil || v.Isolation.Why == "" {
		return ""
	}
	return ", because " + v.Isolation.Why
}
