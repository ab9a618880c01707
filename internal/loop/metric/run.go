package metric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/workspace"
)

const (
	// maxOutput is the number of bytes kept from the end of a command's output.
	maxOutput = 8 << 10
	// maxParsed is the number of output bytes searched for test results.
	maxParsed = 1 << 30
)

// Exit statuses with which a shell reports that a command cannot be run or was not found.
const (
	StatusNotRunnable = 126
	StatusNotFound    = 127
)

// Runner runs commands in a workspace.
type Runner struct {
	// Root is the workspace, Scratch a folder outside of it for the output of commands;
	// both absolute.
	Root, Scratch string
	// Env is the environment of commands; nil is that of this process.
	Env []string
	// Sandbox, if set, is what commands can reach; if none can be made, Run returns a
	// *sandbox.Error.
	Sandbox *sandbox.Config
	// Hold are files kept open until a command and all processes that it started have
	// ended.
	Hold []*os.File
}

// Printed returns the beginning of the standard output of the command.
func (r *Ran) Printed() string {
	text := make([]byte, maxOutput)
	n, err := r.Stdout.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return strings.ToValidUTF8(string(text[:n]), "\uFFFD")
}

// Run runs a command with a time limit (0 or less means none) and stores its output in
// files, the first maxParsed bytes of each. All processes that it started have ended when
// Run returns. If results are read from both streams, they are one pipe, so that lines keep
// their order; Stdout is empty then. Errors are those of the machine and of the context, and
// guard.ErrGuardLost.
func (r *Runner) Run(ctx context.Context, c *project.Command, limit time.Duration) (*Ran, error) {
	const keeping = "store output of the check"
	stdout, both, remove, err := outputs(r.Scratch)
	if err != nil {
		return nil, workspace.Wrap(keeping, r.Scratch, err)
	}
	end := clip.Tail{Limit: maxOutput}
	keptBoth, keptOut := &capped{to: both, left: maxParsed}, &capped{to: stdout, left: maxParsed}
	all := &shared{to: io.MultiWriter(&end, keptBoth)}
	ran := &Ran{Began: time.Now(), Stdout: stdout, Both: both, Close: remove}
	to := streams{io.MultiWriter(all, keptOut), all}
	if mixed(c) {
		to.out = all // the same writer, for which os/exec makes one pipe
	}
	ran.Exit, ran.TimedOut, err = r.command(ctx, c, limit, to)
	text, _ := end.End()
	ran.End = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if err == nil { // a part of the results would lead to a wrong verdict
		err = workspace.Wrap(keeping, r.Scratch, cmp.Or(keptBoth.err, keptOut.err))
	}
	if err != nil {
		remove()
		return nil, err
	}
	return ran, nil
}

// mixed reports whether results of a command are read from both streams and none from
// standard output alone. Results of cargo need the order: it prints the names of suites to
// standard error, and their tests to standard output.
func mixed(c *project.Command) bool {
	reads := func(s project.Stream) bool {
		return slices.ContainsFunc(c.Results, func(r project.Result) bool { return r.Stream == s })
	}
	return (c.Weak != "" || reads(project.Both)) && !reads(project.Stdout)
}

// outputs creates files for the output of a command.
func outputs(temp string) (stdout, both *os.File, remove func(), err error) {
	if stdout, err = os.CreateTemp(temp, "stdout-*"); err != nil {
		return nil, nil, nil, err
	}
	if both, err = os.CreateTemp(temp, "both-*"); err != nil {
		return nil, nil, nil, errors.Join(err, stdout.Close(), os.Remove(stdout.Name()))
	}
	return stdout, both, func() {
		_ = errors.Join(stdout.Close(), both.Close(), os.Remove(stdout.Name()), os.Remove(both.Name()))
	}, nil
}

// streams are the writers for the output of a command.
type streams struct{ out, errs io.Writer }

// command runs a command in the workspace with a time limit; 0 or less means none. All
// processes that it started have ended when it returns.
func (r *Runner) command(ctx context.Context, c *project.Command, limit time.Duration, to streams) (exit int,
	timedOut bool, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	dir := filepath.Join(r.Root, filepath.FromSlash(c.Dir))
	env := r.Env
	if env == nil {
		env = os.Environ()
	}
	if env, err = c.WithProbes(r.Root, slices.Concat(env, c.Env)); err != nil {
		return 0, false, err
	}
	err = guard.Run(limited, guard.Config{Path: "sh", Args: []string{"-c", c.Script}, Dir: dir, Env: env, Stdout: to.out,
		Stderr: to.errs, Hold: r.Hold, Sandbox: r.Sandbox})
	if ctx.Err() != nil {
		return 0, false, ctx.Err()
	}
	if refused, ok := errors.AsType[*sandbox.Error](err); ok {
		return 0, false, refused
	}
	var ended *guard.ExitError
	switch {
	case err == nil:
		return 0, false, nil
	case errors.Is(err, guard.ErrGuardLost):
		return 0, false, err
	case limited.Err() != nil:
		return -1, true, nil
	case errors.As(err, &ended):
		return ended.Code, false, nil
	}
	_, err = fmt.Fprintf(to.errs, "\ncommand cannot be run: %s\n", err)
	return StatusNotRunnable, false, err
}

// capped writes up to a bound and drops the rest. A failed write is kept in err and not
// reported to the writer.
type capped struct {
	to   io.Writer
	left int64
	err  error // the first one
}

// Write drops data beyond the bound, and all data after an error.
func (c *capped) Write(p []byte) (int, error) {
	n := min(int64(len(p)), c.left)
	c.left -= n
	if n > 0 && c.err == nil {
		_, c.err = c.to.Write(p[:n])
	}
	return len(p), nil
}

// shared is a writer for concurrent use.
type shared struct {
	mu sync.Mutex // guards to
	to io.Writer
}

// Write passes on one write at a time.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}
