package decider

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
)

// Decider is a changed file, or the changed files of a folder, that decide what a check runs.
type Decider struct {
	// Path is the file, or the folder with a slash at its end. From is its old path if it was moved.
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	// Change is added, changed, deleted or renamed; Files counts the files if they are several.
	Change workspace.ChangeKind `json:"change"`
	Files  int                  `json:"files,omitempty"`
	// Ecosystem, Part and Decides are those of the table.
	Ecosystem string `json:"ecosystem,omitempty"`
	Part      Part   `json:"part"`
	Decides   string `json:"decides"`
	// Allowed is set if the user allowed the path, Adds if the file only gains dependencies: the
	// check runs with the agent's version then.
	Allowed bool `json:"allowed,omitempty"`
	Adds    bool `json:"adds_dependencies,omitempty"`
}

// Described returns the path, the kind of the change, and what the file decides.
func (d *Decider) Described() string {
	text := d.Path + " ("
	if d.Files > 1 {
		text += human.Count(int64(d.Files), "file") + ", "
	}
	switch {
	case d.From != "":
		text += "was " + d.From + ", "
	case d.Change != workspace.Changed:
		text += string(d.Change) + ", "
	}
	return text + d.Decides + ")"
}

// String is Described, and whether the change is allowed or only adds dependencies.
func (d *Decider) String() string {
	text := d.Described()
	switch {
	case d.Allowed:
		text += ", allowed"
	case d.Adds:
		text += ", only adds dependencies"
	}
	return text
}

// Versions reads the two versions of a workspace.
type Versions struct {
	// Was and Is report whether a path is a file of the version before and of that after.
	Was, Is func(name string) bool
	// Old and New return the content of a file in these versions; nil if there is none.
	Old, New func(name string) ([]byte, error)
	// Names returns the paths of the version before.
	Names func() []string
	// Installed reports whether an ignored file of the workspace matches a pattern; may be nil.
	Installed func(pattern string) bool
	// Allowed reports whether the user allowed changes of a file; may be nil.
	Allowed func(name string) bool
}

// Found are the deciding changes.
type Found struct {
	// Deciders are shown to people.
	Deciders []Decider
	// Put are the paths of the version before, and Drop the paths of the version after, that make
	// the deciding files as before, without the allowed ones.
	Put, Drop []string
}

// maxRead is the size of the largest deciding file of which the text is compared.
const maxRead = 1 << 20

// Find returns the deciding files among changes.
func (v *Versions) Find(changes []workspace.Change) (*Found, error) {
	f := &Found{}
	groups := make(map[string]int)
	s := newShadows(v)
	for i := range changes {
		c := &changes[i]
		d, err := v.judge(c, changes, s)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		d.Allowed = v.Allowed != nil && (v.Allowed(d.Path) || d.From != "" && v.Allowed(d.From))
		if !d.Allowed && !d.Adds {
			f.reset(c, d)
		}
		f.add(d, groups)
	}
	slices.SortStableFunc(f.Deciders, func(a, b Decider) int { return cmp.Compare(a.Path, b.Path) })
	return f, nil
}

// judge returns the decider that a change is; nil if it decides nothing.
func (v *Versions) judge(c *workspace.Change, all []workspace.Change, s *shadows) (*Decider, error) {
	if isFolder(c.Old) && isFolder(c.New) {
		return nil, nil
	}
	d := &Decider{Path: c.Path, Change: c.Kind}
	if r := v.rowOf(c.Path); r != nil {
		d.Ecosystem, d.Part, d.Decides = r.Ecosystem, r.Part, r.Decides
	} else if r := v.rowOf(c.From); c.From != "" && r != nil {
		d.Ecosystem, d.Part, d.Decides, d.From = r.Ecosystem, r.Part, r.Decides, c.From
	}
	if d.Decides != "" {
		return v.compared(c, d, all)
	}
	if lost := uncollected(c, all); lost != nil {
		return lost, nil
	}
	if script, err := v.script(c); script != nil || err != nil {
		return script, err
	}
	return s.find(c)
}

// compared returns the decider of the table, unless its meaning is as before.
func (v *Versions) compared(c *workspace.Change, d *Decider, all []workspace.Change) (*Decider, error) {
	old, err := content(c.Old, v.Old)
	if err != nil {
		return nil, err
	}
	now, err := content(c.New, v.New)
	if err != nil {
		return nil, err
	}
	if c.Kind == workspace.Changed && c.Old.Kind == c.New.Kind && old != nil && now != nil &&
		slices.Equal(meaning(old), meaning(now)) {
		return nil, nil
	}
	d.Adds, err = v.onlyAdds(&dependencyFile{path: c.Path, old: old, now: now}, all)
	return d, err
}

// content reads a version of a changed file; nil if there is none, or if it is too large.
func content(f *workspace.File, read func(string) ([]byte, error)) ([]byte, error) {
	if f == nil || f.Kind != workspace.KindFile || f.Size > maxRead {
		return nil, nil
	}
	text, err := read(f.Path)
	if text == nil && err == nil {
		text = []byte{}
	}
	return text, err
}

// meaning returns the lines of a text without empty ones, and without comments that take a line.
func meaning(text []byte) []string {
	var lines []string
	for line := range strings.Lines(string(text)) {
		bare := strings.TrimSpace(line)
		comment := strings.HasPrefix(bare, "#") && !strings.HasPrefix(bare, "#!") ||
			strings.HasPrefix(bare, "// ") && !strings.HasPrefix(bare, "// +build")
		if bare != "" && !comment {
			lines = append(lines, strings.TrimRight(line, " \t\r\n"))
		}
	}
	return lines
}

func isFolder(f *workspace.File) bool { return f == nil || f.Kind == workspace.KindFolder }

// reset adds the paths that undo a change.
func (f *Found) reset(c *workspace.Change, d *Decider) {
	if !isFolder(c.Old) {
		f.Put = append(f.Put, c.Old.Path)
	} else if d.From != "" { // moved and edited
		f.Put = append(f.Put, d.From)
	}
	if !isFolder(c.New) && (isFolder(c.Old) || c.Old.Path != c.New.Path) {
		f.Drop = append(f.Drop, c.New.Path)
	}
}

// add adds a decider. The files of a folder of libraries are one.
func (f *Found) add(d *Decider, groups map[string]int) {
	folder := libraryFolder(d.Path)
	if folder == "" || d.Part != Library && d.Part != Loader {
		f.Deciders = append(f.Deciders, *d)
		return
	}
	key := fmt.Sprint(folder, d.Allowed, d.Adds, d.Decides)
	at, known := groups[key]
	if !known {
		groups[key] = len(f.Deciders)
		d.Files = 1
		f.Deciders = append(f.Deciders, *d)
		return
	}
	g := &f.Deciders[at]
	g.Path, g.From, g.Files = folder, "", g.Files+1
	if g.Change != d.Change {
		g.Change = workspace.Changed
	}
}

// libraryFolder returns the part of a path up to the folder with the libraries; "" if it leads
// through none.
func libraryFolder(name string) string {
	end := 0
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		end += len(dir) + 1
		if slices.Contains([]string{"node_modules", "vendor", "site-packages", ".venv", "venv", "third_party", ".yarn",
			"dist-packages", "__pypackages__", "bower_components", "jspm_packages"}, dir) ||
			strings.HasSuffix(dir, ".egg-info") || strings.HasSuffix(dir, ".dist-info") {
			return name[:end]
		}
	}
	return ""
}
