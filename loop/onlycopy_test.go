package loop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// copyBench returns a loop whose check has the tests of checkTAP. Those that the file "bound"
// names fail outside of the workspace. With plain only the exit status is known, and the
// baseline passes.
func copyBench(t *testing.T, plain bool, change func(c *config.Config), turns ...func(w *turn) error) *bench {
	t.Helper()
	b := newBench(t, turns...)
	b.put("bound", "")
	check := fmt.Sprintf(`if [ "$PWD" != %q ]; then for f in $(cat boun*); do echo "no $f here"; echo fail > tests/$f; done; fi
%s`, b.dir, checkTAP)
	if plain {
		b.put("tests/b", "pass")
		check = fmt.Sprintf(`[ "$PWD" = %q ] || [ -z "$(cat boun*)" ] || { echo no a here; exit 3; }`, b.dir)
	}
	b.launch(func(c *config.Config) {
		c.Until = check
		if change != nil {
			change(c)
		}
	})
	return b
}

// bind is a turn after which tests are bound to the workspace.
func bind(tests string) func(w *turn) error {
	return func(w *turn) error { return errors.Join(w.write("bound", tests), w.write("tests/b", "pass")) }
}

// question returns the question of the open gate; the loop has to wait at one.
func (b *bench) question(l record.Loop) perdure.GateQuestion {
	b.Helper()
	gates, err := b.store.Gates(b.Context(), b.tree.ID)
	b.ok(err)
	if l.Step != "gate" || len(gates) == 0 {
		b.Fatalf("no gate: %s", show(l))
	}
	q, err := gates[len(gates)-1].ParseQuestion()
	b.ok(err)
	return q
}

// TestFailsOnlyInCopy: after work that passes in the workspace and fails only in a clean copy,
// the prompt says what is different there; after the second time a person is asked.
func TestFailsOnlyInCopy(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprint("exit status only ", plain), func(t *testing.T) {
			t.Parallel()
			b := copyBench(t, plain, nil, bind("a"), write("more", "x"), write("bound", ""))
			l := b.work()
			q := b.question(l)
			if l.Iteration != 2 || !strings.Contains(q.Title, "fails only in a clean copy") {
				t.Fatalf("%s\n%+v", show(l), q)
			}
			prompt := b.agent.prompts[1]
			for _, text := range []string{"fails only in a clean copy", "no a here", "home folder",
				"passed here, and failed in a clean copy"} {
				if !strings.Contains(prompt, text) {
					t.Errorf("no %q in the prompt:\n%s", text, prompt)
				}
			}
			for _, text := range []string{"no a here", "home folder", "--sealed-setup COMMAND", "--sealed off"} {
				if !strings.Contains(q.Text, text) {
					t.Errorf("no %q in the question:\n%s", text, q.Text)
				}
			}
			if named := strings.Contains(prompt, "- a\n") && strings.Contains(q.Title, ": a"); named == plain {
				t.Errorf("the failing test is named: %v\n%s\n%s", named, q.Title, prompt)
			}
			b.answer("continue", "it has to pass everywhere")
			if l = b.work(); l.Status != record.Completed || l.Iteration != 3 {
				t.Fatal(show(l))
			}
			if p := b.agent.prompts[2]; !strings.Contains(p, "home folder") || !strings.Contains(p, "pass everywhere") {
				t.Errorf("prompt after the gate:\n%s", p)
			}
			b.sound()
		})
	}
}

// TestGateRepeatsCleanCopy: at a gate about a clean copy the check is repeated with changed
// settings, without another turn of the agent.
func TestGateRepeatsCleanCopy(t *testing.T) {
	t.Parallel()
	b := copyBench(t, false, func(c *config.Config) { c.MaxRetries = -1 }, bind("a"))
	b.question(b.work()) // no retries
	b.answer("retry", "")
	q := b.question(b.work())
	if out := b.outcomes()[1]; len(b.agent.prompts) != 1 || len(out.Regressions) != 1 {
		t.Errorf("%d turns, %+v\n%+v", len(b.agent.prompts), out.Regressions, q)
	}
	b.resume(request(`{"sealed":"off"}`, ""))
	b.answer("retry", "")
	l := b.work()
	out := b.outcomes()[1]
	if l.Status != record.Completed || len(b.agent.prompts) != 1 || len(out.Regressions) != 0 || out.CleanCopy != nil {
		t.Errorf("%d turns, %s\n%+v", len(b.agent.prompts), show(l), out)
	}
	b.sound()
}

// TestCopyFailuresCount: failures only in a clean copy count as retries, also if other tests
// fail each time.
func TestCopyFailuresCount(t *testing.T) {
	t.Parallel()
	b := copyBench(t, false, func(c *config.Config) { c.MaxRetries, c.Unattended = 1, true }, bind("a"), bind("b"),
		bind("a b"))
	if l := b.work(); l.Step != "gate" || l.Iteration != 2 || b.statuses() != "kept kept" {
		t.Errorf("%s\n%s", b.statuses(), show(l))
	}
}

// TestTestsFailOnlyInCopy: with clean copies after each iteration, tests of a check that fails are
// put to a person in the same way, without the answer that repeats the check.
func TestTestsFailOnlyInCopy(t *testing.T) {
	t.Parallel()
	b := copyBench(t, false, func(c *config.Config) { c.Sealed = config.SealAlways }, write("bound", "a"),
		write("x", "1"))
	q := b.question(b.work())
	const title = "tests that pass in the workspace fail only in a clean copy: a"
	if l := b.row(); l.Iteration != 2 || !strings.Contains(q.Title, title) ||
		q.Options[0].Answer != "continue" || !strings.Contains(q.Text, "then answer continue") {
		t.Errorf("%s\n%+v", show(l), q)
	}
	if p := b.agent.prompts[1]; !strings.Contains(p, "tests that pass in this folder fail only in a clean copy") {
		t.Error(p)
	}
}

// TestNegativeGateTimeout: a loop with a negative time for gates is refused.
func TestNegativeGateTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: config.Config{Task: "x", Until: "true",
		Workspace: b.dir, Agent: "scripted", GateTimeout: -time.Second}})
	if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), "gate_timeout is -1s") {
		t.Error(err)
	}
}

// TestUnconfirmedIsCheckedAgain: what a clean copy does not confirm completes a loop, which
// says so; the next check is made in a clean copy again.
func TestUnconfirmedIsCheckedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, write("tests/b", "pass"))
	b.launch(func(c *config.Config) {
		c.Until = fmt.Sprintf(`[ "$PWD" = %q ] || { echo elsewhere; exit 3; }; grep -q pass tes*/b`, b.dir)
	})
	l := b.work()
	v := b.outcomes()[1].CleanCopy
	if l.Status != record.Completed || v == nil || v.State != cleancheck.Impossible || !v.Unconfirmed ||
		!strings.Contains(b.reason(), "a clean copy does not confirm the check") ||
		!strings.Contains(b.reason(), "elsewhere") || strings.Contains(string(l.State), `"unsealable"`) {
		t.Errorf("%s\n%+v", show(l), v)
	}
}

// TestMachineIsComparedLater: where no clean copy is possible, a program that was replaced
// since is a regression nevertheless.
//
//nolint:paralleltest // it sets PATH
func TestMachineIsComparedLater(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "compared-tool")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	replace := func(text string) error {
		return os.WriteFile(tool, []byte("#!/bin/sh\n"+text), 0o700) //nolint:gosec // a program
	}
	b := newBench(t, write("x", "1"), func(w *turn) error {
		return errors.Join(w.write("tests/b", "pass"), replace("# another"))
	})
	b.ok(replace(""))
	b.launch(func(c *config.Config) {
		c.Sealed = config.SealAlways
		c.Until = fmt.Sprintf(`compared-tool; [ "$PWD" = %q ] || exit 3; %s`, b.dir, checkTAP)
	})
	l := b.work()
	first, second := b.outcomes()[1].CleanCopy, b.outcomes()[2].CleanCopy
	if first == nil || first.State != cleancheck.Impossible || second == nil || second.State != cleancheck.Failed ||
		!strings.Contains(second.Why, "compared-tool") || second.Runs != 0 || l.Step != "gate" {
		t.Errorf("%s\n%+v\n%+v", show(l), first, second)
	}
}
