package policy

import (
	"os"
	"path/filepath"

	"github.com/perdure/perdure/internal/toolguard/agentconfig"
)

// Folder returns the folder in which a call is judged that an agent makes in dir: dir itself,
// or if it was removed the project that the agent's environment names, or the folder above that
// still exists if it is in a project, or the folder of the hook.
func Folder(dir, fallback string, getenv func(string) string) string {
	if isFolder(dir) {
		return dir
	}
	for _, name := range []string{"CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"} {
		if project := getenv(name); filepath.IsAbs(project) && isFolder(project) {
			return project
		}
	}
	above := filepath.Dir(dir)
	for !isFolder(above) && above != filepath.Dir(above) {
		above = filepath.Dir(above)
	}
	if inProject(above) || !isFolder(fallback) {
		return above
	}
	return fallback
}

// isFilled reports whether a file exists and has content.
func isFilled(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// inProject reports whether a folder or one above it has a repository or settings of perdure.
func inProject(dir string) bool {
	root := agentconfig.Root(dir)
	_, settings := os.Lstat(filepath.Join(root, ".perdure"))
	_, repository := os.Lstat(filepath.Join(root, ".git"))
	return settings == nil || repository == nil
}
