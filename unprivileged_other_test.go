//go:build !unix

package perdure_test

import (
	"os/exec"
	"testing"
)

func unprivileged(t *testing.T, _ *exec.Cmd) {
	t.Helper()
	t.Skip("folders are not read-only by their mode here")
}
