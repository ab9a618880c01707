package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/storage/filelock"
)

// Walk yields every blob in the order of the hashes. It skips files whose names are not
// hashes, and blobs removed while it runs; it may skip blobs put while it runs. An error
// is yielded last.
func (s *Store) Walk(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		shards, err := readDir(s.dir)
		more := true
		for i := 0; err == nil && more && i < len(shards); i++ {
			name := shards[i].Name()
			if len(name) == 2 && isLowerHex(name) && shards[i].IsDir() {
				more, err = s.walkShard(ctx, name, yield)
			}
		}
		if err != nil {
			yield(Info{}, fmt.Errorf("walk blobs: %w", err))
		}
	}
}

// walkShard reports whether the walk continues.
func (s *Store) walkShard(ctx context.Context, shard string, yield func(Info, error) bool) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	files, err := readDir(filepath.Join(s.dir, shard))
	if err != nil {
		return false, err
	}
	for _, f := range files {
		hash := shard + f.Name()
		if !validHash(hash) || !f.Type().IsRegular() {
			continue
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !yield(Info{Ref: Ref{Hash: hash, Size: info.Size()}, ModTime: info.ModTime()}, nil) {
			return false, err
		}
	}
	return true, nil
}

// LimitIndexes removes indexes, those written first, until the others have at most so many bytes or
// one is left.
func (s *Store) LimitIndexes(most int64) error {
	names, err := filepath.Glob(filepath.Join(s.dir, "??", "*"+indexSuffix))
	if err != nil {
		return err
	}
	infos := make(map[string]fs.FileInfo, len(names))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil { // else it was removed meanwhile
			infos[name] = info
			most -= info.Size()
		}
	}
	sorted := slices.SortedFunc(maps.Keys(infos), func(a, b string) int {
		return infos[a].ModTime().Compare(infos[b].ModTime())
	})
	for i := 0; i < len(sorted)-1 && most < 0; i++ {
		most += infos[sorted[i]].Size()
		if err := os.Remove(sorted[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// readDir is os.ReadDir for a folder that may not exist yet.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// leftAfter is the age from which on the file of a writer without a lock is one that a crash left: the
// writer closes it a moment before it renames it.
const leftAfter = 10 * time.Second

// isLeft reports whether no writer lives that writes a temporary file.
func isLeft(name string, info fs.FileInfo) bool {
	if time.Since(info.ModTime()) < leftAfter {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	held, err := filelock.Held(f)
	return err == nil && !held
}

// Sweep removes the temporary files of crashed writers: those that no process has locked, and
// those that were last written before an instant. That must be longer ago than a writer may
// pause, an hour or more.
func (s *Store) Sweep(ctx context.Context, before time.Time) error {
	dir := filepath.Join(s.dir, tmpDir)
	files, err := readDir(dir)
	if err != nil {
		return fmt.Errorf("sweep blobs: %w", err)
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sweep blobs: %w", err)
		}
		info, err := f.Info()
		name := filepath.Join(dir, f.Name())
		if err == nil && info.Mode().IsRegular() && (info.ModTime().Before(before) || isLeft(name, info)) {
			err = os.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweep blobs: %w", err)
		}
	}
	return nil
}
