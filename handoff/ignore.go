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
)

// OutputFolders are the folders that hold no sources where there is no git to
// ask: [Sources] leaves out what is in them.
func OutputFolders() []string {
	return []string{
		".cache", ".gradle", ".idea", ".mypy_cache", ".next", ".nuxt", ".pytest_cache", ".ruff_cache", ".svelte-kit",
		".terraform", ".tox", ".turbo", ".venv", "__pycache__", "bower_components", "build", "coverage", "dist",
		"node_modules", "obj", "out", "target", "venv",
	}
}

// never are the folders whose content is never a source.
func never() []string { return []string{".git", ".perdure"} }

// Sources divides paths, relative to root, with slashes, into those of source
// files and the others, both in their order: ignored files and build output are
// not sources, and nothing outside of root, or in .git or .perdure, is. In a git
// repository git says what is ignored; what it tracks never is. Elsewhere, and
// without a git program, it is what lies in one of the [OutputFolders].
func Sources(ctx context.Context, root string, paths []string) (sources, others []string, err error) {
	var inside []string
	ok := make(map[string]bool, len(paths))
	for _, p := range paths {
		if filepath.IsLocal(filepath.FromSlash(p)) && !strings.ContainsRune(p, 0) && !within(p, never()) {
			inside = append(inside, p)
		}
	}
	ignored, known, err := gitIgnored(ctx, root, inside)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range inside {
		if known {
			ok[p] = !ignored[p]
		} else {
			ok[p] = !within(p, OutputFolders())
		}
	}
	for _, p := range paths {
		if ok[p] {
			sources = append(sources, p)
		} else {
			others = append(others, p)
		}
	}
	return sources, others, nil
}

// within tells whether a path has one of the folders among its own.
func within(p string, folders []string) bool {
	for _, part := range strings.Split(path.Dir(path.Clean(p)), "/") {
		if slices.Contains(folders, part) {
			return true
		}
	}
	return false
}

// gitIgnored asks git; known is false when there is no repository or no git.
func gitIgnored(ctx context.Context, root string, paths []string) (ignored map[string]bool, known bool, err error) {
	if len(paths) == 0 {
		return nil, true, nil
	}
	if !inRepository(root) {
		return nil, false, nil
	}
	// Settings of the repository that start programs are not for a question.
	cmd := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin")
	cmd.Dir = root
	cmd.Env = append(ownRepository(os.Environ()), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := cmd.Output()
	if err := ctx.Err(); err != nil {
		return nil, false, &Error{Op: "list sources", File: root, Err: err}
	}
	const noneIgnored = 1
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != noneIgnored) {
		return nil, false, nil // no git, or not a repository that it can read
	}
	ignored = make(map[string]bool)
	for _, p := range bytes.Split(out, []byte{0}) {
		ignored[string(p)] = true
	}
	return ignored, true, nil
}

// ownRepository leaves out the variables by which git, when it runs a hook, says
// which repository is meant: another one, perhaps.
func ownRepository(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}, name)
	})
}

func inRepository(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}
