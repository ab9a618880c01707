package branch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/git"
	"github.com/perdure/perdure/internal/text/clip"
)

// Repository is the git repository of a workspace.
type Repository struct {
	root    string // the workspace
	gitDir  string
	prefix  string // the workspace in the repository, with a slash at the end; empty for its top
	scratch string // a folder for the indexes
	query   git.Query
	author  []string // variables of the author and committer
}

// Config says where a repository is.
type Config struct {
	// Root is the workspace, Scratch a folder for temporary files, outside of snapshots. An
	// empty one allows only [Repository.Usable].
	Root, Scratch string
	// Environ is the environment of git. Git is the program; empty: "git".
	Environ []string
	Git     string
}

// Open finds the repository that contains the workspace. It starts no program of the
// repository.
func Open(ctx context.Context, cfg Config) (*Repository, error) {
	r := &Repository{root: cfg.Root, scratch: cfg.Scratch, query: git.Query{Program: cfg.Git, Dir: cfg.Root,
		Environ: cfg.Environ, Own: true}}
	const hint = "start the loop in a git repository (`git init` makes one), or without --commit and --worktree"
	if _, err := exec.LookPath(cmp.Or(cfg.Git, "git")); err != nil {
		return nil, &Error{Msg: "commits need the program git, which was not found in PATH",
			Hint: "install git, or leave out --commit"}
	}
	out, err := r.run(ctx, nil, "rev-parse", "--is-inside-work-tree", "--absolute-git-dir")
	if stopped := ctx.Err(); stopped != nil {
		return nil, stopped
	}
	inside, dir, ok := strings.Cut(strings.TrimRight(out, "\r\n"), "\n")
	if err != nil || !ok || inside != "true" {
		return nil, &Error{Msg: cfg.Root + " is not in the working tree of a git repository", Hint: hint, Err: err}
	}
	if r.gitDir, err = filepath.Abs(filepath.FromSlash(dir)); err != nil {
		return nil, err
	}
	prefix, err := r.run(ctx, nil, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	r.prefix = strings.TrimRight(prefix, "\r\n")
	if r.query.NoFilters, err = git.Filters(ctx, r.query); err != nil {
		return nil, &Error{Msg: "the repository cannot be used for commits", Err: err}
	}
	r.query.NoFilters = append(r.query.NoFilters, "-c", "core.sparseCheckout=false", "-c", "index.sparse=false",
		"-c", "core.splitIndex=false", "-c", "core.safecrlf=false", "-c", "core.untrackedCache=false",
		"-c", "core.fsync=committed,reference", "-c", "i18n.commitEncoding=UTF-8", "-c", "gc.auto=0")
	r.author = r.identity(ctx)
	return r, nil
}

// Usable returns an error if no branch of a loop can be created.
func (r *Repository) Usable(ctx context.Context) error {
	head, err := r.branchHead(ctx, folder)
	if err != nil || head == "" {
		return err
	}
	return &Error{Msg: fmt.Sprintf("the repository has a branch %s, so git cannot create %s", folder, Name("LOOP")),
		Hint: fmt.Sprintf("`git branch -m %s NAME` renames it", folder)}
}

// identity returns the variables for the user's name and address, or else for perdure.
func (r *Repository) identity(ctx context.Context) []string {
	get := func(variable, setting string) string {
		for _, v := range r.query.Environ {
			if value, ok := strings.CutPrefix(v, variable+"="); ok && value != "" {
				return value
			}
		}
		out, err := r.run(ctx, nil, "config", "--get", setting)
		if err != nil {
			return ""
		}
		return clip.OneLine(out)
	}
	name, mail := get("GIT_AUTHOR_NAME", "user.name"), get("GIT_AUTHOR_EMAIL", "user.email")
	if name == "" || mail == "" {
		name, mail = "perdure", "perdure@localhost"
	}
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mail, "GIT_COMMITTER_NAME=" + name,
		"GIT_COMMITTER_EMAIL=" + mail}
}

// command is how git is called.
type command struct {
	dir   string   // empty: the workspace
	env   []string // further variables
	input []byte
}

// run runs git and returns its output.
func (r *Repository) run(ctx context.Context, how *command, args ...string) (string, error) {
	q := r.query
	if how == nil {
		how = &command{}
	}
	q.Dir = cmp.Or(how.dir, q.Dir)
	cmd := git.Command(ctx, q, args...)
	cmd.Env = append(cmd.Env, "GIT_NO_REPLACE_OBJECTS=1")
	if r.gitDir != "" && how.dir != "" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+r.gitDir)
	}
	cmd.Env = append(cmd.Env, how.env...)
	cmd.Stdin = bytes.NewReader(how.input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if stopped := ctx.Err(); stopped != nil {
		return "", stopped
	}
	if err != nil {
		return "", &gitError{command: "git " + args[0], said: clip.Bytes(strings.TrimSpace(said.String()), 1000), err: err}
	}
	return out.String(), nil
}

// gitError is the error of a git command.
type gitError struct {
	command, said string
	err           error
}

// Error returns the command and what it printed.
func (e *gitError) Error() string {
	return e.command + ": " + cmp.Or(strings.ReplaceAll(e.said, "\n", "; "), e.err.Error())
}

// Unwrap returns how the process ended.
func (e *gitError) Unwrap() error { return e.err }

// missing reports whether a query of git found nothing.
func missing(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// commitAt returns the commit of a revision; empty if there is none.
func (r *Repository) commitAt(ctx context.Context, revision string) (string, error) {
	out, err := r.run(ctx, nil, "rev-parse", "--quiet", "--verify", revision+"^{commit}")
	if missing(err) {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// branchHead returns the commit of a branch; empty if it does not exist.
func (r *Repository) branchHead(ctx context.Context, name string) (string, error) {
	if _, err := r.run(ctx, nil, "symbolic-ref", "--quiet", "refs/heads/"+name); err == nil {
		return "", &Error{Msg: fmt.Sprintf("the branch %s is a symbolic reference to another one", name),
			Hint: fmt.Sprintf("`git symbolic-ref --delete refs/heads/%s` removes it", name)}
	} else if !missing(err) {
		return "", err
	}
	out, err := r.run(ctx, nil, "rev-parse", "--quiet", "--verify", "refs/heads/"+name)
	if missing(err) {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// moveBranch moves a branch from the position to a commit, or creates it.
func (r *Repository) moveBranch(ctx context.Context, p *Position, to string) error {
	_, err := r.run(ctx, &command{env: r.author}, "update-ref", "--no-deref", "-m", "perdure loop",
		"refs/heads/"+p.Branch, to, cmp.Or(p.Head, strings.Repeat("0", len(to))))
	return err
}

// commit writes a commit without moving a branch.
func (r *Repository) commit(ctx context.Context, c planned, parent string) (string, error) {
	args := []string{"commit-tree", c.tree}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	now := fmt.Sprintf("@%d +0000", time.Now().Unix())
	env := append([]string{"GIT_AUTHOR_DATE=" + now, "GIT_COMMITTER_DATE=" + now}, r.author...)
	out, err := r.run(ctx, &command{env: env, input: []byte(c.message)}, args...)
	return strings.TrimSpace(out), err
}

// commitText is the content of a commit.
type commitText struct {
	tree, message string
	parents       []string
}

// read reads a commit.
func (r *Repository) read(ctx context.Context, id string) (c commitText, err error) {
	out, err := r.run(ctx, nil, "cat-file", "commit", id)
	if err != nil {
		return c, err
	}
	header, message, _ := strings.Cut(out, "\n\n")
	c.message = message
	for line := range strings.SplitSeq(header, "\n") {
		switch name, value, _ := strings.Cut(line, " "); name {
		case "tree":
			c.tree = value
		case "parent":
			c.parents = append(c.parents, value)
		}
	}
	return c, nil
}

// temporary creates a folder for an index and removes those of killed processes.
func (r *Repository) temporary() (string, error) {
	const prefix = "commit-"
	old, err := filepath.Glob(filepath.Join(r.scratch, prefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range old {
		_ = os.RemoveAll(dir) // it is tried again
	}
	return os.MkdirTemp(r.scratch, prefix)
}
