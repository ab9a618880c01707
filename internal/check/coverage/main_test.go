package coverage_test

import (
	"os"
	"testing"

	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	testenv.Set()
	os.Exit(m.Run())
}
