package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
)

// copyClass returns how the files of the folder of the snapshots are copied.
func copyClass(rel string, folder bool) copies.Class {
	switch dir, name := path.Split(rel); {
	case folder:
		if rel == packsName || rel == manifestsName {
			return copies.Immutable
		}
	case dir == packsName+"/" && strings.HasSuffix(name, packSuffix), dir == manifestsName+"/" && ID(name).valid():
		return copies.Immutable
	case dir == manifestsName+"/" && strings.HasSuffix(name, ignoredSuffix):
		return copies.Changing
	}
	return copies.Skip
}

// putBack puts the files of the snapshots back that were removed since they were copied.
func (w *Workspace) putBack() error {
	if w.cfg.Copy == "" {
		return nil
	}
	if _, err := os.Stat(w.cfg.Copy); err != nil {
		return nil //nolint:nilerr // nothing is copied yet
	}
	for _, dir := range []string{packsName, manifestsName} {
		if err := atomicfile.MkdirAll(filepath.Join(w.cfg.Dir, dir), 0o700); err != nil {
			return w.storeGone(err)
		}
	}
	failpoint.Hit("workspace.put_back")
	return w.storeGone(copies.Fill(w.cfg.Copy, w.cfg.Dir, func(rel string, folder bool) copies.Class {
		if copyClass(rel, folder) == copies.Skip {
			return copies.Skip
		}
		return copies.Immutable // what is there stays
	}))
}

// copyOut copies the new files of the snapshots. The snapshot is stored also if that fails.
func (w *Workspace) copyOut() {
	if w.cfg.Copy == "" {
		return
	}
	err := atomicfile.MkdirAll(w.cfg.Copy, 0o700)
	for _, dir := range []string{packsName, manifestsName} { // contents first
		if err == nil {
			err = copies.Fill(w.cfg.Dir, w.cfg.Copy, func(rel string, folder bool) copies.Class {
				if rel != dir && !strings.HasPrefix(rel, dir+"/") {
					return copies.Skip
				}
				return copyClass(rel, folder)
			})
		}
		failpoint.Hit("workspace.copied_out")
	}
	if err == nil {
		return
	}
	w.cfg.Logger.Warn("snapshot not copied out of the workspace", "folder", w.cfg.Copy, "error", err)
	if w.cfg.CopyFailed != nil {
		w.cfg.CopyFailed(err)
	}
}

// tidyCopy removes the copies of files that Sweep removed.
func (w *Workspace) tidyCopy() error {
	if w.cfg.Copy == "" {
		return nil
	}
	for _, dir := range []string{manifestsName, packsName} {
		list, err := os.ReadDir(filepath.Join(w.cfg.Copy, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			if _, err := os.Lstat(filepath.Join(w.cfg.Dir, dir, e.Name())); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := os.Remove(filepath.Join(w.cfg.Copy, dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
