package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// declare finds the declarations of a file.
func (u *unit) declare() {
	if u.lang.declare != nil {
		u.lang.declare(u)
	} else {
		u.declareBraces()
	}
	if len(u.lang.tests) > 0 {
		u.declareCalls()
	}
	u.nest()
}

// notNames are words before a parenthesis that do not name a function.
var notNames = sync.OnceValue(wordSet("if for while switch catch return function synchronized using lock foreach " +
	"with do else try new await when fixed elseif match declare typeof throw in of"))

// noName reports whether the word at i does not name a function; "of" is a name outside loops.
func (u *unit) noName(i int) bool {
	s := u.at(i)
	return notNames()[s] && !u.lang.names[s] && (s != "of" || u.at(i-1) != "static")
}

// declareBraces finds declarations with a body in braces.
func (u *unit) declareBraces() {
	for i := range u.tok {
		t := &u.tok[i]
		switch {
		case t.Kind == lex.Word && u.lang.functions[t.S] && u.at(i-1) != "." && u.at(i-1) != "->":
			u.worded(i)
		case t.Kind == lex.Word && u.lang.containers[t.S] && u.at(i-1) != "." && u.at(i-1) != "::":
			u.container(i)
		case t.Kind == lex.Op && t.S == "{" && u.lang.typed:
			u.typed(i)
		case t.Kind == lex.Op && t.S == "=>" && u.lang.arrow != nil:
			u.lang.arrow(u, i)
		}
	}
}

// worded reads a function declared by a keyword.
func (u *unit) worded(i int) {
	at := i + 1
	for at < len(u.tok) && (u.at(at) == "&" || u.at(at) == "*") {
		at++
	}
	if u.at(at) == "<" { // type parameters of Kotlin
		at = u.angles(at)
	}
	at = u.receiver(at)
	name := ""
	if u.isWord(at) {
		name = u.at(at)
	} else if u.at(at) == "(" { // const f = function () {}
		name, at = u.assigned(i-1), i
		if name == "" {
			return
		}
	} else {
		return
	}
	paren := at + 1
	if u.at(at) != name {
		paren = i + 1
	}
	if u.at(paren) == "<" {
		paren = u.angles(paren)
	}
	if u.at(paren) != "(" {
		return
	}
	body, end := u.bodyAfter(u.closer(paren))
	u.decls = append(u.decls, u.annotated(decl{kind: declFunction, name: strings.Trim(name, "`"), at: at, start: i,
		body: body, end: end}))
}

// angles skips the type parameters at i.
func (u *unit) angles(i int) int {
	depth := 0
	for j := i; j < len(u.tok) && j < i+100; j++ {
		switch u.at(j) {
		case "<":
			depth++
		case ">":
			if depth--; depth == 0 {
				return j + 1
			}
		case "{", ";":
			return i
		}
	}
	return i
}

// bodyAfter returns the body of a function whose parameters end before i.
func (u *unit) bodyAfter(i int) (body, end int) {
	for j := i; j < len(u.tok) && j < i+120; j++ {
		switch s := u.at(j); s {
		case "{":
			return j, u.closer(j)
		case ";":
			return j, j + 1
		case "=", "=>":
			if u.lang.blockBodies { // of an associated type: Iterator<Item = u8>
				continue
			}
			return j, max(u.statementEnd(j+1), j+1)
		case "(", "[":
			j = u.closer(j) - 1
		case "}", ")":
			return j, j
		default:
			if u.lang.lines && !u.lang.typed && u.tok[j].First && u.tok[j].Kind == lex.Word && s != "where" {
				return j, j // an abstract function
			}
		}
	}
	return min(i, len(u.tok)), min(i, len(u.tok))
}

// container reads a class or the like.
func (u *unit) container(i int) {
	at := i + 1
	if u.lang.containers[u.at(at)] { // enum class, record struct
		return
	}
	if u.at(i) == "impl" {
		if u.at(at) == "<" {
			at = u.angles(at)
		}
		for j := at; j < min(at+40, len(u.tok)) && u.at(j) != "{"; j++ {
			if u.at(j) == "for" {
				at = j + 1
			}
		}
	}
	if !u.isWord(at) {
		return
	}
	for j := at + 1; j < len(u.tok) && j < at+200; j++ {
		if u.lang.lines && u.tok[j].First && u.begetsAnother(j) {
			return // it has no body
		}
		switch u.at(j) {
		case "{":
			u.decls = append(u.decls, u.annotated(decl{kind: DeclContainer, name: u.at(at), at: at, start: i, body: j,
				end: u.closer(j)}))
			return
		case "(", "[":
			j = u.closer(j) - 1
		case ";", "}", ")", "=":
			return
		}
	}
}

// begetsAnother reports whether a declaration begins with the token at i.
func (u *unit) begetsAnother(i int) bool {
	s := u.at(i)
	return oneOf(s, "@", "val", "var", "typealias") || u.lang.functions[s] || u.lang.containers[s] || modifier(s)
}

// typed reads a function without a keyword: name(parameters) {, a constructor, a method of an
// object, an arrow function.
func (u *unit) typed(open int) {
	if u.lang.block != nil && u.lang.block(u, open) {
		return
	}
	i := open - 1
	for n := 0; i >= 0 && n < 30; n++ { // throws A, B; where T : C; a type after a colon
		t := &u.tok[i]
		if t.Kind == lex.Word && (u.lang.containers[t.S] || u.lang.patterns[t.S]) {
			return
		}
		if t.Kind == lex.Op && t.S == ")" || t.Kind == lex.Op && oneOf(t.S, ";", "{", "}", "=>", "=") {
			break
		}
		i--
	}
	if u.at(i) != ")" || u.opener(i) < 0 {
		return
	}
	if u.lang.lines && u.tok[open].Line != u.tok[open-1].Line {
		return // a block after a call
	}
	i = u.beforeInitialiser(i)
	name := u.opener(i) - 1
	name = u.beforeAngles(name)
	if !u.isWord(name) || u.noName(name) || notNames()[u.at(name-1)] || u.lang.containers[u.at(name-1)] ||
		u.at(name-1) == "." && !u.explicit(name) || u.at(name-1) == "@" {
		return
	}
	u.decls = append(u.decls, u.annotated(decl{kind: declFunction, name: u.at(name), at: name, start: name, body: open,
		end: u.closer(open)}))
}

// beforeAngles returns the index before the type arguments that end at i, or i.
func (u *unit) beforeAngles(i int) int {
	if u.at(i) != ">" {
		return i
	}
	for n := 0; i > 0 && n < 40 && u.at(i) != "<"; n++ {
		i--
	}
	return i - 1
}

// annotated adds the modifiers and annotations before a declaration.
func (u *unit) annotated(d decl) decl {
	i := d.start - 1
	line := u.line(d.start)
	for i >= 0 {
		t := &u.tok[i]
		switch {
		case t.Kind == lex.Word && (u.at(i-1) == "@" || strings.HasPrefix(t.S, "@")):
			i = u.atWord(&d, i, i+1)
		case t.Kind == lex.Op && t.S == ")" && u.opener(i) > 0:
			from := u.annotationWord(u.opener(i) - 1)
			if from < 0 {
				d.start = i + 1
				return d
			}
			i = u.atWord(&d, u.opener(i)-1, i+1)
		case t.Kind == lex.Op && t.S == "]" && u.opener(i) >= 0:
			if !u.attribute(&d, u.opener(i), i) && u.opener(i) != i-1 {
				d.start = i + 1
				return d
			}
			i = u.opener(i) - 1
			if u.at(i) == "#" {
				i--
			}
		case t.Kind == lex.Word && (!u.lang.lines || int(t.Line) == line || modifier(t.S)):
			d.modifiers = append(d.modifiers, t.S)
			i--
		case t.Kind == lex.Op && (strings.Contains("<>?*&", t.S) || t.S == "." || t.S == "::" || t.S == "," &&
			!u.lang.lines && len(d.annotations) == 0) && (!u.lang.lines || int(t.Line) == line):
			i--
		default:
			d.start = i + 1
			return d
		}
		line = u.line(i + 1)
	}
	d.start = 0
	return d
}

var modifierWords = sync.OnceValue(wordSet("public private protected internal static final abstract async " +
	"override virtual suspend inline open sealed pub unsafe export default const extern data lateinit"))

func modifier(s string) bool { return modifierWords()[s] }

// annotationWord returns the beginning of the annotation whose name ends at i; -1 for none.
func (u *unit) annotationWord(i int) int {
	for i >= 0 && u.isWord(i) {
		switch u.at(i - 1) {
		case "@":
			return i - 1
		case ".", ":":
			i -= 2
		default:
			if strings.HasPrefix(u.at(i), "@") {
				return i
			}
			return -1
		}
	}
	return -1
}

// atWord notes an annotation whose name ends at i and returns the index before it.
func (u *unit) atWord(d *decl, i, to int) int {
	from := u.annotationWord(i)
	if from < 0 {
		return i - 1
	}
	d.annotations = append(d.annotations, annotation{strings.TrimPrefix(u.at(i), "@"), from, to})
	return from - 1
}

// attribute notes the attributes in brackets: [A, B(c)] and #[a(b)].
func (u *unit) attribute(d *decl, open, closing int) bool {
	if u.at(open-1) != "#" && !u.lang.brackets || closing == open+1 {
		return false
	}
	for i := open + 1; i < closing; {
		from := i
		name := ""
		for i < closing && (u.isWord(i) || u.at(i) == "::" || u.at(i) == "." || u.at(i) == ":" || u.at(i) == "\\") {
			if u.isWord(i) {
				name = u.at(i)
			}
			i++
		}
		if i < closing && u.at(i) == "(" {
			i = u.closer(i)
		}
		if name != "" {
			name = strings.TrimSuffix(name, "Attribute")
			d.annotations = append(d.annotations, annotation{name, from, min(i, closing)})
		}
		for i < closing && u.at(i) != "," {
			i++
		}
		i++
	}
	return true
}
