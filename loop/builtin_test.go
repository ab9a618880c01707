package loop_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// TestHookLogHasBuiltinHandlers: each hook at which the loop does something itself has a line
// with its time and its verdict.
func TestHookLogHasBuiltinHandlers(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(w *turn) error { return w.write("tests/b", "pass") },
		func(w *turn) error { return w.write("tests/a", "fail") })
	b.launch(func(c *config.Config) { c.Until, c.MaxIterations = "false", 2 })
	b.work()
	log, err := os.Open(filepath.Join(b.loops, loop.ID(&b.tree), "hook-log.jsonl"))
	b.ok(err)
	defer func() { b.ok(log.Close()) }()
	count := map[string]int{}
	_, err = hook.ReadLog(log, func(r hook.Record) bool {
		if r.Kind != hook.KindBuiltin || r.Verdict == "" || r.Duration < 0 || r.Time.IsZero() ||
			r.LoopID != loop.ID(&b.tree) {
			t.Errorf("record %+v", r)
		}
		count[string(r.Hook)+": "+r.Handler]++
		return true
	})
	b.ok(err)
	for line, least := range map[string]int{"loop_start: snapshot": 1, "loop_start: baseline": 1,
		"pre_iteration: snapshot": 2, "pre_iteration: reminder": 2, "post_iteration: regression detection": 2,
		"post_iteration: quality": 1, "loop_complete: best iteration": 1} {
		if count[line] < least {
			t.Errorf("%d lines of %q in %v, want %d", count[line], line, count, least)
		}
	}
}
