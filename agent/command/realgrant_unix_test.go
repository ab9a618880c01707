//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
)

// shell is the call of a client's tool that runs a command line.
func shell(preset, line string) reply {
	switch preset {
	case "claude":
		return reply{Tool: "Bash", Input: object{"command": line, "description": "run it"}}
	case "gemini":
		return reply{Tool: "run_shell_command", Input: object{"command": line, "description": "run it"}}
	case "codex":
		return reply{Tool: "exec_command", Input: object{"cmd": line}}
	}
	return reply{Tool: "bash", Input: object{"command": line, "description": "run it"}}
}

// TestRealGrants: a client runs the commands of its rules, also with further arguments,
// and no others that a line has in addition; what it refused is reported as denied.
func TestRealGrants(t *testing.T) {
	t.Parallel()
	rules := []agent.CommandRule{{Line: "./mark yes", More: true}, {Line: "./mark exactly 'this one'"}}
	allowed := []string{"./mark yes", "./mark yes a1 'b c'", "./mark yes a2 && ./mark yes a3", "./mark exactly 'this one'",
		"./mark yes > /dev/null 2>&1"}
	denied := []string{"./mark no1", "./mark yesno2", "./mark yes && ./mark no3", "./mark yes; ./mark no4",
		"./mark yes | ./mark no5", "./mark yes || ./mark no6", "./mark yes & ./mark no7", "./mark yes $(./mark no8)",
		"./mark yes `./mark no9`", "./mark yes \"$(./mark no10)\"", "./mark yes\n./mark no11", "(./mark yes; ./mark no12)",
		"./mark yes <(./mark no13)", "eval ./mark no14", "sh -c './mark no15'", "X=1 ./mark no16",
		"./mark exactly 'this one' no17", "if ./mark yes; then ./mark no18; fi", "./mark yes <<EOF\n$(./mark no19)\nEOF"}
	for _, c := range clients() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			i := install(t, c)
			if c.preset == "codex" {
				t.Skip("its sandbox runs all commands")
			}
			script := "#!/bin/sh\necho \"$@\" >> \"" + i.dir + "/marks\"\ncat > /dev/null\n"
			if err := os.WriteFile(filepath.Join(i.dir, "mark"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			var replies []reply
			outside := filepath.Join(t.TempDir(), "outside")
			denied := slices.Clone(denied)
			if c.preset != "opencode" { // which does not look at redirections
				denied = append(denied, "./mark yes > "+outside, "./mark yes '2>&1' > "+outside,
					"./mark yes 2>&1 | ./mark yes >"+outside, "./mark yes \"$(./mark yes >"+outside+")\"")
			}
			for n, line := range slices.Concat(allowed, denied) {
				replies = append(replies, sized(shell(c.preset, line), 1000+n, 0, 1))
			}
			_, events, err := i.turn(t.Context(), t, agent.Turn{Commands: rules}, append(replies, reply{Text: "Done.", In: 5,
				Out: 1})...)
			if err != nil {
				t.Fatal(err)
			}
			marks, err := os.ReadFile(filepath.Join(i.dir, "marks"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"yes\n", "yes a1 b c\n", "yes a2\n", "yes a3\n", "exactly this one\n"} {
				if !strings.Contains(string(marks), want) {
					t.Errorf("not run: %q", want)
				}
			}
			if strings.Contains(string(marks), "no") {
				t.Errorf("run without permission:\n%s", marks)
			}
			if _, err := os.Stat(outside); err == nil {
				t.Error("a redirection wrote a file outside of the workspace")
			}
			i.wantStatuses(t, events, len(allowed), len(denied))
		})
	}
}

// wantStatuses wants so many completed and then so many denied calls.
func (i *installed) wantStatuses(t *testing.T, events []agent.Event, allowed, denied int) {
	t.Helper()
	n := 0
	for _, ev := range events {
		if ev.Kind != agent.EventToolResult {
			continue
		}
		want := agent.ToolCompleted
		if n >= allowed {
			want = agent.ToolDenied
		}
		if ev.Call.Status != want {
			t.Errorf("%q is %s, want %s: %s", ev.Call.Command, ev.Call.Status, want, ev.Raw)
		}
		n++
	}
	if n != allowed+denied {
		t.Errorf("%d calls were reported, want %d", n, allowed+denied)
	}
}
