package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"
)

// Walk yields every blob in the order of the hashes. Files whose names are not
// hashes are passed over, and so are blobs removed while it runs; one put while
// it runs may or may not be seen. An error is yielded last.
func (s *Store) Walk(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		shards, err := readDir(s.dir)
		if err != nil {
			yield(Info{}, fmt.Errorf("walk blobs: %w", err))
			return
		}
		for _, shard := range shards {
			if len(shard.Name()) != 2 || !isLowerHex(shard.Name()) || !shard.IsDir() {
				continue
			}
			if !s.walkShard(ctx, shard.Name(), yield) {
				return
			}
		}
	}
}

// walkShard reports whether the walk goes on.
func (s *Store) walkShard(ctx context.Context, shard string, yield func(Info, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield(Info{}, fmt.Errorf("walk blobs: %w", err))
		return false
	}
	files, err := readDir(filepath.Join(s.dir, shard))
	if err != nil {
		yield(Info{}, fmt.Errorf("walk blobs: %w", err))
		return false
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
		if err != nil {
			yield(Info{}, fmt.Errorf("walk blobs: %w", err))
			return false
		}
		if !yield(Info{Ref: Ref{Hash: hash, Size: info.Size()}, ModTime: info.ModTime()}, nil) {
			return false
		}
	}
	return true
}

// readDir is os.ReadDir for a folder that may not have been made yet.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// Swept is what [Store.Sweep] removed.
type Swept struct {
	Files int
	Bytes int64
}

// Sweep removes what crashed writers left behind and nobody wrote to since
// before. A running writer renews the time of its file with each write, so
// before has to be as long ago as a writer may pause, an hour or more.
func (s *Store) Sweep(ctx context.Context, before time.Time) (Swept, error) {
	var swept Swept
	dir := filepath.Join(s.dir, tmpDir)
	files, err := readDir(dir)
	if err != nil {
		return swept, fmt.Errorf("sweep blobs: %w", err)
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return swept, fmt.Errorf("sweep blobs: %w", err)
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || !info.ModTime().Before(before)) {
			continue
		}
		if err == nil {
			err = os.Remove(filepath.Join(dir, f.Name()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return swept, fmt.Errorf("sweep blobs: %w", err)
		}
		swept.Files++
		swept.Bytes += info.Size()
	}
	return swept, nil
}
