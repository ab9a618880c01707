package server

import (
	"os"
	"path/filepath"
	"strconv"
)

// opens reports whether a process has a file of the folder open. It also returns true if
// the process cannot be inspected.
func opens(pid int, dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	files := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(files)
	if err != nil {
		return true
	}
	for _, entry := range entries {
		name, err := os.Readlink(filepath.Join(files, entry.Name()))
		if err == nil && filepath.Dir(name) == dir {
			return true
		}
	}
	return false
}
