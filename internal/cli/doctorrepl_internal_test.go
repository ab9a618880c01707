package cli

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// TestDescribeRepl: the layers and what was tried are listed, with a warning where it was not tried
// on the system.
func TestDescribeRepl(t *testing.T) {
	t.Parallel()
	got := describeRepl("python3", []string{sandbox.LayerLandlock, sandbox.LayerSeccomp},
		[]string{"fork", "run a program"})
	if want := "python3, confined by Landlock, seccomp\nchecked: it cannot fork, run a program"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = describeRepl("python3", []string{sandbox.LayerSandboxExec}, nil)
	if !strings.Contains(got, "confined by sandbox-exec") || !strings.Contains(got, "\nexperimental: ") {
		t.Errorf("on macOS: %q", got)
	}
}
