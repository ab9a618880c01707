package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	loopcmd "github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/gitdiff"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/record"
)

// maxBytes bounds the size of the files that are read.
const maxBytes = 4 << 20

// versions are two versions of the files.
type versions struct {
	// root is the folder of relative names.
	root string
	text string
	base string // an ID
	// first reports whether the base is empty: there is no commit yet.
	first bool
	// paths calls each with the old and the new name of each changed file.
	paths func(each func(old, now string))
	each  iter.Seq2[detect.Change, error]
	// skipped returns the files that cannot be analysed, after all were read.
	skipped func() []detect.Skipped
	// note is a remark; it can be empty.
	note string
	// trusted reads a file of the older version; nil if it does not exist.
	trusted func(ctx context.Context, name string) ([]byte, error)
}

// compared returns the versions that the flags select.
func (c *commands) compared(ctx context.Context, l *config.Loaded, o *options) (*versions, error) {
	if at, ok := loopBase(o.base); ok {
		if o.staged {
			return nil, env.UsageError("omit one of them", "--staged and --base loop: exclude each other")
		}
		var v *versions
		err := c.With(ctx, l, env.Read, func(b *env.Backend) (err error) {
			v, err = fromLoop(ctx, b.Client, l, o.loop, at)
			return err
		})
		return v, err
	}
	if o.loop != "" {
		return nil, env.UsageError("write --base loop:baseline", "--loop needs --base loop:…")
	}
	return c.fromGit(ctx, o)
}

func (c *commands) fromGit(ctx context.Context, o *options) (*versions, error) {
	repo, err := gitdiff.Open(ctx, c.Cwd, c.Environ)
	if err != nil {
		return nil, err
	}
	between, err := repo.Resolve(ctx, o.base, o.staged)
	if err != nil {
		return nil, err
	}
	changes, err := repo.Changes(ctx, between, maxBytes)
	if err != nil {
		return nil, err
	}
	v := &versions{root: repo.Root, text: between.Text, base: between.Base, first: between.First,
		paths: changes.Paths, each: changes.Each(ctx),
		skipped: func() []detect.Skipped { return changes.Skipped },
		trusted: func(ctx context.Context, name string) ([]byte, error) { return repo.ReadTrusted(ctx, between, name) }}
	if changes.Merged > 0 {
		v.note = fmt.Sprintf("a merge is in progress: %s unchanged from the other side skipped",
			human.Count(changes.Merged, "file"))
	}
	return v, nil
}

// fromLoop compares the workspace of a loop with one of its snapshots.
func fromLoop(ctx context.Context, store *client.Client, l *config.Loaded, name, at string) (*versions, error) {
	row, err := loopcmd.Find(ctx, store, name)
	if err != nil {
		return nil, err
	}
	tree, err := store.Tree(ctx, row.Tree)
	if err != nil {
		return nil, err
	}
	id, err := snapshotOf(ctx, store, &row, at)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(env.LoopDir(l), loop.ID(&tree), "snapshots")
	files, err := workspace.Open(workspace.Config{Root: tree.Placement.Workspace, Dir: dir})
	if err != nil {
		return nil, fromWorkspace(err)
	}
	now, _, err := files.Snapshot(ctx)
	if err != nil {
		return nil, fromWorkspace(err)
	}
	changes, err := files.Diff(ctx, id, now)
	if err != nil {
		return nil, fromWorkspace(err)
	}
	version := "iteration " + at
	if at == "baseline" {
		version = "the baseline"
	}
	return &versions{root: files.Root(), base: string(id),
		text: fmt.Sprintf("working tree compared with %s of loop %s", version, loop.ID(&tree)),
		paths: func(each func(old, now string)) {
			for i := range changes {
				each(changes[i].From, changes[i].Path)
			}
		},
		each:    evidence.Versions(ctx, files, &evidence.Between{From: id, To: now, Changes: changes}),
		skipped: func() []detect.Skipped { return nil },
		trusted: func(ctx context.Context, name string) ([]byte, error) {
			return evidence.ReadTrusted(ctx, files, id, name)
		}}, nil
}

// snapshotOf returns a snapshot of a loop: baseline, or the number of an iteration.
func snapshotOf(ctx context.Context, store *client.Client, row *record.Loop, at string) (workspace.ID, error) {
	standing, err := state.Read(row.State)
	if err != nil {
		return "", err
	}
	if at == "baseline" {
		if standing.Baseline == "" {
			return "", env.NotFound("", "find snapshot: no baseline yet")
		}
		return standing.Baseline, nil
	}
	n, err := strconv.Atoi(at)
	if err != nil || n < 1 {
		return "", env.UsageError("write --base loop:baseline, or an iteration such as --base loop:3",
			"%q is not a snapshot of a loop", at)
	}
	list, err := store.Iterations(ctx, row.Tree, n, 1)
	if err != nil {
		return "", err
	}
	if len(list) == 1 && list[0].Number == n {
		var kept struct {
			After workspace.ID `json:"snapshot_path"`
		}
		if err := json.Unmarshal(list[0].Data, &kept); err == nil && kept.After != "" {
			return kept.After, nil
		}
	}
	return "", env.NotFound("`perdure loop status` shows the iterations",
		"find snapshot: no snapshot after iteration %d", n)
}

// fromWorkspace returns an error of snapshots with its hint.
func fromWorkspace(err error) error {
	if w, ok := errors.AsType[*workspace.Error](err); ok {
		return env.NotFound(w.Hint, "%s", w)
	}
	return err
}
