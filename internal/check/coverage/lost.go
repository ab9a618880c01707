package coverage

import (
	"cmp"
	"slices"
	"strings"
)

// FileLoss is the coverage that a file of the baseline lost.
type FileLoss struct {
	// File is the path in the baseline, Now the current one.
	File string `json:"file"`
	Now  string `json:"now"`
	// Still is the number of lines that the baseline covered and that still exist, Lost the
	// number of those that are no longer covered.
	Still int `json:"still"`
	Lost  int `json:"lost"`
	// Lines are the lost lines, by their current numbers.
	Lines Lines `json:"lines"`
}

// Loss is the coverage that a baseline lost.
type Loss struct {
	// Files are the files with covered lines that still exist, sorted by the baseline's
	// path.
	Files []FileLoss `json:"files,omitempty"`
	// Still and Lost are the sums over the files.
	Still int `json:"still"`
	Lost  int `json:"lost"`
}

// Percent returns Lost in percent of Still, as compared with thresholds.
func (l *Loss) Percent() float64 {
	percent, _ := share(l.Lost, l.Still)
	return percent
}

// Only returns the loss of the files for which keep returns true, by their current path:
// sensitive paths have a threshold of their own.
func (l *Loss) Only(keep func(name string) bool) Loss {
	var part Loss
	for _, f := range l.Files {
		if keep(f.Now) {
			part.add(f)
		}
	}
	return part
}

func (l *Loss) add(f FileLoss) {
	l.Files = append(l.Files, f)
	l.Still += f.Still
	l.Lost += f.Lost
}

// Lost compares the lines that the baseline covered, as far as they still exist, with the
// current profile. An existing line that can no longer be covered is lost, too: pragmas
// that exclude it do that. Follow returns the current path of a file of the baseline and
// a map of its lines; ok is false if the file was removed. It is called once for each
// file with covered lines, in order of their paths. For an unchanged file, use
// Unchanged.
func Lost(baseline, now *Profile, follow func(file string) (name string, lines LineMap, ok bool)) Loss {
	var loss Loss
	for _, name := range baseline.Names() {
		covered := &baseline.Files[name].Covered
		if covered.Len() == 0 {
			continue
		}
		present, lines, ok := follow(name)
		if !ok {
			continue
		}
		f := FileLoss{File: name, Now: present}
		var have *Lines
		if at := now.Files[present]; at != nil {
			have = &at.Covered
		}
		for line := range covered.All() {
			became, ok := lines.To(line)
			if !ok {
				continue
			}
			f.Still++
			if have == nil || !have.Has(became) {
				f.Lost++
				f.Lines.Add(became)
			}
		}
		if f.Still > 0 {
			loss.add(f)
		}
	}
	return loss
}

// Worst returns the files that lost most lines, at most n.
func (l *Loss) Worst(n int) []FileLoss {
	all := slices.DeleteFunc(slices.Clone(l.Files), func(f FileLoss) bool { return f.Lost == 0 })
	slices.SortFunc(all, func(a, b FileLoss) int {
		return cmp.Or(b.Lost-a.Lost, strings.Compare(a.File, b.File))
	})
	return all[:min(n, len(all))]
}
