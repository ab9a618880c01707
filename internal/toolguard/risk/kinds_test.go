package risk_test

import (
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
)

// TestKinds: each kind of destructive command is found in its forms, and similar commands that
// destroy nothing are not.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, table := range []struct{ file, tool string }{{"kinds.txt", "Bash"}, {"powershell.txt", "PowerShell"}} {
		text, err := os.ReadFile("testdata/" + table.file)
		if err != nil {
			t.Fatal(err)
		}
		kind := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			want, command, ok := strings.Cut(line, " | ")
			if !ok {
				kind = strings.TrimPrefix(line, "# ")
				continue
			}
			got := patterns(&agent.ToolCall{Kind: agent.ToolExecute, Name: table.tool,
				Command: strings.ReplaceAll(command, "⏎", "\n")})
			if want = strings.TrimPrefix(want, "-"); got != want {
				t.Errorf("%s: %s: %q, want %q", kind, command, got, want)
			}
		}
	}
}
