package syntax

import (
	"slices"
	"strings"
)

// public reports whether other packages may use a declaration.
func (u *unit) public(i int) bool {
	d := &u.decls[i]
	if d.parent >= 0 && u.decls[d.parent].kind == declFunction {
		return false
	}
	if d.parent >= 0 && u.decls[d.parent].kind == DeclContainer && !u.lang.freeMembers && !u.public(d.parent) {
		return false
	}
	return u.lang.public(u, d)
}

// overrides reports whether a method overrides another one: it says so, or calls it.
func (u *unit) overrides(d *decl) bool {
	if has(d.modifiers, "override") || d.annotatedBy(func(s string) bool { return strings.EqualFold(s, "override") }) {
		return true
	}
	return anyOf(d.body, min(d.end, d.body+60), func(j int) bool {
		s := u.at(j)
		return (s == "super" || s == "parent" || s == "base") &&
			anyOf(j+1, j+5, func(k int) bool { return u.at(k) == d.name && u.at(k+1) == "(" })
	})
}

// deprecated reports whether a declaration is marked as deprecated.
func (u *unit) deprecated(d *decl) bool {
	if d.annotatedBy(func(s string) bool { return strings.EqualFold(s, "deprecated") || s == "Obsolete" }) {
		return true
	}
	line := u.line(d.start)
	for _, n := range u.notesBefore(line) {
		if int(n.Line)+strings.Count(n.S, "\n") >= line-2 && strings.Contains(strings.ToLower(n.S), "deprecated") {
			return true
		}
	}
	return anyOf(d.body, min(d.end, d.body+40), func(j int) bool { // warnings.warn(..., DeprecationWarning)
		s := u.at(j)
		return s == "DeprecationWarning" || s == "deprecate" || s == "trigger_deprecation"
	})
}

// readDeclares notes the names of declarations, and names that are neither called nor read from a
// value or a package.
func (u *unit) readDeclares(m *Model) {
	if u.inTests {
		return
	}
	u.scratch = u.scratch[:0]
	for i := range u.decls {
		u.scratch = append(u.scratch, Hash(u.decls[i].leaf()))
	}
	imports := false
	for i := range u.tok {
		if u.tok[i].First {
			imports = oneOf(u.at(i), "import", "from", "use", "using", "require")
		}
		member := oneOf(u.at(i-1), ".", "?.", "->", "::") && u.at(i+1) != "="
		if u.isWord(i) && !imports && !member && !oneOf(u.at(i+1), "(", ".", "?.", "->", "::") {
			u.scratch = append(u.scratch, u.tok[i].Hash)
		}
	}
	m.Declares = u.sortedOnce()
}

// readOffers notes the names that a file re-exports.
func (u *unit) readOffers(m *Model) {
	if u.inTests {
		return
	}
	if u.lang.readOffers != nil {
		u.lang.readOffers(u, m)
	}
	slices.Sort(m.Offers)
	m.Offers = slices.Compact(m.Offers)
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
