package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// workflow is the part of a workflow of GitHub that its steps need here.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			Name string `yaml:"name"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// documentedSteps returns the commands of the workflow in docs/check.md, by their names.
func documentedSteps(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```yaml\non:\n")
	block, _, ended := strings.Cut(after, "```")
	if !found || !ended {
		t.Fatal("docs/check.md has no workflow")
	}
	var w workflow
	if err := yaml.Unmarshal([]byte("on:\n"+block), &w); err != nil {
		t.Fatal(err)
	}
	steps := make(map[string]string)
	for _, s := range w.Jobs["check"].Steps {
		steps[s.Name] = s.Run
	}
	return steps
}

// pullRequest is a clone in which a branch skips a test.
type pullRequest struct {
	t     *testing.T
	steps map[string]string
	dir   string
}

func (p *pullRequest) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes the test file and commits it.
func (p *pullRequest) commit(text string) string {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "test_a.py"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.git("add", ".")
	p.git("commit", "-qm", "x")
	return p.git("rev-parse", "HEAD")
}

// job runs the steps of the job as GitHub does, and returns the report and its exit status.
func (p *pullRequest) job(labels string) (string, int) {
	p.t.Helper()
	bin, err := programFile()
	if err != nil {
		p.t.Fatal(err)
	}
	temp := p.t.TempDir()
	variables := filepath.Join(temp, "env")
	env := append(os.Environ(), "PATH="+filepath.Dir(bin)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"LABELS="+labels, "BASE=main", "RUNNER_TEMP="+temp, "GITHUB_ENV="+variables, "XDG_CONFIG_HOME="+temp, "NO_COLOR=1")
	step := func(name string) (string, int) {
		script := p.steps[name]
		if script == "" {
			p.t.Fatalf("docs/check.md has no step %q", name)
		}
		cmd := exec.Command("bash", "-e", "-c", script)
		cmd.Dir, cmd.Env = p.dir, env
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return string(out), exit.ExitCode()
		}
		if err != nil {
			p.t.Fatal(err)
		}
		return string(out), 0
	}
	if out, status := step("Waive the findings of a reviewed commit"); status != 0 {
		p.t.Fatalf("exit status %d: %s", status, out)
	}
	set, _ := os.ReadFile(variables) // it is missing without a label
	env = append(env, strings.Fields(string(set))...)
	if out, status := step("Write SARIF"); status != 0 {
		p.t.Fatalf("exit status %d: %s", status, out)
	}
	if err := os.Remove(filepath.Join(p.dir, "perdure.sarif")); err != nil {
		p.t.Error(err)
	}
	return step("Find regressions")
}

// The documented label waives the findings of the commit that it names, and not those of
// later commits; the job runs in any case.
func TestDocumentedLabelWaivesOneCommit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, which runs the steps of workflows")
	}
	const (
		tests = "import pytest\n\ndef test_a():\n    assert 40 + 2 == int(\"42\")\n\n" +
			"def test_b():\n    assert \"x\".upper() == \"X\"\n"
		skip    = "@pytest.mark.skip\n"
		noLabel = "[]"
	)
	p := &pullRequest{t: t, steps: documentedSteps(t), dir: t.TempDir()}
	p.git("init", "-q", "-b", "main")
	p.git("config", "user.email", "ann@example.com")
	p.git("config", "user.name", "Ann")
	p.commit(tests)
	p.git("checkout", "-q", "-b", "work")
	first := p.commit(strings.Replace(tests, "def test_a", skip+"def test_a", 1))
	if out, status := p.job(noLabel); status != 3 || !strings.Contains(out, "BLOCK: 1 regression") {
		t.Errorf("without a label: exit status %d: %s", status, out)
	}
	for _, other := range []string{`["reviewed"]`, `["reviewed-` + first[:39] + `"]`, `["a \"reviewed-` + first + `\" b"]`} {
		if out, status := p.job(other); status != 3 {
			t.Errorf("labels %s: exit status %d: %s", other, status, out)
		}
	}
	label := "[\n  \"bug\",\n  \"reviewed-" + first + "\"\n]"
	out, status := p.job(label)
	if status != 0 || !strings.Contains(out, "ALLOW: 0 regressions") ||
		!strings.Contains(out, "waived: test skipped: test_a (test_a.py:3) [skip-added]: label reviewed-"+first) {
		t.Errorf("with the label: exit status %d: %s", status, out)
	}
	p.commit(strings.ReplaceAll(tests, "def test_", skip+"def test_"))
	if out, status := p.job(label); status != 3 || !strings.Contains(out, "BLOCK: 2 regressions") ||
		strings.Contains(out, "waived") {
		t.Errorf("a later commit: exit status %d: %s", status, out)
	}
	p.git("checkout", "-q", first)
	if err := os.WriteFile(filepath.Join(p.dir, "test_a.py"), nil, 0o600); err != nil { // not a part of the commit
		t.Fatal(err)
	}
	if out, status := p.job(label); status != 0 || !strings.Contains(out, "compared with") {
		t.Errorf("files that are not committed count: exit status %d: %s", status, out)
	}
}
