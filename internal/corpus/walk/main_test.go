package walk_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/process/guard"
)

func TestMain(m *testing.M) {
	guard.Enter()
	goleak.VerifyTestMain(m)
}
