package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agentA works through half of the task and is killed midway through a step.
const agentA = `set -e
export PERDURE_AGENT=agent-a
perdure handoff start "Six files" --contract US-1.verificationContract \
  --pending "write pages/1" --pending "write pages/2" --pending "write pages/3" \
  --pending "write pages/4" --pending "write pages/5" --pending "write pages/6"
for n in 1 2 3; do
  perdure handoff current "write pages/$n"
  echo "agent-a pages/$n" >> work.log
  echo "content of pages/$n" > pages/$n
  perdure handoff step "write pages/$n" --created pages/$n
done
perdure handoff decide "each file says what it is the content of" --because "the check looks for it"
perdure handoff current "write pages/4" --partial "nothing is written"
kill -9 $$
`

// agentB receives only the output of resume, on its standard input.
const agentB = `set -e
cat > prompt
export PERDURE_HANDOFF_TOKEN=$(sed -n 's/.*Give .--token \([a-z0-9]*\).*/\1/p' prompt)
grep -q '^- each file says what it is the content of' prompt
sed -n '/^## Pending Steps/,/^## Files/s/^- write //p' prompt > todo
while read file; do
  echo "agent-b $file" >> work.log
  echo "content of $file" > $file
  perdure handoff step "write $file" --created $file
done < todo
perdure handoff verify
perdure handoff done
`

const sixFiles = `{"id": "US-1", "verificationContract": {"type": "verifiable", "criteria": [{"activity": "content",
  "command": "for n in 1 2 3 4 5 6; do grep -q \"content of pages/$n\" pages/$n || exit 1; done"}]}}
`

// An agent is killed after half of the task. Another one starts with only the output of
// resume, and finishes without repeating a step. A file that was changed meanwhile is
// named before it starts, and one of two concurrent successors is refused.
func TestHandoffFinishedByAnother(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("prd.json", sixFiles)
	w.write("pages/.gitkeep", "")
	if err := w.command(agentA).Run(); !killed(err) {
		t.Fatalf("agent A was not killed: %v", err)
	}
	w.write("pages/2", "content of pages/2, and what somebody added\n")
	out, _, status := w.try("perdure handoff stale --check")
	if status != 3 || !strings.Contains(out, "changed  pages/2\n") || strings.Count(out, "fresh  ") != 2 {
		t.Errorf("exit status %d: %s", status, out)
	}
	prompt := w.successors()
	first, rest, _ := strings.Cut(prompt, "\n")
	for text, in := range map[string]string{"Resuming from checkpoint (created by agent-a)": first,
		"\n- `pages/2`: changed\n":             rest,
		"\nPartial work: nothing is written\n": rest} {
		if !strings.Contains(in, text) {
			t.Errorf("%q is not in\n%s", text, prompt)
		}
	}
	b := w.command(agentB)
	b.Stdin = strings.NewReader(prompt)
	if out, err := b.CombinedOutput(); err != nil {
		t.Fatalf("agent B: %v\n%s", err, out)
	}
	if got := w.read("work.log"); got != "agent-a pages/1\nagent-a pages/2\nagent-a pages/3\nagent-b pages/4\n"+
		"agent-b pages/5\nagent-b pages/6\n" {
		t.Errorf("what was done:\n%s", got)
	}
	if out, _, status := w.try("perdure handoff show"); status != 4 ||
		strings.Contains(w.read("builder-state.json"), "completedSteps") {
		t.Errorf("after the end: exit status %d, %s", status, out)
	}
}

// successors claims the work by two agents at once and returns the prompt of the
// one that got it.
func (w *workplace) successors() string {
	t := w.t
	t.Helper()
	var cmds []*exec.Cmd
	var outs []*strings.Builder
	for _, name := range []string{"agent-b", "agent-c"} {
		cmd, out := w.command("perdure handoff resume --agent "+name), &strings.Builder{}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	var statuses []int
	prompt := ""
	for i, cmd := range cmds {
		_ = cmd.Wait() // its status tells
		statuses = append(statuses, cmd.ProcessState.ExitCode())
		if statuses[i] == 0 {
			prompt = outs[i].String()
		}
	}
	if slices.Sort(statuses); !slices.Equal(statuses, []int{0, 5}) {
		t.Fatalf("two successors at once end with %d, want one refused with 5", statuses)
	}
	return prompt
}

// leftovers are the files that a killed writer left next to the file.
func (w *workplace) leftovers() []string {
	w.t.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".builder-state") || filepath.Ext(e.Name()) == ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}
