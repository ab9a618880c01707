package e2e

import (
	"os"
	"os/exec"
	"testing"

	allowlist "github.com/perdure/perdure/internal/process/environ"
)

// TestDocsReadmeLoopByHand: without --unattended, the loop of README.md asks, and ends after the answer that
// it names.
func TestDocsReadmeLoopByHand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/slug"
	if err := os.CopyFS(dir, os.DirFS("../examples/loop")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `perdure loop run "Make the tests pass" --until "go test ./..." `+
		`--agent "exec:sh agent.sh" --env GOCACHE`)
	cmd.Dir, cmd.Env = dir, append(allowlist.Base(os.Environ(), nil), "PATH="+pathWithProgram(t))
	p := onTerminal(t, cmd)
	p.until("answer: ")
	p.types("reject")
	shown, status := p.ends()
	wantSaid(t, shown, status, 0, "completed: the check passes after iteration 2", "1 changed file: slug.go")
}
