package python_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

// roleVar has the test binary act as a program on a machine without namespaces.
const roleVar = "PYTHON_TEST_ROLE"

// withoutNamespaces starts a session where no sandbox can be made, and prints what came of it.
func withoutNamespaces(allowed bool) string {
	var e python.Engine
	s, err := e.Start(context.Background(), python.Config{Unsandboxed: allowed})
	if f, ok := errors.AsType[*engine.Error](err); ok {
		return f.Kind + ": " + f.Hint
	}
	if err != nil {
		return err.Error()
	}
	ev, err := s.Exec(context.Background(), engine.Block{Code: "print(6 * 7)"})
	if err = errors.Join(err, s.Close()); err != nil {
		return err.Error()
	}
	return ev.Done.Output
}

// TestUnsandboxed: where no sandbox can be made, code is refused, unless it is allowed without.
func TestUnsandboxed(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can forbid namespaces")
	}
	for role, want := range map[string]string{"refused": "unsandboxed: run it on Linux", "allowed": "42"} {
		// In a namespace whose users can make no further ones.
		cmd := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "sh", "-c",
			"echo 0 > /proc/sys/user/max_user_namespaces && exec "+os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"="+role)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %s, %v", role, out, err)
		}
	}
}
