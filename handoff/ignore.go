package handoff

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/git"
)

// OutputFolders returns the folders without sources, which [Sources] uses outside of git
// repositories.
func OutputFolders() []string {
	return []string{
		".cache", ".gradle", ".idea", ".mypy_cache", ".next", ".nuxt", ".pytest_cache", ".ruff_cache", ".svelte-kit",
		".terraform", ".tox", ".turbo", ".venv", "__pycache__", "bower_components", "build", "coverage", "dist",
		"node_modules", "obj", "out", "target", "venv",
	}
}

// Sources divides paths, which are relative to root and have slashes, into those of
// source files and the others, in their order. Ignored files, build output, and files
// outside of root or in .git or .perdure are not sources. In a git repository git
// decides what is ignored; tracked files never are. Elsewhere, and without a git
// program, files in [OutputFolders] are ignored.
func Sources(ctx context.Context, root string, paths []string) (sources, others []string, err error) {
	outside := func(p string) bool {
		return !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsRune(p, 0) ||
			within(p, []string{".git", ".perdure"})
	}
	ignored, known, err := gitIgnored(ctx, root, slices.DeleteFunc(slices.Clone(paths), outside))
	if err != nil {
		return nil, nil, err
	}
	for _, p := range paths {
		if !outside(p) && !ignored[p] && (known || !within(p, OutputFolders())) {
			sources = append(sources, p)
		} else {
			others = append(others, p)
		}
	}
	return sources, others, nil
}

// within reports whether a path is in one of the folders.
func within(p string, folders []string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(path.Clean(p)), "/"),
		func(part string) bool { return slices.Contains(folders, part) })
}

// gitIgnored returns the paths that git ignores; known is false without a repository or
// a git program.
func gitIgnored(ctx context.Context, root string, paths []string) (ignored map[string]bool, known bool, err error) {
	if len(paths) == 0 {
		return nil, true, nil
	}
	if abs, err := filepath.Abs(root); err != nil || folderWith(abs, ".git") == "" {
		return nil, false, nil
	}
	cmd := git.Command(ctx, git.Query{Dir: root, Environ: os.Environ(), Own: true}, "check-ignore", "-z", "--stdin")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := cmd.Output()
	if err := ctx.Err(); err != nil {
		return nil, false, &Error{Op: "list sources", File: root, Err: err}
	}
	const noneIgnored = 1
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != noneIgnored) {
		return nil, false, nil // no git program, or an unreadable repository
	}
	ignored = make(map[string]bool)
	for p := range bytes.SplitSeq(out, []byte{0}) {
		ignored[string(p)] = true
	}
	return ignored, true, nil
}
