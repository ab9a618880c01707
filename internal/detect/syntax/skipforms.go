package syntax

import "github.com/perdure/perdure/internal/detect/syntax/lex"

// otherSkips notes the skips of single runners and languages: names, modifiers after the title,
// build directives, an early return.
func (u *unit) otherSkips(t *Test, i int, note func(s Skipping, at, to int)) {
	d := &u.decls[i]
	for j := i; j >= 0; j = u.decls[j].parent {
		switch u.lang.Name {
		case "kotlin":
			u.kotestSkips(t, &u.decls[j], note)
		case "javascript", "typescript":
			u.options(t, &u.decls[j], note)
		case "php":
			u.docRequires(t, &u.decls[j])
		case "ruby":
			u.metadata(t, &u.decls[j], note)
		}
	}
	if s, at := u.leavesAtOnce(d); s != Runs {
		note(s, at, min(u.statementEnd(at), d.end))
	}
}

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

// leavesAtOnce returns whether the first statement of a test ends it, and its position.
func (u *unit) leavesAtOnce(d *decl) (Skipping, int) {
	i := u.firstStatement(d)
	if i < 0 || i >= d.end {
		return Runs, 0
	}
	if u.at(i) == "Assert" && u.at(i+2) == "Pass" && u.lang.Name == "csharp" && u.statementEnd(i) < d.end-2 {
		return Always, i
	}
	if u.at(i) != "if" {
		return u.bareReturn(i, d.end), i
	}
	if u.lang.shape == ends {
		return Runs, 0
	}
	then, _, to := u.bracesCondition(i, d.end)
	if u.lang.shape == indents {
		then = u.colon(i+1, d.end)
		to = then - 1
	}
	if to <= i+1 || u.bareReturn(then, d.end) == Runs {
		return Runs, 0
	}
	if u.constant(i+1) || u.constant(i+2) {
		return Always, i
	}
	return Sometimes, i
}

// bareReturn returns how a return without a value skips the statements after it.
func (u *unit) bareReturn(i, end int) Skipping {
	if u.at(i) != "return" || i+5 > end {
		return Runs
	}
	switch next := u.at(i + 1); {
	case u.lang.shape == ends && (next == "if" || next == "unless") && !u.tok[i+1].First:
		return Sometimes
	case next == ";" || next == "}" || u.tok[i+1].First:
		return Always
	}
	return Runs
}

// firstStatement returns the beginning of the body of a test; -1 for none.
func (u *unit) firstStatement(d *decl) int {
	if u.lang.shape != braces {
		i := d.body
		if u.kindAt(i) == lex.Text && i < len(u.tok) && u.tok[i].First {
			i++ // a docstring
		}
		return i
	}
	for j := d.body; j < min(d.end, d.body+60); j++ {
		if u.at(j) != "{" || u.kindAt(j) != lex.Op {
			continue
		}
		if before := u.at(j - 1); j == d.body || before != "," && before != "(" {
			return j + 1
		}
		j = u.closer(j) - 1
	}
	return -1
}
