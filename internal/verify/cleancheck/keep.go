package cleancheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/workspace"
)

// Keep returns a record of the files that snapshots do not contain, to pass to [Check]
// later: files that are unchanged then are copied. It is empty if there are too many
// files.
func Keep(ctx context.Context, files *workspace.Workspace) ([]byte, error) {
	list, err := files.Excluded(ctx)
	if errors.Is(err, workspace.ErrLimit) { // Check reports it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept := make(map[string]string, len(list))
	for i := range list {
		kept[list[i].Path] = list[i].Stamp
	}
	return json.Marshal(kept)
}

// class is the kind of ignored files that a folder's name indicates.
type class int

const (
	other   class = iota
	needed        // dependencies: installed by a tool, as manifests say
	product       // built from the sources by a tool
	cache         // created again if missing
)

// folderClasses are the names of folders with files that tools make. Names of
// dependencies take precedence over those of products, and these over those of caches.
func folderClass(name string) class {
	switch name {
	case "node_modules", ".venv", "venv", "vendor", "bower_components", "site-packages", ".bundle", "Pods",
		"__pypackages__", "deps", "packages", ".yarn", "elm-stuff":
		return needed
	case "dist", "build", "out", "target", "bin", "obj", "lib", ".next", ".nuxt", ".svelte-kit", "generated", "gen",
		".build":
		return product
	case "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".cache", ".gradle", ".tox", ".nox", ".turbo",
		".parcel-cache", "coverage", ".nyc_output", "htmlcov", ".vite":
		return cache
	}
	return other
}

// classOf returns the class of an ignored file, and the outermost folder with that class;
// for a cache the innermost.
func classOf(name string) (class, string) {
	found, top := other, name
	for i, c := range name {
		if c != '/' {
			continue
		}
		k := folderClass(path.Base(name[:i]))
		switch {
		case k == cache:
			return cache, name[:i]
		case k != other && found == other:
			found, top = k, name[:i]
		}
	}
	return found, top
}

// drift compares the ignored files with those at the baseline.
type drift struct {
	// same files are unchanged. held are dependencies and products made during the loop, by
	// folder; left are all other new or changed files.
	same []workspace.Excluded
	held map[string][]workspace.Excluded
	left []workspace.Excluded
	// caches are copied only together with all other files.
	caches []workspace.Excluded
}

// since compares the ignored files of the workspace with the kept record. Dependencies
// may have changed if a manifest did, or if there were none.
func since(kept []byte, now []workspace.Excluded, changes []workspace.Change) (*drift, error) {
	was := make(map[string]string)
	if len(kept) > 0 {
		if err := json.Unmarshal(kept, &was); err != nil {
			return nil, fmt.Errorf("read record of ignored files at the baseline: %w", err)
		}
	}
	manifests := slices.ContainsFunc(changes, func(c workspace.Change) bool {
		return manifest(c.Path) || manifest(c.From)
	})
	there := make(map[string]bool) // dependency folders of the baseline
	for name := range was {
		if k, top := classOf(name); k == needed {
			there[top] = true
		}
	}
	d := &drift{held: make(map[string][]workspace.Excluded)}
	for _, b := range now {
		k, top := classOf(b.Path)
		stamp, known := was[b.Path]
		switch {
		case k == cache:
			d.caches = append(d.caches, b)
		case known && stamp == b.Stamp:
			d.same = append(d.same, b)
		case k == product, k == needed && (manifests || !there[top]):
			d.held[top] = append(d.held[top], b)
		default:
			d.left = append(d.left, b)
		}
	}
	return d, nil
}

// manifest reports whether a file declares dependencies.
func manifest(name string) bool {
	base := path.Base(name)
	return project.Classify(name).Class == project.Manifest ||
		strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt") ||
		slices.Contains([]string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
			"bun.lock", "bun.lockb", "pyproject.toml", "poetry.lock", "pdm.lock", "uv.lock", "Pipfile", "Pipfile.lock",
			"setup.py", "setup.cfg", "go.mod", "go.sum", "Cargo.toml", "Cargo.lock", "Gemfile", "Gemfile.lock",
			"composer.json", "composer.lock", "pom.xml", "build.gradle", "build.gradle.kts", "mix.exs", "mix.lock",
			"Podfile.lock"}, base)
}

// heldFiles returns the held files of all folders.
func (d *drift) heldFiles() []workspace.Excluded {
	return slices.Concat(slices.Collect(maps.Values(d.held))...)
}

// Bring copies files from a workspace into another folder. Files that were removed meanwhile or cannot be
// read are left out. Paths of the workspace in programs of a dependency (the first line
// of a script, paths of packages installed in place) are replaced by the copy's.
func Bring(ctx context.Context, from, to string, files []workspace.Excluded) (int64, error) {
	src, err := os.OpenRoot(from)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return 0, err
	}
	defer dst.Close()
	made := make(map[string]bool)
	for i := range files {
		f := &files[i]
		if dir := path.Dir(f.Path); !made[dir] {
			if err := dst.MkdirAll(dir, 0o700); err != nil {
				return 0, err
			}
			made[dir] = true
		}
		if f.Target != "" {
			if err := dst.Symlink(string(replacePath([]byte(f.Target), from, to)), f.Path); err != nil &&
				!errors.Is(err, fs.ErrExist) {
				return 0, err
			}
		}
	}
	return bringFiles(ctx, files,
		func(name string) (int64, error) { return bringFile(src, dst, name, [2]string{from, to}) })
}

// bringFiles calls do for each file until one fails, several at a time.
func bringFiles(ctx context.Context, files []workspace.Excluded, do func(name string) (int64, error)) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, bytes atomic.Int64
	var wg sync.WaitGroup
	const writers = 8
	for range writers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(files)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if files[i].Target != "" {
					continue
				}
				n, err := do(files[i].Path)
				if err != nil {
					cancel(err)
				}
				bytes.Add(n)
			}
		})
	}
	wg.Wait()
	return bytes.Load(), context.Cause(ctx)
}

// maxRewritten is the size of the largest file in which paths are replaced.
const maxRewritten = 256 << 10

func bringFile(src, dst *os.Root, name string, roots [2]string) (int64, error) {
	in, err := src.Open(name)
	if err != nil {
		return 0, nil //nolint:nilerr // it went, or is for another user
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	var text io.Reader = in
	if namesPaths(name) && info.Size() <= maxRewritten {
		whole, err := io.ReadAll(io.LimitReader(in, maxRewritten))
		if err != nil {
			_ = out.Close()
			return 0, err
		}
		if !bytes.Contains(whole, []byte{0}) {
			whole = replacePath(whole, roots[0], roots[1])
		}
		text = bytes.NewReader(whole)
	}
	n, err := io.Copy(out, text)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = dst.Chmod(name, info.Mode()&fs.ModePerm)
	}
	if err == nil { // tools compare it
		err = dst.Chtimes(name, info.ModTime(), info.ModTime())
	}
	return n, err
}

// namesPaths reports whether a file of a dependency may contain the folder that it was
// installed in.
func namesPaths(name string) bool {
	if k, _ := classOf(name); k != needed {
		return false
	}
	base := path.Base(name)
	dir := path.Base(path.Dir(name))
	return dir == "bin" || dir == "Scripts" || dir == ".bin" || filepath.Ext(base) == ".pth" ||
		strings.HasPrefix(base, "__editable__") || base == "pyvenv.cfg"
}

// IsGenerated reports whether a file is in a folder whose name says that tools make its
// content again: dependencies, build products, caches.
func IsGenerated(name string) bool {
	k, _ := classOf(name)
	return k != other
}
