package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/internal/cli/env"
	handoffcmd "github.com/perdure/perdure/internal/cli/handoff"
)

// workplace is a repository in which agents work.
type workplace struct {
	t    *testing.T
	dir  string
	path string // with the program in it
	env  []string
}

const contractText = `{"userStories": [{"id": "US-003", "verificationContract": {"type": "verifiable", "criteria": [
  {"activity": "typecheck", "description": "It compiles", "command": "test -s src/DarkModeToggle.tsx"}]}}]}
`

func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	for _, program := range []string{"git", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	w := &workplace{t: t, dir: t.TempDir(), path: pathWithProgram(t)}
	w.sh("git init -q --template= .")
	for name, text := range map[string]string{"prd.json": contractText, "src/DarkModeToggle.tsx": "toggle\n",
		"src/App.tsx":    "app\n",
		"src/toggle.tsx": "toggle\n"} {
		w.write(name, text)
	}
	return w
}

func (w *workplace) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workplace) read(name string) string {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

// agentVariables are the variables by which tests tell agents and checks where things are.
const agentVariables = "BIN,EDITOR,FLOOD,KILLED,LOG,OUT,PIDS,SEEN,STOPPED,UNDO"

// command runs a shell script in the workplace.
func (w *workplace) command(script string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", script)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "PATH="+w.path, "NO_COLOR=1", "PERDURE_DIR=", "PERDURE_AGENT=",
		"PERDURE_HANDOFF_TOKEN=", "PERDURE_LOOP_ENV="+agentVariables)
	cmd.Env = append(append(cmd.Env, w.env...), env...)
	return cmd
}

// try runs a script and returns what it printed and its exit status.
func (w *workplace) try(script string, env ...string) (out, errs string, status int) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := w.command(script, env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// sh runs a script that has to succeed.
func (w *workplace) sh(script string, env ...string) string {
	w.t.Helper()
	out, errs, status := w.try(script, env...)
	if status != 0 {
		w.t.Fatalf("exit status %d:\n%s\n%s%s", status, script, out, errs)
	}
	return out
}

// shown is the checkpoint that the program shows.
func (w *workplace) shown() *handoff.Checkpoint {
	w.t.Helper()
	return w.parse(w.sh("perdure handoff show --json"))
}

func (w *workplace) parse(text string) *handoff.Checkpoint {
	w.t.Helper()
	c := &handoff.Checkpoint{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		w.t.Fatalf("%v\n%s", err, text)
	}
	return c
}

func completed(c *handoff.Checkpoint) string {
	var names []string
	for _, s := range c.CompletedSteps {
		names = append(names, s.Step)
	}
	return strings.Join(names, "; ")
}

// claimed returns the token in the output of resume.
func claimed(t *testing.T, prompt string) string {
	t.Helper()
	return captured(t, "`--token ([a-z0-9]+)`", prompt)
}

// captured returns what the group of a pattern matches in an output.
func captured(t *testing.T, pattern, output string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(output)
	if m == nil {
		t.Fatalf("no match for %s in\n%s", pattern, output)
	}
	return m[1]
}

// Every example of the document for agents runs, in order, in a new repository, with the
// result in the document.
func TestHandoffSkill(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.env = append(w.env, "PERDURE_AGENT=react-dev")
	var last string // what the block before printed
	checks := []func(c *handoff.Checkpoint) string{
		func(c *handoff.Checkpoint) string {
			return c.Verification.ContractRef + fmt.Sprint(len(c.PendingSteps))
		},
		func(c *handoff.Checkpoint) string {
			return completed(c) + fmt.Sprint(c.PendingSteps, c.CurrentStep.Description, c.CompletedSteps[0].FilesCreated)
		},
		func(c *handoff.Checkpoint) string { return c.Decisions[0].Decision + ": " + c.Decisions[0].Rationale },
		func(c *handoff.Checkpoint) string { return c.CurrentStep.PartialWork + "; " + c.NextAction },
		func(c *handoff.Checkpoint) string { return fmt.Sprint(c.FailedApproaches, c.Blockers, c.NotAllowed) },
		func(c *handoff.Checkpoint) string { return fmt.Sprint(c.PendingSteps) + string(c.Phase) },
		func(c *handoff.Checkpoint) string { return completed(c) + fmt.Sprint(c.CompletedSteps[1].RunAgain) },
		func(c *handoff.Checkpoint) string {
			return completed(c) + fmt.Sprint(c.PendingSteps, c.Decisions[1].Decision)
		},
		func(c *handoff.Checkpoint) string { return string(c.Metadata.Reason) + c.CurrentStep.PartialWork },
		func(c *handoff.Checkpoint) string {
			return string(c.Metadata.Reason) + fmt.Sprint(c.Blockers, c.Metadata.PreviousAgents)
		},
		func(*handoff.Checkpoint) string { return strings.SplitN(last, "\n", 2)[0] },
		func(*handoff.Checkpoint) string { return last },
		func(c *handoff.Checkpoint) string { return fmt.Sprint(c == nil) + strings.SplitN(last, "\n", 2)[0] },
	}
	want := []string{
		"US-003.verificationContract3",
		"Created DarkModeToggle[Wire it up Write tests]Wire it up[src/DarkModeToggle.tsx]",
		"Use CSS variables: no runtime style calculation",
		"useTheme is imported, onClick is not written; Write onClick in src/DarkModeToggle.tsx",
		"[{CSS-in-JS flashes on load styles come after paint map[]}] [] [Do not change src/legacy]",
		"[Wire it up Write tests Write an E2E test]verification",
		"Created DarkModeToggle; Deployed to stagingtrue",
		"Created DarkModeToggle; Deployed to staging; Wired the toggle[Write tests Write an E2E test]Keep the theme in " +
			"localStorage",
		"context_limithalf of the tests are written",
		"reassignment[the test runner hangs, three times] [react-dev]",
		"Resuming from checkpoint (created by react-dev)",
		"fresh    src/App.tsx\nfresh    src/DarkModeToggle.tsx\nfresh\n",
		"truepassed   typecheck",
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(handoffcmd.Skill, -1)
	if len(blocks) != len(want) || len(checks) != len(want) {
		t.Fatalf("%d examples, %d checks", len(blocks), len(want))
	}
	for i, block := range blocks {
		last = w.sh("set -e\n" + block[1])
		var shown *handoff.Checkpoint
		if i < len(blocks)-1 {
			shown = w.shown()
		}
		if got := checks[i](shown); got != want[i] {
			t.Errorf("after\n%s%q, want %q", block[1], got, want[i])
		}
		if strings.Contains(block[1], "handoff resume") {
			w.env = append(w.env, "PERDURE_HANDOFF_TOKEN="+claimed(t, last))
		}
	}
}

// Every example in the help of the commands runs.
func TestHandoffExamples(t *testing.T) {
	t.Parallel()
	root := handoffcmd.Command(env.New(env.Process{}))
	examples := 0
	for _, cmd := range append(root.Commands(), root) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			examples++
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				w := newWorkplace(t)
				if cmd.Name() != "start" && !strings.HasPrefix(line, "perdure handoff start") {
					w.sh(`perdure handoff start T --contract US-003.verificationContract --pending one --pending two --agent first
						perdure handoff block "no key"`)
				}
				w.sh(line)
			})
		}
	}
	if examples < 20 {
		t.Errorf("%d examples", examples)
	}
}
