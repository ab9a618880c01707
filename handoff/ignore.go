package handoff

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/git"
)

// OutputFolders returns the folders without sources. [Sources] leaves out what is in them; one
// of those that builds write (build, coverage, dist, obj, out, target) has sources if git tracks
// a file in it.
func OutputFolders() []string { return append(installedFolders(), builtFolders()...) }

// installedFolders returns the folders that only tools write.
func installedFolders() []string {
	return []string{
		".cache", ".gradle", ".idea", ".mypy_cache", ".next", ".nuxt", ".pytest_cache", ".ruff_cache", ".svelte-kit",
		".terraform", ".tox", ".turbo", ".venv", "__pycache__", "bower_components", "node_modules", "venv",
	}
}

// builtFolders returns the folders of build output whose names some projects give to sources.
func builtFolders() []string { return []string{"build", "coverage", "dist", "obj", "out", "target"} }

// Sources divides paths, which are relative to root and have slashes, into those of
// source files and the others, in their order. Ignored files, build output in
// [OutputFolders], and files outside of root or in .git or .perdure are not sources. In a git
// repository git decides what is ignored; the rules of submodules and of other repositories
// in root are their own.
func Sources(ctx context.Context, root string, paths []string) (sources, others []string, err error) {
	left := func(p string) bool {
		return !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsRune(p, 0) ||
			within(p, []string{".git", ".perdure"}) || within(p, installedFolders())
	}
	q := &ignoreQuery{ctx: ctx, root: root, ignored: make(map[string]bool), tracked: make(map[string]bool)}
	if err := q.ask(slices.DeleteFunc(slices.Clone(paths), left)); err != nil {
		return nil, nil, &Error{Op: "list sources", File: root, Err: err}
	}
	for _, p := range paths {
		if left(p) || q.ignored[p] || within(p, builtFolders()) && !q.tracked[builtFolder(p)] {
			others = append(others, p)
		} else {
			sources = append(sources, p)
		}
	}
	return sources, others, nil
}

// within reports whether a path is in one of the folders.
func within(p string, folders []string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(path.Clean(p)), "/"),
		func(part string) bool { return slices.Contains(folders, part) })
}

// builtFolder returns the outermost folder of a path that is one of builtFolders.
func builtFolder(p string) string {
	parts := strings.Split(path.Clean(p), "/")
	i := slices.IndexFunc(parts[:len(parts)-1], func(part string) bool { return slices.Contains(builtFolders(), part) })
	return strings.Join(parts[:i+1], "/")
}

// ignoreQuery asks git which paths it ignores, and in which folders of [builtFolders] it tracks
// files.
type ignoreQuery struct {
	ctx              context.Context
	root             string
	ignored, tracked map[string]bool
}

// ask asks the repository of each path. The error is that of the context: without a git
// program, and for what no repository can be asked, nothing is ignored or tracked.
func (q *ignoreQuery) ask(paths []string) error {
	byRepository := make(map[string][]string) // paths from root
	for _, p := range paths {
		if top := q.repository(p); top != "" {
			byRepository[top] = append(byRepository[top], p)
		}
	}
	for top, list := range byRepository {
		if err := q.askIgnored(top, list); err != nil {
			return err
		}
		built := make(map[string]bool)
		for _, p := range list {
			if within(p, builtFolders()) {
				built[builtFolder(p)] = true
			}
		}
		if err := q.askTracked(top, slices.Sorted(maps.Keys(built))); err != nil {
			return err
		}
	}
	return nil
}

// repository returns the top of the repository of a path: of those in root, the one that is
// nearest to the file, with links followed; else that of root. It is empty if there is none.
func (q *ignoreQuery) repository(p string) string {
	root, err := filepath.Abs(q.root)
	if err != nil {
		return ""
	}
	for dir := path.Dir(path.Clean(p)); dir != "."; dir = path.Dir(dir) {
		at := filepath.Join(root, filepath.FromSlash(dir))
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return folderWith(root, ".git")
}

// askIgnored asks for the ignored paths. Git refuses all paths of a call for one that it cannot
// judge, such as one behind a link: then it is asked for halves of them, down to single paths.
func (q *ignoreQuery) askIgnored(top string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	names := q.inside(top, paths)
	cmd := q.command(top, "check-ignore", "-z", "--stdin")
	cmd.Stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	out, err := cmd.Output()
	if stopped := q.ctx.Err(); stopped != nil {
		return stopped
	}
	const noneIgnored = 1
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err != nil && !ok: // no git program
		return nil
	case err != nil && exit.ExitCode() != noneIgnored:
		if len(paths) == 1 || q.command(top, "rev-parse", "--git-dir").Run() != nil { // of another user
			return q.ctx.Err()
		}
		half := len(paths) / 2
		if err := q.askIgnored(top, paths[:half]); err != nil {
			return err
		}
		return q.askIgnored(top, paths[half:])
	}
	printed := make(map[string]bool)
	for name := range bytes.SplitSeq(out, []byte{0}) {
		printed[string(name)] = true
	}
	for i, name := range names {
		if printed[name] {
			q.ignored[paths[i]] = true
		}
	}
	return nil
}

// askTracked asks for the folders that have tracked files.
func (q *ignoreQuery) askTracked(top string, folders []string) error {
	for i, name := range q.inside(top, folders) {
		out, err := q.command(top, "--literal-pathspecs", "ls-files", "-z", "--cached", "--", name+"/").Output()
		if stopped := q.ctx.Err(); stopped != nil {
			return stopped
		}
		q.tracked[folders[i]] = err == nil && len(out) > 0 // an error: there is no git program
	}
	return nil
}

func (q *ignoreQuery) command(top string, args ...string) *exec.Cmd {
	return git.Command(q.ctx, git.Query{Dir: top, Environ: os.Environ(), Own: true}, args...)
}

// inside returns paths relative to the top of a repository.
func (q *ignoreQuery) inside(top string, paths []string) []string {
	root, _ := filepath.Abs(q.root) // repository checked it
	names := make([]string, len(paths))
	for i, p := range paths {
		rel, err := filepath.Rel(top, filepath.Join(root, filepath.FromSlash(p)))
		if err != nil {
			rel = filepath.FromSlash(p)
		}
		names[i] = filepath.ToSlash(rel)
	}
	return names
}
