package heldout

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/perdure/perdure/internal/check/testreport"
)

// Same reports whether two checks are the same.
func (c *Check) Same(other *Check) bool {
	return c.Command == other.Command && c.Folder == other.Folder
}

// LayOver copies the files of the folder over those of a copy of the workspace; without a folder it
// does nothing.
func (c *Check) LayOver(root string) error {
	if c.Folder == "" {
		return nil
	}
	return filepath.WalkDir(c.Folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.Folder, name)
		if err != nil {
			return err
		}
		to := filepath.Join(root, rel)
		if e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		}
		if !e.Type().IsRegular() {
			return nil
		}
		return copyFile(name, to)
	})
}

func copyFile(name, to string) error {
	from, err := os.Open(name) //nolint:gosec // a file of the user
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, from); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// Own returns a report with the tests of the folder only: those in its files, and those that the
// completion command does not have without them. If there are none, all tests count.
func (c *Check) Own(report, visible *testreport.Report) *testreport.Report {
	if report == nil || c.Folder == "" {
		return report
	}
	known := make(map[string]bool)
	if visible != nil {
		for i := range visible.Tests {
			known[visible.Tests[i].ID] = true
		}
	}
	own := *report
	own.Tests = slices.DeleteFunc(slices.Clone(report.Tests), func(t testreport.Test) bool {
		return known[t.ID] && !c.has(t.File)
	})
	if len(own.Tests) == 0 {
		return report
	}
	return &own
}

// has reports whether a file of the copy is one of the folder.
func (c *Check) has(name string) bool {
	if name == "" || filepath.IsAbs(name) {
		return false
	}
	_, err := os.Lstat(filepath.Join(c.Folder, filepath.FromSlash(name)))
	return err == nil
}
