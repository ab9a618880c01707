package lex

import (
	"cmp"
	"slices"
	"strings"
)

// branch is an #if of C# whose #endif has not come yet.
type branch struct {
	open  int  // brackets that were open at its beginning
	holds bool // its condition is true
	// under is the condition inside it, outer the one around it.
	under, outer Condition
}

// Condition is the number of non-constant conditions around the tokens from one on, with the
// innermost one.
type Condition struct {
	from int
	Deep int
	Line int32
	S    string
}

// preprocess reads a preprocessor line. Code under a false condition is skipped; if the branches of
// a condition differ in their brackets, only the first counts.
func (x *Reader) preprocess() bool {
	if !x.rules.Preprocessor || !x.fresh || x.src[x.i] != '#' {
		return false
	}
	end := x.lineEnd(x.i)
	line, _, _ := strings.Cut(x.src[x.i:end], "//")
	line = strings.TrimSpace(line)
	name, condition, _ := strings.Cut(strings.TrimSpace(line[1:]), " ")
	condition = strings.TrimSpace(condition)
	top := len(x.branches) - 1
	switch {
	case name == "if":
		x.branchBegins(line, condition)
		if condition == "false" {
			end = x.branchEnd(end, false)
		}
	case top < 0:
	case name == "endif":
		x.under(x.branches[top].outer)
		x.branches = x.branches[:top]
	case name == "else" || name == "elif":
		if b := &x.branches[top]; b.holds || x.open != b.open {
			end = x.branchEnd(end, true)
		} else if name == "elif" && b.under.Deep == b.outer.Deep {
			b.under = Condition{Deep: b.outer.Deep + 1, Line: x.line, S: line}
			x.under(b.under)
		}
	}
	x.note(end)
	return true
}

// branchBegins notes an #if.
func (x *Reader) branchBegins(line, condition string) {
	b := branch{open: x.open, holds: condition == "true"}
	if n := len(x.conditions); n > 0 {
		b.outer = x.conditions[n-1]
	}
	b.under = b.outer
	if condition != "true" && condition != "false" {
		b.under = Condition{Deep: b.outer.Deep + 1, Line: x.line, S: line}
	}
	x.branches = append(x.branches, b)
	x.under(b.under)
}

// under notes the condition of the next token.
func (x *Reader) under(c Condition) {
	c.from = len(x.tokens)
	if n := len(x.conditions) - 1; n >= 0 && x.conditions[n].from == c.from {
		x.conditions = x.conditions[:n]
	}
	x.conditions = append(x.conditions, c)
}

// branchEnd returns the line that ends the branch of an #if at i: its #endif or, unless the branch
// is the last, its next branch.
func (x *Reader) branchEnd(i int, last bool) int {
	if x.lost["#endif"] {
		return i
	}
	deep := 0
	for at := i; at < len(x.src); at = x.lineEnd(at) {
		at++ // the line end
		rest, ok := strings.CutPrefix(strings.TrimLeft(x.src[at:x.lineEnd(min(at, len(x.src)))], " \t"), "#")
		rest = strings.TrimLeft(rest, " \t")
		switch {
		case !ok:
		case strings.HasPrefix(rest, "if"):
			deep++
		case strings.HasPrefix(rest, "endif") && deep > 0:
			deep--
		case deep == 0 && (strings.HasPrefix(rest, "endif") || !last && strings.HasPrefix(rest, "el")):
			return at - 1
		}
	}
	x.lost["#endif"] = true
	return i
}

// Under returns the preprocessor conditions of the token at i of the last text.
func (x *Reader) Under(i int) Condition {
	n, found := slices.BinarySearchFunc(x.conditions, i, func(c Condition, i int) int { return cmp.Compare(c.from, i) })
	switch {
	case found:
		return x.conditions[n]
	case n == 0:
		return Condition{}
	}
	return x.conditions[n-1]
}
