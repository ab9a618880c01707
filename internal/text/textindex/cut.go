package textindex

import (
	"strings"
	"unicode/utf8"
)

// The size of passages.
const (
	maxLines = 50
	maxBytes = 3 << 10
	// sharedBytes is how much of a passage within a line is in the next one, too: words that are
	// close to each other are together in one of them.
	sharedBytes = 256
	// separators are where a line is cut.
	separators = " \t,;}])>"
)

// Cut calls emit for the passages of a text, ranges of bytes in order, without the blank lines
// around them. A passage has at most 50 lines and 3 KiB; a longer line is cut between words.
func Cut(text string, emit func(from, to int)) {
	from, to, lines := 0, 0, 0 // of the passage, to its last line that is not blank
	flush := func() {
		emit(from, to)
		lines = 0
	}
	for start := 0; start < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[start:], '\n'); n >= 0 {
			end = start + n + 1
		}
		if lines > 0 && (lines == maxLines || end-from > maxBytes) {
			flush()
		}
		isBlank := strings.TrimSpace(text[start:end]) == ""
		switch {
		case end-start > maxBytes:
			cutLong(text, start, end, emit)
		case isBlank && lines > 0:
			lines++
		case !isBlank:
			if lines == 0 {
				from = start
			}
			to, lines = end, lines+1
		}
		start = end
	}
	if lines > 0 {
		flush()
	}
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
