package mutate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/clip"
)

// Mutation is a change of a file.
type Mutation struct {
	Path string `json:"path"`
	// Line is the line of the change, counted from 1; Before and After are its text, without the
	// blanks around it and at most maxShown bytes long.
	Line   int    `json:"line"`
	Before string `json:"before"`
	After  string `json:"after"`

	edit
}

// maxShown is how many bytes of a line are shown.
const maxShown = 120

// edit replaces the bytes of a text from start to end. Of two edits the one with the lower rank
// changes more of what the code does.
type edit struct {
	start, end int
	text       string
	rank       rank
}

type rank int

const (
	rankReturn rank = iota
	rankCondition
	rankLogic
	rankStatement
	rankOperator
	rankConstant
	rankText
)

// Apply returns the changed text of the file.
func (m *Mutation) Apply(src string) string { return src[:m.start] + m.text + src[m.end:] }

// Find returns changes of a file in the lines that a function selects, at most so many. Functions
// take turns, each with its strongest changes first, so that a few cover all of them. Code of tests
// is not changed, nor are files in unknown languages.
func Find(path, src string, selects func(line int) bool, most int) []Mutation {
	lang := syntax.LanguageOf(path)
	if lang == nil || lang.TestFile(path) {
		return nil
	}
	f := newFile(path, src)
	functions := syntax.Read(lang, path, src).Funcs
	edits := make(map[int][]edit) // by the index of the function, -1 outside of all
	for _, e := range f.edits(selects) {
		if at := functionAt(functions, f.line(e.start)); at < 0 || !functions[at].Test {
			edits[at] = append(edits[at], e)
		}
	}
	return f.mutations(turns(edits), most)
}

// functionAt returns the index of the innermost function with a line, -1 if there is none.
func functionAt(functions []*syntax.Function, line int) int {
	found := -1
	for i, fn := range functions {
		if fn.Line <= line && line < fn.Line+max(fn.Lines, 1) && (found < 0 || fn.Line >= functions[found].Line) {
			found = i
		}
	}
	return found
}

// turns orders the edits of several functions.
func turns(edits map[int][]edit) []edit {
	groups := make([][]edit, 0, len(edits))
	for _, group := range edits {
		slices.SortStableFunc(group, func(a, b edit) int { return cmp.Or(int(a.rank-b.rank), a.start-b.start) })
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b []edit) int { return a[0].start - b[0].start })
	var all []edit
	for i := 0; ; i++ {
		any := false
		for _, group := range groups {
			if i < len(group) {
				all, any = append(all, group[i]), true
			}
		}
		if !any {
			return all
		}
	}
}

// mutations returns the first edits that change the text.
func (f *file) mutations(edits []edit, most int) []Mutation {
	var all []Mutation
	for _, e := range edits {
		if len(all) == most {
			break
		}
		m := Mutation{Path: f.path, Line: f.line(e.start), edit: e}
		from := strings.LastIndexByte(f.src[:e.start], '\n') + 1
		m.Before = shown(f.src[from:])
		m.After = shown(m.Apply(f.src)[from:])
		all = append(all, m)
	}
	return all
}

// shown returns the first line of a text as people see it.
func shown(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return clip.Bytes(strings.TrimSpace(line), maxShown)
}
