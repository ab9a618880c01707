package pipe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// scratch is the folder of a session: the code can write into work, and a lock next to it is
// held as long as anything of the session runs.
type scratch struct {
	dir, work string
	lock      *os.File
}

// scratchName is how the names of scratch folders begin.
const scratchName = "perdure-repl-"

// lockName is the name of the lock in a scratch folder.
const lockName = "lock"

// newScratch creates a folder, after it removed those whose programs were killed.
func newScratch() (*scratch, error) {
	removeStale(os.TempDir())
	dir, err := os.MkdirTemp("", scratchName)
	if err != nil {
		return nil, fmt.Errorf("create scratch folder: %w", err)
	}
	s := &scratch{dir: dir, work: filepath.Join(dir, "work")}
	lock := filepath.Join(dir, lockName)
	if s.lock, err = os.OpenFile(lock+".new", os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		// Others see the lock only when it is held.
		err = errors.Join(filelock.TryLock(s.lock), os.Rename(lock+".new", lock), os.Mkdir(s.work, 0o700))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create scratch folder: %w", err), s.remove())
	}
	return s, nil
}

// remove removes the folder, and then the lock.
func (s *scratch) remove() error {
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// watchFolder ends the process if the scratch folder exceeds its limit, also while it waits for an
// answer: programs that it started can write meanwhile.
func (s *session) watchFolder() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.ended:
			return
		case <-tick.C:
			if most := s.cfg.Limits.FolderBytes; folderBytes(s.cfg.Folder, most) > most {
				s.kill(engine.KindFiles)
				return
			}
		}
	}
}

// folderBytes returns the size of the files in a folder, each at least that of a block of the file
// system. It stops above a limit. Files that cannot be read, or vanish, do not count.
func folderBytes(dir string, most int64) (bytes int64) {
	const block = 4096
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it does not count
		}
		if info, err := entry.Info(); err == nil {
			bytes += max(info.Size(), block)
		}
		if bytes > most {
			return fs.SkipAll
		}
		return nil
	})
	return bytes
}

// removeStale removes scratch folders that nothing uses. One that cannot be removed stays.
func removeStale(temp string) {
	found, err := filepath.Glob(filepath.Join(temp, scratchName+"*"))
	if err != nil {
		return
	}
	for _, dir := range found {
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0) //nolint:gosec // below the folder for temporary files
		if err != nil {
			continue // another user's, or one that is being created
		}
		if filelock.TryLock(f) == nil {
			_ = os.RemoveAll(dir) // otherwise it is tried again
		}
		_ = f.Close()
	}
}
