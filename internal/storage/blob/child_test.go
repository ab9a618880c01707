package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/perdure/perdure/internal/storage/blob"
)

// childPuts is how many blobs the role "put" writes.
const childPuts = 5

// childContent is the i-th of them: the last is the first again.
func childContent(i int) string {
	return strings.Repeat(fmt.Sprintf("content %d\n", i%(childPuts-1)), 20_000)
}

// playChild runs a child process of a test.
func playChild(role, dir string) error {
	switch role {
	case "put":
		return putAndAcknowledge(dir)
	case "fill":
		return fill(dir)
	default:
		return fmt.Errorf("no role %q", role)
	}
}

// putAndAcknowledge prints each durable blob on standard output with one write.
func putAndAcknowledge(dir string) error {
	s, err := blob.New(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for i := range childPuts {
		ref, err := s.Put(context.Background(), strings.NewReader(childContent(i)))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(os.Stdout, "ACK %s %d\n", ref.Hash, ref.Size); err != nil {
			return err
		}
	}
	return nil
}

// fill puts blobs of 300 KB on a disk of 1 MiB until one fails, prints the error and
// checks that the others are complete and no temporary file is left.
func fill(dir string) error {
	dir, err := mountSmallDisk(dir)
	if err != nil {
		fmt.Fprintf(os.Stdout, "skip: %v\n", err)
		return nil
	}
	s, err := blob.New(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	var putErr error
	var refs []blob.Ref
	for i := 0; putErr == nil; i++ {
		var ref blob.Ref
		content := bytes.Repeat([]byte{byte(i)}, 300_000)
		if ref, putErr = s.Put(context.Background(), bytes.NewReader(content)); putErr == nil {
			refs = append(refs, ref)
		}
	}
	for _, ref := range refs {
		if err := s.Verify(context.Background(), ref.Hash); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(dir + "/tmp")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "full: after %d, left %d: %v\n", len(refs), len(left), putErr)
	if err := makeReadOnly(dir); err != nil {
		return err
	}
	_, putErr = s.Put(context.Background(), strings.NewReader("x"))
	fmt.Fprintf(os.Stdout, "read-only: %v\n", putErr)
	return s.Verify(context.Background(), refs[0].Hash)
}

// runChild runs this binary in a role and returns its output.
func runChild(cmd *exec.Cmd, role, dir string, env ...string) (string, error) {
	cmd.Env = append(os.Environ(), "PERDURE_TEST_CHILD="+role, "PERDURE_TEST_DIR="+dir)
	cmd.Env = append(cmd.Env, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Writer(&errOut)
	err := cmd.Run()
	if err != nil && errOut.Len() > 0 {
		err = errors.Join(err, errors.New(errOut.String()))
	}
	return out.String(), err
}
