package loopimport_test

import (
	"os"
	"testing"

	"github.com/perdure/perdure/internal/process/guard"
)

func TestMain(m *testing.M) {
	guard.Enter()
	os.Exit(m.Run())
}
