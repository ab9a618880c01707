//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// An interrupt ends a validation that waits for the writer of a named pipe.
func TestValidatePipe(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	pipe := filepath.Join(p.dir, "events.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	r := p.start("validate", "events.jsonl")
	r.interrupt()
	r.wait(t, env.StatusInterrupted)
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // lets the reader end, which the process would not wait for
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
