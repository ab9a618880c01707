package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
)

// maxExported is the number of tasks up to which the import is also exported, one file a task.
const maxExported = 20_000

// importTasks: a tasks.json of 10,000 tasks, in trees of 100 and then of no tree
// at all, into a new store, and once more when everything is there; then out
// again, unless there are too many.
func importTasks(b *bench, round int) error {
	n := cmp.Or(b.n, 10_000)
	if err := b.disk(); err != nil {
		return err
	}
	for _, size := range []int{100, 1} {
		source := filepath.Join(b.dir, fmt.Sprintf("source-%d-%d", round, size), ".aiwg")
		bytes, err := writeTasks(filepath.Join(source, "daemon"), n, size)
		if err != nil {
			return err
		}
		s, err := b.open(fmt.Sprintf("import-%d", size))
		if err != nil {
			return err
		}
		values := map[string]any{"tasks": n, "bytes": bytes}
		for _, name := range []string{"s", "again_s"} {
			start, spent := time.Now(), processorTime()
			r, err := aiwgtree.Import(b.ctx, s, aiwgtree.ImportConfig{Path: source})
			if err != nil {
				return err
			}
			values[name] = rounded(time.Since(start).Seconds())
			values["cpu_"+name] = rounded((processorTime() - spent).Seconds())
			if len(r.Notes) > 0 || name == "s" && r.Tasks != n || name != "s" && r.PresentTasks != n {
				return fmt.Errorf("import: %+v", r)
			}
		}
		if n <= maxExported {
			start := time.Now()
			if _, err := aiwgtree.Export(b.ctx, s,
				aiwgtree.ExportConfig{Dir: filepath.Join(b.dir, fmt.Sprintf("out-%d-%d", round, size))}); err != nil {
				return err
			}
			values["export_s"] = rounded(time.Since(start).Seconds())
		}
		if err := s.Close(); err != nil {
			return err
		}
		workload := fmt.Sprintf("a tasks.json of %d tasks with results, %d in a tree, into a new store, again, and out", n,
			size)
		if err := b.print("import", workload, round, values); err != nil {
			return err
		}
	}
	return nil
}

// writeTasks writes a file of tasks in trees of a size; 1 means of no tree.
func writeTasks(dir string, n, size int) (int64, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	f, err := os.Create(filepath.Join(dir, "tasks.json"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	_, _ = fmt.Fprint(w, `{"version": 1, "updatedAt": "2026-02-09T10:30:00Z", "tasks": [`)
	for i := range n {
		meta := `{}`
		if size > 1 {
			parent := "null"
			if root := i - i%size; root != i {
				parent = fmt.Sprintf(`"task-%04d"`, root+1)
			}
			meta = fmt.Sprintf(`{"tree_id": "tree-%08x", "node_id": "task-%08x", "parent_id": %s, "depth": %d, `+
				`"decomposition_strategy": "parallel",`+
				` "context_reference": {"type": "slice", "source": "documents", "size_tokens": 5000},`+
				` "cost_tracking": {"input_tokens": 5000, "output_tokens": 1500, "total_cost_usd": 0.065}}`, i/size, i+1, parent,
				min(i%size, 1))
		}
		comma := ","
		if i == n-1 {
			comma = "]}\n"
		}
		_, _ = fmt.Fprintf(w, `
  {"id": "task-%04d", "prompt": "%s %d", "agent": "security-auditor", "state": "completed", "result": "%s",
   "createdAt": "2026-02-09T10:00:00Z", "startedAt": "2026-02-09T10:00:01Z", "completedAt": "2026-02-09T10:05:00Z", "metadata": %s}%s`,
			i+1, sentence, i, sentence+sentence, meta, comma)
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Close()
}
