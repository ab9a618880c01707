package lex

import (
	"cmp"
	"slices"
	"strings"
)

// branch is an #if of C# whose #endif has not come yet.
type branch struct {
	open  int  // brackets that were open when it began
	holds bool // its condition is true
	// under says what stands in it, outer what stands around it.
	under, outer Condition
}

// Condition says under how many conditions that are no constants the tokens from one
// on stand, and what the line of the innermost one is.
type Condition struct {
	from int
	Deep int
	Line int32
	S    string
}

// preprocess reads a line for the preprocessor, which is no code. What stands under
// a condition is, unless that is false; and when the branches of a condition open
// or close a block each in its own way, only the first counts.
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

// under notes under what the next token stands.
func (x *Reader) under(c Condition) {
	c.from = len(x.tokens)
	if n := len(x.conditions) - 1; n >= 0 && x.conditions[n].from == c.from {
		x.conditions = x.conditions[:n]
	}
	x.conditions = append(x.conditions, c)
}

// branchEnd is where the line begins that ends the branch of an #if which goes on
// at i: its #endif or, but for the last branch, another branch of it.
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

// Under is under what conditions of the preprocessor the token at i stands, of the
// text that was read last.
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
