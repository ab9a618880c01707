package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkHook is the whole process of a hook that judges a call, and one that does
// nothing, for comparison.
func BenchmarkHook(b *testing.B) {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	perdure := filepath.Join(dir, "perdure")
	if err := os.Symlink(program, perdure); err != nil {
		b.Fatal(err)
	}
	event := `{"cwd":"` + dir + `","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git ` +
		`reset --hard"},"tool_use_id":"1"}`
	for name, args := range map[string][]string{"hook": {"hook", "claude-code"}, "version": {"version"}} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), perdure, args...)
				cmd.Dir, cmd.Stdin = dir, strings.NewReader(event)
				began := time.Now()
				if out, err := cmd.Output(); err != nil || name == "hook" && !strings.Contains(string(out), `"deny"`) {
					b.Fatalf("%s, %v", out, err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}
