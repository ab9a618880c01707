package loop_test

import (
	"os"
	"testing"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	os.Exit(m.Run())
}
