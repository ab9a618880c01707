package coverage

import (
	"slices"
	"strings"
)

// FileLoss is what a file of the baseline lost.
type FileLoss struct {
	// File is the file in the baseline, Now what it is called now.
	File string `json:"file"`
	Now  string `json:"now"`
	// Still is how many of the lines that the baseline covered are still there,
	// Lost how many of these are not covered any more.
	Still int `json:"still"`
	Lost  int `json:"lost"`
	// Lines are the lost ones, by their numbers now.
	Lines Lines `json:"lines"`
}

// Percent is the share of Lost in Still, 0 to 100.
func (f *FileLoss) Percent() float64 {
	percent, _ := share(f.Lost, f.Still)
	return percent
}

// Loss is what a baseline's coverage lost.
type Loss struct {
	// Files are those with covered lines that are still there, sorted by the
	// baseline's name.
	Files []FileLoss `json:"files,omitempty"`
	// Still and Lost are the sums over the files.
	Still int `json:"still"`
	Lost  int `json:"lost"`
}

// Percent is the share of Lost in Still, 0 to 100: what thresholds are in.
func (l *Loss) Percent() float64 {
	percent, _ := share(l.Lost, l.Still)
	return percent
}

// Only is the loss of the files that keep returns true for, by their present
// name: sensitive paths have a threshold of their own.
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

// Lost compares the lines that the baseline covered, as far as they still
// exist, with the present profile. A line that exists and is no longer one that
// could be covered is lost, too: pragmas that exclude it do that. Follow says
// where a file of the baseline and its lines are now; ok is false when the
// file is gone. It is called once for each file with covered lines, in order
// of their names. For a file that did not change, use Same, or Unchanged.
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

// Same maps every line of a text with a letter or digit to itself.
func Same(text []byte) LineMap { return FollowLines(text, text) }

// Worst returns the files that lost most lines, at most n of them: those to
// name in a prompt.
func (l *Loss) Worst(n int) []FileLoss {
	var all []FileLoss
	for _, f := range l.Files {
		if f.Lost > 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b FileLoss) int {
		if a.Lost != b.Lost {
			return b.Lost - a.Lost
		}
		return strings.Compare(a.File, b.File)
	})
	return all[:min(n, len(all))]
}
