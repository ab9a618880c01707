package perdure_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testenv"
)

// The test binary is also the other processes that tests need: a variable of
// the environment names the role, others the store.
const (
	roleVariable = "PERDURE_TEST_ROLE"
	dirVariable  = "PERDURE_TEST_DIR"
	dsnVariable  = "PERDURE_TEST_DSN"
)

// givenEnv is the environment that the tests were started with, for Go commands that need modules.
var givenEnv = sync.OnceValue(os.Environ)

func TestMain(m *testing.M) {
	_ = givenEnv()
	testenv.Set()
	role := os.Getenv(roleVariable)
	if role == "" {
		effort.Parallel(6)
		os.Exit(m.Run())
	}
	cfg := perdure.Config{Dir: os.Getenv(dirVariable), DSN: os.Getenv(dsnVariable)}
	if err := playRole(context.Background(), role, cfg); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// another is a process of this test binary in a role.
func another(t *testing.T, role string, cfg perdure.Config) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+cfg.Dir, dsnVariable+"="+cfg.DSN)
	cmd.Stderr = os.Stderr
	return cmd
}

func playRole(ctx context.Context, role string, cfg perdure.Config) (err error) {
	s, err := perdure.Open(ctx, cfg)
	if role == "open" { // tells how it went
		if err == nil {
			_, err = s.CreateTree(ctx, perdure.TreeSpec{Kind: "run"})
		}
		fmt.Fprintf(os.Stdout, "%s|%s|%v\n", perdure.CodeOf(err), perdure.HintOf(err), err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	switch role {
	case "write":
		return writeUntilTold(ctx, s)
	case "hold":
		return holdLease(ctx, s)
	default:
		return fmt.Errorf("there is no role %q", role)
	}
}

// treesPerWriter is how many trees the role "write" creates.
const treesPerWriter = 150

// writeUntilTold begins to write when its standard input ends, so that several
// processes begin together.
func writeUntilTold(ctx context.Context, s *perdure.Store) error {
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for range treesPerWriter {
		if _, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Owner: ss}); err != nil {
			return err
		}
		leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 1})
		if err != nil {
			return err
		}
		for _, l := range leases {
			if err := l.Complete(ctx, perdure.Result{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdLease claims a task, tells so, and never lets go of it.
func holdLease(ctx context.Context, s *perdure.Store) error {
	ss, err := s.OpenSession(ctx, "test")
	if err != nil {
		return err
	}
	leases, err := ss.Claim(ctx, perdure.ClaimRequest{Max: 1})
	if err != nil || len(leases) != 1 {
		return fmt.Errorf("claimed %d tasks: %w", len(leases), err)
	}
	fmt.Fprintln(os.Stdout, "held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
