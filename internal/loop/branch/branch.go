// Package branch writes the commits of a loop to a git branch of its own. It builds them
// from snapshots with an index of its own and changes nothing of the user's: no other
// branch, no HEAD, index, stash, setting or file of the working tree.
package branch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/workspace"
)

// folder is the folder of the branches of loops.
const folder = "perdure"

// Name returns the branch of a loop.
func Name(loop string) string { return folder + "/" + loop }

// Error is a problem that the user has to fix.
type Error struct {
	Msg, Hint string
	Err       error // the cause; may be nil
}

// Error returns the message with the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Position is where the branch of a loop ends.
type Position struct {
	// Branch is its name, without refs/heads/.
	Branch string `json:"name"`
	// Head is its last commit; empty if it has none, because no commit exists when the loop
	// begins and the workspace is empty.
	Head string `json:"head,omitempty"`
	// Snapshot is the snapshot with the files of Head.
	Snapshot workspace.ID `json:"snapshot,omitempty"`
	// GitDir is the repository.
	GitDir string `json:"git_dir,omitempty"`
}

// Entry is a commit to make.
type Entry struct {
	Snapshot workspace.ID
	Message  string
	// Optional leaves the commit out if it changes no file.
	Optional bool
}

// Start creates a branch at the commit of HEAD, with a further commit if the files of a
// snapshot of the workspace differ from it. It can be called again after a crash.
func (r *Repository) Start(ctx context.Context, files *workspace.Workspace, name string, first Entry) (Position,
	error) {
	p := Position{Branch: name, GitDir: r.gitDir}
	head, err := r.commitAt(ctx, "HEAD")
	if err != nil {
		return p, err
	}
	b := &build{r: r, files: files, from: head}
	if err := b.open(ctx); err != nil {
		return p, err
	}
	defer b.close()
	changes, err := b.sinceHead(ctx, head, first.Snapshot)
	if err != nil {
		return p, err
	}
	made, err := b.planned(ctx, first, changes)
	if err != nil {
		return p, err
	}
	p.Snapshot = first.Snapshot
	p.Head, err = r.advance(ctx, &p, head, made)
	return p, err
}

// Add appends commits to a branch. A branch that is not where the position says, and does
// not end with these commits from an earlier call, is not changed.
func (r *Repository) Add(ctx context.Context, files *workspace.Workspace, p Position, list []Entry) (Position, error) {
	if p.GitDir != r.gitDir {
		return p, &Error{Msg: fmt.Sprintf("the repository of the workspace is %s now, and was %s", r.gitDir, p.GitDir),
			Hint: "restore .git"}
	}
	b := &build{r: r, files: files, from: p.Head}
	if err := b.open(ctx); err != nil {
		return p, err
	}
	defer b.close()
	var made []planned
	at := p.Snapshot
	for _, e := range list {
		changes, err := b.between(ctx, at, e.Snapshot)
		if err != nil {
			return p, err
		}
		next, err := b.planned(ctx, e, changes)
		if err != nil {
			return p, err
		}
		made, at = append(made, next...), e.Snapshot
	}
	head, err := r.advance(ctx, &p, p.Head, made)
	if err == nil {
		p.Head, p.Snapshot = head, at
	}
	return p, err
}

// planned is a commit without its parent.
type planned struct{ tree, message string }

// advance adds commits to the branch, which is at a commit or already has them, and returns
// the last one. For a new branch the position has no head.
func (r *Repository) advance(ctx context.Context, p *Position, from string, list []planned) (string, error) {
	for again := range 2 { // git of a killed process may have changed the branch meanwhile
		is, err := r.branchHead(ctx, p.Branch)
		if err != nil {
			return "", err
		}
		if is != p.Head || len(list) == 0 {
			has, err := r.endsWith(ctx, is, from, list)
			if has || err != nil {
				return is, err
			}
		}
		if is != p.Head {
			return "", r.movedFrom(p, is)
		}
		if err := r.notCheckedOut(ctx, p.Branch); err != nil {
			return "", err
		}
		head := from
		for _, c := range list {
			if head, err = r.commit(ctx, c, head); err != nil {
				return "", err
			}
		}
		if head == "" { // there is nothing to commit
			return "", nil
		}
		failpoint.Hit("branch.before_ref")
		err = r.moveBranch(ctx, p, head)
		failpoint.Hit("branch.after_ref")
		if err == nil || again > 0 {
			return head, err
		}
	}
	return "", errors.New("unreachable")
}

// movedFrom returns the error for a branch that another program has changed.
func (r *Repository) movedFrom(p *Position, is string) error {
	switch {
	case is == "":
		return &Error{Msg: fmt.Sprintf("the branch %s was deleted", p.Branch),
			Hint: fmt.Sprintf("`git branch %s %s` restores it", p.Branch, p.Head)}
	case p.Head == "":
		return &Error{Msg: fmt.Sprintf("the branch %s exists already", p.Branch),
			Hint: fmt.Sprintf("`git branch -m %s NAME` renames it", p.Branch)}
	}
	return &Error{Msg: fmt.Sprintf("the branch %s was moved to %s", p.Branch, Short(is)),
		Hint: fmt.Sprintf("`git branch NAME %[1]s` keeps that, and then `git branch -f %[1]s %[2]s` moves it back", p.Branch,
			Short(p.Head))}
}

// endsWith reports whether the last commits of a branch, after a commit, are these.
func (r *Repository) endsWith(ctx context.Context, head, from string, list []planned) (bool, error) {
	for _, want := range slices.Backward(list) {
		if head == "" || head == from {
			return false, nil
		}
		c, err := r.read(ctx, head)
		if err != nil {
			return false, err
		}
		if c.tree != want.tree || strings.TrimSpace(c.message) != strings.TrimSpace(want.message) || len(c.parents) > 1 {
			return false, nil
		}
		head = strings.Join(c.parents, "")
	}
	return head == from, nil
}

// notCheckedOut returns an error if a folder has the branch checked out.
func (r *Repository) notCheckedOut(ctx context.Context, name string) error {
	out, err := r.worktrees(ctx, "list", "--porcelain")
	if err != nil {
		return err
	}
	place := ""
	for line := range strings.SplitSeq(out, "\n") {
		if p, ok := strings.CutPrefix(line, "worktree "); ok {
			place = p
		}
		if line == "branch refs/heads/"+name {
			return &Error{Msg: fmt.Sprintf("the branch %s is checked out in %s, whose files would not follow it", name, place),
				Hint: fmt.Sprintf("`git -C %s checkout --detach` frees it", filepath.ToSlash(place))}
		}
	}
	return nil
}

// Short returns the beginning of the ID of a commit, for people.
func Short(commit string) string { return commit[:min(len(commit), 10)] }
