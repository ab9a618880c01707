package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Copied is the result of a copy.
type Copied struct {
	// Files counts files and links; Bytes is the size of the files.
	Files int
	Bytes int64
}

const copying = "copy snapshot"

// CopyTo writes the files of a snapshot into an empty folder outside of the workspace; with
// only, those at these paths, replacing existing ones. Paths that are not in the snapshot are
// left alone. Nothing is flushed to disk. The files are those of the snapshot, also if the
// workspace changed since.
func (w *Workspace) CopyTo(ctx context.Context, id ID, dir string, only []string) (Copied, error) {
	var done Copied
	err := w.exclusive(ctx, func() error {
		m, err := w.load(copying, id)
		if err != nil {
			return err
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		r := &restore{w: w, root: root}
		files := m.files
		if only != nil {
			files = slices.DeleteFunc(slices.Clone(files), func(f File) bool { return !slices.Contains(only, f.Path) })
			for i := range files {
				if err := root.MkdirAll(path.Dir(files[i].Path), 0o700); err != nil {
					return err
				}
			}
		}
		done, err = r.copy(ctx, files, only == nil)
		return err
	})
	return done, Wrap(copying, string(id), err)
}

// copy creates files, links and the folders above them; whole is set if the folder is empty.
func (r *restore) copy(ctx context.Context, files []File, whole bool) (done Copied, err error) {
	byFolder := make(map[string][]*File)
	for i := range files {
		f := &files[i]
		if f.Kind == KindFolder { // comes before its entries
			if err := r.root.MkdirAll(f.Path, 0o700); err != nil {
				return done, err
			}
			continue
		}
		done.Files++
		done.Bytes += f.Size
		dir := path.Dir(f.Path)
		byFolder[dir] = append(byFolder[dir], f)
	}
	packs := &packReader{c: r.w.contents}
	err = inParallel(ctx, slices.Collect(maps.Keys(byFolder)), func(dir string) error {
		if whole {
			return r.fresh(ctx, packs, dir, byFolder[dir])
		}
		return r.over(ctx, byFolder[dir])
	})
	err = errors.Join(err, packs.close())
	for _, f := range slices.Backward(files) { // at the end: a folder may be read-only
		if err == nil && f.Kind == KindFolder {
			err = r.root.Chmod(f.Path, f.FileMode())
		}
	}
	return done, err
}

// over writes files and links in place of others.
func (r *restore) over(ctx context.Context, files []*File) error {
	for _, f := range files {
		c := Change{Kind: Added, Path: f.Path, New: f}
		var err error
		if f.Kind == KindLink {
			err = r.link(c)
		} else {
			err = r.file(ctx, c, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fresh writes the files and links of a folder that has none.
func (r *restore) fresh(ctx context.Context, packs *packReader, dir string, files []*File) error {
	folder, err := r.root.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, f := range files {
		name := path.Base(f.Path)
		if f.Kind == KindLink {
			err = folder.Symlink(f.Target, name)
		} else {
			err = freshFile(ctx, packs, folder, f)
		}
		if err != nil {
			return fmt.Errorf("write %q: %w", f.Path, err)
		}
	}
	return nil
}

func freshFile(ctx context.Context, packs *packReader, folder *os.Root, f *File) error {
	out, err := folder.OpenFile(path.Base(f.Path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return packs.writeFile(ctx, out, f, false)
}

// Excluded is a file or link that is not part of snapshots because git ignores it, or because
// it is too large.
type Excluded struct {
	// Path is relative to the workspace, with slashes.
	Path string
	// Size is in bytes; only for files.
	Size int64
	// Target is the target of a link.
	Target string
	// Stamp changes with every change of the file that its metadata show.
	Stamp string
}

// Excluded lists the files and links that git ignores, also those in ignored folders, and the
// files that are too large for snapshots, sorted by path. More than Config.MaxFiles are an
// error that matches ErrLimit.
func (w *Workspace) Excluded(ctx context.Context) ([]Excluded, error) {
	const op = "list ignored files"
	var tops []string
	err := w.exclusive(ctx, func() error {
		l, err := w.scan(ctx, op, nil, nil)
		if err != nil {
			return err
		}
		w.learn(l)
		tops = l.ignored
		for _, out := range l.left {
			if out.Why == TooLarge {
				tops = append(tops, out.Path)
			}
		}
		return nil
	})
	if err != nil {
		return nil, Wrap(op, w.cfg.Root, err)
	}
	return w.Below(ctx, tops)
}

// Below lists the files and links at the given paths and below, sorted by path, without those
// that do not exist. The limit is that of Excluded.
func (w *Workspace) Below(ctx context.Context, tops []string) ([]Excluded, error) {
	const op = "list files"
	root, err := w.openRoot(op)
	if err != nil {
		return nil, Wrap(op, w.cfg.Root, err)
	}
	defer root.Close()
	b := &excludedFiles{w: w, ctx: ctx}
	for _, p := range tops {
		if err := b.entry(root, p, p); err != nil {
			return nil, Wrap(op, p, err)
		}
	}
	slices.SortFunc(b.list, func(x, y Excluded) int { return strings.Compare(x.Path, y.Path) })
	return b.list, nil
}

// excludedFiles walks the ignored files.
type excludedFiles struct {
	w    *Workspace
	ctx  context.Context
	list []Excluded
}

// entry adds one name of a folder and the paths below it, except removed and unreadable ones.
func (b *excludedFiles) entry(dir *os.Root, name, p string) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return unlessGone(err)
	}
	switch {
	case info.IsDir():
		return b.folder(dir, name, p)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		if err != nil {
			return unlessGone(err)
		}
		b.list = append(b.list, Excluded{Path: p, Target: target, Stamp: "l" + target})
	case info.Mode().IsRegular():
		b.list = append(b.list, Excluded{Path: p, Size: info.Size(), Stamp: Stamp(info)})
	}
	if len(b.list) > b.w.cfg.MaxFiles {
		return &Error{Kind: ErrLimit, Msg: fmt.Sprintf("more than %d ignored files", b.w.cfg.MaxFiles)}
	}
	return nil
}

func (b *excludedFiles) folder(dir *os.Root, name, p string) error {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return unlessGone(err)
	}
	defer sub.Close()
	names, err := namesIn(sub)
	if err != nil {
		return unlessGone(err)
	}
	for _, n := range names {
		if reserved(n) {
			continue
		}
		if err := b.entry(sub, n, p+"/"+n); err != nil {
			return err
		}
	}
	return nil
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || notDirectory(err) {
		return nil
	}
	return err
}

// Stamp returns a hash of the metadata of a file, which changes with every change of the file
// that they show: size, times of modification and change, file number and mode.
func Stamp(info fs.FileInfo) string {
	s, ok := sysStamp(info)
	if !ok {
		s = stamp{size: info.Size(), modified: info.ModTime().UnixNano()}
	}
	sum := sha256.Sum256(fmt.Append(nil, s, info.Mode()))
	return hex.EncodeToString(sum[:8])
}
