package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/loop/checkfile"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
)

// excludeCheckFiles leaves the files that the check made out of the snapshots.
func (r *run) excludeCheckFiles(ctx context.Context) error {
	var data []byte
	var err error
	if r.state.CheckFiles != "" {
		if data, err = r.loadBlob(ctx, r.state.CheckFiles); err != nil {
			return err
		}
	}
	if r.checkFiles, err = checkfile.Read(data); err == nil && r.files != nil {
		r.files.Exclude(r.checkFiles)
	}
	return err
}

// saveCheckFiles stores the record of the files of the check.
func (r *run) saveCheckFiles(ctx context.Context) error {
	data, err := json.Marshal(r.checkFiles)
	if err != nil {
		return err
	}
	r.state.CheckFiles, err = r.saveBlob(ctx, data)
	return err
}

// learnCheckFiles records the files that the check wrote before the first iteration. Later
// snapshots are compared with the one that follows.
func (r *run) learnCheckFiles(ctx context.Context) error {
	after, _, err := r.files.Snapshot(ctx)
	if err != nil || after == r.state.Baseline {
		return refusal(err)
	}
	changes, err := r.files.Diff(ctx, r.state.Baseline, after)
	if err != nil {
		return refusal(err)
	}
	r.checkFiles = checkfile.New(changes)
	r.files.Exclude(r.checkFiles)
	var stats workspace.Stats
	if r.state.Checked, stats, err = r.files.Snapshot(ctx); err != nil {
		return refusal(err)
	}
	made, err := r.files.Below(ctx, stats.Outside)
	if err != nil {
		return refusal(err)
	}
	r.checkFiles.Keep(made)
	r.note(EventWarning, map[string]any{"iteration": 0, "kind": "check_files", "message": checkFilesText(r.checkFiles)})
	return r.saveCheckFiles(ctx)
}

// checkFilesText describes the files of the check.
func checkFilesText(f *checkfile.Files) string {
	const most = 5
	var parts []string
	if names := f.Names(); len(names) > 0 {
		text := strings.Join(names[:min(len(names), most)], ", ")
		if more := len(names) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, "writes "+text+", which is not part of the work")
	}
	if n := len(f.Rewritten); n > 0 {
		parts = append(parts, fmt.Sprintf("changes %s (%s), compared from then on with what it made of them",
			human.Count(int64(n), "file"), strings.Join(f.Rewritten[:min(n, most)], ", ")))
	}
	return "the check " + strings.Join(parts, "; it ")
}

// checkFilesNow returns the files of the check that exist, of those that a snapshot left out.
func (r *run) checkFilesNow(ctx context.Context, stats *workspace.Stats) ([]workspace.Excluded, error) {
	if r.checkFiles.IsEmpty() {
		return nil, nil
	}
	list, err := r.files.Below(ctx, stats.Outside)
	return list, refusal(err)
}

// tellCheckFiles finds out which files of the check an iteration wrote itself: they become
// part of its snapshot. before are the files of the check before it ran.
func (r *run) tellCheckFiles(ctx context.Context, before []workspace.Excluded, outside []string) error {
	f, t := r.checkFiles, &r.state.Run
	if f.IsEmpty() {
		return nil
	}
	after, err := r.files.Below(ctx, outside)
	if err != nil {
		return refusal(err)
	}
	if given := f.Give(before, after); len(given) > 0 {
		if t.After, _, err = r.files.Snapshot(ctx); err != nil {
			return refusal(err)
		}
	}
	changes, err := r.files.Diff(ctx, t.Before, t.After)
	if err != nil {
		return refusal(err)
	}
	f.Edit(changes)
	return r.saveCheckFiles(ctx)
}
