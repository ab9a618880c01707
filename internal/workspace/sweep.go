package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// Info is a snapshot that is kept.
type Info struct {
	ID ID
	// Taken is when it was last taken.
	Taken time.Time
}

// Snapshots returns what is kept, the newest first.
func (w *Workspace) Snapshots(ctx context.Context) ([]Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list, err := w.list()
	return list, wrap("list snapshots", w.cfg.Dir, err)
}

func (w *Workspace) list() ([]Info, error) {
	entries, err := os.ReadDir(filepath.Join(w.cfg.Dir, manifestsName))
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, e := range entries {
		if !ID(e.Name()).valid() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Info{ID(e.Name()), info.ModTime()})
	}
	slices.SortFunc(list, func(a, b Info) int {
		if c := b.Taken.Compare(a.Taken); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return list, nil
}

// Retain says what Sweep keeps.
type Retain struct {
	// Keep are never removed.
	Keep []ID
	// Newest is how many of the others are kept as well.
	Newest int
	// MaxBytes is how much the contents of all together may have; of the others
	// the oldest go first. Zero: no limit.
	MaxBytes int64
}

// Swept tells what a sweep did.
type Swept struct {
	// Removed are the snapshots that are gone.
	Removed []ID
	// Kept is how many are left.
	Kept int
	// Freed and Left are the bytes that contents took and take on disk.
	Freed, Left int64
}

// Sweep removes the snapshots that are not to be kept and the contents that no
// other one has. Snapshots that were taken within Config.Grace are kept too:
// another process may be about to write down their IDs. It may be interrupted
// at any point and run again.
func (w *Workspace) Sweep(ctx context.Context, what Retain) (Swept, error) {
	const op = "sweep snapshots"
	var done Swept
	err := w.exclusive(ctx, func() error {
		list, err := w.list()
		if err != nil {
			return err
		}
		var certain, others []ID
		for _, s := range list {
			if slices.Contains(what.Keep, s.ID) || w.cfg.Grace > 0 && w.cfg.now().Sub(s.Taken) < w.cfg.Grace {
				certain = append(certain, s.ID)
			} else {
				others = append(others, s.ID)
			}
		}
		live := map[Hash]int64{}
		for _, id := range certain {
			if err := w.mark(op, id, live); err != nil {
				return err
			}
		}
		kept := 0
		for kept < min(what.Newest, len(others)) {
			more := map[Hash]int64{}
			if err := w.mark(op, others[kept], more); err != nil {
				return err
			}
			for h, n := range live {
				more[h] = n
			}
			if what.MaxBytes > 0 && sizeOf(more) > what.MaxBytes {
				break
			}
			live = more
			kept++
		}
		done.Kept = len(certain) + kept
		return w.drop(ctx, others[kept:], live, &done)
	})
	return done, wrap(op, w.cfg.Dir, err)
}

// Remove removes snapshots and the contents that no other one has. Equal trees
// have one ID: it must not be wanted for another iteration. IDs that are not
// there are no error.
func (w *Workspace) Remove(ctx context.Context, ids ...ID) (Swept, error) {
	const op = "remove snapshots"
	var done Swept
	err := w.exclusive(ctx, func() error {
		list, err := w.list()
		if err != nil {
			return err
		}
		live := map[Hash]int64{}
		var drop []ID
		for _, s := range list {
			if slices.Contains(ids, s.ID) {
				drop = append(drop, s.ID)
				continue
			}
			if err := w.mark(op, s.ID, live); err != nil {
				return err
			}
			done.Kept++
		}
		return w.drop(ctx, drop, live, &done)
	})
	return done, wrap(op, w.cfg.Dir, err)
}

// mark enters the contents of a snapshot. One that cannot be read stops
// everything: what it needs is not known.
func (w *Workspace) mark(op string, id ID, live map[Hash]int64) error {
	m, err := w.load(op, id)
	if err != nil {
		return err
	}
	for i := range m.files {
		if m.files[i].Kind == KindFile {
			live[m.files[i].Hash] = m.files[i].Size
		}
	}
	return nil
}

func sizeOf(live map[Hash]int64) int64 {
	sum := int64(0)
	for _, n := range live {
		sum += n
	}
	return sum
}

// drop removes manifests first and then what only they had.
func (w *Workspace) drop(ctx context.Context, ids []ID, live map[Hash]int64, done *Swept) error {
	before := w.contents.total()
	for _, id := range ids {
		if err := os.Remove(w.manifestPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		failpoint.Hit("workspace.sweep.manifest")
		done.Removed = append(done.Removed, id)
	}
	if err := w.tidy(); err != nil {
		return err
	}
	err := w.contents.compact(ctx, live)
	done.Left = w.contents.total()
	done.Freed = before - done.Left
	return err
}

// tidy removes what has no manifest, or was to become one.
func (w *Workspace) tidy() error {
	dir := filepath.Join(w.cfg.Dir, manifestsName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	for name := range there {
		id, ignored := strings.CutSuffix(name, ignoredSuffix)
		if ID(name).valid() || ignored && there[id] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return atomicfile.SyncDir(dir)
}

// Packs are written anew when less than half of them is needed, and small ones
// are joined when there are many.
const (
	manyPacks = 64
	smallPack = 8 << 20
)

// compact removes packs of which nothing is needed and rewrites those of which
// little is. The new pack is durable before an old one goes.
func (c *contents) compact(ctx context.Context, live map[Hash]int64) error {
	needed := map[string]int64{}
	for h := range live {
		if p, ok := c.index[h]; ok {
			needed[p.pack] += p.size + packEntry
		}
	}
	var old []string
	for name, size := range c.packs {
		if needed[name]*2 < size || len(c.packs) > manyPacks && size < smallPack {
			old = append(old, name)
		}
	}
	if len(old) == 0 {
		return nil
	}
	fresh := &contents{dir: c.dir, log: c.log, packs: map[string]int64{}, index: map[Hash]place{}}
	pack := fresh.writer(-1)
	defer pack.abort()
	for h := range live {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p, ok := c.index[h]; !ok || !slices.Contains(old, p.pack) {
			continue
		}
		if err := c.copyTo(pack, h); err != nil {
			return err
		}
		pack.enter(h, c.index[h].size)
	}
	if err := pack.publish(); err != nil {
		return err
	}
	failpoint.Hit("workspace.sweep.packed")
	for _, name := range old {
		if _, same := fresh.packs[name]; same {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		failpoint.Hit("workspace.sweep.removed")
	}
	c.packs, c.index = nil, nil
	return c.refresh()
}
