package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
)

// caseRun is what one command of a case printed, with its exit status.
type caseRun struct {
	stdout, stderr string
	status         int
}

// runCase runs the program in a folder, without a terminal.
func runCase(t *testing.T, dir string, args ...string) caseRun {
	t.Helper()
	return runCaseIn(t, dir, []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k"}, args...)
}

// runCaseIn is runCase with variables of the environment in addition to those of the test.
func runCaseIn(t *testing.T, dir string, env []string, args ...string) caseRun {
	t.Helper()
	program, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return caseRun{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
}

// serveCase starts a server that answers with a file below testdata/cases: a .txt is the text of
// a reply, in which NUMBER counts the requests; any other file is a raw answer.
func serveCase(t *testing.T, name string) *replyserver.Server {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return replyserver.Start(t, func(r replyserver.Request) []byte {
		if !strings.HasSuffix(name, ".txt") {
			return data
		}
		return replyserver.Chat(strings.ReplaceAll(string(data), "NUMBER", strconv.Itoa(r.Number)))
	})
}

// TestAnswerOfARawServer proves that a case reaches the program over a real connection.
func TestAnswerOfARawServer(t *testing.T) {
	t.Parallel()
	server := replyserver.Start(t, func(replyserver.Request) []byte { return replyserver.Chat("The answer is 42.") })
	run := runCase(t, t.TempDir(), "run", "number?", "--model", "openai:f", "--base-url", server.URL)
	if run.status != 0 || !strings.Contains(run.stdout, "The answer is 42.") {
		t.Errorf("status %d, output %q, errors %q", run.status, run.stdout, run.stderr)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
}
