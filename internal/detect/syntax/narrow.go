package syntax

import (
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Narrowing is code that skips rows of a table.
type Narrowing struct {
	Line int
	Key  uint64
	S    string
}

// narrowed notes the calls and indices in [from, to) that select a part of a list.
func (u *unit) narrowed(t *Test, from, to int) {
	for j := max(from, 0); j < min(to, from+maxBlock, len(u.tok)); j++ {
		s := u.at(j)
		if s == "{" || s == "[" && (j == from || u.standsAlone(j)) { // rows, or code that uses them
			j = u.closer(j) - 1
			continue
		}
		cuts := narrowing()[s] && u.isWord(j) && oneOf(u.at(j-1), ".", "?.", "->", "::") && oneOf(u.at(j+1), "(", "{", "do")
		cuts = cuts || narrowingCalls()[s] && u.at(j+1) == "(" && u.at(j-1) != "."
		if s == "[" && j > from && (u.isWord(j-1) || u.at(j-1) == ")" || u.at(j-1) == "]") {
			for k := j + 1; k < u.closer(j)-1; k++ {
				cuts = cuts || u.at(k) == ":" || u.at(k) == ".." || u.at(k) == "..."
			}
		}
		if cuts {
			t.Narrowed = append(t.Narrowed, Narrowing{u.line(j), mix(firstHash, s), u.lineText(j)})
		}
	}
}

var (
	narrowing = sync.OnceValue(wordSet("first last take takeLast takeWhile take_while drop dropLast drop_last " +
		"dropWhile drop_while filter filterNot filterIndexed filter_map select reject slice skip step_by stepBy " +
		"limit sample Take TakeLast TakeWhile Skip SkipLast SkipWhile Where First Last find_all grep splice " +
		"subList Slice partition except without"))
	narrowingCalls = sync.OnceValue(wordSet("islice filter array_slice array_filter takewhile dropwhile " +
		"filterfalse array_splice"))
)

// readNarrowed notes the code that skips rows of a test's tables: in the head of a loop, at the
// table and between them.
func (u *unit) readNarrowed(t *Test, d *decl, l *loop) {
	from, to := l.head[0], l.head[1]
	if l.list >= from && l.list < to {
		u.narrowed(t, from, l.list)
		from = u.closer(l.list) - 1
		if u.kindAt(l.list) == lex.Text {
			from = l.list
		}
	}
	u.narrowed(t, from, to)
	u.narrowedNames(t, d, from, to)
	u.skipsRows(t, l)
}

// narrowedNames notes the rows skipped where the names in [from, to) are assigned.
func (u *unit) narrowedNames(t *Test, d *decl, from, to int) {
	if u.given == nil {
		u.given = u.assignments()
	}
	for j := from; j < min(to, from+maxListed, len(u.tok)); j++ {
		if !u.isWord(j) || u.at(j-1) == "." || u.at(j+1) == "(" {
			continue
		}
		for n, at := range u.given[u.at(j)] {
			if n < 8 && (at < from || at > to) && u.seenFrom(d, at) {
				u.narrowed(t, at, u.statementEnd(at))
			}
		}
	}
}

// seenFrom reports whether a declaration can use the name at i.
func (u *unit) seenFrom(d *decl, i int) bool {
	n := u.around(i)
	return n < 0 || u.decls[n].start <= d.start && d.end <= u.decls[n].end
}

// skipsRows notes where a loop skips a row, depending on the row, before an assertion.
func (u *unit) skipsRows(t *Test, l *loop) {
	goes := "continue"
	if u.lang.shape == ends {
		goes = "next"
	}
	for j := l.body[0]; j < l.body[1]; j++ {
		if u.at(j) != goes || !u.isWord(j) {
			if u.isWord(j) && u.asserts(j, nil) {
				return
			}
			continue
		}
		from, to := j, j
		for from > l.body[0] && u.at(from) != "if" && u.at(from) != "unless" {
			from--
		}
		if s := u.at(j + 1); s == "if" || s == "unless" {
			from = j + 1
			for to = from; to < len(u.tok) && u.tok[to].Line == u.tok[from].Line; {
				to++
			}
		}
		if u.ofRow(l, from, to) {
			t.Narrowed = append(t.Narrowed, Narrowing{u.line(j), mix(firstHash, goes), u.lineText(j)})
		}
	}
}

// ofRow reports whether the condition [from, to) depends on a row of a loop and not on the machine.
func (u *unit) ofRow(l *loop, from, to int) bool {
	if l.each {
		return false
	}
	row := make(set)
	for j := l.at - 1; j > max(0, l.at-16) && u.at(j) != "for" && u.at(j) != "foreach"; j-- { // for _, tc := range
		row[u.at(j)] = u.isWord(j)
	}
	for j := l.at; j < min(l.head[0], l.at+16); j++ {
		row[u.at(j)] = u.isWord(j)
	}
	asks := false
	for j := from; j < min(to, from+maxCondition); j++ {
		if machineWords()[u.at(j)] {
			return false
		}
		asks = asks || u.isWord(j) && row[u.at(j)] && u.at(j-1) != "."
	}
	return asks
}

var machineWords = sync.OnceValue(wordSet("GOOS GOARCH platform RUBY_PLATFORM PHP_OS PHP_OS_FAMILY PHP_VERSION " +
	"PHP_VERSION_ID version_info process cfg OperatingSystem OperatingSystemInfo isWindows IsWindows windows " +
	"Windows os testing Short version Version supports supported"))

// NarrowedSince returns the code that newly skips rows of a test's table, if the table has no more
// rows than before; nil for none.
func NarrowedSince(was, now *Test) *Narrowing {
	if len(was.Cases) == 0 || len(now.Cases) > len(was.Cases) || len(now.Narrowed) <= len(was.Narrowed) {
		return nil
	}
	rest := multiset.Excess(now.Narrowed, was.Narrowed, func(n Narrowing) uint64 { return n.Key })
	if len(rest) == 0 {
		return nil
	}
	return &rest[0]
}
