package syntax

import "github.com/perdure/perdure/internal/detect/syntax/lex"

// valueOf returns the beginning of the value assigned to the name at i; -1 for none.
func (u *unit) valueOf(i int) int { return u.valueNamed(u.at(i), i) }

// valueNamed returns the beginning of the value last assigned to a name before i, or anywhere; -1 for none.
func (u *unit) valueNamed(name string, i int) int {
	if u.given == nil {
		u.given = u.assignments()
	}
	from := -1
	for _, at := range u.given[name] {
		if from < 0 || at < i {
			from = at
		}
	}
	return from
}

// assignments returns the places where names are assigned, by name.
func (u *unit) assignments() map[string][]int {
	all := make(map[string][]int)
	for j := range u.tok {
		if s := u.at(j); u.kindAt(j) != lex.Op || s != "=" && s != ":=" && (s != "=>" || !u.lang.arrowMembers) {
			continue
		}
		name := j - 1
		if u.isWord(name) && u.at(name-1) == ":" && u.isWord(name-2) { // with a type
			name -= 2
		}
		if !u.isWord(name) {
			name = u.typedName(name)
		}
		if !u.isWord(name) {
			continue
		}
		if u.at(name-1) != "." {
			all[u.at(name)] = append(all[u.at(name)], j+1)
		}
		first := name
		for u.at(first-1) == "," && u.isWord(first-2) {
			first -= 2
		}
		if u.argument(first) || u.at(first-1) == "=" || u.at(first-1) == "." {
			continue // f(a, b=c) assigns no a
		}
		for ; first < name; first += 2 {
			all[u.at(first)] = append(all[u.at(first)], j+1)
		}
	}
	return all
}

// argument reports whether a name at the beginning of a list is an argument of a call.
func (u *unit) argument(i int) bool {
	return u.lang.namedArguments && !u.isHead(i)
}

// typedName returns the variable whose type ends at i: cases: [number][] = ...; -1 for none.
func (u *unit) typedName(i int) int {
	for j := i; j > max(0, i-maxTypes) && !u.tok[j].First && u.at(j) != ";"; j-- {
		if u.at(j) == ":" && u.isWord(j-1) &&
			(u.tok[j-1].First || oneOf(u.at(j-2), "const", "let", "var", "val", "static", "mut")) {
			return j - 1
		}
	}
	return -1
}

// put returns the value of the local that an expression consists of, if no other code is between;
// otherwise the expression.
func (u *unit) put(a [2]int) [2]int {
	if u.at(a[0]) == "await" {
		a[0]++
	}
	if a[1] != a[0]+1 || !u.isWord(a[0]) {
		return a
	}
	for j := a[0] - 1; j > max(0, a[0]-farthestGiven); j-- {
		if u.at(j) != u.at(a[0]) || u.at(j-1) == "." || u.at(j+1) != "=" && u.at(j+1) != ":=" {
			continue
		}
		from, to := j+2, u.lineEnd(j)
		if u.lang.shape == braces {
			to = u.statementEnd(j)
		}
		to = u.trimmed(from, to)
		if u.at(from) == "await" {
			from++
		}
		if from >= to || to > a[0] || u.done(to, a[0]) {
			return a
		}
		return [2]int{from, to}
	}
	return a
}

// farthestGiven is the maximum distance in tokens between a local's assignment and an assertion.
const farthestGiven = 120

// done reports whether the tokens [from, to) have statements other than values and assertions.
func (u *unit) done(from, to int) bool {
	for j := from; j < to; j++ {
		if !u.tok[j].First || !u.isWord(j) || oneOf(u.at(j), "const", "let", "var", "val", "if") {
			continue
		}
		if next := u.at(j + 1); next == "=" || next == ":=" || u.asserts(j, nil) {
			continue
		}
		for k := j; k < to && !(k > j && u.tok[k].First); k++ {
			if u.isWord(k) && u.asserts(k, nil) || k == to-1 {
				break
			}
			if u.at(k) == "(" {
				return true
			}
		}
	}
	return false
}
