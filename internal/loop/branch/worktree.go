package branch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Worktree is a worktree of a repository.
type Worktree struct {
	// Commit is the commit that its files are from.
	Commit string
	// Uncommitted counts the files that have changes in the folder of the user, which the
	// worktree does not have; folders that git does not track count once.
	Uncommitted int
}

// CanAddWorktree returns an error if no worktree can be made, because there is no commit.
func (r *Repository) CanAddWorktree(ctx context.Context) error {
	_, err := r.headCommit(ctx)
	return err
}

// Within returns the path of the workspace in a worktree at dir.
func (r *Repository) Within(dir string) string {
	return filepath.Join(dir, filepath.FromSlash(r.prefix))
}

// AddWorktree makes a worktree at dir with the files of HEAD and without a branch. Whatever is
// at dir is removed: the worktree of an earlier call that was interrupted. Neither hooks nor
// filters are run, so files of filters such as Git LFS have the content that git stores.
// Submodules are empty folders.
func (r *Repository) AddWorktree(ctx context.Context, dir string) (w Worktree, err error) {
	if w.Commit, err = r.headCommit(ctx); err != nil {
		return w, err
	}
	status, err := r.run(ctx, nil, "status", "--porcelain", "-z", "--no-renames")
	if err != nil {
		return w, err
	}
	w.Uncommitted = strings.Count(status, "\x00")
	if err := os.RemoveAll(dir); err != nil {
		return w, err
	}
	// Given twice, the flag also replaces what git knows of a worktree that it was making.
	_, err = r.worktrees(ctx, "add", "--force", "--force", "--detach", dir, w.Commit)
	return w, err
}

// maxWait bounds the waits for another process that makes a worktree.
const maxWait = time.Second

// worktrees runs git worktree. While another process makes a worktree of the repository, git can
// fail because a file of that one is still empty; the command is repeated then.
func (r *Repository) worktrees(ctx context.Context, args ...string) (string, error) {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		out, err := r.run(ctx, nil, append([]string{"worktree"}, args...)...)
		if err == nil || wait > maxWait || !strings.Contains(err.Error(), "/commondir") {
			return out, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (r *Repository) headCommit(ctx context.Context) (string, error) {
	head, err := r.commitAt(ctx, "HEAD")
	if err == nil && head == "" {
		return "", &Error{Msg: "the repository has no commit that a worktree could have the files of",
			Hint: "make a commit first, or leave out --worktree"}
	}
	return head, err
}
