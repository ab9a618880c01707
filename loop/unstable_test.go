package loop_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// checkNumbered is checkTAP with the process ID of the check behind the name of each test
// that begins with "port".
var checkNumbered = strings.Replace(checkTAP, "t=$(basename \"$f\")",
	`t=$(basename "$f"); case "$t" in port*) t="$t $$";; esac`, 1)

// TestUnstableNamesAreNotRemovedTests: a fix is kept although the names of tests differ in
// each run; a removed test is seen among them, and a renamed one does not pass as unstable.
func TestUnstableNamesAreNotRemovedTests(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		turn func(w *turn) error
		lost string
	}{
		"fixed": {turn: func(w *turn) error { return w.write("tests/b", "pass") }},
		"an unstable test removed": {lost: "port a", turn: func(w *turn) error {
			if err := w.remove("tests/port a"); err != nil {
				return err
			}
			return w.write("tests/b", "pass")
		}},
		"a stable test renamed": {lost: "b", turn: func(w *turn) error {
			if err := w.remove("tests/b"); err != nil {
				return err
			}
			return w.write("tests/port c", "pass")
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.turn)
			b.put("tests/port a", "pass")
			b.put("tests/port b", "pass")
			b.launch(func(cfg *config.Config) {
				cfg.Until, cfg.Sealed, cfg.Detection = checkNumbered, config.SealOff, config.DetectionOff
			})
			l := b.work()
			out := b.outcomes()[1]
			if c.lost == "" {
				if l.Status != record.Completed || len(out.Regressions) != 0 {
					t.Errorf("%s, %+v", show(l), out.Regressions)
				}
				return
			}
			if len(out.Regressions) != 1 || len(out.Regressions[0].Tests) != 1 ||
				!strings.HasPrefix(out.Regressions[0].Tests[0], c.lost) {
				t.Errorf("%s, %+v", show(l), out.Regressions)
			}
		})
	}
}
