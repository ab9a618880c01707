package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPermanentFaultsEndSoon proves that a fault of a server costs at most three requests, however many
// parts a run has, and that the message names it.
func TestPermanentFaultsEndSoon(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{"quota-429": "no credit or quota", "reasoning-only-stop": "answer",
		"wrong-path-in-200": "no model at this address"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := strings.Repeat("a line of a text that is divided into parts\n", 6000)
			if err := os.WriteFile(filepath.Join(dir, "ctx.txt"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			server := serveCase(t, "http/"+name+".http")
			run := runCase(t, dir, "run", "number?", "-c", "ctx.txt", "--model", "openai:f", "--base-url", server.URL,
				"--planner", "split", "--chunk-tokens", "2000")
			if run.status != 7 || !strings.Contains(run.stderr, message) || !strings.Contains(run.stderr, "perdure resume") {
				t.Errorf("status %d, errors %q, want 7 and %q", run.status, run.stderr, message)
			}
			if n := len(server.Requests()); n > 3 {
				t.Errorf("%d requests were sent, want at most 3", n)
			}
		})
	}
}
