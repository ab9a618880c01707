// Package checkfile is the record of the files that the check itself writes: coverage
// reports, snapshots, caches, logs, formatted or generated files.
package checkfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/volatile"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/workspace"
)

// Files are the files that the check wrote before the first iteration, and what became of
// them since. They implement [workspace.Outside].
type Files struct {
	// Made are the files that did not exist before, and Folders the outermost such folders:
	// what is below them is the check's. Forms are made files with a number in their name,
	// as their folder and the form of the name: the check may write others like them.
	Made    []string `json:"made,omitempty"`
	Folders []string `json:"folders,omitempty"`
	Forms   []string `json:"forms,omitempty"`
	// Given are paths of these that the agent wrote and the check did not write again: they
	// are the agent's work from then on.
	Given []string `json:"given,omitempty"`
	// Rewritten are the files that existed before, and that the check changed. Edited are
	// those of them that changed in a turn of the agent: only these are judged, compared
	// with what the check made of them.
	Rewritten []string `json:"rewritten,omitempty"`
	Edited    []string `json:"edited,omitempty"`
	// Stamps are the stamps of the made files after the last check.
	Stamps map[string]string `json:"stamps,omitempty"`
}

// New returns the files of a check, from the changes of its first runs.
func New(changes []workspace.Change) *Files {
	f := &Files{}
	folders := make(map[string]bool)
	for i := range changes {
		c := &changes[i]
		if c.New != nil && c.New.Kind == workspace.KindFolder && c.Kind == workspace.Added {
			folders[c.Path] = true
		}
	}
	for i := range changes {
		c := &changes[i]
		switch {
		case c.New == nil || folders[path.Dir(c.Path)]:
		case c.Kind == workspace.Changed && c.New.Kind != workspace.KindFolder:
			f.Rewritten = append(f.Rewritten, c.Path)
		case c.Kind == workspace.Changed:
		case folders[c.Path]:
			f.Folders = append(f.Folders, c.Path)
		default:
			f.Made = append(f.Made, c.Path)
			if form := formOf(c.Path); form != c.Path && !slices.Contains(f.Forms, form) {
				f.Forms = append(f.Forms, form)
			}
		}
	}
	return f
}

// formOf returns a path with the form of its name.
func formOf(name string) string { return path.Join(path.Dir(name), volatile.Shape(path.Base(name))) }

// Read reads the record of a loop; empty data is an empty record.
func Read(data []byte) (*Files, error) {
	f := &Files{}
	if len(data) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("read record of the files of the check: %w", err)
	}
	return f, nil
}

// IsEmpty reports whether the check wrote no file.
func (f *Files) IsEmpty() bool { return len(f.Made)+len(f.Folders)+len(f.Rewritten) == 0 }

// Has reports whether a path is outside of the snapshots.
func (f *Files) Has(name string, folder bool) bool {
	if folder && f.leadsToGiven(name) || f.Gave(name) {
		return false
	}
	if slices.Contains(f.Made, name) || slices.Contains(f.Folders, name) {
		return true
	}
	for dir := path.Dir(name); len(f.Folders) > 0 && dir != "."; dir = path.Dir(dir) {
		if slices.Contains(f.Folders, dir) {
			return true
		}
	}
	return !folder && len(f.Forms) > 0 && slices.Contains(f.Forms, formOf(name))
}

// leadsToGiven reports whether a path of the agent is below a folder.
func (f *Files) leadsToGiven(folder string) bool {
	return slices.ContainsFunc(f.Given, func(p string) bool { return strings.HasPrefix(p, folder+"/") })
}

// Gave reports whether a path was the check's, and is the agent's now.
func (f *Files) Gave(name string) bool { return slices.Contains(f.Given, name) }

// Give finds the paths that changed since the last check, and that the check did not write
// again: the agent's. before and after are the made files before and after the check. What
// tools make again, such as caches and build products, stays the check's.
func (f *Files) Give(before, after []workspace.Excluded) (given []string) {
	was, is := stamps(before), stamps(after)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		changed := was[name] != f.Stamps[name]
		if changed && is[name] == was[name] && !cleancheck.IsGenerated(name) {
			given = append(given, name)
		}
	}
	f.Given = append(f.Given, given...)
	f.Stamps = is
	return given
}

// Keep records the made files after a check.
func (f *Files) Keep(after []workspace.Excluded) { f.Stamps = stamps(after) }

// maxStamps limits the files of which a record has the stamps. Of more, changes by the agent
// are not noticed; a clean copy does not have them.
const maxStamps = 20_000

func stamps(list []workspace.Excluded) map[string]string {
	all := make(map[string]string, len(list))
	if len(list) > maxStamps {
		return all
	}
	for i := range list {
		all[list[i].Path] = list[i].Stamp
	}
	return all
}

// Edit records the changes of a turn of the agent, and reports whether the record changed.
func (f *Files) Edit(changes []workspace.Change) bool {
	n := len(f.Edited)
	for i := range changes {
		for _, name := range []string{changes[i].Path, changes[i].From} {
			if slices.Contains(f.Rewritten, name) && !slices.Contains(f.Edited, name) {
				f.Edited = append(f.Edited, name)
			}
		}
	}
	return len(f.Edited) > n
}

// Judged returns the changes without those that only the check made.
func (f *Files) Judged(changes []workspace.Change) []workspace.Change {
	if len(f.Rewritten) == 0 {
		return changes
	}
	return slices.DeleteFunc(changes, func(c workspace.Change) bool {
		return c.Kind == workspace.Changed && slices.Contains(f.Rewritten, c.Path) && !slices.Contains(f.Edited, c.Path)
	})
}

// Names returns the folders and files that the check made, for users.
func (f *Files) Names() []string {
	var names []string
	for _, dir := range f.Folders {
		names = append(names, dir+"/")
	}
	return append(names, f.Made...)
}
