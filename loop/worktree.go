package loop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/branch"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
)

// planWorktree makes a configuration one of a loop in a worktree. The worktree is made by the
// first step of the loop, so that a crash leaves no worktree without a loop.
func (e *Engine) planWorktree(ctx context.Context, cfg *config.Config) error {
	const op = "plan worktree"
	switch {
	case cfg.WorktreeOf != "":
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: "worktree_of is given, must be empty in a request"}
	case e.cfg.Worktrees == "":
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: "there is no folder for worktrees",
			Hint: "set HOME or XDG_DATA_HOME to an absolute path"}
	}
	repo, err := branch.Open(ctx, branch.Config{Root: cfg.Workspace, Environ: os.Environ()})
	if err != nil {
		return unusable(err)
	}
	if err := os.MkdirAll(e.cfg.Worktrees, 0o700); err != nil {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: op,
			Msg:  "the folder for worktrees cannot be made: " + err.Error(),
			Hint: "set XDG_DATA_HOME to a folder that you can write to"}
	}
	in, err := filepath.EvalSymlinks(e.cfg.Worktrees)
	if err != nil {
		return err
	}
	var unique [4]byte
	_, _ = rand.Read(unique[:]) // never fails
	dir := filepath.Join(in, Slug(cfg.Task)+"-"+hex.EncodeToString(unique[:]))
	cfg.WorktreeOf, cfg.Workspace, cfg.Commit = cfg.Workspace, repo.Within(dir), true
	if cfg.Given != nil { // so that the setting does not end the commits when the loop is resumed
		cfg.Given = append(cfg.Given, "commit")
	}
	return nil
}

// worktree returns the folder of a loop's worktree, which is in the folder for worktrees.
func (e *Engine) worktree(cfg *config.Config) (string, error) {
	in, err := filepath.EvalSymlinks(e.cfg.Worktrees)
	if err != nil {
		return "", err
	}
	name, inside := strings.CutPrefix(filepath.Clean(cfg.Workspace), in+string(filepath.Separator))
	name, _, _ = strings.Cut(name, string(filepath.Separator))
	if !inside || name == "" {
		return "", &branch.Error{Msg: "the workspace " + cfg.Workspace + " is not in the folder for worktrees, " + in}
	}
	return filepath.Join(in, name), nil
}

// withWorktree names in the error of a worktree that was removed the command that makes it again.
func (e *Engine) withWorktree(err error, tree *perdure.Tree, cfg *config.Config) error {
	fault, ok := errors.AsType[*workspace.Error](err)
	if !ok || cfg.WorktreeOf == "" || !errors.Is(err, workspace.ErrGone) {
		return err
	}
	dir, unknown := e.worktree(cfg)
	if unknown != nil {
		return err
	}
	again := *fault
	again.Hint = fmt.Sprintf("`git -C %q worktree add --force --detach %q %s` makes it again, without ignored files",
		cfg.WorktreeOf, dir, branch.Name(ID(tree)))
	return refusal(&again)
}

// makeWorktree makes the worktree of the loop, and copies the ignored files of the user's
// folder there, without which most checks fail: installed dependencies, local settings.
func makeWorktree(ctx context.Context, r *run) (string, error) {
	data, err := r.addWorktree(ctx)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		hint := ""
		if problem, ok := errors.AsType[*branch.Error](err); ok && problem.Hint != "" {
			hint = " (" + problem.Hint + ")"
		}
		r.pause("the worktree was not made: %s%s; `perdure loop resume %[3]s` tries again, `perdure loop abort %[3]s` "+
			"ends the loop", err, hint, ID(&r.l.Tree))
		return stepWorktree, nil
	}
	r.note(EventWorktree, data)
	r.openFiles()
	return stepBegin, r.fault
}

func (r *run) addWorktree(ctx context.Context) (map[string]any, error) {
	dir, err := r.e.worktree(&r.cfg)
	if err != nil {
		return nil, err
	}
	repo, err := branch.Open(ctx, branch.Config{Root: r.cfg.WorktreeOf, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	made, err := repo.AddWorktree(ctx, dir)
	if err == nil { // git may not know the folder yet
		err = os.MkdirAll(r.cfg.Workspace, 0o700)
	}
	if err != nil {
		return nil, err
	}
	failpoint.Hit("loop.worktree.copy")
	r.state.Worktree = dir
	files, bytes, err := r.bringIgnored(ctx)
	return map[string]any{"path": r.cfg.Workspace, "folder": r.cfg.WorktreeOf, "commit": made.Commit,
		"uncommitted": made.Uncommitted, "ignored_files": files, "ignored_bytes": bytes}, err
}

// bringIgnored copies the ignored files of the user's folder into the workspace.
func (r *run) bringIgnored(ctx context.Context) (files int, bytes int64, err error) {
	scratch, err := os.MkdirTemp(r.e.dir(&r.l.Tree), "origin-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	origin, err := workspace.Open(workspace.Config{Root: r.cfg.WorktreeOf, Dir: scratch, Logger: r.e.cfg.Logger})
	if err != nil {
		return 0, 0, err
	}
	list, err := origin.Excluded(ctx)
	if err != nil {
		return 0, 0, err
	}
	bytes, err = cleancheck.Bring(ctx, origin.Root(), r.cfg.Workspace, list)
	return len(list), bytes, err
}
