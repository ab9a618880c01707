//go:build !windows

package env_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// A pipe or a device that --output names is written to, and stays what it is.
func TestWriteOutputToPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := env.New(env.Process{}).WriteOutput(path, writeText("content")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Fatalf("the pipe was replaced: %v, %v", info.Mode(), err)
	}
	got := make([]byte, len("content"))
	if _, err := io.ReadFull(pipe, got); err != nil || string(got) != "content" {
		t.Errorf("read %q, %v", got, err)
	}
}

// /dev/stdout is standard output, whatever that is.
func TestWriteOutputToStandardOutput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := env.New(env.Process{Stdout: &out})
	if err := e.WriteOutput("/dev/stdout", writeText("content")); err != nil || out.String() != "content" {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

func writeText(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}
