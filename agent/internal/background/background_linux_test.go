package background_test

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agent/internal/background"
	"github.com/perdure/perdure/internal/process/guard"
)

// shell starts a shell that runs a command line until its input ends.
func shell(t *testing.T, line string) (release io.Closer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for guard.Shells(os.Getpid())[cmd.Process.Pid] == "" { // it is not executed yet
		runtime.Gosched()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it may be killed
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-ended
	})
	return in
}

// TestWait: commands that began in the turn are waited for, servers that were there before are not, and
// those that are still running at the limit are named.
func TestWait(t *testing.T) { //nolint:paralleltest // it looks at the children of the process
	shell(t, "cat; : server")
	commands := background.Begin(os.Getpid())
	if left := commands.Wait(t.Context(), time.Hour, func(string) { t.Error("waits for a server") }); left != "" {
		t.Errorf("left %q", left)
	}
	work := shell(t, "cat; : work")
	if got := commands.Running(); !slices.Equal(got, []string{"cat; : work"}) {
		t.Errorf("running %q", got)
	}
	left := commands.Wait(t.Context(), time.Millisecond, func(text string) {
		if !strings.Contains(text, "at most 1ms for 1 background command of the agent: cat; : work") {
			t.Errorf("tells %q", text)
		}
	})
	if left != "1 background command of the agent: cat; : work" {
		t.Errorf("left %q", left)
	}
	if left := commands.Wait(t.Context(), time.Minute, func(string) { _ = work.Close() }); left != "" {
		t.Errorf("left %q", left)
	}
}
