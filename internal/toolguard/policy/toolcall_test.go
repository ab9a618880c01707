package policy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// place is a workspace with files.
func place(t testing.TB, files map[string]string) *policy.Policy {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &policy.Policy{Root: root}
	for name, text := range files {
		put(t, p, name, text)
	}
	return p
}

func put(t testing.TB, p *policy.Policy, name, text string) {
	t.Helper()
	name = filepath.Join(p.Root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(command string) *agent.ToolCall {
	return agentCall("Bash", `{"command":`+quote(command)+`}`)
}

func edit(path string) *agent.ToolCall { return agentCall("Edit", `{"file_path":`+quote(path)+`}`) }

func quote(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }

func agentCall(name, input string) *agent.ToolCall {
	c := agent.Describe("1", name, []byte(input))
	return &c
}

// TestJudge: the table answers, the configuration overrides it, and permits of a person
// override both.
func TestJudge(t *testing.T) {
	t.Parallel()
	p := place(t, map[string]string{"a_test.go": "package a", "src/a.go": "package a"})
	for command, want := range map[string]risk.Answer{
		"go test ./...": risk.Allow, "git reset --hard": risk.Block, "rm a_test.go": risk.Warn,
		"rm -rf .perdure": risk.Block, "git rm src/a.go": risk.Warn,
	} {
		if j := p.Judge(run(command), ""); j.Answer != want {
			t.Errorf("%s: %+v", command, j)
		}
	}
	p.Answers = map[risk.Pattern]risk.Answer{risk.GitRemove: risk.Gate, risk.DeleteFiles: risk.Allow}
	j := p.Judge(run("git rm src/a.go"), "")
	if j.Answer != risk.Gate || !slices.Equal(j.Wanted(), []string{"git_remove git rm src/a.go"}) || !j.Destructive() ||
		strings.Contains(j.Text(), "src/a.go: You are about to delete files") {
		t.Errorf("%+v, %q", j, j.Text())
	}
	p.Allowed = j.Wanted()
	if j := p.Judge(run("git rm src/a.go"), ""); j.Answer != risk.Warn {
		t.Errorf("a person allowed it: %+v", j)
	}
	if j := p.Judge(run("git rm src/b.go"), ""); j.Answer != risk.Gate {
		t.Errorf("a person allowed another one: %+v", j)
	}
	p.Answers, p.Allowed = map[risk.Pattern]risk.Answer{risk.WriteTest: risk.Gate}, []string{"write_test a_test.go"}
	for _, name := range []string{"a_test.go", filepath.Join(p.Root, "a_test.go")} {
		if j := p.Judge(edit(name), ""); j.Answer != risk.Warn || j.Findings[0].Target != "a_test.go" {
			t.Errorf("a file that a person allowed, as %s: %+v", name, j)
		}
	}
	if j := p.Judge(run("rm ../x"), filepath.Join(p.Root, "src")); len(j.Findings) != 1 ||
		j.Findings[0].Pattern != risk.DeleteFiles {
		t.Errorf("from a folder: %+v", j)
	}
}

// TestJudgeWaivers: the agent may not write the user's own waivers.
func TestJudgeWaivers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "waivers.yaml")
	t.Setenv("PERDURE_WAIVERS", name)
	p := place(t, nil)
	if j := p.Judge(edit(name), ""); j.Answer != risk.Block {
		t.Errorf("%+v", j)
	}
}

// TestJudgeHeads: the agent may not write the store, the recorded heads of its log, and the
// records of what the user trusts.
func TestJudgeHeads(t *testing.T) {
	state, config := t.TempDir(), t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("XDG_CONFIG_HOME", config)
	p := place(t, nil)
	for _, name := range []string{filepath.Join(state, "perdure", "heads", "x.jsonl"), ".perdure/perdure.db",
		filepath.Join(config, "perdure", "trust", "0123.json"), filepath.Join(config, "perdure", "trust")} {
		if j := p.Judge(edit(name), ""); j.Answer != risk.Block {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

// TestJudgeLinks: a link counts as its target, and the workspace under another name as
// the workspace.
func TestJudgeLinks(t *testing.T) {
	t.Parallel()
	p := place(t, map[string]string{"a_test.go": "package a", "loops/x": "x"})
	p.Own = []string{filepath.Join(p.Root, "loops")}
	outside := t.TempDir()
	for from, to := range map[string]string{filepath.Join(p.Root, "plain.go"): "a_test.go",
		filepath.Join(outside, "w"): p.Root, filepath.Join(p.Root, "mine"): "loops"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"plain.go":                                   "write_test",
		filepath.Join(outside, "w", "b.go"):          "",
		filepath.Join(outside, "w", ".perdure", "x"): "write_perdure",
		"mine/x":  "write_perdure",
		"loops/y": "write_perdure",
		"new.go":  "",
	} {
		var got []string
		for _, f := range p.Judge(edit(path), "").Findings {
			got = append(got, string(f.Pattern))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestJournal: lines are read once and in order, with invalid lines between them.
func TestJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tool-calls.jsonl")
	if lines, next, err := policy.ReadJournal(path, 0); err != nil || lines != nil || next != 0 {
		t.Errorf("a journal that is not there: %v, %d, %v", lines, next, err)
	}
	add := func(target string) {
		t.Helper()
		j, err := policy.OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		line := policy.NewLine(policy.Asked, 1, run(target), nil)
		if err := j.Append(&line); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	add("one")
	lines, next, err := policy.ReadJournal(path, 0)
	if err != nil || len(lines) != 1 || lines[0].Target != "one" {
		t.Fatalf("%+v, %v", lines, err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The last one is torn.
	if _, err := f.WriteString("nonsense\n" + strings.Repeat("x", 1<<20) + `{"what":"asked"}` +
		"\n{\"what\":\"asked\",\"tar"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, _, err := policy.ReadJournal(path, next); err != nil || len(lines) != 0 {
		t.Errorf("%+v, %v", lines, err)
	}
	add("two")
	lines, next, err = policy.ReadJournal(path, next)
	if err != nil || len(lines) != 1 || lines[0].Target != "two" {
		t.Errorf("%+v, %v", lines, err)
	}
	if lines, again, err := policy.ReadJournal(path, next); err != nil || len(lines) != 0 || again != next {
		t.Errorf("again: %+v, %v", lines, err)
	}
}
