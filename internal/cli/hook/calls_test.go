package hook_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
)

// TestCalls: paths are found in any parameter of a tool, commands of PowerShell are parsed, and
// calls from removed folders are judged; the hook answers by the policy that the preview uses.
func TestCalls(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, ".git"), 0o700)
	}
	text, readErr := os.ReadFile("testdata/calls.jsonl")
	if err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "/PROJECT", dir)) {
		var c struct {
			Want, Agent string
			Input       json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		want, pattern, _ := strings.Cut(c.Want, " ")
		out, err := call{stdin: strings.NewReader(string(c.Input)), args: []string{c.Agent},
			env: map[string]string{"CLAUDE_PROJECT_DIR": dir, "XDG_STATE_HOME": dir}}.run(t.Context())
		denies := strings.Contains(out, `"deny"`)
		if err != nil || denies != (want == "deny") {
			t.Errorf("%s %s: %s, %v", c.Want, c.Input, out, err)
		}
		d, _ := vendorhook.DialectOf(c.Agent)
		e, err := d.Read(strings.NewReader(string(c.Input)))
		if err != nil {
			t.Fatal(err)
		}
		p := &policy.Policy{Root: dir}
		found := p.Judge(e.Call, e.Dir).Findings
		if (want == "pass") != (len(found) == 0) || len(found) > 0 && string(found[0].Pattern) != pattern {
			t.Errorf("%s %s: %+v", c.Want, c.Input, found)
		}
	}
}
