// Package preprocess turns files into text with commands that the user chose for their names,
// such as `pdftotext - -` for *.pdf.
package preprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model/command"
)

const (
	// Timeout is the time that a command has for a file.
	Timeout = 5 * time.Minute
	// MaxBytes is the size of a command's output.
	MaxBytes = 1 << 30

	maxErrorBytes = 4 << 10
	grace         = 500 * time.Millisecond
)

// FileVariable is the environment variable with the path of the file.
const FileVariable = "PERDURE_FILE"

// Rule is a command for files with certain names.
type Rule struct {
	// Pattern is a glob for the name of a file, or for its path if it has a slash.
	Pattern string
	// Command is split into words as a shell does, without a shell. A word {} is the path of the
	// file.
	Command string
	// Timeout and MaxBytes are other limits than those of this package; 0 stands for these.
	Timeout  time.Duration
	MaxBytes int64
	words    []string
}

// Rules are looked up in their order.
type Rules []Rule

// Parse parses PATTERN=COMMAND.
func Parse(text string) (Rule, error) {
	pattern, line, ok := strings.Cut(text, "=")
	pattern, line = strings.TrimSpace(pattern), strings.TrimSpace(line)
	switch {
	case !ok || pattern == "" || line == "":
		return Rule{}, errors.New("it is not PATTERN=COMMAND")
	case !doublestar.ValidatePattern(pattern):
		return Rule{}, fmt.Errorf("the pattern %q is malformed", pattern)
	}
	words, err := command.Split(line)
	if err != nil {
		return Rule{}, fmt.Errorf("the command %q: %w", line, err)
	}
	return Rule{Pattern: pattern, Command: line, words: words}, nil
}

// ParseAll parses rules, one a line. Empty lines are left out.
func ParseAll(text string) (Rules, error) {
	var rules Rules
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		rule, err := Parse(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// Find returns the first rule for a file.
func (r Rules) Find(name string) (Rule, bool) {
	i := slices.IndexFunc(r, func(rule Rule) bool {
		if strings.Contains(rule.Pattern, "/") {
			return doublestar.MatchUnvalidated(rule.Pattern, name)
		}
		return doublestar.MatchUnvalidated(rule.Pattern, path.Base(name))
	})
	if i < 0 {
		return Rule{}, false
	}
	return r[i], true
}

// Error is the error of a command.
type Error struct {
	Command string
	Err     error
	Stderr  string
	missing bool
}

// Error returns what happened and the last line of the command's standard error.
func (e *Error) Error() string {
	text := e.Err.Error()
	if last := clip.LastLine(e.Stderr); last != "" {
		text += ": " + clip.Runes(last, 200)
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what the user can do.
func (e *Error) Hint() string {
	if e.missing {
		return "check the spelling, that the program is installed, and PATH"
	}
	return "run the command by itself with the file as its standard input"
}

// Run is a running command; its output is read from it.
type Run struct {
	*io.PipeReader
	stop context.CancelFunc
	done chan struct{}
}

// Start starts the command with a file on its standard input. Its error, an [*Error], comes with
// the end of the output.
func (r Rule) Start(ctx context.Context, name string, file *os.File) *Run {
	timeout, most := cmp.Or(r.Timeout, Timeout), cmp.Or(r.MaxBytes, MaxBytes)
	ctx, stop := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it ran longer than %s", timeout))
	out, in := io.Pipe()
	run := &Run{out, stop, make(chan struct{})}
	words := slices.Clone(r.words)
	for i, w := range words {
		if w == "{}" {
			words[i] = name
		}
	}
	go func() { // ends with the command, which Close stops
		defer close(run.done)
		stdout, stderr := &limited{w: in, most: most}, &clip.Tail{Limit: maxErrorBytes}
		err := guard.Run(ctx, guard.Config{Path: words[0], Args: words[1:], Stdin: file, Stdout: stdout,
			Stderr: stderr, Env: append(os.Environ(), FileVariable+"="+name), Grace: grace})
		if err != nil {
			switch {
			case stdout.err != nil: // the command itself ends because nothing reads it any more
				err = stdout.err
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			}
			err = &Error{Command: r.Command, Err: err, Stderr: stderr.String(), missing: guard.Missing(err)}
		}
		_ = in.CloseWithError(err)
	}()
	return run
}

// Close stops the command and waits for its end.
func (r *Run) Close() error {
	r.stop()
	err := r.PipeReader.Close()
	<-r.done
	return err
}

// limited limits the output.
type limited struct {
	w       io.Writer
	n, most int64
	err     error // set once the limit is passed
}

// Write writes up to the limit.
func (l *limited) Write(p []byte) (int, error) {
	if l.n += int64(len(p)); l.n > l.most {
		l.err = fmt.Errorf("it wrote more than the limit of %d bytes", l.most)
		return 0, l.err
	}
	return l.w.Write(p)
}
