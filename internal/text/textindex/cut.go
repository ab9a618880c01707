package textindex

import (
	"strings"
	"unicode/utf8"
)

// The size of passages. Paragraphs and declarations are passages of their own from minLines
// or minBytes on. A line of more than maxBytes is cut into passages within it.
const (
	minLines = 8
	maxLines = 40
	minBytes = 700
	maxBytes = 4 << 10
	// sharedBytes is how much of a passage within a line is in the next one, too: words that are
	// close to each other are together in one of them.
	sharedBytes = 256
	// separators are where a line is cut.
	separators = " \t,;}])>"
)

// line is a line of a text with its newline.
type line struct {
	start, end int
	indent     int
	// begins is set behind a blank line, and for headings.
	begins, blank bool
}

// Cut calls emit for the passages of a text, ranges of bytes in order, without the blank lines
// around them. Passages end at ends of lines; in a line of more than 4 KiB, between words.
func Cut(text string, emit func(from, to int)) {
	var lines []line
	flush := func() {
		cutLines(lines, text, emit)
		lines = lines[:0]
	}
	blank := true
	for start := 0; start < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[start:], '\n'); n >= 0 {
			end = start + n + 1
		}
		if end-start > maxBytes {
			flush()
			cutLong(text, start, end, emit)
		} else {
			l := line{start: start, end: end}
			s := strings.TrimLeft(text[start:end], " \t")
			l.indent, l.blank = end-start-len(s), strings.TrimSpace(s) == ""
			closes := !l.blank && strings.IndexByte("})]", s[0]) >= 0
			l.begins = blank && !l.blank && !closes || isHeading(s)
			blank = l.blank
			lines = append(lines, l)
		}
		start = end
	}
	flush()
}

// isHeading reports whether a line is a heading of Markdown or AsciiDoc.
func isHeading(s string) bool {
	level := strings.IndexFunc(s, func(r rune) bool { return r != '#' && r != '=' })
	return level > 0 && level <= 6 && s[level] == ' ' && (level > 1 || s[0] == '=')
}

// cutLines cuts lines into passages.
func cutLines(lines []line, text string, emit func(from, to int)) {
	first := 0
	add := func(last int) {
		from, to := first, last
		for from < to && lines[from].blank {
			from++
		}
		for from < to && lines[to-1].blank {
			to--
		}
		if from < to {
			emit(lines[from].start, lines[to-1].end)
		}
		first = last
	}
	for i := 1; i < len(lines); i++ {
		l := lines[i]
		for first < len(lines) && lines[first].blank && first < i {
			first++
		}
		size := l.start - lines[first].start
		if l.begins && l.indent <= lines[first].indent && (i-first >= minLines || size >= minBytes) {
			add(i)
			continue
		}
		for i > first && (i-first >= maxLines || l.end-lines[first].start > maxBytes) {
			add(bestCut(lines, first, i))
		}
	}
	add(len(lines))
}

// bestCut returns where a passage that begins at first and cannot hold line last ends.
func bestCut(lines []line, first, last int) int {
	best, strength := last, -1
	for k := last; k > first; k-- {
		if k-first < minLines && strength >= 0 {
			break
		}
		s := 0
		if lines[k].begins {
			s = 2
		}
		if lines[k].indent <= lines[first].indent {
			s++
		}
		if s > strength {
			best, strength = k, s
		}
	}
	return best
}

// cutLong cuts a line that is longer than a passage, behind the last separator of words in the
// second half of each.
func cutLong(text string, start, end int, emit func(from, to int)) {
	for end-start > maxBytes {
		to := start + maxBytes
		for i := range utf8.UTFMax { // text that is not UTF-8 has no runes to keep whole
			if utf8.RuneStart(text[to-i]) {
				to -= i
				break
			}
		}
		if n := strings.LastIndexAny(text[start+maxBytes/2:to], separators); n >= 0 {
			to = start + maxBytes/2 + n + 1
		}
		emit(start, to)
		start = to
		if n := strings.IndexAny(text[to-sharedBytes:to], separators); n >= 0 {
			start = to - sharedBytes + n + 1
		}
	}
	if strings.TrimSpace(text[start:end]) != "" {
		emit(start, end)
	}
}
