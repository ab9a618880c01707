package coverage

import (
	"bytes"
	"maps"
	"slices"
	"unicode"
)

// Profile is the set of lines that can be covered, and of those that were, by file. Its
// zero value is empty. It must not be changed while other goroutines read it.
type Profile struct {
	// Files are the files by their path relative to the workspace, with slashes.
	Files map[string]*File `json:"files"`
	// Foreign is the number of files in the input that are outside of the workspace.
	Foreign int `json:"foreign,omitempty"`
	// Complete is set if the input has the end that its format requires; Reason is why it
	// has not.
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"`
}

// File is the coverage of one file.
type File struct {
	// Code are the lines that can be covered, Covered those that were. Every covered line
	// is one of Code.
	Code    Lines `json:"code"`
	Covered Lines `json:"covered"`
}

// KeepSolid drops the covered lines that have no letter or digit in the text of the file,
// which [Lost] ignores. This changes the percentage of its profile.
func (f *File) KeepSolid(text []byte) {
	var kept Lines
	n := 0
	for line := range bytes.Lines(text) {
		if n++; f.Covered.Has(n) && isSolid(line) {
			kept.Add(n)
		}
	}
	f.Covered = kept
}

// isSolid reports whether a line has a letter or digit.
func isSolid(line []byte) bool {
	return bytes.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func share(part, whole int) (percent float64, ok bool) {
	if whole == 0 {
		return 0, false
	}
	return 100 * float64(part) / float64(whole), true
}

// Percent returns the percentage over all files, weighted by their lines; ok is false if
// there is no code.
func (p *Profile) Percent() (percent float64, ok bool) {
	covered, code := p.Count()
	return share(covered, code)
}

// Count returns the number of covered lines, and of lines of code.
func (p *Profile) Count() (covered, code int) {
	for _, f := range p.Files {
		covered += f.Covered.Len()
		code += f.Code.Len()
	}
	return covered, code
}

// Names returns the paths of the files, sorted.
func (p *Profile) Names() []string { return slices.Sorted(maps.Keys(p.Files)) }

func (p *Profile) file(name string) *File {
	if p.Files == nil {
		p.Files = make(map[string]*File)
	}
	f := p.Files[name]
	if f == nil {
		f = &File{}
		p.Files[name] = f
	}
	return f
}

// Merge merges profiles: a line is covered if one of them covers it. Without any profile
// the result is not complete.
func Merge(profiles ...*Profile) *Profile {
	merged := &Profile{Complete: true}
	if len(profiles) == 0 {
		merged.Complete, merged.Reason = false, "no coverage found"
	}
	for _, p := range profiles {
		for name, f := range p.Files {
			to := merged.file(name)
			to.Code.Merge(&f.Code)
			to.Covered.Merge(&f.Covered)
		}
		merged.Foreign += p.Foreign
		if !p.Complete && merged.Complete {
			merged.Complete, merged.Reason = false, p.Reason
		}
	}
	return merged
}
