package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
)

// floodBytes is the size of the output of an agent; PERDURE_FLOOD_MB sets it (20).
func floodBytes(t *testing.T) int64 {
	t.Helper()
	return int64(number(t, "PERDURE_FLOOD_MB", 20, 200)) << 20
}

// TestLoopFlood: an agent with very much output fills neither the memory nor the disk.
func TestLoopFlood(t *testing.T) {
	t.Parallel()
	const (
		mostMemory = 200 << 10 // KiB
		mostDisk   = 30 << 20
	)
	for name, script := range map[string]string{
		"lines":    "yes abcdefghijklmnopqrstuvwxyz | head -c $FLOOD",
		"one line": `head -c $FLOOD /dev/zero | tr '\0' a`,
		"errors":   "yes abcdefghijklmnopqrstuvwxyz | head -c $FLOOD >&2; exit 3",
		"zeros":    "head -c $FLOOD /dev/zero",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLoopPlace(t)
			w.agent(script)
			cmd := w.command("")
			program := filepath.Join(filepath.SplitList(w.path)[0], "perdure")
			cmd.Path, cmd.Args = program, []string{program, "loop", "run", "x", "--until", "sh check.sh", "--agent",
				"exec:sh " + w.agentFile(), "--max-iterations", "1", "--max-retries", "0"}
			cmd.Env = append(cmd.Env, fmt.Sprintf("FLOOD=%d", floodBytes(t)))
			status, kib := measured(t, cmd)
			if status != 1 {
				t.Errorf("status %d", status)
			}
			disk := sizeOf(t, filepath.Join(w.dir, ".perdure"))
			t.Logf("%d KiB of memory, %d bytes on disk", kib, disk)
			if kib > mostMemory || disk > mostDisk {
				t.Errorf("it took %d KiB of memory and %d bytes on disk; at most %d and %d are fine", kib, disk, mostMemory,
					mostDisk)
			}
		})
	}
}
