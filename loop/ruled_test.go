package loop_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/loop/config"
)

const (
	loadBefore = "def load(path):\n    data = open(path).read()\n    check(data)\n    return data\n"
	loadAfter  = "def load(path):\n    try:\n        data = open(path).read()\n        check(data)\n" +
		"    except Exception:\n        pass\n    return None\n"
)

// TestSettingsOfDetection: patterns and waivers of the loop's configuration count,
// and those of the project's file as the trusted snapshot has it, never as the agent
// wrote it.
func TestSettingsOfDetection(t *testing.T) {
	t.Parallel()
	const waiver = "waivers:\n  - {pattern: '*', path: '*', reason: known}\n"
	own := []config.Waiver{{Pattern: "*", Path: "*.py", Reason: "known"}}
	tests := map[string]struct {
		base, written string
		configure     func(c *config.Config)
		step          string
	}{
		"nothing set":                   {step: "gate"},
		"a waiver of the base":          {base: waiver, step: "ended"},
		"a waiver of the agent":         {written: waiver, step: "gate"},
		"a wrong file":                  {base: "waivers: [{pattern: error-swallowed}]\n", step: "gate"},
		"a waiver of the configuration": {configure: func(c *config.Config) { c.Waivers = own }, step: "ended"},
		"an ended waiver": {configure: func(c *config.Config) {
			c.Waivers = []config.Waiver{{Pattern: "*", Path: "**", Reason: "known", Expires: time.Now().Add(-time.Hour)}}
		}, step: "gate"},
		"patterns switched off": {base: "patterns_enabled: [test_deletion]\n", step: "ended"},
		"a protected file":      {base: "patterns_enabled: [test_deletion]\nprotected_paths: [load.py]\n", step: "gate"},
		"the same, waived": {base: "patterns_enabled: [test_deletion]\nprotected_paths: [load.py]\n" +
			"waivers: [{pattern: protected-file, path: load.py, reason: meant}]\n", step: "ended"},
		"an action": {configure: func(c *config.Config) {
			c.Rules = config.DetectionRules{Actions: map[string]string{"error-swallowed": "tell",
				"error-handling-removed": "tell", "stub-body": "tell"}}
		}, step: "ended"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(w *turn) error {
				if err := w.write("load.py", loadAfter); err != nil {
					return err
				}
				if test.written != "" {
					if err := w.write(rules.FileName, test.written); err != nil {
						return err
					}
				}
				return w.write("tests/b", "pass")
			})
			b.put("load.py", loadBefore)
			if test.base != "" {
				b.put(rules.FileName, test.base)
			}
			b.launch(func(c *config.Config) {
				c.MaxRetries = -1
				if test.configure != nil {
					test.configure(c)
				}
			})
			if l := b.work(); l.Step != test.step {
				o := b.outcomes()[1]
				t.Errorf("%s, want %s: regressions %+v, warnings %q", show(l), test.step, o.Regressions, o.Warnings)
			}
		})
	}
}
