package machine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"sort"

	"github.com/perdure/perdure/internal/workspace"
)

// maxEntries is the largest number of files of a cache that are recorded. Larger caches
// are shared without a comparison.
const maxEntries = 300_000

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

// errTooMany is returned for a folder with more than maxEntries files.
var errTooMany = errors.New("too many files")

// walk calls do for each recorded file of a cache, at most limit, with its path and a stamp
// that changes with its metadata. Folders count by their names only.
func (c *Cache) walk(ctx context.Context, limit int, do func(name, stamp string)) error {
	n := 0
	for _, part := range c.parts() {
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
			if n++; n > limit {
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
		err := caches[i].walk(ctx, maxEntries, func(name, stamp string) {
			all = append(append(all, half(name)...), half(stamp)...)
		})
		if errors.Is(err, errTooMany) {
			recorded[caches[i].id()] = nil
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", caches[i].Dir, err)
		}
		sort.Sort(all)
		recorded[caches[i].id()] = all
	}
	return json.Marshal(recorded)
}

// Compared is the result of the comparison of a cache with its record.
type Compared struct {
	// Changed are recorded files that were changed or removed, and new files that are a
	// change, at most maxNamed. Removed files have no name.
	Changed []string
	// Unchecked is why the cache was not compared: it has too many files, or no record. It is
	// empty if it was.
	Unchecked string
}

// Compare compares caches with a record that [Record] returned. A new file is a change in or
// below a folder that has recorded files: it can be executed by the package that is there.
// In a new folder, which is a new package, it is none. Other rules hold for the Python
// packages of the user, in which every new file is a change, for the folders "cache" of
// Go and cargo and "packages" of Hex, in which none is, and for the folders of [Programs].
func Compare(ctx context.Context, record []byte, caches []Cache) ([]Compared, error) {
	return compare(ctx, record, caches, maxEntries)
}

// compare is Compare with a limit for the files of a cache.
func compare(ctx context.Context, record []byte, caches []Cache, limit int) ([]Compared, error) {
	recorded := make(map[string]entries)
	if len(record) > 0 {
		if err := json.Unmarshal(record, &recorded); err != nil {
			return nil, fmt.Errorf("read record of caches: %w", err)
		}
	}
	results := make([]Compared, len(caches))
	for i := range caches {
		dir := caches[i].Dir
		was, ok := recorded[caches[i].id()] // one that did not exist has no recorded files
		if !ok {
			results[i].Unchecked = fmt.Sprintf("no record of %s", dir)
			continue
		}
		tooMany := fmt.Sprintf("more than %d files in %s", limit, dir)
		if was == nil {
			results[i].Unchecked = tooMany
			continue
		}
		changed, err := caches[i].changed(ctx, limit, was)
		switch {
		case errors.Is(err, errTooMany):
			results[i].Unchecked = tooMany
		case err != nil:
			return nil, fmt.Errorf("compare %s: %w", caches[i].Dir, err)
		}
		results[i].Changed = changed
	}
	return results, nil
}

// changed returns the changed files of a cache.
func (c *Cache) changed(ctx context.Context, limit int, was entries) ([]string, error) {
	var changed, added []string
	found := make([]bool, was.Len())
	packages := make(map[string]bool) // folders with recorded files
	err := c.walk(ctx, limit, func(name, stamp string) {
		i, metadata := was.find(half(name))
		if i < 0 {
			added = append(added, name)
			return
		}
		found[i], packages[path.Dir(name)] = true, true
		if !bytes.Equal(metadata, half(stamp)) {
			changed = append(changed, c.path(name))
		}
	})
	if err != nil {
		return nil, err // the files that were not visited were not removed
	}
	for _, name := range added {
		is := inPackage(packages, name)
		if c.added != nil {
			is = c.added(name, is)
		}
		if is {
			changed = append(changed, c.path(name))
		}
	}
	removed := 0
	for _, ok := range found {
		if !ok {
			removed++
		}
	}
	if removed > 0 {
		changed = append(changed, fmt.Sprintf("%d removed files of %s", removed, c.Dir))
	}
	return changed[:min(len(changed), maxNamed)], nil
}

// id identifies the cache in a record.
func (c *Cache) id() string { return cmp.Or(c.key, c.Dir) }

// path returns the path of a file in a cache.
func (c *Cache) path(slashed string) string { return filepath.Join(c.Dir, filepath.FromSlash(slashed)) }

// inPackage reports whether a new file is in one of the folders, or below one. Below "."
// there are other packages.
func inPackage(folders map[string]bool, name string) bool {
	dir := path.Dir(name)
	if folders[dir] {
		return true
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if folders[dir] {
			return true
		}
	}
	return false
}
