package workspace

import (
	"cmp"
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

// info is a stored snapshot.
type info struct {
	id    ID
	taken time.Time // the last time
}

// list returns the stored snapshots, the newest first.
func (w *Workspace) list() ([]info, error) {
	entries, err := os.ReadDir(filepath.Join(w.cfg.Dir, manifestsName))
	if err != nil {
		return nil, err
	}
	var list []info
	for _, e := range entries {
		if !ID(e.Name()).valid() {
			continue
		}
		file, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, info{ID(e.Name()), file.ModTime()})
	}
	slices.SortFunc(list, func(a, b info) int { return cmp.Or(b.taken.Compare(a.taken), cmp.Compare(a.id, b.id)) })
	return list, nil
}

// Retain lists the snapshots that Sweep keeps.
type Retain struct {
	// Keep are never removed.
	Keep []ID
	// Newest is the number of further snapshots to keep, the latest first.
	Newest int
}

// Sweep removes the snapshots that are not to be kept, and the contents that no other one
// has, and returns the removed ones. It also keeps the snapshots taken within Config.Grace,
// because another process may not have recorded their IDs yet. It may be interrupted at any
// point and run again.
func (w *Workspace) Sweep(ctx context.Context, keep Retain) (removed []ID, err error) {
	const op = "sweep snapshots"
	err = w.exclusive(ctx, func() error {
		list, err := w.list()
		if err != nil {
			return err
		}
		live := map[Hash]bool{}
		newest := 0
		var drop []ID
		for _, s := range list {
			if !slices.Contains(keep.Keep, s.id) && (w.cfg.Grace <= 0 || w.cfg.now().Sub(s.taken) >= w.cfg.Grace) {
				if newest++; newest > keep.Newest {
					drop = append(drop, s.id)
					continue
				}
			}
			if err := w.mark(op, s.id, live); err != nil {
				return err
			}
		}
		removed, err = w.drop(ctx, drop, live)
		return err
	})
	return removed, Wrap(op, w.cfg.Dir, err)
}

// mark adds the contents of a snapshot to live. If it cannot be read, nothing may be removed:
// its contents are not known.
func (w *Workspace) mark(op string, id ID, live map[Hash]bool) error {
	m, err := w.load(op, id)
	if err != nil {
		return err
	}
	for i := range m.files {
		if m.files[i].Kind == KindFile {
			live[m.files[i].Hash] = true
		}
	}
	return nil
}

// drop removes manifests first and then the contents that only they had.
func (w *Workspace) drop(ctx context.Context, ids []ID, live map[Hash]bool) (removed []ID, err error) {
	for _, id := range ids {
		if err := os.Remove(w.manifestPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		failpoint.Hit("workspace.sweep.manifest")
		removed = append(removed, id)
	}
	if err := w.tidy(); err != nil {
		return removed, err
	}
	if err := w.contents.compact(ctx, live); err != nil {
		return removed, err
	}
	w.copyOut() // a pack that was rewritten
	return removed, w.tidyCopy()
}

// tidy removes lists of ignored paths without a manifest, and temporary files.
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

// Packs are rewritten if less than half of them is needed, and small ones are joined if
// there are many.
const (
	manyPacks = 64
	smallPack = 8 << 20
)

// compact removes packs without needed contents and rewrites those with few. The new pack is
// durable before an old one is removed.
func (c *contents) compact(ctx context.Context, live map[Hash]bool) (err error) {
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
	packs := &packReader{c: c}
	defer func() { err = errors.Join(err, packs.close()) }()
	for h := range live {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p, ok := c.index[h]; !ok || !slices.Contains(old, p.pack) {
			continue
		}
		if err := packs.copyTo(pack, h); err != nil {
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
