package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// TestConfigKeys: the error of an unknown key names the command that lists the keys, which works
// in the folder with the error.
func TestConfigKeys(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write(".perdure/config.yaml", "zzz: 3\n")
	if _, stderr := p.run(env.StatusUsage, "config"); !strings.Contains(stderr, "`perdure config keys`") ||
		len(stderr) > 300 {
		t.Errorf("the error is %s", stderr)
	}
	if stdout, _ := p.run(0, "config", "keys"); !strings.Contains(stdout, "# retention.completed: ") {
		t.Errorf("the keys are %s", stdout)
	}
	stdout, _ := p.run(0, "config", "keys", "--json")
	var keys []struct{ Key, Help string }
	if err := json.Unmarshal([]byte(stdout), &keys); err != nil || len(keys) < 50 || keys[0].Key != "model" ||
		keys[0].Help == "" {
		t.Errorf("%v: %s", err, stdout)
	}
}
