package gitdiff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// Repository is a work tree of git.
type Repository struct {
	// Root is its top folder.
	Root string
	git  string
	env  []string
}

// Open finds the work tree that a folder is in. environ is that of the process:
// a hook of git tells by it which index is meant. Errors are *perdure.Error: there
// is no git, no repository, or one without files.
func Open(ctx context.Context, dir string, environ []string) (*Repository, error) {
	const op = "open repository"
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: "git is not installed, or not in PATH",
			Err:  err,
			Hint: "install git; without it only a loop's own snapshots can be compared with (--base loop:baseline)"}
	}
	r := &Repository{Root: dir, git: program, env: environ}
	inside, err := r.line(ctx, "rev-parse", "--is-inside-work-tree")
	if err == nil && inside == "true" {
		r.Root, err = r.line(ctx, "rev-parse", "--show-toplevel")
		r.Root = filepath.FromSlash(r.Root)
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err == nil {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op,
			Msg:  fmt.Sprintf("%q is in a bare repository or in a .git folder, where there are no files to look at", dir),
			Hint: "change to a work tree, or clone the repository and look at the clone"}
	}
	hint := "change to the folder of a repository, or compare with a loop's own snapshot (--base loop:baseline)"
	var ran *Error
	if errors.As(err, &ran) && strings.Contains(ran.Said, "dubious ownership") {
		hint = "the folder belongs to somebody else; git config --global --add safe.directory FOLDER says that it is trusted"
	}
	return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op,
		Msg: fmt.Sprintf("%q is in no git repository that can be read: %s", dir, said(err)), Hint: hint}
}

// Error is a run of git that did not succeed.
type Error struct {
	Command string
	Exit    int
	Said    string
}

// Error tells what git said.
func (e *Error) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("git %s: exit status %d: %s", e.Command, e.Exit, e.Said), ": ")
}

func said(err error) string {
	var ran *Error
	if errors.As(err, &ran) && ran.Said != "" {
		return strings.TrimPrefix(ran.Said, "fatal: ")
	}
	return err.Error()
}

// command is a run of git in the work tree, with the settings left out that start
// programs or write.
func (r *Repository) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.git,
		append([]string{"-c", "core.fsmonitor=false", "-c", "diff.autoRefreshIndex=true"}, args...)...)
	cmd.Dir = r.Root
	cmd.Env = append(slices.Clone(r.env), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C")
	cmd.WaitDelay = time.Second
	return cmd
}

// run returns what git prints.
func (r *Repository) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := r.command(ctx, args...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if stopped := ctx.Err(); stopped != nil {
		return nil, stopped
	}
	if err == nil {
		return out, nil
	}
	const most = 2000
	text := strings.TrimSpace(strings.ToValidUTF8(problems.String(), "?"))
	failed := &Error{Command: args[0], Exit: -1, Said: text[:min(len(text), most)]}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil, fmt.Errorf("run git: %w", err)
	}
	failed.Exit = exit.ExitCode()
	return nil, failed
}

// line is run for answers of one line.
func (r *Repository) line(ctx context.Context, args ...string) (string, error) {
	out, err := r.run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// object returns the ID of what a name means; empty when there is no such thing.
func (r *Repository) object(ctx context.Context, name string) (string, error) {
	id, err := r.line(ctx, "rev-parse", "--verify", "--quiet", name)
	var ran *Error
	if errors.As(err, &ran) {
		return "", nil
	}
	return id, err
}
