package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// blobs reads files of a repository through one process of git.
type blobs struct {
	dir string
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startBlobs(ctx context.Context, dir string) (*blobs, error) {
	cmd := exec.CommandContext(ctx, "git", "cat-file", "--batch")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start git cat-file: %w", err)
	}
	return &blobs{dir, cmd, in, bufio.NewReader(out)}, nil
}

func (b *blobs) stop() {
	b.in.Close()
	_ = b.cmd.Wait() // its answers were read
}

// content returns the text of an object; nil if it is no file, is missing, or is too large.
func (b *blobs) content(object string) ([]byte, error) {
	if strings.Contains(object, "\n") { // cannot be asked for
		return nil, nil
	}
	if _, err := fmt.Fprintln(b.in, object); err != nil {
		return nil, err
	}
	head, err := b.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", object, err)
	}
	if strings.HasSuffix(head, " missing\n") { // a submodule
		return nil, nil
	}
	var id, kind string
	var size int64
	if _, err := fmt.Sscanf(head, "%s %s %d\n", &id, &kind, &size); err != nil {
		return nil, fmt.Errorf("read %s: answer %q: %w", object, head, err)
	}
	if kind != "blob" || size > maxBlob {
		_, err := io.CopyN(io.Discard, b.out, size+1)
		return nil, err
	}
	text := make([]byte, size+1)
	_, err = io.ReadFull(b.out, text)
	return text[:size], err
}
