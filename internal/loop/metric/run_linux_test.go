package metric_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/loop/metric"
)

// forging writes results, and leaves a process in a session of its own that replaces them for
// ever.
const forging = `echo real > results.xml
setsid sh -c 'echo $$ > pid
while :; do echo forged > new; mv new results.xml; : > forging; done' > /dev/null 2>&1 &
while [ ! -e forging ]; do :; done
`

// A process that would change the results between the check and their reading has ended when
// the check has.
func TestResultsAreNotReplacedAfterTheRun(t *testing.T) {
	t.Parallel()
	r := metric.Runner{Root: t.TempDir(), Scratch: t.TempDir()}
	ran, err := r.Run(t.Context(), &project.Command{Script: forging, Dir: "."}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ran.Close)
	text, err := os.ReadFile(filepath.Join(r.Root, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
