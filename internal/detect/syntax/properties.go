package syntax

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// Property is a public member of a class other than a function, such as a field.
type Property struct {
	In, Name string
	Line     int
}

// readProperties notes the public properties of a file.
func (u *unit) readProperties(m *Model) {
	if u.inTests || u.lang.Name == "javascript" || u.lang.Name == "go" && !u.goPublic(&decl{name: "X"}) {
		return
	}
	in, private := "", false
	next := 0 // the next declaration; bodies of functions do not count
	for i := 0; i < len(u.tok); i++ {
		for next < len(u.decls) && u.decls[next].start <= i {
			d := &u.decls[next]
			next++
			if d.kind != DeclContainer && i < d.end && !u.saysPublic() {
				i = d.end - 1
				break
			}
		}
		t := &u.tok[i]
		if t.Kind != lex.Word {
			continue
		}
		switch {
		case u.lang.containers[t.S] && u.isWord(i+1) && !u.lang.containers[u.at(i+1)] && u.at(i-1) != "." &&
			u.at(i-1) != "::":
			in, private = u.at(i+1), false
			if t.S == "record" || u.at(i-1) == "record" {
				u.components(m, i+1)
			}
		case u.lang.Name == "go" && t.S == "struct" && u.isWord(i-1):
			in = u.at(i - 1)
		case u.lang.Name == "ruby" && t.First && (t.S == "private" || t.S == "protected" || t.S == "public"):
			if i+1 >= len(u.tok) || u.tok[i+1].First {
				private = t.S != "public"
			} else if t.S != "public" {
				u.withhold(m, i)
				i = u.lineEnd(i) - 1
			}
		case u.lang.Name == "go" && t.Col == 0 && (t.S == "const" || t.S == "var"):
			in = u.at(1) // the package
			if u.isWord(i+1) && goExported(u.at(i+1)) {
				m.Properties = append(m.Properties, Property{strings.Clone(in), strings.Clone(u.at(i + 1)), u.line(i)})
			}
		case u.ofFile(i):
			m.Properties = append(m.Properties, Property{"", strings.Clone(t.S), u.line(i)})
		case in != "" && !private:
			for _, at := range u.propertyAt(i) {
				m.Properties = append(m.Properties, Property{strings.Clone(in), strings.Clone(strings.TrimLeft(u.at(at), "$:")),
					u.line(at)})
			}
		}
	}
}

// goExported reports whether a Go name is exported.
func goExported(s string) bool { return s != "" && s[0] >= 'A' && s[0] <= 'Z' }

// ofFile reports whether the name at i is a public constant of the file: NAME = value of Python,
// pub const NAME of Rust.
func (u *unit) ofFile(i int) bool {
	switch t := &u.tok[i]; u.lang.Name {
	case "python":
		return t.First && t.Col == 0 && u.at(i+1) == "=" && goExported(t.S) && len(t.S) > 2
	case "rust":
		return u.at(i-2) == "pub" && (u.at(i-1) == "const" || u.at(i-1) == "static" || u.at(i-1) == "type") && u.at(i) != "fn"
	}
	return false
}

// saysPublic reports whether the language marks public members by a keyword.
func (u *unit) saysPublic() bool {
	switch u.lang.Name {
	case "php", "typescript", "rust", "csharp", "java":
		return true
	}
	return false
}

// propertyAt returns the names of the properties that the word at i declares.
func (u *unit) propertyAt(i int) []int {
	s := u.at(i)
	switch u.lang.Name {
	case "ruby":
		if s == "attr_reader" || s == "attr_accessor" {
			return u.symbolsAfter(i)
		}
	case "kotlin":
		if (s == "val" || s == "var") && u.isWord(i+1) && !u.hiddenBefore(i) {
			return []int{i + 1}
		}
	case "rust":
		if s == "pub" && u.isWord(i+1) && u.at(i+2) == ":" {
			return []int{i + 1}
		}
	case "go":
		if t := &u.tok[i]; t.First && goExported(s) && i+1 < len(u.tok) && u.tok[i+1].Line == t.Line && u.at(i+1) != "." &&
			u.at(i+1) != "(" {
			return []int{i}
		}
	case "python":
		if t := &u.tok[i]; t.First && t.Col > 0 && u.at(i+1) == ":" && !strings.HasPrefix(s, "_") && s != "else" &&
			s != "try" && s != "finally" {
			return []int{i}
		}
	case "typescript":
		if (s == "public" || s == "readonly" && u.at(i-1) != "public" && !u.hiddenBefore(i)) && u.isWord(i+1) {
			return u.declaredBefore(i, ":")
		}
	case "php":
		if s == "public" {
			return u.declaredBefore(i, ";", "=", ",", ")", "{")
		}
	case "java", "csharp":
		if s == "public" {
			return u.declaredBefore(i, ";", "=", "{", "=>")
		}
	}
	return nil
}

// symbolsAfter returns the symbols in the rest of the line at i.
func (u *unit) symbolsAfter(i int) []int {
	var all []int
	for j, end := i+1, u.lineEnd(i); j < end; j++ {
		if u.isWord(j) && u.symbol(j) || u.kindAt(j) == lex.Text && strings.HasPrefix(u.at(j), ":") {
			all = append(all, j)
		}
	}
	return all
}

// withhold removes the accessors whose names follow the word at i, which makes them private.
func (u *unit) withhold(m *Model, i int) {
	for _, at := range u.symbolsAfter(i) {
		name := strings.TrimPrefix(u.at(at), ":")
		m.Properties = slices.DeleteFunc(m.Properties, func(p Property) bool { return p.Name == name })
	}
}

// hiddenBefore reports whether a modifier before i makes a declaration non-public.
func (u *unit) hiddenBefore(i int) bool {
	for i--; u.isWord(i); i-- {
		switch u.at(i) {
		case "private", "internal", "protected":
			return true
		}
	}
	return false
}

// declaredBefore returns the name declared after i, unless it is a function or a class: the last
// word before one of the marks.
func (u *unit) declaredBefore(i int, marks ...string) []int {
	for j := i + 1; j < len(u.tok) && j < i+30; j++ {
		s := u.at(j)
		for _, mark := range marks {
			if s != mark || u.kindAt(j) != lex.Op {
				continue
			}
			if u.isWord(j-1) && j-1 > i {
				return []int{j - 1}
			}
			return nil
		}
		switch {
		case s == "<":
			j = max(j, u.angles(j)-1)
		case oneOf(s, "(", ";", "{") || u.lang.containers[s] || u.lang.functions[s] || s == "delegate" || s == "operator":
			return nil
		}
	}
	return nil
}

// components notes the components of the record with the name at i.
func (u *unit) components(m *Model, i int) {
	open := i + 1
	if u.at(open) == "<" {
		open = u.angles(open)
	}
	if u.at(open) != "(" {
		return
	}
	for j, end := open+1, u.closer(open); j < end; j++ {
		switch u.at(j) {
		case "<":
			j = max(j, u.angles(j)-1)
			continue
		case "(", "[", "{":
			j = u.closer(j) - 1
			continue
		}
		if s := u.at(j + 1); u.isWord(j) && (s == "," || s == "=" || j+2 == end) {
			m.Properties = append(m.Properties, Property{strings.Clone(u.at(i)), strings.Clone(u.at(j)), u.line(j)})
		}
	}
}
