package syntax

import (
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// rows returns the cases in the parentheses that open at i: the elements of their last list.
func (u *unit) rows(i int) []Case {
	open := -1
	for j := i + 1; j < u.closer(i)-1; j++ {
		switch s := u.at(j); {
		case u.kindAt(j) != lex.Op:
		case s == "[" || s == "{":
			open = j
			j = u.closer(j) - 1
		case s == "(":
			j = u.closer(j) - 1
		}
	}
	if open < 0 {
		if u.kindAt(i+1) == lex.Text { // rows as arguments
			return u.elements(i)
		}
		return nil
	}
	return u.elements(open)
}

// elements returns the comma-separated elements of the brackets that open at i.
func (u *unit) elements(i int) []Case {
	var all []Case
	end := u.closer(i) - 1
	from := i + 1
	for j := from; j <= end; j++ {
		s := u.at(j)
		if j < end && u.opens(j) {
			j = u.closer(j) - 1
			continue
		}
		if j == end || s == "," && u.kindAt(j) == lex.Op {
			if j > from {
				all = append(all, u.row(from, j))
			}
			from = j + 1
		}
	}
	return all
}

func (u *unit) row(from, to int) Case {
	tokens := u.tok[from:to]
	return Case{at: from, Off: u.rowOff(from, to), Line: u.line(from),
		Key: mixAll(firstHash, tokens), All: u.bagOf(tokens), Literals: u.once(appendLiterals, tokens), S: u.text(from, to)}
}

// rowOff reports whether a row is skipped or expected to fail.
func (u *unit) rowOff(from, to int) bool {
	for j := from + 1; j < to; j++ {
		switch s := u.at(j); s {
		case "skip", "xfail":
			if u.at(j-1) == "." && u.at(j-2) == "mark" {
				return true
			}
		case "Ignore", "Explicit", "IgnoreReason", "Skip":
			if u.at(j-1) == "." && u.at(j+1) == "(" || u.at(j+1) == "=" && u.at(j+2) != "null" && u.at(j+2) != "false" {
				return true
			}
		}
	}
	return false
}

// rowAnnotations are annotations that are one row each; tableAnnotations hold a list of rows.
var (
	rowAnnotations = sync.OnceValue(wordSet("InlineData TestCase TestFixture DataRow case test_case TestWith " +
		"example"))
	tableAnnotations = sync.OnceValue(
		func() set { return words("parametrize ValueSource CsvSource EnumSource values expand") })
)

// casesOf returns the rows in the annotations of a test.
func (u *unit) casesOf(d *decl) []Case {
	all := d.cases
	for _, a := range slices.Backward(d.annotations) {
		open := a.from
		for open < a.to && u.at(open) != "(" {
			open++
		}
		if open >= a.to {
			continue
		}
		switch {
		case rowAnnotations()[a.name]:
			all = append(all, u.row(open, a.to))
		case tableAnnotations()[a.name]:
			if u.at(open+1) != "textBlock" {
				all = append(all, u.rows(open)...)
			}
		}
	}
	return all
}
