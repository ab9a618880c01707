package loop_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/heldout"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// secret is in the name, the output and the tests of the held-out checks of this file.
const secret = "XYZZY-4711"

// heldBench is a bench with a folder for held-out checks, and the folder of one: check.sh has the test
// of the secret's name, which passes if the work has the file "real", and runs counts its runs.
type heldBench struct {
	*bench
	kept, outside string
	dump          string
}

func newHeldBench(t *testing.T, turns ...func(w *turn) error) *heldBench {
	t.Helper()
	b := &heldBench{bench: newBench(t, turns...), kept: t.TempDir(), outside: filepath.Join(t.TempDir(), secret)}
	b.restart(loop.EngineConfig{HeldOut: b.kept})
	b.ok(os.MkdirAll(b.outside, 0o700))
	b.script(`echo "TAP version 13"; [ -e real ] && echo "ok 1 - ` + secret + `" || { echo "not ok 1 - ` + secret +
		`"; bad=1; }; echo "1..1"; exit ${bad:-0}`)
	return b
}

func (b *heldBench) script(text string) {
	b.Helper()
	b.ok(os.WriteFile(filepath.Join(b.outside, "check.sh"), []byte(text+"\n"), 0o700))
}

func (b *heldBench) command(c *config.Config) {
	c.HeldOut, c.Sealed = "sh "+b.outside+"/check.sh", config.SealOff // the clean copy has tests of its own
}

// results are those of the held-out check, by iteration.
func (b *heldBench) results() map[int]*heldout.Result {
	b.Helper()
	tree, err := b.store.Tree(b.Context(), b.tree.ID)
	b.ok(err)
	row := b.row()
	cfg, err := config.Of(&tree, &row)
	b.ok(err)
	book, err := heldout.Open(b.kept, cfg.HeldOut)
	b.ok(err)
	return book.Results()
}

// unseen fails if the agent's prompts, its environment or a file of the workspace, of the loop or of the
// store has the secret.
func (b *heldBench) unseen() {
	b.Helper()
	for i, prompt := range b.agent.prompts {
		if strings.Contains(prompt, secret) || strings.Contains(strings.ToLower(prompt), "held") {
			b.Errorf("prompt %d has the held-out check:\n%s", i+1, prompt)
		}
	}
	if strings.Contains(b.dump, secret) {
		b.Errorf("the environment of the agent: %s", b.dump)
	}
	for _, dir := range []string{b.dir, b.loops, b.store.Dir()} {
		b.ok(filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if bytes.Contains(text, []byte(secret)) {
				b.Errorf("%s has the held-out check", name)
			}
			return err
		}))
	}
	events, err := b.store.Events(b.Context(), perdure.EventFilter{Tree: b.tree.ID, Limit: 10_000})
	b.ok(err)
	for _, e := range events {
		if strings.Contains(string(e.Data), secret) {
			b.Errorf("event %s has the held-out check: %s", e.Kind, e.Data)
		}
	}
}

// TestHeldOutGap: a check that passes and a held-out check that does not open a gate whose question and
// whose answers tell the agent nothing. Nothing of the check reaches what the agent can read.
func TestHeldOutGap(t *testing.T) {
	t.Parallel()
	n := 0
	var b *heldBench
	b = newHeldBench(t, func(w *turn) error {
		b.dump += strings.Join(w.env, "\n")
		if n++; n == 3 {
			return errors.Join(w.write("real", "work"), w.write("tests/b", "pass"))
		}
		return errors.Join(w.write("tests/b", "pass"), w.write("attempt", strings.Repeat("x", n)))
	})
	b.launch(b.command)
	l := b.work()
	gates, err := b.store.OpenGates(t.Context())
	b.ok(err)
	if l.Step != "gate" || len(gates) != 1 || gates[0].Kind != perdure.GateHeldOut || l.Status != record.Running {
		t.Fatalf("%s at %s: %+v", l.Status, l.Step, gates)
	}
	first := b.results()
	if r := first[0]; r == nil || r.State != heldout.Failed || !r.ByName || *r.Gap != 50 {
		t.Errorf("the baseline: %+v", r)
	}
	if r := first[1]; r == nil || r.State != heldout.Failed || *r.Gap != 100 || len(r.Failing) != 1 || r.Open != "" {
		t.Errorf("iteration 1: %+v", r)
	}
	b.answer("continue", "look again")
	l = b.work()
	if l.Step != "gate" || l.Iteration != 2 || !strings.Contains(b.agent.prompts[1], "look again") {
		t.Fatalf("%s at %s of iteration %d", l.Status, l.Step, l.Iteration)
	}
	b.answer("reject", "")
	if l = b.work(); l.Status != record.Completed || l.Iteration != 3 {
		t.Fatalf("%s at %s: %s", l.Status, l.Step, b.reason())
	}
	if r := b.results()[3]; r == nil || r.State != heldout.Passed || *r.Gap != 0 {
		t.Errorf("iteration 3: %+v", r)
	}
	if want := "kept reverted kept"; b.statuses() != want {
		t.Errorf("iterations %q", b.statuses())
	}
	b.unseen()
	b.sound()
}

// TestHeldOutHidden: code of the agent that the check runs in the workspace, as the agent itself, finds
// neither the held-out check nor its results.
func TestHeldOutHidden(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t, write("x", "1"))
	b.put("where", b.outside+"\n"+b.kept)
	b.launch(b.command, func(c *config.Config) {
		c.MaxIterations, c.Until = 1, "ls $(head -1 where) > found; grep -rs 4711 $(cat where) > found2; "+checkTAP
	})
	if l := b.work(); l.Status != record.Failed {
		t.Fatalf("%s at %s: %s", l.Status, l.Step, b.reason())
	}
	r := b.results()[1]
	if r == nil || r.State != heldout.Failed || r.Tests != 1 {
		t.Fatalf("%+v", r)
	}
	if r.Exposed != "" {
		t.Skip("nothing is hidden here: ", r.Exposed)
	}
	if got := b.read("found") + b.read("found2"); got != "" {
		t.Errorf("found: %s", got)
	}
}

// TestHeldOutAccepted: a person can accept what the held-out check does not confirm; a gap within the
// limit needs none; a check that cannot be run never counts as passed.
func TestHeldOutAccepted(t *testing.T) {
	t.Parallel()
	tap := func(passing, all string) string {
		return `echo "TAP version 13"; for i in $(seq ` + all + `); do [ $i -le ` + passing +
			` ] && echo "ok $i - t$i" || echo "not ok $i - t$i"; done; echo 1..` + all + `; [ ` + passing + ` = ` + all + ` ]`
	}
	for name, c := range map[string]struct {
		script string
		change func(c *config.Config)
		gate   bool
		state  heldout.State
		says   string
	}{
		"9 of 10": {tap("9", "10"), nil, false, heldout.Failed, "gap 10 points"},
		"7 of 10": {tap("7", "10"), nil, true, heldout.Failed, "gap 30 points"},
		"7 of 10, high limit": {tap("7", "10"), func(c *config.Config) { c.HeldOutGap = 30 }, false, heldout.Failed,
			"30 points"},
		"9 of 10, no gap":   {tap("9", "10"), func(c *config.Config) { c.HeldOutGap = 1e-6 }, true, heldout.Failed, ""},
		"exit status only":  {"exit 3", nil, true, heldout.Failed, "exit status 3"},
		"passes as a whole": {"true", nil, false, heldout.Passed, "gap 0 points"},
		"too slow": {"sleep 60", func(c *config.Config) { c.CheckTimeout = 2e9 }, true, heldout.NotRun,
			"did not end within 2s"},
		"killed":          {"kill -9 $$", nil, true, heldout.NotRun, "signal"},
		"not found later": {"no-such-program", nil, true, heldout.NotRun, "exit status 127"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newHeldBench(t, write("tests/b", "pass"))
			b.script(c.script)
			b.launch(b.command, func(cfg *config.Config) {
				if c.change != nil {
					c.change(cfg)
				}
			})
			l := b.work()
			r := b.results()[1]
			if r == nil || r.State != c.state || !strings.Contains(r.Text(), c.says) {
				t.Fatalf("%+v", r)
			}
			if (l.Step == "gate") != c.gate {
				t.Fatalf("%s at %s: %+v", l.Status, l.Step, r)
			}
			if c.gate {
				b.answer("approve", "")
				l = b.work()
			}
			if l.Status != record.Completed || l.Iteration != 1 {
				t.Errorf("%s at %s: %s", l.Status, l.Step, b.reason())
			}
		})
	}
}

// TestHeldOutFolder: the files of a folder are laid over the copy, not over the workspace, and its tests
// are compared with those of the workspace.
func TestHeldOutFolder(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t, write("tests/b", "pass"))
	b.ok(os.MkdirAll(filepath.Join(b.outside, "tests"), 0o700))
	b.ok(os.WriteFile(filepath.Join(b.outside, "tests", secret), []byte("fail"), 0o600))
	b.launch(func(c *config.Config) { c.HeldOut = b.outside })
	l := b.work()
	if r := b.results()[1]; l.Step != "gate" || r == nil || r.Tests != 1 || *r.Gap != 100 {
		t.Fatalf("%s at %s: %+v", l.Status, l.Step, r)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "tests", secret)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the workspace: %v", err)
	}
	b.unseen()
}

// TestHeldOutBest: an iteration that passes the held-out check goes before a better one that does not.
func TestHeldOutBest(t *testing.T) {
	t.Parallel()
	n := 0
	b := newHeldBench(t, func(w *turn) error {
		if n++; n == 1 {
			return errors.Join(w.write("real", "x"), w.write("tests/b", "pass"), w.write("score", "60"))
		}
		return errors.Join(os.RemoveAll(filepath.Join(w.dir, "real")), w.write("score", "90"))
	})
	b.launch(b.command, func(c *config.Config) {
		c.MaxIterations, c.Scorer = 2, "cat score"
		c.Until = checkTAP[:strings.LastIndex(checkTAP, "exit")] + "test $bad = 0 && test -e done"
	})
	if l := b.work(); l.Status != record.Failed {
		t.Fatalf("%s at %s of iteration %d", l.Status, l.Step, l.Iteration)
	}
	if b.read("real") != "x" || b.read("score") != "60" {
		t.Errorf("score %q is left", b.read("score"))
	}
}

// TestHeldOutChanges: a resumed loop gets, changes and loses its held-out check, and the configuration has
// a name of it only. An iteration is not checked twice.
func TestHeldOutChanges(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t, write("tests/b", "pass"))
	b.script("[ -e real ]")
	b.launch(b.command)
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s at %s of iteration %d", l.Status, l.Step, l.Iteration)
	}
	before, err := os.ReadDir(b.kept)
	b.ok(err)
	resume := func(text string) {
		r, err := b.engine.Resume(t.Context(), b.tree.ID, record.ResumeRequest{Config: []byte(text)})
		b.ok(err)
		for _, c := range r.Changes {
			if strings.Contains(c.String(), secret) {
				t.Errorf("the change %s", c)
			}
		}
	}
	resume(`{"held_out": "sh ` + b.outside + `/check.sh"}`)
	if now, err := os.ReadDir(b.kept); err != nil || len(now) != len(before) {
		t.Errorf("the same check is stored again: %v, %v", now, err)
	}
	resume(`{"held_out": "true; sh ` + b.outside + `/check.sh; exit 0"}`)
	b.answer("continue", "")
	if l := b.work(); l.Status != record.Completed || l.Iteration != 2 {
		t.Errorf("%s at %s of iteration %d", l.Status, l.Step, l.Iteration)
	}
	if results := b.results(); results[1] != nil || results[2] == nil || results[2].State != heldout.Passed {
		t.Errorf("%+v", results)
	}
	b.unseen()
}

// TestHeldOutGone: a loop whose held-out check is gone pauses, and does not complete without it.
func TestHeldOutGone(t *testing.T) {
	t.Parallel()
	var b *heldBench
	b = newHeldBench(t, func(w *turn) error {
		return errors.Join(w.write("tests/b", "pass"), os.RemoveAll(b.kept))
	})
	b.launch(b.command)
	l := b.work()
	if l.Status != record.Paused || !strings.Contains(b.reason(), "--held-out") {
		t.Fatalf("%s at %s: %s", l.Status, l.Step, b.reason())
	}
	if _, err := b.engine.Resume(t.Context(), b.tree.ID, record.ResumeRequest{Config: []byte(`{"held_out": ""}`)}); err != nil {
		t.Fatal(err)
	}
	if l := b.work(); l.Status != record.Completed {
		t.Errorf("%s at %s: %s", l.Status, l.Step, b.reason())
	}
}

// TestHeldOutRefused: what cannot be run at the start, or what the agent can change, is refused, and
// nothing is created.
func TestHeldOutRefused(t *testing.T) {
	t.Parallel()
	b := newHeldBench(t, write("x", "y"))
	b.put("hidden.sh", "exit 0")
	b.put("held/x", "")
	b.ok(os.Chmod(filepath.Join(b.dir, "hidden.sh"), 0o700))
	plain := filepath.Join(b.outside, "plain")
	b.ok(os.WriteFile(plain, []byte("exit 0"), 0o600))
	link := filepath.Join(b.outside, "link.sh")
	b.ok(os.Symlink(filepath.Join(b.dir, "hidden.sh"), link))
	b.ok(os.Mkdir(filepath.Join(b.outside, "none"), 0o700))
	for command, want := range map[string]string{
		"no-such-program --all":                  "no-such-program is not installed",
		"true && sh -c 'no-such-program'":        "no-such-program is not installed",
		"/no/such/check.sh":                      "there is no file /no/such/check.sh",
		"sh " + b.outside + "/none.sh":           "there is no file",
		"timeout 5 sh " + b.outside + "/none.sh": "there is no file",
		"./hidden.sh":                            "inside of the workspace",
		"sh hidden.sh":                           "inside of the workspace",
		"sh " + link:                             "inside of the workspace",
		b.dir + "/hidden.sh " + b.outside:        "inside of the workspace",
		b.dir + "/held":                          "inside of the workspace",
		"held":                                   "inside of the workspace",
		filepath.Dir(b.dir):                      "contains the workspace",
		plain:                                    "is not executable",
		filepath.Join(b.outside, "none"):         "is empty",
		"sh '":                                   "cannot be parsed",
		checkTAP:                                 "is the completion command",
		"held-out:0011223344556677":              "is the name of a held-out check",
		"  ":                                     "is empty",
	} {
		_, err := b.engine.Launch(t.Context(), loop.LaunchRequest{Config: config.Config{Task: "x", Until: checkTAP,
			Workspace: b.dir, Agent: "scripted", HeldOut: command}})
		if perdure.CodeOf(err) != perdure.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", command, err)
		}
	}
	if trees, err := b.store.Trees(t.Context(), perdure.TreeFilter{}); err != nil || len(trees) != 0 {
		t.Errorf("trees are left: %v, %v", trees, err)
	}
	if left, err := os.ReadDir(b.kept); err != nil || len(left) != 0 {
		t.Errorf("checks are left: %v, %v", left, err)
	}
	for _, command := range []string{"true", "sh " + b.outside + "/check.sh", b.outside + "/check.sh | tee out",
		"cp " + b.outside + "/check.sh tests/x && sh tests/x", "f() { true; }; f", "cd /tmp && ./x.sh", "A=b $SHELL x"} {
		if err := loop.CheckHeldOut(&config.Config{Workspace: b.dir, Until: checkTAP, HeldOut: command}); err != nil {
			t.Errorf("%q: %v", command, err)
		}
	}
}
