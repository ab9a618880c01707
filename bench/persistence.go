package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure"
)

// persistence measures what supervision adds to the iterations of a loop: the same loop runs with
// it and without it (--plain) by turns, on workspaces of the same files.
func persistence(b *bench, round int) error {
	n := cmp.Or(b.n, 10)
	if err := b.disk(); err != nil {
		return err
	}
	values := map[string]any{"iterations": n, "files": loopFiles, "changed": loopChanges}
	var mean [2]float64
	for i, name := range []string{"without", "with"} {
		dir := filepath.Join(b.dir, fmt.Sprintf("persistence-%d-%s", round, name))
		added, err := b.supervised(dir, n, name == "without")
		if err = cmp.Or(err, os.RemoveAll(dir)); err != nil {
			return err
		}
		var total time.Duration
		for _, took := range added {
			total += took
		}
		mean[i] = total.Seconds() * 1000 / float64(len(added))
		values[name+"_ms"] = rounded(mean[i])
	}
	values["added_ms"] = rounded(mean[1] - mean[0])
	values["added_percent_of_60_s"] = rounded((mean[1] - mean[0]) / iterationTime.Seconds() / 1000 * 100)
	return b.print("loop-persistence", "an iteration without its agent and its check, with supervision and without, "+
		"50,000 files of 4 KiB in a git repository, 20 changed in each turn", round, values)
}

// supervised runs a loop in a new folder, and returns the time of each iteration that is neither
// the agent's nor the check's.
func (b *bench) supervised(dir string, n int, plain bool) ([]time.Duration, error) {
	if err := workspaceOf(b.ctx, filepath.Join(dir, "work")); err != nil {
		return nil, err
	}
	store, err := perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(dir, "store"), DSN: b.dsn})
	if err != nil {
		return nil, err
	}
	added, err := b.iterations(store, dir, n, plain)
	return added, cmp.Or(err, store.Close())
}
