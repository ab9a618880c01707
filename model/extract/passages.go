package extract

// The size of passages. A block of program text with its comment stays in one
// part up to maxLines; short paragraphs are joined up to minLines.
const (
	minLines = 8
	maxLines = 40
	minBytes = 700
	maxBytes = 4 << 10
	// maxCited is the longest passage that is cited. Only a single line is
	// ever longer than maxBytes, since citations are whole lines.
	maxCited = 64 << 10
)

// span is a passage: the lines first to last-1 of a document.
type span struct{ first, last int }

// spans cuts the lines of the reader into passages and appends them to out.
// start is the number of the first line in its file; cuts without any
// structure are made at round line numbers, so that they are the same wherever
// the document begins.
func (r *reader) spans(start int, out []span) []span {
	first := 0
	for i := 1; i < len(r.lines); i++ {
		l := &r.lines[i]
		if l.begins == begin && r.worth(first, i) {
			out = r.append(out, first, i)
			first = i
			continue
		}
		for i > first && (i-first >= maxLines || l.end-r.lines[first].start > maxBytes) {
			cut := r.cut(first, i, start)
			out = r.append(out, first, cut)
			first = cut
		}
	}
	return r.append(out, first, len(r.lines))
}

// worth reports whether the lines [first, i) are enough for a passage when i
// begins something new. A declaration is, and a section with any text.
func (r *reader) worth(first, i int) bool {
	if i-first >= minLines || r.lines[i-1].end-r.lines[first].start >= minBytes {
		return true
	}
	for _, l := range r.lines[first:i] {
		if l.kind == declLine && i-first > 2 || l.kind == plainLine && r.lines[i].kind == headingLine {
			return true
		}
	}
	return false
}

// cut finds where to end a passage that begins at first and may not hold line
// i any more.
func (r *reader) cut(first, i, start int) int {
	best, strength := 0, -1
	for k := i; k > first; k-- {
		if k-first < minLines && strength >= 0 {
			break
		}
		s := int(r.lines[k].begins) * 2
		if (start+k)%10 == 0 {
			s++
		}
		if s > strength {
			best, strength = k, s
		}
	}
	return best
}

// append adds a passage without the blank lines around it.
func (r *reader) append(out []span, first, last int) []span {
	for first < last && r.lines[first].kind == blankLine {
		first++
	}
	for first < last && r.lines[last-1].kind == blankLine {
		last--
	}
	if first == last {
		return out
	}
	return append(out, span{first, last})
}
