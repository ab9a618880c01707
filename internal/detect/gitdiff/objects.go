package gitdiff

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/detect"
)

// objects reads contents stored in git through one process.
type objects struct {
	r   *Repository
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts the process at the first read.
func (o *objects) start(ctx context.Context) error {
	if o.cmd != nil {
		return nil
	}
	cmd := o.r.command(ctx, "cat-file", "--batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	o.cmd, o.in, o.out = cmd, in, bufio.NewReaderSize(out, 64<<10)
	return nil
}

// close ends the process.
func (o *objects) close() {
	if o.cmd == nil {
		return
	}
	_ = o.in.Close()
	_, _ = io.Copy(io.Discard, o.out) // the process may be writing an answer
	_ = o.cmd.Wait()                  // all answers that count were read
	o.cmd = nil
}

// version reads the content of a file, unless it is too large.
func (o *objects) version(ctx context.Context, s *side, most int64) (detect.Version, error) {
	if s.size > most {
		return detect.Version{Path: s.path, Size: s.size}, nil
	}
	text, err := o.read(ctx, s.id)
	return detect.Version{Path: s.path, Content: unix(text), Size: s.size}, err
}

func (o *objects) read(ctx context.Context, id string) ([]byte, error) {
	if err := o.start(ctx); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(o.in, id+"\n"); err != nil {
		return nil, fmt.Errorf("write to git: %w", err)
	}
	head, err := o.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read from git: %w", err)
	}
	f := strings.Fields(head)
	if len(f) != 3 {
		return nil, fmt.Errorf("git has no object %s: %s", id, strings.TrimSpace(head))
	}
	size, err := strconv.Atoi(f[2])
	if err != nil || size < 0 {
		return nil, fmt.Errorf("git printed no size of object %s: %s", id, strings.TrimSpace(head))
	}
	text := make([]byte, size+1) // with the line end
	if _, err := io.ReadFull(o.out, text); err != nil {
		return nil, fmt.Errorf("read from git: %w", err)
	}
	return text[:size], nil
}

// maxTrusted is the size of the largest file that [Repository.ReadTrusted] reads.
const maxTrusted = 1 << 20

// ReadTrusted reads a file of the version that the user named; nil if it does not exist
// or is not a regular file.
func (r *Repository) ReadTrusted(ctx context.Context, b *Between, name string) ([]byte, error) {
	if b.First {
		return nil, nil
	}
	out, err := r.line(ctx, "ls-tree", "--full-tree", "-l", b.Trusted, "--", name)
	if err != nil || out == "" {
		return nil, err
	}
	f := strings.Fields(out)
	if len(f) < 4 || f[1] != "blob" || f[0] == modeLink {
		return nil, nil
	}
	if size, err := strconv.Atoi(f[3]); err != nil || size > maxTrusted {
		return nil, fmt.Errorf("read %s: it has %s bytes, limit %d", name, f[3], maxTrusted)
	}
	text, err := r.run(ctx, nil, "cat-file", "blob", f[2])
	var ran *Error
	if errors.As(err, &ran) {
		return nil, fmt.Errorf("read %s in %.12s: %w", name, b.Trusted, err)
	}
	return text, err
}
