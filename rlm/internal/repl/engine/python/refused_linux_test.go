package python_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf"

	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
)

// roleVar has the test binary act as a program on a machine without namespaces.
const roleVar = "PYTHON_TEST_ROLE"

// bareVar says that the tests run where the system refuses namespaces.
const bareVar = "PYTHON_TEST_BARE"

// withoutSandbox starts a session where no sandbox can be made, and prints what came of it.
func withoutSandbox(allowed bool) string {
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionErrno, Names: []string{"landlock_create_ruleset"}}}}})
	if err != nil {
		return err.Error()
	}
	var e python.Engine
	s, err := e.Start(context.Background(), python.Config{Unsandboxed: allowed})
	if f, ok := errors.AsType[*engine.Error](err); ok {
		return f.Kind + ": " + f.Hint
	}
	if err != nil {
		return err.Error()
	}
	if got := s.Sandbox(); got.Layers != nil || got.Checks != nil {
		return fmt.Sprintf("%+v", got)
	}
	ev, err := s.Exec(context.Background(), engine.Block{Code: "print(6 * 7)"})
	if err = errors.Join(err, s.Close()); err != nil {
		return err.Error()
	}
	return ev.Done.Output
}

// bare runs this test binary in a namespace whose users can make no further ones.
func bare(t *testing.T, env string, args ...string) (string, error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can forbid namespaces")
	}
	cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"--user", "--map-root-user", "sh", "-c",
		`echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"`, os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestUnsandboxed: where no sandbox can be made, code is refused, unless it is allowed without.
func TestUnsandboxed(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{"refused": "unsandboxed: run it on Linux", "allowed": "42"} {
		if out, err := bare(t, roleVar+"="+role); err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%s: %s, %v", role, out, err)
		}
	}
}

// TestWithoutNamespaces: where the system refuses namespaces, Landlock and the filter of system
// calls hold, against the same attempts.
func TestWithoutNamespaces(t *testing.T) {
	t.Parallel()
	out, err := bare(t, bareVar+"=1", "-test.run=^(TestAttemptsOfCode|TestOrdinaryCode|TestLayers)$", "-test.v")
	if err != nil || strings.Count(out, "--- PASS") < 45 || strings.Contains(out, "--- SKIP") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLayers: a session says which layers confine its code, and what its process tried.
func TestLayers(t *testing.T) {
	t.Parallel()
	want := []string{sandbox.LayerNamespaces, sandbox.LayerLandlock, sandbox.LayerSeccomp}
	if os.Getenv(bareVar) != "" {
		want = want[1:]
	}
	got := start(t, python.Config{}).Sandbox()
	if !slices.Equal(got.Layers, want) {
		t.Errorf("got %q, want %q", got.Layers, want)
	}
	for _, check := range []string{"read a file outside", "write a file outside", "signal its parent",
		"connect to the loopback interface", "connect to a socket outside"} {
		if !slices.Contains(got.Checks, check) {
			t.Errorf("the check %q is not among %q", check, got.Checks)
		}
	}
}
