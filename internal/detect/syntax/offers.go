package syntax

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// readOffers notes the names that a file re-exports.
func (u *unit) readOffers(m *Model) {
	if u.inTests {
		return
	}
	switch u.lang.Name {
	case "javascript", "typescript":
		u.handedOn(m)
	case "rust":
		u.usedPublicly(m)
	case "python":
		u.offersOfPackage(m)
	}
	slices.Sort(m.Offers)
	m.Offers = slices.Compact(m.Offers)
}

// handedOn reads export { a, b as c }, with or without a source, and module.exports = { a, b }.
func (u *unit) handedOn(m *Model) {
	own := make(set)
	for i := range u.decls {
		own[u.decls[i].name] = true
	}
	for i := range u.tok {
		if !u.isWord(i) || u.at(i) != "export" && u.at(i) != "exports" {
			continue
		}
		open := i + 1
		for s, next := u.at(open), u.at(open+1); s == "=" || s == "declare" || s == "type" &&
			(next == "{" || next == "*") || s == "const" && next == "enum"; s, next = u.at(open), u.at(open+1) {
			open++
		}
		switch s := u.at(open); {
		case s == "{":
			u.offer(m, open+1, u.closer(open)-1)
		case u.at(i) == "export" && exportable()[s] && u.isWord(open+1):
			m.Offers = append(m.Offers, u.at(open+1))
		case s == "." && u.at(open+2) == "=":
			m.Offers = append(m.Offers, u.at(open+1))
		case s == "*":
			m.Offers = append(m.Offers, "*")
		}
	}
	m.Offers = slices.DeleteFunc(m.Offers, func(s string) bool { return own[s] })
}

// exportable are words between export and a name.
var exportable = sync.OnceValue(wordSet("const let var type interface enum namespace"))

// usedPublicly reads pub use a::{B, C as D}; of Rust.
func (u *unit) usedPublicly(m *Model) {
	for i := range u.tok {
		if u.at(i) != "pub" || u.at(i+1) != "use" {
			continue
		}
		end := u.statementEnd(i)
		for j := i + 2; j < end; j++ {
			if u.at(j) == "{" {
				u.offer(m, j+1, u.closer(j)-1)
				break
			}
			if u.at(j+1) == ";" && u.isWord(j) {
				m.Offers = append(m.Offers, u.at(j))
			}
		}
	}
}

// offer adds the last name of each comma-separated part: b of a as b.
func (u *unit) offer(m *Model, from, to int) {
	for j := from; j < min(to, len(u.tok)); j++ {
		switch u.at(j) {
		case "(", "[", "{":
			j = u.closer(j) - 1
			continue
		}
		named := u.at(j-1) == "as" || u.at(j-1) == "type" || j == from || u.at(j-1) == "," || u.at(j-1) == "::"
		if u.isWord(j) && named && (u.at(j+1) == "," || j+1 == to) {
			m.Offers = append(m.Offers, u.at(j))
		}
	}
}

// offersOfPackage reads __all__ and the imports of a Python package file.
func (u *unit) offersOfPackage(m *Model) {
	for _, head := range u.heads {
		switch i := int(head); {
		case u.at(i) == "__all__":
			for j := i + 1; j < u.lineEnd(i) && j < len(u.tok); j++ {
				if u.kindAt(j) == lex.Text {
					m.Offers = append(m.Offers, lex.Unquote(u.at(j)))
				}
			}
		case u.at(i) == "from" && path.Base(u.path) == "__init__.py" && u.tok[i].Col == 0:
			u.imported(m, i)
		}
	}
	m.Offers = slices.DeleteFunc(m.Offers, func(s string) bool { return strings.HasPrefix(s, "_") })
}

// imported reads the import of Python at i: from a import b, or (b, c).
func (u *unit) imported(m *Model, i int) {
	if s := u.at(i + 1); s == "__future__" || s == "typing" {
		return
	}
	end := u.lineEnd(i)
	at := i + 1
	for at < end && u.at(at) != "import" {
		at++
	}
	if u.at(at+1) == "(" {
		at, end = at+1, end-1
	}
	u.offer(m, at+1, end)
}
