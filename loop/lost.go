package loop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/git"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
)

// copyDir returns the folder outside of the workspace for copies of the loop's files, "" if there is
// none.
func (e *Engine) copyDir(tree *perdure.Tree) string {
	if e.cfg.Copies == "" {
		return ""
	}
	return filepath.Join(e.cfg.Copies, ID(tree))
}

// snapshotCopies returns the folder for copies of the loop's snapshots, "" if there is none.
func (r *run) snapshotCopies() string {
	if dir := r.e.copyDir(&r.l.Tree); dir != "" {
		return filepath.Join(dir, snapshotsName)
	}
	return ""
}

// Names of folders in the folder of a loop: snapshots, and results of commands.
const (
	snapshotsName = "snapshots"
	tempName      = "tmp"
)

// loopFile returns how a file in the folder of a loop is copied. Snapshots are copied when they are
// taken.
func loopFile(rel string, folder bool) copies.Class {
	if folder || strings.Contains(rel, "/") {
		return copies.Skip
	}
	switch path.Ext(rel) {
	case ".jsonl", ".json", ".md":
		return copies.Changing
	}
	return copies.Skip
}

// keepCopies makes the copies outside of the workspace current, before a program starts that can
// remove the folder of the store. A loop whose copies cannot be written goes on, with a warning.
func (r *run) keepCopies(ctx context.Context) {
	err := r.e.cfg.Store.KeepCopy(ctx)
	if to := r.e.copyDir(&r.l.Tree); to != "" {
		err = errors.Join(err, copies.Fill(r.e.dir(&r.l.Tree), to, loopFile))
	}
	if err != nil && ctx.Err() == nil {
		r.notCopied(err)
	}
}

// notCopied warns once that a copy cannot be written.
func (r *run) notCopied(err error) {
	if r.uncopied {
		return
	}
	r.uncopied = true
	r.warn("the copy of the loop's data outside of the workspace is not current, so that removing %s would lose it: %s",
		filepath.Dir(r.e.cfg.Dir), err)
}

// checkStore puts back the files of the store and of the loop that another program removed, and reports
// whether some were. Without copies outside of the workspace it fails, and the loop ends.
func (r *run) checkStore(ctx context.Context) (removed bool, err error) {
	putBacks, err := r.e.cfg.Store.CheckFiles(ctx)
	if err != nil {
		return true, err
	}
	removed = r.home != nil && putBacks != r.putBacks // at the first call they were not removed under this run
	r.putBacks = putBacks
	dir := r.e.dir(&r.l.Tree)
	now, err := os.Stat(dir)
	if r.home != nil && err == nil && os.SameFile(r.home, now) {
		return removed, nil
	}
	if r.home != nil {
		removed = true
		if _, err := os.Stat(filepath.Dir(filepath.Dir(r.e.cfg.Dir))); err != nil {
			return true, err
		}
	}
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return removed, err
	}
	if from := r.e.copyDir(&r.l.Tree); removed && from != "" {
		if err := copies.Fill(from, dir, loopFile); err != nil {
			return true, err
		}
	}
	r.home, err = os.Stat(dir)
	return removed, err
}

// afterProgram puts back what a program removed: the files of the store, and, if it removed these, the
// untracked files of a snapshot. A program that cleans the workspace, such as git clean, removes both;
// nothing else has the untracked files.
func (r *run) afterProgram(ctx context.Context, who string, before workspace.ID) error {
	removed, err := r.checkStore(ctx)
	if err != nil || !removed {
		return err
	}
	if before == "" || r.fault != nil {
		r.warn("%s removed files of %s; they were put back", who, filepath.Dir(r.e.cfg.Dir))
		return nil
	}
	lost, err := r.untracked(ctx, before)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		if _, err := r.files.RestoreFiles(ctx, before, lost); err != nil {
			return refusal(err)
		}
	}
	what := "no other files"
	if len(lost) > 0 {
		what = human.Count(int64(len(lost)), "untracked file") + " (" + few(lost) + ")"
	}
	r.warn("%s removed files of %s and %s, such as `git clean -fdx` does; they were put back", who,
		filepath.Dir(r.e.cfg.Dir), what)
	return nil
}

// snapshotChecked returns the snapshot of the files on which the current step runs the check; "" if it runs
// none.
func (r *run) snapshotChecked(ctx context.Context) workspace.ID {
	switch r.loop.Step {
	case stepBaseline:
		return r.state.Baseline
	case stepMeasure, stepComplete:
		return r.state.Run.After
	case stepVerify:
		if best, err := r.outcome(ctx, r.state.Selected); err == nil {
			return best.After
		}
	}
	return ""
}

// untracked returns the files of a snapshot that are missing now and that git does not track.
func (r *run) untracked(ctx context.Context, before workspace.ID) ([]string, error) {
	changes, err := r.files.DiffNow(ctx, before)
	if err != nil {
		return nil, refusal(err)
	}
	tracked := r.tracked(ctx)
	var lost []string
	for _, c := range changes {
		if c.Kind == workspace.Deleted && c.Old.Kind != workspace.KindFolder && !tracked[c.Path] {
			lost = append(lost, c.Path)
		}
	}
	return lost, nil
}

// tracked returns the paths that the index or the last commit has; none without a repository.
func (r *run) tracked(ctx context.Context) map[string]bool {
	set := make(map[string]bool)
	q := git.Query{Dir: r.files.Root(), Environ: os.Environ(), Own: true}
	for _, args := range [][]string{{"ls-files", "-z", "--cached"}, {"ls-tree", "-r", "-z", "--name-only", "HEAD"}} {
		out, _ := git.Command(ctx, q, args...).Output() // without a commit there are none
		for name := range bytes.SplitSeq(out, []byte{0}) {
			set[string(name)] = true
		}
	}
	return set
}
