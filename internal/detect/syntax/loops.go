package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// loop is a loop over a literal list: a table of cases if its body contains tests or assertions.
type loop struct {
	at, list int // list is its opening bracket
	body     [2]int
	head     [2]int // the expression that it iterates over
	each     bool   // a method is called
}

// loops are the loops of a test file.
type loops struct {
	all  []loop
	left int // tokens that may still be read
}

// maxLooped bounds the work for a file with many tests in long loops.
const maxLooped = 1_000_000

func (u *unit) loops() *loops {
	found := &loops{left: maxLooped}
	for i := range u.tok {
		if l, ok := u.loopAt(i); ok && l.list > 0 && l.list < len(u.tok) && l.body[0] < l.body[1] && l.body[1] <= len(u.tok) {
			found.all = append(found.all, l)
		}
	}
	return found
}

// loopAt reads the loop of the word at i.
func (u *unit) loopAt(i int) (loop, bool) {
	if !u.isWord(i) {
		return loop{}, false
	}
	s := u.at(i)
	if u.at(i-1) == "." && (eachCalls()[s] || allCalls()[s]) {
		return u.eachLoop(i)
	}
	switch {
	case s == "forAll" && u.at(i+1) == "(" && u.at(u.closer(i+1)) == "{" && u.lang.trailing:
		return u.bracedLoop(i, i+1, u.closer(i+1))
	case s == "for" && u.lang.shape == indents:
		return u.indentedLoop(i)
	case s == u.lang.over:
		open := u.loopBody(i + 1)
		return u.bracedLoop(i, u.listOver(i+1, open), open)
	case (s == "for" || s == "foreach") && u.at(i+1) == "(" && u.lang.shape == braces:
		return u.headedLoop(i)
	}
	return loop{}, false
}

// eachCalls are methods that call a function for each element, allCalls those that test all.
var (
	eachCalls = sync.OnceValue(wordSet("forEach forAll each each_with_index each_pair each_entry each_line " +
		"each_value each_key for_each onEach forEachIndexed forEachOrdered with_index ForEach map"))
	allCalls = sync.OnceValue(wordSet("every all all? allMatch All TrueForAll none? noneMatch none any? some"))
)

// eachLoop reads the method call at i at the end of a chain that begins with a list:
// [...].each_with_index do, Object.entries({...}).forEach(...), list.all { }.
func (u *unit) eachLoop(i int) (loop, bool) {
	chain := u.listChain(i - 1)
	list := u.listOver(chain, i-1)
	if list < 0 {
		return loop{}, false
	}
	open := i + 1
	end := u.afterCall(i)
	if allCalls()[u.at(i)] { // the assertion is around it
		for from := i; from > max(0, i-maxTypes); from-- {
			if u.isWord(from) && u.asserts(from, nil) {
				return loop{at: i, list: list, body: [2]int{from, end}, head: [2]int{chain, i}, each: true}, true
			}
		}
	}
	if open >= end-1 {
		return loop{}, false
	}
	return loop{at: i, list: list, body: [2]int{open + 1, end - 1}, head: [2]int{chain, i}, each: true}, true
}

// listChain returns the beginning of the chain of calls before the dot.
func (u *unit) listChain(dot int) int {
	j := dot
	for n := 0; n < 8 && j > 0 && (u.at(j) == "." || u.at(j) == "?."); n++ {
		j--
		for (u.at(j) == ")" || u.at(j) == "]" || u.at(j) == "}") && u.opener(j) > 0 {
			j = u.opener(j)
			before := u.at(j - 1)
			if u.tok[j].First || !u.isWord(j-1) && before != ")" && before != "]" && before != "}" || goBack()[before] {
				return j
			}
			j--
		}
		if u.isWord(j) && u.at(j-1) != "." && u.at(j-1) != "?." {
			return j
		}
		if u.isWord(j) {
			j--
		}
	}
	return max(j, 0)
}

// headedLoop reads a loop with its list in parentheses: for (x of xs), foreach ($xs as $x).
func (u *unit) headedLoop(i int) (loop, bool) {
	end := u.closer(i+1) - 1
	from, to := -1, end
	for j := i + 2; j < end; j++ {
		s := u.at(j)
		if s == "as" && u.lang.listFirst {
			from, to = i+2, j
			break
		}
		if s == "of" || s == "in" || s == u.lang.over {
			from = j + 1
			break
		}
		if s == ";" {
			return loop{}, false
		}
		if s == "(" || s == "[" || s == "{" {
			j = u.closer(j) - 1
		}
	}
	if from < 0 {
		return loop{}, false
	}
	list := u.listOver(from, to)
	if u.at(end+1) == "{" {
		l, ok := u.bracedLoop(i, list, end+1)
		l.head = [2]int{from, to}
		return l, ok
	}
	return loop{at: i, list: list, body: [2]int{end + 1, u.statementEnd(end + 1)}, head: [2]int{from, to}}, true
}

// loopBody returns the bracket that opens the body of a Go or Rust loop whose list begins at from.
func (u *unit) loopBody(from int) int {
	for j := from; j < min(len(u.tok), from+maxListed); j++ {
		switch u.at(j) {
		case "(", "[":
			j = u.closer(j) - 1
		case "{":
			end := u.closer(j)
			if next := u.at(end); next != "{" && next != "." && next != "[" || u.tok[end].First {
				return j
			}
			j = end - 1
		case ";":
			return -1
		}
	}
	return -1
}

// maxListed is the maximum distance in tokens between a list and its use.
const maxListed = 60

// listOver returns the bracket of the literal list, or the text, that the expression [from, to)
// iterates over, directly or by name: Object.entries(table), sorted(BAD), "a b".split(); -1 for
// none.
func (u *unit) listOver(from, to int) int {
	if from < 0 || to > len(u.tok) || from >= to {
		return -1
	}
	if open := u.listWritten(from, to); open >= 0 {
		return open
	}
	for j := from; j < min(to, from+maxListed); j++ {
		if u.isWord(j) && u.at(j+1) != "(" {
			if open := u.listNamed(u.at(j), from); open >= 0 {
				return open
			}
		}
	}
	return -1
}

// listWritten returns the bracket or the text of the literal list in [from, to).
func (u *unit) listWritten(from, to int) int {
	text, splits := -1, false
	for j := from; j < min(to, from+maxListed); j++ {
		switch s := u.at(j); {
		case u.kindAt(j) == lex.Text:
			if text < 0 || len(s) > len(u.at(text)) {
				text = j
			}
			splits = splits || strings.HasPrefix(s, "%w") || strings.HasPrefix(s, "%i")
		case u.isWord(j):
			splits = splits || splitters()[s]
		case s == "[" && u.lang.typedLists:
			j = u.closer(j) - 1
		case s == "[" && u.at(j+1) == "]" && j+2 < to:
			j++
		case s == "[" && (j == from || u.standsAlone(j) || u.at(j-1) == "!"):
			return j
		case s == "{" && u.at(j-1) == "struct":
			j = u.closer(j) - 1
		case s == "{":
			return j
		case s == "(" && (j == from || rowMakers()[u.at(j-1)]):
			if end := u.closer(j) - 1; u.commaAfter(j+1, end) < end-1 || u.at(end-1) == "," || u.kindAt(j+1) == lex.Text &&
				!splits && j > from {
				return j
			}
		}
	}
	if splits {
		return text
	}
	return -1
}

// splitters are the calls that split a text into a list.
var splitters = sync.OnceValue(wordSet("split Split splitlines lines lineSequence Fields explode each_line " +
	"SplitSeq FieldsSeq Lines split_whitespace splitToSequence preg_split EnumerateLines split_terminator"))

// bracedLoop returns the loop whose body opens at open.
func (u *unit) bracedLoop(i, list, open int) (loop, bool) {
	if s := u.at(open); s != "{" && s != "do" {
		return loop{}, false
	}
	return loop{at: i, list: list, body: [2]int{open + 1, u.closer(open)}, head: [2]int{i + 1, open}}, true
}

// standsAlone reports whether a bracket opens a list, unlike an index.
func (u *unit) standsAlone(open int) bool {
	if open <= 0 {
		return false
	}
	before := u.at(open - 1)
	return u.tok[open].First || !u.isWord(open-1) && before != ")" && before != "]"
}

// readLoops adds the elements of lists that loops with assertions, in and around a test, read.
func (u *unit) readLoops(t *Test, d *decl, in *loops, helpers set) {
	for _, l := range in.all {
		around := l.body[0] <= d.start && d.end <= l.body[1]
		inside := d.body <= l.at && l.body[1] <= d.end
		if !around && !inside {
			continue
		}
		size := 1
		if u.kindAt(l.list) != lex.Text {
			size = u.closer(l.list) - l.list
		}
		if in.left -= size + l.body[1] - l.body[0]; in.left < 0 {
			return
		}
		if inside && !u.assertsWithin(l.body[0], l.body[1], helpers) {
			continue
		}
		if u.kindAt(l.list) == lex.Text {
			u.addRows(t, u.listCases(l.list))
			continue
		}
		t.Cases = append(t.Cases, u.elements(l.list)...)
		if around || l.list < d.start || l.list >= d.end { // the test's code applies to each
			t.All = multiset.Sum(t.All, u.bagOf(u.tok[l.list:l.list+size]))
		}
	}
}

// listCases returns the elements of the list at i: in brackets, or the lines or words of a text.
func (u *unit) listCases(i int) []Case {
	if u.kindAt(i) != lex.Text {
		return u.elements(i)
	}
	text := strings.Trim(u.at(i), "`\"'")
	if strings.Contains(text, "\n") {
		return u.textRows(i, false)
	}
	if strings.HasPrefix(text, "%") && len(text) > 3 {
		text = text[3 : len(text)-1]
	}
	var all []Case
	for s := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ' ' || c == ',' || c == ';' || c == '|' }) {
		b := multiset.Hashes{lex.TextHash(s)}
		all = append(all, Case{Line: u.line(i), Key: mix(firstHash, s), All: b, Literals: b, S: strings.Clone(Clip(s))})
	}
	return all
}

// eachOnce removes rows that were read before, by position.
func eachOnce(rows []Case) []Case {
	seen := make(map[int]bool, len(rows))
	return slices.DeleteFunc(rows, func(c Case) bool {
		again := c.at > 0 && seen[c.at]
		seen[c.at] = true
		return again
	})
}
