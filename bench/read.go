package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sizes are the numbers of stored tasks that are measured.
func (b *bench) sizes() []int {
	if b.n != 0 {
		return []int{b.n}
	}
	return []int{1000, 100_000, 1_000_000}
}

// status: the progress of one tree, in process, by the tree's size.
func status(b *bench, round int) error {
	const reads = 5000
	for _, n := range b.sizes() {
		if err := os.RemoveAll(filepath.Join(b.dir, "store")); err != nil {
			return err
		}
		s, err := b.open("store")
		if err != nil {
			return err
		}
		tree, err := fill(b, s, n)
		if err != nil {
			return err
		}
		took := make([]time.Duration, reads)
		for i := range took {
			start := time.Now()
			if _, err := s.Progress(b.ctx, tree.ID); err != nil {
				return err
			}
			took[i] = time.Since(start)
		}
		if err := b.print("status", "progress of one tree, in process, one reader", round,
			quantiles(took, map[string]any{"stored": n})); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// memory: resident memory at rest, with an empty store and with many tasks.
func memory(b *bench, round int) error {
	n := cmp.Or(b.n, 1_000_000)
	for _, stored := range []int{0, n} {
		s, err := b.open("store")
		if err != nil {
			return err
		}
		if stored > 0 {
			tree, err := fill(b, s, stored)
			if err != nil {
				return err
			}
			if _, err := s.Progress(b.ctx, tree.ID); err != nil {
				return err
			}
		}
		size, _ := dirSize(filepath.Join(b.dir, "store"))
		values := map[string]any{"stored": stored, "rss_mib": rss(), "disk_bytes": size}
		if stored > 0 {
			values["disk_bytes_per_task"] = size / int64(stored)
		}
		if err := b.print("memory", "resident memory after creating the tasks in this process", round, values); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

func dirSize(dir string) (int64, error) {
	var total int64
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	return total, err
}

// runText: the whole command over text of about 100 MB.
func runText(b *bench, round int) error {
	if len(b.args) < 2 {
		b.args = []string{"perdure", filepath.Join(b.dir, "text")}
	}
	if err := b.disk(); err != nil {
		return err
	}
	cmd := exec.CommandContext(b.ctx, b.args[0], "run", "--json", "--context", b.args[1],
		"How does the garbage collector decide when to start a cycle?")
	cmd.Dir = b.dir
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return b.print("run", "perdure run --json with builtin:extract over "+filepath.Base(b.args[1]), round,
		map[string]any{"wall_s": rounded(time.Since(start).Seconds()), "answer_bytes": len(out)})
}
