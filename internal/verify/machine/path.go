package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Tool is a program that a check runs.
type Tool struct {
	Name string `json:"name"`
	// Path is where it is on PATH, Target the file that this leads to.
	Path   string `json:"path"`
	Target string `json:"target"`
	SHA256 string `json:"sha256"`
}

// Tools is the PATH of a check with its programs.
type Tools struct {
	Path  string `json:"path"`
	Tools []Tool `json:"tools,omitempty"`
}

// Find returns the PATH of an environment and those of the programs with these names that
// are on it. Programs inside of the workspace are part of the work and are left out.
func Find(ctx context.Context, env []string, workspace string, names []string) (*Tools, error) {
	found := &Tools{Path: Get(env, "PATH")}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t, err := find(ctx, found.Path, workspace, name)
		if err != nil {
			return nil, err
		}
		if t != nil {
			found.Tools = append(found.Tools, *t)
		}
	}
	return found, nil
}

// find returns the first program with a name on a PATH; nil if there is none, or if it is
// inside of the workspace.
func find(ctx context.Context, path, workspace, name string) (*Tool, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if within(file, workspace) {
			return nil, nil
		}
		return identify(ctx, name, file)
	}
	return nil, nil
}

// identify resolves a program and hashes it. It returns nil for one that the user may run
// and not read, and for a pipe or device, which cannot be executed and may never end.
func identify(ctx context.Context, name, file string) (*Tool, error) {
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, fmt.Errorf("find program %s: %w", name, err)
	}
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(target) //nolint:gosec // a program of the user's PATH
	if errors.Is(err, os.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read program %s: %w", name, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &stoppable{ctx, f}); err != nil {
		return nil, fmt.Errorf("read program %s: %w", name, err)
	}
	return &Tool{Name: name, Path: file, Target: target, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// stoppable reads a file until its context ends.
type stoppable struct {
	ctx context.Context // of the call that reads
	f   *os.File
}

// Read reads from the file.
func (s *stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.f.Read(b)
}

// within reports whether a file is in a folder, by its path.
func within(file, dir string) bool {
	return dir != "" && (file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, string(filepath.Separator))+
		string(filepath.Separator)))
}

// Replaced returns a sentence for each program that is another one than it was, or was
// removed.
func (t *Tools) Replaced(ctx context.Context, workspace string) (sentences []string, err error) {
	for _, was := range t.Tools {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		now, err := find(ctx, t.Path, workspace, was.Name)
		switch {
		case err != nil:
			return nil, err
		case now == nil:
			sentences = append(sentences, fmt.Sprintf("%s is no longer %s", was.Name, was.Path))
		case now.Path != was.Path:
			sentences = append(sentences, fmt.Sprintf("%s is %s instead of %s", was.Name, now.Path, was.Path))
		case now.Target != was.Target:
			sentences = append(sentences, fmt.Sprintf("%s leads to %s instead of %s", was.Path, now.Target, was.Target))
		case now.SHA256 != was.SHA256:
			sentences = append(sentences, fmt.Sprintf("the content of %s (%s) changed", was.Target, was.Name))
		}
	}
	return sentences, nil
}

// Programs returns the folders of a PATH outside of the workspace, in the form of caches,
// to record all programs in them. A new program counts as changed if a later folder has
// one with its name.
func Programs(path, workspace string) []Cache {
	var all []Cache
	dirs := filepath.SplitList(path)
	for i, dir := range dirs {
		if !filepath.IsAbs(dir) || within(dir, workspace) || slices.Contains(dirs[:i], dir) {
			continue
		}
		later := dirs[i+1:]
		all = append(all, Cache{Name: "programs", Dir: dir, flat: true, added: func(name string, _ bool) bool {
			return slices.ContainsFunc(later, func(next string) bool {
				_, err := os.Lstat(filepath.Join(next, name))
				return err == nil && next != dir
			})
		}})
	}
	return all
}
