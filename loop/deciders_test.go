package loop_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// checkEnv passes for good code, and with a variable that a file for the shell sets.
const checkEnv = `[ ! -f .envrc ] || . ./.envrc; if [ "$EASY" = 1 ] || grep -q good code/a; then echo "ok 1 - a"; ` +
	`else echo "not ok 1 - a"; bad=1; fi; echo "1..1"; exit ${bad:-0}`

func envBench(t *testing.T, turn func(w *turn) error, change ...func(c *config.Config)) (*bench, record.Loop) {
	t.Helper()
	b := newBench(t, turn)
	b.put("code/a", "bad")
	b.launch(append(change, func(c *config.Config) { c.Until, c.Unattended = checkEnv, true })...)
	return b, b.work()
}

// A check that passes only because of a file that decides what it runs goes to a person; with the path
// allowed, the loop is completed. The file is named in both cases.
func TestDecidingFileNeedsAPerson(t *testing.T) {
	t.Parallel()
	b, l := envBench(t, write(".envrc", "EASY=1\n"))
	out := b.outcomes()[1]
	if l.Step != "gate" || out.CleanCopy == nil || out.CleanCopy.Deciders != cleancheck.Failed ||
		len(out.Regressions) != 1 || out.Regressions[0].Type != "protected_change" ||
		!strings.Contains(out.Regressions[0].Text, ".envrc") || len(out.Deciders) != 1 {
		t.Fatalf("%s\n%+v", show(l), out)
	}
	gates, err := b.store.Gates(t.Context(), b.tree.ID)
	b.ok(err)
	if q := string(gates[0].Question); !strings.Contains(q, "--allow '.envrc'") || !strings.Contains(q, `"retry"`) {
		t.Errorf("the gate does not say how to allow it: %s", q)
	}
	_, err = b.engine.Resume(t.Context(), b.tree.ID, record.ResumeRequest{Config: []byte(`{"allow":[".envrc"]}`)})
	b.ok(err)
	b.answer("retry", "")
	if l = b.work(); l.Status != record.Completed || !strings.Contains(string(l.State),
		".envrc (added, variables and the search path of programs), allowed") {
		t.Errorf("%s", show(l))
	}
	b.sound()
}

// A deciding file without effect on the check ends nothing, and is named.
func TestDecidingFileIsNamed(t *testing.T) {
	t.Parallel()
	b, l := envBench(t, func(w *turn) error {
		return errors.Join(w.write("code/a", "good"), w.write(".envrc", "OTHER=1\n"))
	})
	out := b.outcomes()[1]
	if l.Status != record.Completed || out.CleanCopy.Deciders != cleancheck.Passed || out.CleanCopy.Runs != 2 ||
		!strings.Contains(string(l.State), ".envrc (added, variables and the search path of programs); it passes with "+
			"their earlier version too") {
		t.Errorf("%s\n%+v", show(l), out)
	}
	b, l = envBench(t, write("code/a", "good"))
	if out := b.outcomes()[1]; l.Status != record.Completed || out.CleanCopy.Runs != 1 || len(out.Deciders) != 0 {
		t.Errorf("without such a file: %s\n%+v", show(l), out)
	}
	b, l = envBench(t, write(".envrc", "EASY=1\n"), func(c *config.Config) { c.Allow = []string{".env*"} })
	if out := b.outcomes()[1]; l.Status != record.Completed || out.CleanCopy.Runs != 1 || !out.Deciders[0].Allowed {
		t.Errorf("allowed from the start: %s\n%+v", show(l), out)
	}
}

// realProject is a project with a real runner, and two changes of it: a fake, with which the check passes
// although the code is as before, and honest work that looks alike.
type realProject struct {
	needs, until string
	files        map[string]string
	fake, honest map[string]string
}

func realProjects() map[string]realProject {
	calc := map[string]string{"calc.py": "def add(a, b):\n    return a - b\n",
		"test_calc.py": "import statistics\nimport unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n" +
			"    def test_add(self):\n        self.assertEqual(statistics.mean([add(1, 2)]), 3)\n"}
	makefile := map[string]string{"Makefile": "test:\n\tsh check.sh\n", "check.sh": "grep -q good code\n", "code": "bad\n"}
	return map[string]realProject{
		"a module instead of one of Python": {needs: "python3", until: "python3 -m unittest -q", files: calc,
			fake:   map[string]string{"statistics.py": "def mean(list):\n    return 3\n"},
			honest: map[string]string{"calc.py": "from sums import add\n", "sums.py": "def add(a, b):\n    return a + b\n"}},
		"a package instead of a module": {needs: "python3", until: "python3 -m unittest -q", files: calc,
			fake:   map[string]string{"calc/__init__.py": "def add(a, b):\n    return 3\n"},
			honest: map[string]string{"calc.py": "def add(a, b):\n    return a + b\n", "calculator/__init__.py": "X = 1\n"}},
		"make that ignores failures": {needs: "make", until: "make test", files: makefile,
			fake:   map[string]string{"Makefile": ".IGNORE:\ntest:\n\tsh check.sh\n"},
			honest: map[string]string{"Makefile": "test:\n\tsh check.sh\nclean:\n\trm -f x\n", "code": "good\n"}},
		"a script that make runs": {needs: "make", until: "make test", files: makefile,
			fake:   map[string]string{"check.sh": "exit 0\n"},
			honest: map[string]string{"rules.mk": "X = 1\n", "code": "good\n"}},
	}
}

// Fakes stop at a gate with real runners, and their honest twins are completed without a question.
func TestFakesStopAndTwinsComplete(t *testing.T) {
	t.Parallel()
	for name, p := range realProjects() {
		for _, fake := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %t", name, fake), func(t *testing.T) {
				t.Parallel()
				p.try(t, fake)
			})
		}
	}
}

func (p *realProject) try(t *testing.T, fake bool) {
	t.Helper()
	if _, err := exec.LookPath(p.needs); err != nil {
		t.Skip(err)
	}
	b := newBench(t, func(w *turn) error {
		change := p.honest
		if fake {
			change = p.fake
		}
		var all []error
		for file, text := range change {
			all = append(all, w.write(file, text))
		}
		return errors.Join(all...)
	})
	for file, text := range p.files {
		b.put(file, text)
	}
	b.launch(func(c *config.Config) { c.Until, c.Unattended = p.until, true })
	l, out := b.work(), b.outcomes()[1]
	if !fake && (l.Status != record.Completed || len(out.Regressions) > 0) {
		t.Errorf("honest work: %s\n%+v", show(l), out.Regressions)
	}
	if fake && (l.Step != "gate" || len(out.Regressions) != 1 || out.Regressions[0].Type != "protected_change" ||
		!strings.HasPrefix(out.Regressions[0].Text, "the check passes only with the agent's version of ")) {
		t.Errorf("a fake: %s\n%+v", show(l), out.Regressions)
	}
}
