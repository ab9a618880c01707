package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// hostile returns a project whose settings file runs a program as the model.
func hostile(t *testing.T) *project {
	t.Helper()
	p := newProject(t)
	p.write(".perdure/config.yaml", "model: \"exec:sh -c 'touch ran; echo answer'\"\n")
	return p
}

func (p *project) exists(name string) bool {
	_, err := os.Stat(p.dir + "/" + name)
	return err == nil
}

// TestTrustIsAsked: at a terminal the user sees what would act and decides; yes is
// remembered, no is not.
func TestTrustIsAsked(t *testing.T) {
	t.Parallel()
	p := hostile(t)
	p.width = 100
	for _, answer := range []string{"n\n", "\n", "", "nonsense\n"} {
		p.stdin = strings.NewReader(answer)
		_, stderr := p.run(env.StatusUsage, "run", "x")
		if !strings.Contains(stderr, "model: exec:sh -c") || !strings.Contains(stderr, "[y/N]") {
			t.Errorf("%q: not asked:\n%s", answer, stderr)
		}
		if p.exists("ran") {
			t.Fatalf("%q: the program ran", answer)
		}
	}
	p.stdin = strings.NewReader("y\n")
	if stdout, _ := p.run(0, "run", "x"); !strings.Contains(stdout, "answer") || !p.exists("ran") {
		t.Errorf("trusted, and not run:\n%s", stdout)
	}
	p.stdin = strings.NewReader("")
	if _, stderr := p.run(0, "run", "x"); strings.Contains(stderr, "[y/N]") {
		t.Errorf("asked again:\n%s", stderr)
	}
	p.write(".perdure/config.yaml", "model: exec:other\n")
	if _, stderr := p.run(env.StatusUsage, "run", "x"); !strings.Contains(stderr, "model: exec:other") {
		t.Errorf("a change is not shown:\n%s", stderr)
	}
}

// TestTrustShowsOverriddenSettings: the user sees all that a yes trusts, also what a flag of this
// command overrides.
func TestTrustShowsOverriddenSettings(t *testing.T) {
	t.Parallel()
	p := hostile(t)
	p.width = 100
	p.write(".perdure/config.yaml", "model: exec:touch ran\nbase_url: http://localhost:1\n")
	p.stdin = strings.NewReader("n\n")
	_, stderr := p.run(env.StatusUsage, "run", "x", "--model", "mock:echo")
	if !strings.Contains(stderr, "model: exec:touch ran (runs this command; a flag or variable overrides it now)") {
		t.Errorf("asked without the overridden setting:\n%s", stderr)
	}
	p.write(".perdure/config.yaml", "model: exec:touch ran\n")
	if _, stderr := p.run(0, "run", "x", "--model", "mock:echo"); strings.Contains(stderr, "not trusted") {
		t.Errorf("asked for overridden settings alone:\n%s", stderr)
	}
	if stdout, _ := p.run(0, "trust", "--show"); !strings.Contains(stdout, "model: exec:touch ran (runs this command)") {
		t.Errorf("shown:\n%s", stdout)
	}
}

// TestTrustIsNotAskedWithoutTheWholeList: a yes covers nothing that the question does not show.
func TestTrustIsNotAskedWithoutTheWholeList(t *testing.T) {
	t.Parallel()
	long := "exec:" + strings.Repeat("a", 2000) + "; touch ran"
	var many strings.Builder
	for i := range 40 {
		fmt.Fprintf(&many, "  a%d:\n    model: exec:touch x%d\n", i, i)
	}
	for name, settings := range map[string]string{"long": "model: " + long + "\n", "many": "agents:\n" + many.String()} {
		p := hostile(t)
		p.width = 100
		p.write(".perdure/config.yaml", settings)
		p.stdin = strings.NewReader("y\n")
		_, stderr := p.run(env.StatusUsage, "run", "x")
		if strings.Contains(stderr, "[y/N]") || !strings.Contains(stderr, "`perdure trust --show`") || len(stderr) > 4000 {
			t.Errorf("%s: %s", name, stderr)
		}
		if stdout, _ := p.run(0, "trust", "--show"); name == "long" && !strings.Contains(stdout, "model: "+long) {
			t.Errorf("cut: %s", stdout)
		}
	}
}

// TestTrustMarksChanges: of settings that changed since the user trusted others, those that are
// new or changed are marked and come first.
func TestTrustMarksChanges(t *testing.T) {
	t.Parallel()
	p := hostile(t)
	p.write(".perdure/config.yaml", "model: exec:a\nloop:\n  lint: one\n")
	p.run(0, "trust")
	p.write(".perdure/config.yaml", "base_url: http://localhost:1\nmodel: exec:a\nloop:\n  lint: two\n")
	stdout, _ := p.run(0, "trust", "--show")
	lines := strings.Split(stdout, "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "new: base_url: ") ||
		!strings.HasPrefix(lines[1], "changed: loop.lint: two") || !strings.HasPrefix(lines[2], "model: exec:a") {
		t.Errorf("shown:\n%s", stdout)
	}
	var shown, trusted struct {
		Dir      string `json:"dir"`
		Trusted  bool   `json:"trusted"`
		Settings []struct{ Key, Change string }
		Trees    []any `json:"trees"`
	}
	for i, args := range [][]string{{"trust", "--show", "--json"}, {"trust", "--json"}} {
		to := &shown
		if i == 1 {
			to = &trusted
		}
		stdout, _ := p.run(0, args...)
		if err := json.Unmarshal([]byte(stdout), to); err != nil || strings.Contains(stdout, "null") {
			t.Errorf("%s: %s, %v", args, stdout, err)
		}
	}
	if shown.Trusted || !trusted.Trusted || !slices.Equal(shown.Settings, trusted.Settings) || len(shown.Settings) != 3 {
		t.Errorf("shown %+v, trusted %+v", shown, trusted)
	}
	stdout, _ = p.run(0, "trust", "--show", "--json")
	if !strings.Contains(stdout, `"trusted":true,"settings":[],"trees":[]`) {
		t.Errorf("afterwards %s", stdout)
	}
}

// TestTrustVariable: the usual words for yes and no are accepted, others are errors.
func TestTrustVariable(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		status int
		says   string
	}{
		"1": {0, ""}, "true": {0, ""}, "YES": {0, ""}, "on": {0, ""}, "0": {2, "is not trusted"}, "no": {2, "is not trusted"},
		"": {2, "is not trusted"}, "ja": {2, "PERDURE_TRUST is \"ja\", not a yes or no"},
	} {
		p := hostile(t)
		p.environ = append(p.environ, "PERDURE_TRUST="+value)
		_, stderr := p.run(want.status, "run", "x")
		if !strings.Contains(stderr, want.says) || p.exists("ran") != (want.status == 0) {
			t.Errorf("%q: %s", value, stderr)
		}
	}
}

// TestTrustListsAreBounded: a settings file with very many settings or problems does not print
// them all, and doctor says that the folder is not trusted.
func TestTrustListsAreBounded(t *testing.T) {
	t.Parallel()
	p := hostile(t)
	var agents, wrong strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&agents, "  a%d:\n    model: exec:touch x%d\n", i, i)
		fmt.Fprintf(&wrong, "unknown%d: x\n", i)
	}
	p.write(".perdure/config.yaml", "agents:\n"+agents.String())
	for says, args := range map[string][]string{"and 1,470 more lines": {"run", "x"}, "and 1490 more": {"config"}} {
		status := 0
		if args[0] == "run" {
			status = env.StatusUsage
		}
		if _, stderr := p.run(status, args...); !strings.Contains(stderr, says) || len(stderr) > 4000 {
			t.Errorf("%d bytes without %q: %.2000s", len(stderr), says, stderr)
		}
	}
	if stdout, _ := p.run(0, "doctor"); !strings.Contains(stdout, "not trusted: 1,500 settings and 0 stored trees") {
		t.Errorf("doctor: %s", stdout)
	}
	p.write(".perdure/config.yaml", wrong.String())
	_, stderr := p.run(env.StatusUsage, "config")
	if !strings.Contains(stderr, "and 1,480 more problems") || len(stderr) > 8000 {
		t.Errorf("%d bytes: %.3000s", len(stderr), stderr)
	}
}

// TestTrustKeepsTheRestOfTheInput: the question reads one line of standard input.
func TestTrustKeepsTheRestOfTheInput(t *testing.T) {
	t.Parallel()
	p := hostile(t)
	p.write(".perdure/config.yaml", "model: exec:cat\n")
	p.width, p.stdin = 100, strings.NewReader("yes\nthe context\n")
	if stdout, _ := p.run(0, "run", "x", "--context", "-"); !strings.Contains(stdout, "the context") {
		t.Errorf("printed %q", stdout)
	}
}

// TestTrustShowsWhatLoopsRun: of a stored loop the user sees the agent and the commands that a
// yes would run.
func TestTrustShowsWhatLoopsRun(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("go.txt", "x")
	p.run(env.StatusGate, "loop", "run", "Fix it", "--until", "test -e go.txt", "--agent", "exec:sh agent.sh",
		"--fallback", "codex", "--permission", "all", "--lint", "sh lint.sh", "--env", "NPM_TOKEN", "--no-wait")
	p.run(0, "trust", "--remove")
	stdout, _ := p.run(0, "trust", "--show")
	for _, want := range []string{"tree-", `runs the agent exec:sh agent.sh or codex (permission all)`,
		`the check "test -e go.txt" in ` + p.dir, `lint: "sh lint.sh"`, "passes the variables NPM_TOKEN"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing:\n%s", want, stdout)
		}
	}
}
