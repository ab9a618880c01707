package coverage

import (
	"bytes"
	"maps"
	"slices"
	"unicode"
)

// Profile says which lines of which files can be covered, and which were. Its
// zero value is empty. It is a value to store and to compare, and must not be
// changed while others read it.
type Profile struct {
	// Files are the files by their path relative to the workspace, with
	// slashes.
	Files map[string]*File `json:"files"`
	// Foreign is how many files the input named that are not in the workspace.
	Foreign int `json:"foreign,omitempty"`
	// Complete tells whether the input has the end its format provides; Reason
	// says why not.
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"`
}

// File is the coverage of one file.
type File struct {
	// Code are the lines that could be covered, Covered those that were. Every
	// covered line is one of Code.
	Code    Lines `json:"code"`
	Covered Lines `json:"covered"`
}

// Percent is the share of the lines that could be covered, 0 to 100; ok is
// false when there are none.
func (f *File) Percent() (percent float64, ok bool) { return share(f.Covered.Len(), f.Code.Len()) }

// KeepSaying drops the covered lines that hold no letter or digit in the text of
// the file, which [Lost] does not ask for. Percent is another one then.
func (f *File) KeepSaying(text []byte) {
	var kept Lines
	n := 0
	for line := range bytes.Lines(text) {
		if n++; f.Covered.Has(n) && says(line) {
			kept.Add(n)
		}
	}
	f.Covered = kept
}

// says tells whether a line holds a letter or digit.
func says(line []byte) bool {
	return bytes.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func share(part, whole int) (percent float64, ok bool) {
	if whole == 0 {
		return 0, false
	}
	return 100 * float64(part) / float64(whole), true
}

// Percent is the share over all files, weighted by their lines; ok is false
// when there are none.
func (p *Profile) Percent() (percent float64, ok bool) {
	covered, code := p.Count()
	return share(covered, code)
}

// Count is the number of covered lines, and of those that could be.
func (p *Profile) Count() (covered, code int) {
	for _, f := range p.Files {
		covered += f.Covered.Len()
		code += f.Code.Len()
	}
	return covered, code
}

// Names are the paths of the files, sorted.
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

// Merge makes one profile of several: a line is covered when one of them says
// so. Without any the result is not complete.
func Merge(profiles ...*Profile) *Profile {
	merged := &Profile{Complete: true}
	if len(profiles) == 0 {
		merged.Complete, merged.Reason = false, "no coverage was found"
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
