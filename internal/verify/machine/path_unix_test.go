//go:build unix

package machine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/verify/machine"
)

// TestPipeAsProgram: a pipe on PATH is not opened, which would take forever, and counts as
// another program.
func TestPipeAsProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	early, late := filepath.Join(dir, "early"), filepath.Join(dir, "late")
	err := errors.Join(os.Mkdir(early, 0o700), os.Mkdir(late, 0o700),
		os.WriteFile(filepath.Join(late, "tool"), nil, 0o700)) //nolint:gosec // a program
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + early + ":" + late}
	tools, err := machine.Find(t.Context(), env, "", []string{"tool"})
	if err != nil || len(tools.Tools) != 1 {
		t.Fatal(tools, err)
	}
	if err := syscall.Mkfifo(filepath.Join(early, "tool"), 0o700); err != nil {
		t.Fatal(err)
	}
	if replaced, err := tools.Replaced(t.Context(), ""); err != nil || len(replaced) != 1 {
		t.Errorf("%v, %v", replaced, err)
	}
}

// TestFindStops: reading a program ends with the context.
func TestFindStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := machine.Identify(ctx, "tool", filepath.Join(dir, "tool")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
