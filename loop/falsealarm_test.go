package loop_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// TestFalseAlarmDoesNotAlarmAgain: what a person marked is not a regression in the
// iterations that follow, also where other lines have moved it.
func TestFalseAlarmDoesNotAlarmAgain(t *testing.T) {
	t.Parallel()
	turns := 0
	b := newBench(t, func(w *turn) error {
		if turns++; turns == 1 {
			return w.write("load.py", loadAfter)
		}
		if err := w.write("load.py", "import os\n\n"+loadAfter); err != nil {
			return err
		}
		return w.write("tests/b", "pass")
	})
	b.put("load.py", loadBefore)
	b.launch(func(c *config.Config) { c.MaxRetries = -1 })
	if l := b.work(); l.Step != "gate" {
		t.Fatalf("%s", show(l))
	}
	o := b.outcomes()[1]
	if len(o.Regressions) == 0 || len(o.Regressions[0].Fingerprints) == 0 {
		t.Fatalf("regressions %+v", o.Regressions)
	}
	b.answer("whitelist", "the loader is replaced next")
	l := b.work()
	if l.Status != record.Completed {
		t.Errorf("%s, regressions %+v", show(l), b.outcomes()[2].Regressions)
	}
	marks, err := b.records.FalseAlarms(t.Context(), l.Tree)
	if err != nil || len(marks) == 0 || marks[0].Event != "reg-001-1" ||
		marks[0].Reason != "the loader is replaced next" || !strings.Contains(marks[0].What, "load.py") {
		t.Errorf("marks %+v, %v", marks, err)
	}
}

// TestWarningsAreToldTheAgent: what only warns is in the next prompt, by name.
func TestWarningsAreToldTheAgent(t *testing.T) {
	t.Parallel()
	const before = "def load(path):\n    return open(path).read()\n"
	prompts := []string{}
	b := newBench(t, func(w *turn) error {
		prompts = append(prompts, w.prompt)
		if len(prompts) == 1 {
			return w.write("load.py", "import json\n\ndef load(path):\n    return json.load(path)  # type: "+
				"ignore[no-any-return] # json does not say what a file holds\n")
		}
		return w.write("tests/b", "pass")
	})
	b.put("load.py", before)
	b.launch()
	if l := b.work(); l.Status != record.Completed {
		t.Fatalf("%s", show(l))
	}
	if len(prompts) != 2 || strings.Contains(prompts[0], "reviewer would ask") ||
		!strings.Contains(prompts[1], "reviewer would ask") || !strings.Contains(prompts[1], "(load.py:4)") {
		t.Errorf("prompts %q, findings %+v", prompts, b.outcomes()[1].Findings)
	}
}
