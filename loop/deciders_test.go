package loop_test

import (
	"errors"
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
	b.put(".envrc", "EASY=1\n") // the best iteration was left
	if l = b.work(); l.Status != record.Completed || !strings.Contains(string(l.State), ".envrc added: variables and the "+
		"search path of programs; allowed") {
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
		!strings.Contains(string(l.State), ".envrc added: variables and the search path of programs), and it passes with "+
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
