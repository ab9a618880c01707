package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// FolderName is the name of the folder that holds a project's store,
	// settings and socket.
	FolderName = ".perdure"
	// FileName is the name of the settings file in that folder.
	FileName = "config.yaml"
)

// Find returns the path of the folder .perdure in start, an absolute path, or in the
// nearest folder above it, or "" if there is none. A .perdure that is not a folder is
// an error, because no store can be created there.
func Find(start string) (string, error) {
	if !filepath.IsAbs(start) {
		return "", fmt.Errorf("find %s: start %q is not an absolute path", FolderName, start)
	}
	for dir := filepath.Clean(start); ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, FolderName)
		info, err := os.Stat(candidate)
		switch {
		case err == nil && info.IsDir():
			return candidate, nil
		case err == nil:
			return "", fmt.Errorf("find %s: %q is not a folder", FolderName, candidate)
		case !errors.Is(err, os.ErrNotExist):
			return "", fmt.Errorf("find %s: %w", FolderName, err)
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}
