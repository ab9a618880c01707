//go:build unix

package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent/command"
)

// TestClaudeHooks: a hook is added to those of the user's own --settings, whether
// these are JSON or a file; what cannot be read is an error, never a hook less.
func TestClaudeHooks(t *testing.T) {
	t.Parallel()
	own := `{"model":"m","hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"mine"}]}],"Stop":[]}}`
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--verbose", "--settings", own}, {"--settings=" + file, "--verbose"}} {
		options, rest, err := command.ClaudeHooks([]string{"/it's/perdure", "hook"}, args)
		if err != nil || !cmp.Equal(rest, []string{"--verbose"}) || len(options) != 2 || options[0] != "--settings" {
			t.Fatalf("%q, %q, %v", options, rest, err)
		}
		var got struct {
			Model string
			Hooks map[string][]struct {
				Matcher string
				Hooks   []struct{ Command string }
			}
		}
		if err := json.Unmarshal([]byte(options[1]), &got); err != nil {
			t.Fatal(err)
		}
		before := got.Hooks["PreToolUse"]
		if got.Model != "m" || len(before) != 2 || before[0].Hooks[0].Command != "mine" ||
			len(got.Hooks["PostToolUse"]) != 1 || got.Hooks["Stop"] == nil {
			t.Errorf("%s", options[1])
		}
		if line := before[1].Hooks[0].Command; !strings.HasPrefix(line, `'/it'\''s/perdure' 'hook' 'claude-code' || {`) ||
			!strings.Contains(line, "exit 2") {
			t.Errorf("the command line %q", line)
		}
	}
	for _, args := range [][]string{{"--settings", "{"}, {"--settings", filepath.Join(t.TempDir(), "gone")}} {
		if options, _, err := command.ClaudeHooks([]string{"perdure"}, args); err == nil {
			t.Errorf("%q: %q", args, options)
		}
	}
}
