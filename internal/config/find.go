package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perdure/perdure"
)

// Find returns the path of the folder .perdure in start, an absolute path, or in the
// nearest folder above it, or "" if there is none. The search ends at the root of a
// repository, the folder that contains .git: what is above it does not belong to the
// project. A .perdure that is a link, contains one, is not a folder or belongs to another
// user is an error.
func Find(start string) (string, error) {
	if !filepath.IsAbs(start) {
		return "", refuse(fmt.Sprintf("start %q is not an absolute path", start), "")
	}
	for dir := filepath.Clean(start); ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, FolderName)
		info, err := os.Lstat(candidate)
		if err == nil {
			return candidate, usable(candidate, info)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", refuse(err.Error(), "")
		}
		if dir == filepath.Dir(dir) || IsRoot(dir) {
			return "", nil
		}
	}
}

// IsRoot reports whether a folder is the root of a repository.
func IsRoot(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

const hintOtherFolder = "`perdure init` creates a folder here; PERDURE_DIR names the one to use"

// usable returns an error for a .perdure that is not a folder of this user.
func usable(name string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse(fmt.Sprintf("%q is a link", name), hintOtherFolder)
	case !info.IsDir():
		return refuse(fmt.Sprintf("%q is not a folder", name), "")
	case !ownedByUser(info):
		return refuse(fmt.Sprintf("%q belongs to another user", name), hintOtherFolder)
	}
	return withoutLinks(name)
}

// withoutLinks returns an error for a .perdure with a link in it: a repository could use the
// store or the daemon of another folder of the user.
func withoutLinks(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return refuse(err.Error(), "")
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			return refuse(fmt.Sprintf("%q is a link", filepath.Join(dir, e.Name())), "remove the link; PERDURE_DIR names "+
				"a folder that may contain links")
		}
	}
	return nil
}

func refuse(msg, hint string) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "find " + FolderName, Msg: msg, Hint: hint}
}
