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
// does nothing. It writes nowhere else: links of the copy, which the agent may have made, are replaced.
func (c *Check) LayOver(root string) error {
	if c.Folder == "" {
		return nil
	}
	to, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer to.Close()
	return filepath.WalkDir(c.Folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.Folder, name)
		switch {
		case err != nil || rel == ".":
			return err
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		case e.IsDir():
			return makeFolder(to, rel)
		}
		if err := to.RemoveAll(rel); err != nil {
			return err
		}
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return to.Symlink(target, rel)
		case e.Type().IsRegular():
			return copyFile(name, to, rel)
		}
		return nil
	})
}

// makeFolder makes a folder in the place of whatever else is there.
func makeFolder(in *os.Root, name string) error {
	switch info, err := in.Lstat(name); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		if err := in.RemoveAll(name); err != nil {
			return err
		}
	}
	return in.Mkdir(name, 0o700)
}

func copyFile(name string, to *os.Root, rel string) error {
	from, err := os.Open(name) //nolint:gosec // a file of the user
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	f, err := to.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
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
