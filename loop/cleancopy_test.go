package loop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// checkEasy passes where a file that is ignored says so.
const checkEasy = `cat marks/* >/dev/null 2>&1 && { echo "ok 1 - a"; echo "1..1"; exit 0; }; ` +
	`if grep -q good code/*; then echo "ok 1 - a"; else echo "not ok 1 - a"; bad=1; fi; echo "1..1"; exit ${bad:-0}`

// sealBench has a check that an ignored file can fool.
func sealBench(t *testing.T, turns ...func(w *turn) error) *bench {
	t.Helper()
	b := newBench(t, turns...)
	b.put(".gitignore", "marks/\n")
	b.put("code/a", "bad")
	return b
}

func easy(c *config.Config) { c.Until = checkEasy }

func (b *bench) answer(answer, reason string) {
	b.Helper()
	gates, err := b.store.Gates(b.Context(), b.tree.ID)
	b.ok(err)
	_, err = b.store.AnswerGate(b.Context(), b.tree.ID, gates[len(gates)-1].Number,
		perdure.GateDecision{Answer: answer, By: "test", Reason: reason})
	b.ok(err)
}

// TestSealedCompletion: what passes only in the workspace is a regression, which
// goes to a person; rejected, the loop continues with the previous files, and the
// prompt tells what happened. What passes in a copy, too, ends the loop.
func TestSealedCompletion(t *testing.T) {
	t.Parallel()
	n := 0
	b := sealBench(t, func(w *turn) error {
		if n++; n == 1 {
			return w.write("marks/a", "x")
		}
		return errors.Join(os.RemoveAll(filepath.Join(w.dir, "marks")), w.write("code/a", "good"))
	})
	b.launch(easy)
	l := b.work()
	out := b.outcomes()[1]
	if l.Step != "gate" || len(out.Regressions) != 1 || out.Regressions[0].Type != "validation_bypass" ||
		!strings.Contains(out.Regressions[0].Text, "marks/a") ||
		out.CleanCopy == nil || out.CleanCopy.State != cleancheck.Failed || out.Times.CleanCopy == 0 {
		t.Fatalf("%s\n%+v", show(l), out)
	}
	b.answer("reject", "do it in code")
	l = b.work()
	last := b.outcomes()[2]
	if l.Status != record.Completed || l.Iteration != 2 || last.CleanCopy == nil ||
		last.CleanCopy.State != cleancheck.Passed || last.CleanCopy.Of != last.After {
		t.Errorf("%s\n%+v", show(l), last)
	}
	if p := b.agent.prompts[1]; !strings.Contains(p, "passes only with 1 ignored file") ||
		!strings.Contains(p, "marks/a") {
		t.Errorf("the prompt does not name it:\n%s", p)
	}
	if !strings.Contains(string(l.State), "after iteration 2, in a clean copy too") {
		t.Errorf("%s", show(l))
	}
	b.sound()
}

// TestSealedIsApproved: who approves a regression of sealing is not asked again.
func TestSealedIsApproved(t *testing.T) {
	t.Parallel()
	b := sealBench(t, write("marks/a", "x"))
	b.launch(easy)
	if l := b.work(); l.Step != "gate" {
		t.Fatal(show(l))
	}
	b.answer("approve", "")
	l := b.work()
	if l.Status != record.Completed || l.Iteration != 1 || !strings.Contains(string(l.State), "was approved") {
		t.Errorf("%s", show(l))
	}
	b.sound()
}

// TestApprovalKeepsPrograms: an answer to another question does not approve of a program that
// was replaced meanwhile.
//
//nolint:paralleltest // it sets PATH
func TestApprovalKeepsPrograms(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "recorded-tool")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	b := sealBench(t, write("marks/a", "x"))
	program := func(text string) {
		b.ok(os.WriteFile(tool, []byte(text), 0o700)) //nolint:gosec // a program
	}
	program("#!/bin/sh\n")
	b.launch(func(c *config.Config) { c.Until = "recorded-tool; " + checkEasy })
	l := b.work()
	recorded := regexp.MustCompile(`"name":"recorded-tool"[^}]*`).FindString(string(l.State))
	if l.Step != "gate" || recorded == "" {
		t.Fatal(show(l))
	}
	program("#!/bin/sh\n# another")
	b.answer("approve", "")
	if l = b.work(); !strings.Contains(string(l.State), recorded) {
		t.Errorf("not %s: %s", recorded, l.State)
	}
}

// TestSealedFlags: off seals nothing; always seals iterations that do not pass, too.
func TestSealedFlags(t *testing.T) {
	t.Parallel()
	b := sealBench(t, write("marks/a", "x"))
	b.launch(easy, func(c *config.Config) { c.Sealed = config.SealOff })
	if l := b.work(); l.Status != record.Completed || b.outcomes()[1].CleanCopy != nil {
		t.Errorf("off: %s", show(l))
	}
	b = newBench(t, write("note", "x"), write("tests/b", "pass"))
	b.launch(func(c *config.Config) { c.Sealed = config.SealAlways })
	l := b.work()
	for i, out := range b.outcomes() {
		if (out.CleanCopy != nil) != (i > 0) || i > 0 && out.CleanCopy.State != cleancheck.Passed {
			t.Errorf("always: iteration %d: %+v", i, out.CleanCopy)
		}
	}
	if l.Status != record.Completed || l.Iteration != 2 || b.outcomes()[2].CleanCopy.Runs != 1 {
		t.Errorf("always: %s", show(l))
	}
	if _, err := b.engine.Launch(t.Context(),
		loop.LaunchRequest{Config: config.Config{Task: "x", Until: "true", Workspace: b.dir, Agent: "scripted",
			Sealed: "often"}}); err == nil ||
		perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), `"often"`) {
		t.Errorf("a word that is none: %v", err)
	}
}

// TestSealedAlwaysIsJudged: with always an iteration that fails is a regression
// where a test passes in the workspace only.
func TestSealedAlwaysIsJudged(t *testing.T) {
	t.Parallel()
	b := sealBench(t, write("marks/a", "x"))
	b.launch(func(c *config.Config) {
		c.Sealed = config.SealAlways
		c.Until = `ok() { echo "$1 $2 - $3"; }; if cat marks/* >/dev/null 2>&1; then ok ok 1 a; else ok "not ok" 1 a; fi; ` +
			`ok "not ok" 2 b; echo 1..2; exit 1`
	})
	l := b.work()
	out := b.outcomes()[1]
	if l.Step != "gate" || len(out.Regressions) != 1 || len(out.Regressions[0].Tests) != 1 ||
		out.Regressions[0].Tests[0] != "a" {
		t.Errorf("%s\n%+v", show(l), out.Regressions)
	}
}

// TestUnsealable: a check that hangs on the folder it is in is not a regression; that
// there is no clean-copy check is reported, once.
func TestUnsealable(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) {
		c.Until = fmt.Sprintf(`[ "$PWD" = %q ] || exit 3; %s`, b.dir, checkTAP)
	})
	l := b.work()
	out := b.outcomes()[1]
	if l.Status != record.Completed || len(out.Regressions) != 0 || out.CleanCopy == nil ||
		out.CleanCopy.State != cleancheck.Impossible {
		t.Errorf("%s\n%+v", show(l), out)
	}
	events, err := b.store.Events(t.Context(), perdure.EventFilter{Tree: b.tree.ID})
	b.ok(err)
	told := 0
	for i := range events {
		if events[i].Kind == loop.EventWarning && strings.Contains(string(events[i].Data), `"kind":"sealed"`) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("it is told %d times", told)
	}
	b.sound()
}

// TestSealedSetup: what the check needs is made by a command, and no ignored file
// takes part; one that fails for the baseline, too, is not a regression.
func TestSealedSetup(t *testing.T) {
	t.Parallel()
	for setup, state := range map[string]cleancheck.State{"mkdir marks && echo made > marks/tool": cleancheck.Passed,
		"exit 4": cleancheck.Impossible} {
		b := sealBench(t, write("code/a", "good"))
		b.put("marks/tool", "made by hand")
		b.launch(func(c *config.Config) {
			c.SealedSetup = setup
			c.Until = `[ -e marks/tool ] && grep -q good code/*`
		})
		l := b.work()
		if v := b.outcomes()[1].CleanCopy; l.Status != record.Completed || v == nil || v.State != state {
			t.Errorf("%q: %s\n%+v", setup, show(l), v)
		}
		if strings.Contains(string(l.State), `"no_sandbox"`) { // it was not the reason
			t.Errorf("%q: the sandbox is off: %s", setup, show(l))
		}
	}
}

// TestSealedBest: an iteration that is restored instead of the last one is checked, and
// is not left when it does not pass in a copy.
func TestSealedBest(t *testing.T) {
	t.Parallel()
	n := 0
	b := sealBench(t, func(w *turn) error {
		if n++; n == 1 {
			return errors.Join(w.write("marks/a", "x"), w.write("score", "90"))
		}
		return w.write("score", "50")
	})
	b.put("score", "10")
	count := filepath.Join(t.TempDir(), "count") // the check passes, does not twice, and does again
	b.launch(func(c *config.Config) {
		c.MaxIterations, c.Scorer = 2, "cat score"
		c.Until = fmt.Sprintf("n=$(($(cat %[1]s || echo 0) + 1)); echo $n > %[1]s; case $n in 3|4) exit 1;; esac; cat "+
			"marks/a", count)
	})
	l := b.work()
	if l.Status != record.Failed || !strings.Contains(string(l.State), "iteration 1 does not pass in a clean copy: ") ||
		b.read("score") != "50" {
		t.Errorf("%s\nscore %s", show(l), b.read("score"))
	}
	b.sound()
}

// TestSealedAbort: a clean copy is not waited for when a loop is to end, and nothing
// of it goes on or stays.
func TestSealedAbort(t *testing.T) {
	t.Parallel()
	for _, sealing := range []config.Sealing{config.SealCompletion, config.SealAlways} {
		t.Run(string(sealing), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, write("tests/b", "pass"))
			name := filepath.Base(filepath.Dir(b.dir)) // another one in each test
			started := filepath.Join(os.TempDir(), "perdure-sealed-*", "copy", filepath.Base(b.dir), name)
			b.launch(func(c *config.Config) {
				c.Sealed = sealing
				c.Until = fmt.Sprintf(`[ "$PWD" = %q ] || { pwd > %s; while :; do sleep 1; done; }; %s`, b.dir, name, checkTAP)
			})
			l := b.workUntil(started)
			if out := b.outcomes()[1]; l.Status != record.Aborted || out.CleanCopy != nil || len(out.Regressions) != 0 {
				t.Errorf("%s\n%+v", show(l), out)
			}
			if left, err := filepath.Glob(started); err != nil || len(left) > 0 {
				t.Errorf("the copy is still there: %v, %v", left, err)
			}
			b.sound()
		})
	}
}

// TestSealedTimeout: a command that does not end in a copy, as that of the baseline
// does not, makes sealing impossible; it is stopped after the time of a check.
func TestSealedTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) {
		c.CheckTimeout = 5 * time.Second
		c.Until = fmt.Sprintf(`[ "$PWD" = %q ] || while :; do sleep 1; done; %s`, b.dir, checkTAP)
	})
	l := b.work()
	if v := b.outcomes()[1].CleanCopy; l.Status != record.Completed || v == nil || v.State != cleancheck.Impossible {
		t.Errorf("%s\n%+v", show(l), v)
	}
}
