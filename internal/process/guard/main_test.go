package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/process/guard"
)

// modeVar selects the role of a test binary that a test starts again.
const modeVar = "GUARD_TEST_MODE"

func TestMain(m *testing.M) {
	if os.Getenv(modeVar) == "unguarded" {
		_, err := guard.Start(context.Background(), guard.Config{Path: "true"})
		if errors.Is(err, guard.ErrNotEntered) {
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, "started without Enter:", err)
		os.Exit(1)
	}
	guard.Enter()
	if special(os.Getenv(modeVar)) {
		return
	}
	if os.Getenv(modeVar) == "parent" {
		fmt.Fprintln(os.Stderr, "parent:", beParent())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// beParent runs the script in argument 1 under a guard until it is killed. The
// guard holds file descriptor 3, and the parent closes it.
func beParent() error {
	lock := os.NewFile(3, "lock")
	p, err := guard.Start(context.Background(), guard.Config{
		Path: "sh", Args: []string{"-c", os.Args[1]}, Stdout: os.Stdout, Stderr: os.Stderr,
		Hold: []*os.File{lock}, Grace: time.Hour,
	})
	if err != nil {
		return err
	}
	return p.Wait()
}
