package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"github.com/perdure/perdure/internal/process/failpoint"
)

const (
	// writers is the number of files written concurrently, so that their flushes overlap.
	writers = 8
	// flushEach is the number of files above which the file system is flushed once instead.
	flushEach = 256
)

// files writes the files and links of changes.
func (r *restore) files(ctx context.Context, changes []Change) error {
	each := !canSyncAll || len(changes) <= flushEach
	return inParallel(ctx, changes, func(c Change) error {
		switch {
		case c.New == nil || c.New.Kind == KindFolder:
			return nil
		case c.New.Kind == KindLink:
			return r.link(c)
		case c.Old != nil && c.Old.Kind == KindFile && c.Old.Hash == c.New.Hash:
			return r.root.Chmod(c.Path, c.New.FileMode())
		}
		return r.file(ctx, c, each)
	})
}

// inParallel calls do for each of a list until one fails, and returns that error.
func inParallel[T any](ctx context.Context, list []T, do func(T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan T)
	var wg sync.WaitGroup
	for range min(writers, len(list)) {
		wg.Go(func() {
			for c := range next {
				if err := do(c); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, c := range list {
		if ctx.Err() != nil {
			break
		}
		next <- c
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// tempFor returns the name of a file while it is written.
func tempFor(p string) string {
	sum := sha256.Sum256([]byte(p))
	return path.Join(path.Dir(p), tempPrefix+hex.EncodeToString(sum[:8]))
}

// file writes a file under a temporary name and renames it.
func (r *restore) file(ctx context.Context, c Change, flush bool) error {
	temp := tempFor(c.Path)
	f, err := r.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	failpoint.Hit("workspace.restore.temp")
	packs := &packReader{c: r.w.contents}
	err = errors.Join(packs.writeFile(ctx, f, c.New, flush), packs.close())
	if err == nil {
		failpoint.Hit("workspace.restore.before_rename")
		err = r.root.Rename(temp, c.Path)
	}
	if err != nil {
		_ = r.root.Remove(temp) // the first error is the cause
		return fmt.Errorf("write %q: %w", c.Path, err)
	}
	failpoint.Hit("workspace.restore.after_rename")
	return nil
}

// writeFile writes the content and the mode of a file to f and closes it.
func (r *packReader) writeFile(ctx context.Context, f *os.File, file *File, flush bool) error {
	err := r.copyTo(&untilStopped{ctx, f}, file.Hash)
	if err == nil {
		err = f.Chmod(file.FileMode())
	}
	if err == nil && flush {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// untilStopped ends a long write when ctx ends.
type untilStopped struct {
	ctx context.Context
	w   io.Writer
}

// Write writes unless the context has ended.
func (u *untilStopped) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}

// link creates a link under a temporary name and renames it.
func (r *restore) link(c Change) error {
	temp := tempFor(c.Path)
	if err := r.root.Symlink(c.New.Target, temp); err != nil {
		return err
	}
	failpoint.Hit("workspace.restore.temp_link")
	if err := r.root.Rename(temp, c.Path); err != nil {
		_ = r.root.Remove(temp) // the first error is the cause
		return err
	}
	return nil
}

// flush makes the changes durable.
func (r *restore) flush(changes []Change) error {
	if canSyncAll && len(changes) > flushEach {
		return r.withDir(".", syncAll)
	}
	seen := map[string]bool{}
	for _, c := range changes {
		dir := path.Dir(c.Path)
		for dir != "." && (r.wanted[dir] == nil || r.wanted[dir].Kind != KindFolder) {
			dir = path.Dir(dir)
		}
		if seen[dir] {
			continue
		}
		seen[dir] = true
		err := r.withDir(dir, func(f *os.File) error { return f.Sync() })
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) &&
			!errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return nil
}

func (r *restore) withDir(p string, do func(*os.File) error) error {
	f, err := r.root.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(f)
}

// verify reads the changed paths and compares them with the snapshot.
func (r *restore) verify(ctx context.Context, changes []Change) error {
	return inParallel(ctx, changes, func(c Change) error {
		why, err := r.differs(ctx, c)
		if err != nil {
			return err
		}
		if why != "" {
			return &Error{Kind: ErrVerify, Op: restoring, Name: c.Path, Msg: why,
				Hint: "stop other programs that write in the workspace, and restore again"}
		}
		return nil
	})
}

// differs returns how a path differs from the snapshot; "" if it does not.
func (r *restore) differs(ctx context.Context, c Change) (string, error) {
	if c.New == nil && r.replaced(c.Path) {
		return "", nil
	}
	info, err := r.root.Lstat(c.Path)
	if errors.Is(err, fs.ErrNotExist) || notDirectory(err) {
		if c.New == nil {
			return "", nil
		}
		return "it is missing", nil
	}
	if err != nil {
		return "", err
	}
	if c.New == nil {
		if info.IsDir() && !r.empty(c.Path) {
			return "", nil
		}
		return "it was created again", nil
	}
	switch c.New.Kind {
	case KindFolder:
		if !info.IsDir() {
			return "it is not a folder", nil
		}
	case KindLink:
		if target, err := r.root.Readlink(c.Path); err != nil || target != c.New.Target {
			return "it is another link", nil //nolint:nilerr // it is not a link
		}
		return "", nil
	case KindFile:
		if why, err := r.fileDiffers(ctx, c, info); why != "" || err != nil {
			return why, err
		}
	}
	if chmodBits(info.Mode()) != c.New.Mode {
		return fmt.Sprintf("its mode is %v, not %v", info.Mode(), c.New.FileMode()), nil
	}
	return "", nil
}

func (r *restore) fileDiffers(ctx context.Context, c Change, info fs.FileInfo) (string, error) {
	if !info.Mode().IsRegular() || info.Size() != c.New.Size {
		return "it is another file", nil
	}
	f, err := r.root.OpenFile(c.Path, openFlags, 0)
	if errors.Is(err, fs.ErrPermission) {
		return "", nil // the mode of the snapshot; it was checked while it was written
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, &untilDone{ctx, f}); err != nil {
		return "", err
	}
	if Hash(sum.Sum(nil)) != c.New.Hash {
		return "its content differs", nil
	}
	return "", nil
}
