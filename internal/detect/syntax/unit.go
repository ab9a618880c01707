package syntax

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// unit is a version of a file in a known language while its model is made.
type unit struct {
	lang  *Language
	path  string
	src   string
	tok   []lex.Token
	notes []lex.Comment
	// match has the index of the matching bracket, or of the end of a Ruby block; -1 for none.
	match []int32
	// heads are the tokens that begin a logical line, in indented languages.
	heads []int32
	decls []decl
	// exports are the names that JavaScript exports apart from their declaration.
	exports set
	// inside is the end of the last test that is a call.
	inside int
	// off is the end of a block that runs only in some builds.
	off int
	// last, offAt and falseNames cache the results of lastOf, offHeads and givenFalse.
	last  map[place]int
	offAt []int

	// inTests is set for a test file, by its name; tests has an entry for each declaration.
	inTests bool
	tests   []bool
	// dead are the spans of test code that never runs.
	dead [][2]int
	// skipPlaces are the conditions under which tests are skipped; see skipwhen.go.
	skipPlaces []skipPlace
	// given has the places where names are assigned; nil until needed.
	given map[string][]int
	// skippers are the functions that skip the calling test, hooks the ones before the tests of a
	// suite that skip them; see hooks.go.
	skippers map[string]skipper
	hooks    []hook
	readerMemory
}

// readerMemory is the memory that reading one file leaves for the next.
type readerMemory struct {
	whole, aside lex.Reader // of the file, and of single lines
	open         []int32
	lines        []uint64
	scratch      multiset.Hashes
	bytes        []byte
}

// declKind is the kind of a declaration.
type declKind uint8

// The kinds of declarations.
const (
	declFunction declKind = iota
	DeclContainer
	declTest  // a call with a title that is a test
	declSuite // a call with a title that contains tests
)

// decl is a declaration and its tokens, [start, end).
type decl struct {
	kind  declKind
	name  string
	start int // with annotations
	at    int // the name, or the word of a call
	body  int // the first token of the body; end when there is none
	end   int
	// annotations include decorators and attributes.
	annotations []annotation
	modifiers   []string
	// parent is the index of the innermost declaration around it; -1 for none.
	parent int
	// cases are the rows of a test's table.
	cases []Case
	// tables are the brackets and strings of separate tables.
	tables []int
	test   bool // a function that is a test
	// dropped are the calls of Go whose last result is discarded.
	dropped multiset.Hashes
	calls   []string
}

// leaf returns the name without its qualifier, such as the receiver type of Go.
func (d *decl) leaf() string { return d.name[strings.LastIndexByte(d.name, '.')+1:] }

// annotatedBy reports whether a condition holds for the name of an annotation.
func (d *decl) annotatedBy(is func(name string) bool) bool {
	return slices.ContainsFunc(d.annotations, func(a annotation) bool { return is(a.name) })
}

// annotation is an annotation of a declaration.
type annotation struct {
	name string
	from int // its tokens: [from, to)
	to   int
}

// begin resets the unit and reads the tokens of a file.
func (u *unit) begin(lang *Language, path, src string) {
	u.lang, u.path, u.src = lang, path, src
	u.inTests = lang.TestFile(path)
	u.decls, u.heads, u.inside = u.decls[:0], u.heads[:0], 0
	u.exports, u.skipPlaces, u.given, u.last, u.offAt = nil, nil, nil, nil, nil
	u.tok, u.notes = u.whole.Read(&lang.rules, src)
	u.tok = slices.Clip(u.tok) // tokens of another file are behind these
	u.brackets()
}

// at returns the text of a token; empty beyond the ends.
func (u *unit) at(i int) string {
	if i < 0 || i >= len(u.tok) {
		return ""
	}
	return u.tok[i].S
}

func (u *unit) kindAt(i int) lex.Kind {
	if i < 0 || i >= len(u.tok) {
		return lex.Op
	}
	return u.tok[i].Kind
}

func (u *unit) isWord(i int) bool { return u.kindAt(i) == lex.Word }

// anyOf reports whether a condition holds for an index in [from, to).
func anyOf(from, to int, holds func(i int) bool) bool {
	for i := from; i < to; i++ {
		if holds(i) {
			return true
		}
	}
	return false
}

// line returns the line of a token.
func (u *unit) line(i int) int {
	if len(u.tok) == 0 {
		return 0
	}
	return int(u.tok[min(max(i, 0), len(u.tok)-1)].Line)
}

// firstHash is the initial value of hashes over tokens.
const firstHash = uint64(14695981039346656037)

// mixed continues a hash over the tokens [from, to), which may be empty.
func (u *unit) mixed(h uint64, from, to int) uint64 { return mixAll(h, u.tok[from:max(from, to)]) }

// mixAll continues a hash over tokens.
func mixAll(h uint64, tokens []lex.Token) uint64 {
	for i := range tokens {
		h = mixHash(h, tokens[i].Hash)
	}
	return h
}

// text returns the source of the tokens [from, to), at most 400 bytes.
func (u *unit) text(from, to int) string {
	if from >= to || from < 0 || to > len(u.tok) {
		return ""
	}
	last := u.tok[to-1]
	begin, end := int(u.tok[from].Off), int(last.Off)+len(last.S)
	return strings.ToValidUTF8(strings.Clone(u.src[begin:min(end, begin+400)]), "")
}

// small converts the index of a token; the limits of a file keep it in range.
func small(n int) int32 { return int32(n) } //nolint:gosec // see above

// brackets finds matching brackets. A mismatched closing bracket closes the open ones inside.
func (u *unit) brackets() {
	u.match = u.match[:0]
	for range u.tok {
		u.match = append(u.match, -1)
	}
	open := u.open[:0]
	defer func() { u.open = open }()
	depth := [3]int{}
	for i := range u.tok {
		t := &u.tok[i]
		if u.lang.shape == indents && t.First && len(open) == 0 {
			u.heads = append(u.heads, small(i))
		}
		if t.Kind != lex.Op || len(t.S) != 1 {
			continue
		}
		if n := strings.IndexByte("([{", t.S[0]); n >= 0 {
			open = append(open, small(i))
			depth[n]++
			continue
		}
		n := strings.IndexByte(")]}", t.S[0])
		if n < 0 || depth[n] == 0 {
			continue
		}
		for len(open) > 0 {
			last := open[len(open)-1]
			open = open[:len(open)-1]
			kind := strings.IndexByte("([{", u.tok[last].S[0])
			depth[kind]--
			if kind == n {
				u.match[last], u.match[i] = small(i), last
				break
			}
		}
	}
}

// closer returns the index after the bracket that closes the one at i, or the end of the file.
func (u *unit) closer(i int) int {
	if m := u.match[i]; m >= 0 {
		return int(m) + 1
	}
	return len(u.tok)
}

// opens reports whether an opening bracket is at i.
func (u *unit) opens(i int) bool {
	return u.kindAt(i) == lex.Op && (u.at(i) == "(" || u.at(i) == "[" || u.at(i) == "{")
}

// find returns the first token in [i, to) that is one of some, outside of brackets; to or more for
// none.
func (u *unit) find(i, to int, some ...string) int {
	for ; i < to; i++ {
		if slices.Contains(some, u.at(i)) {
			return i
		}
		if u.opens(i) {
			i = u.closer(i) - 1
		}
	}
	return i
}

// parts returns the parts of [from, to) between commas that are not empty.
func (u *unit) parts(from, to int) [][2]int {
	var all [][2]int
	for from < to {
		comma := u.find(from, to, ",")
		if comma > from && comma <= to {
			all = append(all, [2]int{from, comma})
		}
		from = comma + 1
	}
	return all
}

// opener returns the bracket that the one at i closes; -1 for none.
func (u *unit) opener(i int) int { return int(u.match[i]) }

// lineEnd returns the end of a statement that begins at i and ends with its line or a semicolon.
func (u *unit) lineEnd(i int) int {
	start := i
	for i < len(u.tok) {
		t := &u.tok[i]
		if i > start && t.First && !goesOn(u.at(i-1), t.S) {
			return i
		}
		switch t.S {
		case ";":
			return i + 1
		case "(", "[", "{":
			if t.Kind == lex.Op {
				i = u.closer(i)
				continue
			}
		case ")", "]", "}":
			if t.Kind == lex.Op {
				return i
			}
		}
		i++
	}
	return i
}

// goesOn reports whether a statement continues from one line to the next.
func goesOn(last, next string) bool {
	return oneOf(next, ".", "?.", "&&", "||", "?:", "??") || last == "?:" || last == "??" || next == "->" || oneOf(last,
		".", ",", "=", "&&", "||", "+", "=>", "\\")
}

// statementEnd returns the end of the statement at i.
func (u *unit) statementEnd(i int) int {
	if u.lang.lines {
		return u.lineEnd(i)
	}
	for i < len(u.tok) {
		switch t := &u.tok[i]; {
		case t.Kind != lex.Op:
		case t.S == ";":
			return i + 1
		case t.S == "(" || t.S == "[" || t.S == "{":
			i = u.closer(i)
			continue
		case t.S == ")" || t.S == "]" || t.S == "}":
			return i
		}
		i++
	}
	return i
}

// trimmed returns to without the semicolons at the end of the tokens [from, to).
func (u *unit) trimmed(from, to int) int {
	for to > from && u.at(to-1) == ";" {
		to--
	}
	return to
}

// nest sets the parents of the declarations. It sorts by start, the longest first.
func (u *unit) nest() {
	slices.SortStableFunc(u.decls, func(a, b decl) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var around []int
	kept := u.decls[:0]
	for _, d := range u.decls {
		for len(around) > 0 && kept[around[len(around)-1]].end <= d.start {
			around = around[:len(around)-1]
		}
		d.parent = -1
		if len(around) > 0 {
			d.parent = around[len(around)-1]
		}
		if len(around) >= maxNested {
			continue
		}
		around = append(around, len(kept))
		kept = append(kept, d)
	}
	u.decls = kept
}

// maxNested limits the nesting of declarations; deeper ones belong to those around them.
const maxNested = 48

// notesBefore returns the comments that begin in the 25 lines up to a line.
func (u *unit) notesBefore(line int) []lex.Comment {
	by := func(n lex.Comment, line int) int { return int(n.Line) - line }
	from, _ := slices.BinarySearchFunc(u.notes, line-25, by)
	to, _ := slices.BinarySearchFunc(u.notes, line+1, by)
	return u.notes[from:to]
}

// fullName returns the name of a declaration after the names of those around it.
func (u *unit) fullName(i int) string {
	var parts []string
	for ; i >= 0 && len(parts) < 64; i = u.decls[i].parent {
		if n := u.decls[i].name; n != "" {
			parts = append(parts, n)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, NameSeparator)
}

// NameSeparator separates the parts of a test's name.
const NameSeparator = " > "

// called reports whether the word at i is called: f(x), or f<T>(x).
func (u *unit) called(i int) bool {
	if !u.isWord(i) {
		return false
	}
	j := i + 1
	if u.at(j) == "::" { // Rust
		j++
	}
	if u.at(j) != "<" {
		return u.at(i+1) == "("
	}
	for depth := 0; j < min(len(u.tok), i+maxTypes); j++ {
		switch s := u.at(j); {
		case s == "<":
			depth++
		case s == ">":
			if depth--; depth == 0 {
				return u.at(j+1) == "("
			}
		case !u.isWord(j) && s != "," && s != "." && s != "::" && s != "?" && s != "[" && s != "]":
			return false
		}
	}
	return false
}

// maxTypes is the maximum length of the type arguments of a call.
const maxTypes = 40
