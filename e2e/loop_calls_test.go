package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/loop/state"
)

// TestLoopKilledWhileAHookAsks: after a kill between recording a call and answering it,
// the call is not permitted; the resumed loop has it once.
func TestLoopKilledWhileAHookAsks(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, script := t.TempDir(), t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	w.path = bin + string(os.PathListSeparator) + w.path
	for name, text := range map[string]string{
		"1.jsonl": `{"tool":"Bash","input":{"command":"touch made"}}` + "\n" +
			`{"tool":"Bash","input":{"command":"rm -rf src"}}` + "\n",
		"2.jsonl": `{"tool":"Bash","input":{"command":"git clean -fd"}}` + "\n" +
			`{"tool":"Bash","input":{"command":"echo pass > tests/b"}}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(script, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.write("check.sh", loopCheck)
	w.write("tests/b", "fail\n")
	env := []string{claudeVar + "=" + script, "TMPDIR=" + t.TempDir()}
	const run = `perdure loop run "Make the tests pass" --until "sh check.sh" --agent claude --unattended`
	if out, errs, status := w.try(run, append(env, "PERDURE_FAILPOINT=toolcall.appended:2")...); status != -1 &&
		status != 128+9 {
		t.Fatalf("it was not killed, it ended with %d: %s%s", status, out, errs)
	}
	if w.read("src/App.tsx") != "app\n" {
		t.Error("the call was made before it was answered")
	}
	w.sh("perdure loop resume", env...)
	if w.read("tests/b") != "pass\n" || w.read("src/App.tsx") != "app\n" {
		t.Errorf("tests/b holds %q", w.read("tests/b"))
	}
	_, _, list := w.completedLoop(1)
	var out state.Outcome
	if err := json.Unmarshal(list[0].Data, &out); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, k := range out.Risky {
		kept = append(kept, k.Target+" "+string(k.Answer))
	}
	if strings.Join(kept, ", ") != "src warn, git clean -fd block" || out.Denied != 1 {
		t.Errorf("kept: %q, %d denied", kept, out.Denied)
	}
}
