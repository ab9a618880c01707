//go:build unix

package caller_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/process/caller"
)

// TestHideValue: only the values of the flag are overwritten, in memory that others may share.
func TestHideValue(t *testing.T) { //nolint:paralleltest // it replaces os.Args
	old := os.Args
	defer func() { os.Args = old }()
	os.Args = nil
	for _, arg := range []string{"perdure", "npm test", "--until", "npm test -- unit", "--held-out", "npm test",
		"--held-out=npm test", "--held-out"} {
		os.Args = append(os.Args, strings.Clone(arg))
	}
	caller.HideValue("--held-out")
	want := []string{"perdure", "npm test", "--until", "npm test -- unit", "--held-out", "********", "--held-out=********",
		"--held-out"}
	if !slices.Equal(os.Args, want) {
		t.Errorf("%q, want %q", os.Args, want)
	}
}
