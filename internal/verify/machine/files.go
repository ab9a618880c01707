package machine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"

	"github.com/perdure/perdure/internal/workspace"
)

// MaxEntries is the largest number of files of a cache that are recorded. Larger caches
// are shared without a comparison.
const MaxEntries = 300_000

// maxNamed is how many changed files of a cache are named.
const maxNamed = 20

// entrySize is the size of the hash of a path and of that of its metadata.
const entrySize = 16

// entries are the sorted hashes of paths and metadata of the files of a folder.
type entries []byte

func (e entries) Len() int           { return len(e) / entrySize }
func (e entries) at(i int) []byte    { return e[i*entrySize : (i+1)*entrySize] }
func (e entries) Less(i, j int) bool { return bytes.Compare(e.at(i), e.at(j)) < 0 }

func (e entries) Swap(i, j int) {
	var x [entrySize]byte
	copy(x[:], e.at(i))
	copy(e.at(i), e.at(j))
	copy(e.at(j), x[:])
}

// find returns the hash of the metadata of a path; nil if it is not recorded.
func (e entries) find(path []byte) (index int, metadata []byte) {
	i := sort.Search(e.Len(), func(i int) bool { return bytes.Compare(e.at(i)[:entrySize/2], path) >= 0 })
	if i == e.Len() || !bytes.Equal(e.at(i)[:entrySize/2], path) {
		return -1, nil
	}
	return i, e.at(i)[entrySize/2:]
}

func half(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:entrySize/2]
}

// errTooMany is returned for a folder with more than MaxEntries files.
var errTooMany = errors.New("too many files")

// walk calls do for each recorded file of a cache, with its path and a stamp that changes
// with its metadata. Folders count by their names only.
func (c *Cache) walk(ctx context.Context, do func(name, stamp string)) error {
	n := 0
	parts := c.recorded
	if len(parts) == 0 {
		parts = []string{"."}
	}
	for _, part := range parts {
		top := filepath.Join(c.Dir, filepath.FromSlash(part))
		err := filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil && e.IsDir() && c.flat && name != top {
				return fs.SkipDir
			}
			if err != nil || e.IsDir() {
				return nil //nolint:nilerr // what cannot be read is not executed either
			}
			slashed, err := filepath.Rel(c.Dir, name)
			if err != nil {
				return err
			}
			slashed = filepath.ToSlash(slashed)
			if c.volatile != nil && c.volatile(slashed) {
				return nil
			}
			if n++; n > MaxEntries {
				return errTooMany
			}
			info, err := e.Info()
			if err != nil {
				return nil //nolint:nilerr // it was removed meanwhile
			}
			do(slashed, workspace.Stamp(info))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Record returns the metadata of the files of caches, to pass to [Compare] later.
func Record(ctx context.Context, caches []Cache) ([]byte, error) {
	recorded := make(map[string]entries)
	for i := range caches {
		all := entries{}
		err := caches[i].walk(ctx, func(name, stamp string) { all = append(append(all, half(name)...), half(stamp)...) })
		if errors.Is(err, errTooMany) {
			recorded[caches[i].Dir] = nil
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", caches[i].Dir, err)
		}
		sort.Sort(all)
		recorded[caches[i].Dir] = all
	}
	return json.Marshal(recorded)
}

// Compared is the result of the comparison of a cache with its record.
type Compared struct {
	// Changed are recorded files that were changed or removed, and new files that programs
	// execute without naming them, at most maxNamed. Removed files have no name.
	Changed []string
	// Unchecked is set if the cache has too many files, or there is no record.
	Unchecked bool
}

// Compare compares caches with a record that [Record] returned. New files are no change.
func Compare(ctx context.Context, record []byte, caches []Cache) ([]Compared, error) {
	recorded := make(map[string]entries)
	if len(record) > 0 {
		if err := json.Unmarshal(record, &recorded); err != nil {
			return nil, fmt.Errorf("read record of caches: %w", err)
		}
	}
	results := make([]Compared, len(caches))
	for i := range caches {
		was, ok := recorded[caches[i].Dir] // one that did not exist has no recorded files
		if ok && was == nil || len(record) == 0 {
			results[i].Unchecked = true
			continue
		}
		changed, err := caches[i].changed(ctx, was)
		switch {
		case errors.Is(err, errTooMany):
			results[i].Unchecked = true
		case err != nil:
			return nil, fmt.Errorf("compare %s: %w", caches[i].Dir, err)
		}
		results[i].Changed = changed
	}
	return results, nil
}

// changed returns the changed files of a cache.
func (c *Cache) changed(ctx context.Context, was entries) ([]string, error) {
	var changed []string
	found := make([]bool, was.Len())
	err := c.walk(ctx, func(name, stamp string) {
		i, metadata := was.find(half(name))
		if i >= 0 {
			found[i] = true
		}
		if i >= 0 && !bytes.Equal(metadata, half(stamp)) || i < 0 && c.hooks != nil && c.hooks(name) {
			changed = append(changed, filepath.Join(c.Dir, filepath.FromSlash(name)))
		}
	})
	gone := 0
	for _, ok := range found {
		if !ok {
			gone++
		}
	}
	if gone > 0 {
		changed = append(changed, fmt.Sprintf("%d removed files of %s", gone, c.Dir))
	}
	return changed[:min(len(changed), maxNamed)], err
}
