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
	text, err := os.ReadFile("testdata/kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	kind := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		want, command, ok := strings.Cut(line, " | ")
		if title, comment := strings.CutPrefix(line, "# "); comment || !ok {
			kind = title
			continue
		}
		got := patterns(&agent.ToolCall{Kind: agent.ToolExecute, Command: strings.ReplaceAll(command, `\n`, "\n")})
		if want = strings.TrimPrefix(want, "-"); got != want {
			t.Errorf("%s: %s: %q, want %q", kind, command, got, want)
		}
	}
}
