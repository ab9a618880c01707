package gitdiff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/git"
)

// Repository is a git working tree.
type Repository struct {
	// Root is its top folder.
	Root  string
	query git.Query
}

// Open finds the working tree that contains a folder. environ is the environment of the
// process, in which a git hook receives the index to use. Errors are *perdure.Error: git
// is missing, there is no repository, or it has no working tree.
func Open(ctx context.Context, dir string, environ []string) (*Repository, error) {
	const op = "open repository"
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: "git is not installed, or not in PATH",
			Err:  err,
			Hint: "install git, or compare with a snapshot of a loop (--base loop:baseline)"}
	}
	r := &Repository{Root: dir, query: git.Query{Program: program, Dir: dir, Environ: environ}}
	inside, err := r.line(ctx, "rev-parse", "--is-inside-work-tree")
	if err == nil && inside == "true" {
		return r, r.inside(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err == nil {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op,
			Msg:  fmt.Sprintf("%q is in a bare repository or a .git folder, which has no working tree", dir),
			Hint: "run the command in a working tree or in a clone"}
	}
	hint := "run the command in a repository, or compare with a snapshot of a loop (--base loop:baseline)"
	var ran *Error
	if errors.As(err, &ran) && strings.Contains(ran.Said, "dubious ownership") {
		hint = "another user owns the folder; git config --global --add safe.directory FOLDER trusts it"
	}
	return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op,
		Msg: fmt.Sprintf("%q is not in a readable git repository: %s", dir, said(err)), Hint: hint}
}

// inside sets what the top of the working tree decides.
func (r *Repository) inside(ctx context.Context) error {
	root, err := r.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	own, err := r.line(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	r.Root = filepath.FromSlash(root)
	r.query.Dir = r.Root
	// A repository can name a folder outside of it as its working tree (core.worktree).
	if there, err := r.line(ctx, "rev-parse", "--absolute-git-dir"); err != nil || there != own {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: "open repository",
			Msg:  fmt.Sprintf("the settings of %q name the working tree %q, which is not part of the repository", own, root),
			Hint: "git config --unset core.worktree"}
	}
	if r.query.NoFilters, err = git.Filters(ctx, r.query); err != nil {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: "open repository", Msg: err.Error(), Err: err,
			Hint: "filters are programs, which a check does not run; git config --list --show-origin shows where they are set"}
	}
	return nil
}

// Error is a failed git command.
type Error struct {
	Command string
	Exit    int
	Said    string
}

// Error returns the command, its exit status and its error output.
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

// command returns a git command for the working tree, without the settings that start
// programs or write.
func (r *Repository) command(ctx context.Context, args ...string) *exec.Cmd {
	return git.Command(ctx, r.query, args...)
}

// run returns the output of a git command.
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

// line returns the output of a git command that prints one line.
func (r *Repository) line(ctx context.Context, args ...string) (string, error) {
	out, err := r.run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// object returns the ID that a name resolves to; empty if there is none.
func (r *Repository) object(ctx context.Context, name string) (string, error) {
	id, err := r.line(ctx, "rev-parse", "--verify", "--quiet", name)
	var ran *Error
	if errors.As(err, &ran) {
		return "", nil
	}
	return id, err
}
