package source

import "github.com/perdure/perdure/internal/detect/bag"

// loop is one over a list that is written down: a table of cases, when tests stand
// in its body, or when what stands there asserts.
type loop struct {
	at, list int // list is the bracket that opens it
	body     [2]int
}

// loops are those of a file of tests.
type loops struct {
	all  []loop
	left int // tokens that may still be looked at
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

// loopAt reads the loop that the word at i begins, or calls.
func (u *unit) loopAt(i int) (loop, bool) {
	if !u.isWord(i) {
		return loop{}, false
	}
	switch s := u.at(i); u.lang.Name {
	case "javascript", "typescript":
		if s == "of" {
			return u.loopOver(i, i+1, ")")
		}
		if s == "forEach" && u.at(i-1) == "." && u.at(i+1) == "(" {
			return loop{i, u.listBefore(i - 2), [2]int{i + 2, u.closer(i + 1)}}, true
		}
	case "rust":
		if s == "in" {
			list := i + 1
			if u.at(list) == "&" {
				list++
			}
			return u.loopOver(i, list, "{")
		}
	case "kotlin":
		if s == "in" {
			return u.loopOver(i, i+1, ")")
		}
		if s == "forAll" && u.at(i+1) == "(" && u.at(u.closer(i+1)) == "{" {
			return u.bracedLoop(i, i+1, u.closer(i+1))
		}
		if (s == "forEach" || s == "forAll") && u.at(i-1) == "." && u.at(i+1) == "{" {
			return u.bracedLoop(i, u.listBefore(i-2), i+1)
		}
	case "java":
		if s == "for" && u.at(i+1) == "(" {
			for j := i + 2; j < u.closer(i+1); j++ {
				if u.at(j) == ":" {
					return u.loopOver(i, j+1, ")")
				}
			}
		}
	case "csharp":
		if s == "in" {
			return u.loopOver(i, i+1, ")")
		}
	case "php":
		if s == "foreach" && u.at(i+1) == "(" {
			l, ok := u.loopOver(i, i+2, "as")
			if ok {
				l, ok = u.bracedLoop(i, l.list, u.closer(i+1))
			}
			return l, ok
		}
	case "ruby":
		return u.rubyLoop(i)
	case "python":
		return u.indentedLoop(i)
	}
	return loop{}, false
}

// rubyLoop is what a block is given by the word at i, at the end of a chain that begins
// with a list: [...].each_with_index do, {...}.map.with_index(1) { }.
func (u *unit) rubyLoop(i int) (loop, bool) {
	block := i + 1
	if u.at(block) == "(" {
		block = u.closer(block)
	}
	if u.at(i-1) != "." || u.at(block) != "do" && u.at(block) != "{" {
		return loop{}, false
	}
	end := i - 2
	for n := 0; n < 6; n++ {
		if list := u.listBefore(end); list >= 0 {
			return u.bracedLoop(i, list, block)
		}
		if u.at(end) == ")" && u.opener(end) > 0 {
			end = u.opener(end) - 1
		}
		if !u.isWord(end) || u.at(end-1) != "." {
			break
		}
		end -= 2
	}
	return loop{}, false
}

// loopOver is one over the list at from, written down there or under a name, behind
// which last stands.
func (u *unit) loopOver(i, from int, last string) (loop, bool) {
	list, end := from, from+1
	if u.isWord(from) && u.at(from+1) == last {
		list = u.listNamed(u.at(from), from)
	} else if list = u.listAt(from, from+10); list >= 0 {
		end = u.closer(list)
	}
	if list < 0 || u.at(end) != last {
		return loop{}, false
	}
	switch last {
	case ")":
		return u.bracedLoop(i, list, end+1)
	case "{":
		return u.bracedLoop(i, list, end)
	}
	return loop{i, list, [2]int{}}, true
}

// listBefore is the bracket that opens the list which ends at i, or which the name at
// i stands for; -1 for none.
func (u *unit) listBefore(i int) int {
	switch s := u.at(i); {
	case s == "freeze" && u.at(i-1) == ".":
		return u.listBefore(i - 2)
	case u.isWord(i) && u.at(i-1) != ".":
		return u.listNamed(s, i)
	case (s == "]" || s == "}") && u.opener(i) > 0 && u.standsAlone(u.opener(i)):
		return u.opener(i)
	case s == ")" && u.opener(i) > 0 && rowMakers()[u.at(u.opener(i)-1)]:
		return u.opener(i)
	}
	return -1
}

// bracedLoop is one whose body opens at open, if anything does.
func (u *unit) bracedLoop(i, list, open int) (loop, bool) {
	if s := u.at(open); s != "{" && s != "do" {
		return loop{}, false
	}
	return loop{i, list, [2]int{open + 1, u.closer(open)}}, true
}

// indentedLoop is one of Python at its word for: up to what stands no further in.
func (u *unit) indentedLoop(i int) (loop, bool) {
	if u.at(i) != "for" || !u.tok[i].First {
		return loop{}, false
	}
	for j := i + 1; j < min(i+12, len(u.tok)); j++ {
		if u.at(j) != "in" {
			continue
		}
		list, from := j+1, j+3
		if s := u.at(j + 1); s == "[" || s == "(" {
			from = u.closer(j+1) + 1
		} else if list = u.listNamed(s, i); list < 0 || u.at(j+2) != ":" {
			break
		}
		if u.at(from-1) != ":" {
			break
		}
		to := from
		for to < len(u.tok) && (!u.tok[to].First || u.tok[to].Col > u.tok[i].Col) {
			to++
		}
		return loop{i, list, [2]int{from, to}}, true
	}
	return loop{}, false
}

// standsAlone tells whether a bracket opens a list, and takes nothing out of one.
func (u *unit) standsAlone(open int) bool {
	if open <= 0 {
		return false
	}
	before := u.at(open - 1)
	return u.tok[open].First || !u.isWord(open-1) && before != ")" && before != "]"
}

// readLoops adds the elements of lists over which a test loops to assert, and of
// those around it, to its cases.
func (u *unit) readLoops(t *Test, d *decl, in *loops, helpers set) {
	for _, l := range in.all {
		around := l.body[0] <= d.start && d.end <= l.body[1]
		inside := d.body <= l.at && l.body[1] <= d.end
		if !around && !inside {
			continue
		}
		list := u.tok[l.list:u.closer(l.list)]
		if in.left -= len(list) + l.body[1] - l.body[0]; in.left < 0 {
			return
		}
		if inside && !u.assertsIn(l.body, helpers) {
			continue
		}
		t.Cases = append(t.Cases, u.elements(l.list)...)
		if around || l.list < d.start || l.list >= d.end { // what the test says is said for each of them
			t.All = bag.Join(t.All, u.bagOf(list))
		}
	}
}

func (u *unit) assertsIn(span [2]int, helpers set) bool {
	for j := span[0]; j < span[1]; j++ {
		if u.isWord(j) && u.asserts(j, helpers) {
			return true
		}
	}
	return false
}
