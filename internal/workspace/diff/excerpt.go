package diff

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Comparison is the difference of two versions, of which it shows parts.
type Comparison struct {
	a, b  [][]byte
	edits []edit
}

// Compare compares two versions. It returns nil if one of them is binary or too long.
func Compare(before, after []byte) *Comparison {
	for _, text := range [][]byte{before, after} {
		if bytes.IndexByte(text, 0) >= 0 || bytes.Count(text, []byte("\n")) > maxLines {
			return nil
		}
	}
	c := &Comparison{a: lines(before), b: lines(after)}
	c.edits = edits(c.a, c.b)
	return c
}

// Line is a line of one of two versions; numbers begin with 1.
type Line struct {
	Number int
	Old    bool
}

// Text returns a line without the blanks around it; empty if there is none.
func (c *Comparison) Text(at Line) string {
	text := c.b
	if at.Old {
		text = c.a
	}
	if at.Number < 1 || at.Number > len(text) {
		return ""
	}
	return string(bytes.TrimSpace(text[at.Number-1]))
}

// Changed returns the text of all changed lines without their indentation, marked by a
// minus or a plus. It does not depend on where they are.
func (c *Comparison) Changed() string { return c.changed(c.edits) }

// ChangedAt returns the text of the lines that changed together with a line, as Changed does.
func (c *Comparison) ChangedAt(at Line) string {
	from := 0
	for i, e := range c.edits {
		if e.kind == ' ' {
			from = i + 1
		} else if e.away(at) == 0 {
			to := i + 1
			for to < len(c.edits) && c.edits[to].kind != ' ' {
				to++
			}
			return c.changed(c.edits[from:to])
		}
	}
	return ""
}

func (c *Comparison) changed(edits []edit) string {
	var b strings.Builder
	for i := range edits {
		for _, l := range c.of(&edits[i]) {
			if l.kind != ' ' {
				b.WriteByte(l.kind)
				b.Write(bytes.TrimSpace(l.text))
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// shown is a line of a diff with its indexes in both versions.
type shown struct {
	kind byte
	a, b int
	text []byte
}

func (c *Comparison) of(e *edit) []shown {
	all := make([]shown, e.n)
	for i := range all {
		switch e.kind {
		case '+':
			all[i] = shown{'+', e.a, e.b + i, c.b[e.b+i]}
		case '-':
			all[i] = shown{'-', e.a + i, e.b, c.a[e.a+i]}
		default:
			all[i] = shown{' ', e.a + i, e.b + i, c.a[e.a+i]}
		}
	}
	return all
}

// Limits of an excerpt: the lines shown, and how far from the line in question a change may
// begin.
const (
	excerptLines = 14
	excerptBytes = 160
	excerptFar   = 60
)

// Excerpt returns the part of the diff that shows what changed at a line, with one line of
// context, as a hunk of a unified diff. If the line itself did not change, it shows the next
// change. It returns "" if there is none near the line.
func (c *Comparison) Excerpt(at Line) string {
	all := c.aligned(at)
	from, to := nearest(all, at)
	if from == to {
		return ""
	}
	hunk := slices.Clone(all[from:to])
	if from > 0 {
		e := all[from-1]
		hunk = slices.Insert(hunk, 0, edit{' ', e.a + e.n - 1, e.b + e.n - 1, 1})
	}
	if to < len(all) {
		hunk = append(hunk, edit{' ', all[to].a, all[to].b, 1})
	}
	return c.excerpt(hunk, at)
}

// nearest returns the range of the edits of the change nearest to a line; an empty one if
// there is none near it.
func nearest(all []edit, at Line) (from, to int) {
	best, least := -1, excerptFar+1
	for i := range all {
		if d := all[i].away(at); d < least {
			best, least = i, d
		}
	}
	if best < 0 {
		return 0, 0
	}
	from, to = best, best+1
	for from > 0 && all[from-1].kind != ' ' {
		from--
	}
	for to < len(all) && all[to].kind != ' ' {
		to++
	}
	return from, to
}

// Near returns the first line of the change that Excerpt shows for a line: the added one, or
// the removed one if nothing was added. The number is 0 if there is none.
func (c *Comparison) Near(at Line) Line {
	from, to := nearest(c.edits, at)
	if from == to {
		return Line{}
	}
	last := c.edits[to-1] // additions follow removals
	if last.kind == '+' {
		return Line{Number: last.b + 1}
	}
	return Line{Number: c.edits[from].a + 1, Old: true}
}

// First returns the line of the first change.
func (c *Comparison) First() Line { return c.FirstIn(0, len(c.b)+2) }

// FirstIn returns the line of the first change from a line of the new version on, and before
// another one: the added line, or the removed one if nothing was added. The number is 0 if
// nothing changed there. What was removed right before the first line does not count.
func (c *Comparison) FirstIn(from, before int) Line {
	for i, e := range c.edits {
		added := e.kind == '+' || e.kind == '-' && i+1 < len(c.edits) && c.edits[i+1].kind == '+'
		switch n := e.b + 1; {
		case e.kind == ' ' || n < from || n > before:
		case added && n < before:
			return Line{Number: n}
		case !added && n > from:
			return Line{Number: e.a + 1, Old: true}
		}
	}
	return Line{}
}

// Same reports whether a line of the new version did not change.
func (c *Comparison) Same(line int) bool {
	for _, e := range c.edits {
		if e.kind == ' ' && e.b < line && line <= e.b+e.n {
			return true
		}
	}
	return false
}

// away returns how far a change is from a line: 0 if it is the change of the line. A change
// after the line is nearer than one before.
func (e *edit) away(at Line) int {
	from, here := e.b+1, e.kind == '+'
	if at.Old {
		from, here = e.a+1, e.kind == '-'
	}
	to := from
	if here {
		to = from + e.n - 1
	}
	switch {
	case e.kind == ' ' || at.Number-to > excerptFar/4:
		return excerptFar + 1
	case here && from <= at.Number && at.Number <= to:
		return 0
	case from >= at.Number:
		return 1 + from - at.Number
	}
	return 2 + 4*(at.Number-to)
}

// aligned returns the edits, the removal or addition at a line moved so that it begins at
// the line, if that is the same change: a removed function begins with its name, not with
// the bracket of the one before.
func (c *Comparison) aligned(at Line) []edit {
	all := c.edits
	for i, e := range all {
		kind, text, from := byte('+'), c.b, e.b
		if at.Old {
			kind, text, from = '-', c.a, e.a
		}
		by := at.Number - 1 - from
		if e.kind != kind || by <= 0 || by >= e.n || i+1 == len(all) || all[i+1].kind != ' ' || all[i+1].n < by ||
			i > 0 && all[i-1].kind != ' ' || !same(text[from:from+by], text[from+e.n:from+e.n+by]) {
			continue
		}
		moved := append([]edit{}, all[:i]...)
		if i == 0 {
			moved = append(moved, edit{' ', e.a, e.b, by})
		} else {
			moved[i-1].n += by
		}
		next := all[i+1]
		moved = append(moved, edit{e.kind, e.a + by, e.b + by, e.n}, edit{' ', next.a + by, next.b + by, next.n - by})
		return append(moved, all[i+2:]...)
	}
	return all
}

func same(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// excerpt formats the lines of a hunk. Of a long one it shows the lines from the line in
// question on; the others are not looked at, because a hunk can be a whole file.
func (c *Comparison) excerpt(hunk []edit, at Line) string {
	count, found := 0, 0
	for i := range hunk {
		if k, ok := hunk[i].index(at); ok {
			found = count + k
		}
		count += hunk[i].n
	}
	from, to := 0, count
	if to > excerptLines {
		from = min(max(found-1, 0), to-excerptLines)
		to = from + excerptLines
	}
	var all []shown
	for first, i := 0, 0; i < len(hunk); i++ {
		e := &hunk[i]
		if low, high := max(from-first, 0), min(to-first, e.n); low < high {
			all = append(all, c.of(e.part(low, high-low))...)
		}
		first += e.n
	}
	return format(all, count-to)
}

// index returns the index of a line among those of the edit.
func (e *edit) index(at Line) (k int, ok bool) {
	if at.Old {
		k, ok = at.Number-1-e.a, e.kind != '+'
	} else {
		k, ok = at.Number-1-e.b, e.kind != '-'
	}
	return k, ok && k >= 0 && k < e.n
}

// part returns n lines of the edit.
func (e *edit) part(from, n int) *edit {
	p := &edit{e.kind, e.a, e.b, n}
	if e.kind != '+' {
		p.a += from
	}
	if e.kind != '-' {
		p.b += from
	}
	return p
}

// format writes lines as a hunk of a unified diff; more counts those that follow.
func format(all []shown, more int) string {
	var inA, inB int
	for _, l := range all {
		if l.kind != '+' {
			inA++
		}
		if l.kind != '-' {
			inB++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(all[0].a, inA), span(all[0].b, inB))
	for _, l := range all {
		text := bytes.TrimRight(l.text, "\r\n")
		cut := ""
		if len(text) > excerptBytes {
			text, cut = text[:excerptBytes], "…"
		}
		b.WriteString(string(l.kind) + strings.ToValidUTF8(string(text), "\uFFFD") + cut + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "… %d more lines\n", more)
	}
	return b.String()
}
