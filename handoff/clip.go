package handoff

import (
	"strings"
	"unicode/utf8"
)

// cutMark is the end of a shortened string.
const cutMark = "…"

// size is the limit of a string in a checkpoint.
type size int

const (
	partialSize size = iota
	reasonSize       // of decisions and of failures
	textSize
	actionSize
	pathSize // a longer path is left out, never shortened

	// The limits of text for which room is reserved, in their two shorter forms.
	briefText
	briefReason
	briefPartial
	shortText
	shortReason
	shortPartial

	// The limits of fields that are never left out.
	floorID
	floorRef
	floorAction
	floorText
	floorCheck
	floorAgent
	floorKeyword
)

// sizes are in characters, and in bytes of the JSON without the quotes. Both include
// cutMark.
var sizes = [...]struct{ chars, bytes int }{
	partialSize:  {200, 800},
	reasonSize:   {100, 300},
	textSize:     {200, 400},
	actionSize:   {400, 600},
	pathSize:     {200, 200},
	briefText:    {40, 60},
	briefReason:  {32, 48},
	briefPartial: {48, 72},
	shortText:    {72, 108},
	shortReason:  {56, 84},
	shortPartial: {100, 200},
	floorID:      {96, 96},
	floorRef:     {80, 80},
	floorAction:  {160, 160},
	floorText:    {96, 96},
	floorCheck:   {64, 64},
	floorAgent:   {48, 48},
	floorKeyword: {24, 24},
}

// clipped returns a string that fits into a size, with cutMark at its end if it was
// shortened. Bytes that are not UTF-8 become U+FFFD.
func clipped(text string, to size) string {
	limit := sizes[to]
	chars, bytes := 0, 0
	keep := 0 // the length of text that leaves space for the mark
	for at, r := range text {
		width := encodedLen(r)
		if chars+1 > limit.chars || bytes+width > limit.bytes {
			return strings.ToValidUTF8(text[:keep], "\uFFFD") + cutMark
		}
		chars++
		bytes += width
		if chars+1 <= limit.chars && bytes+len(cutMark) <= limit.bytes {
			_, n := utf8.DecodeRuneInString(text[at:])
			keep = at + n
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// encodedLen returns the number of bytes of a character in the JSON of a checkpoint.
func encodedLen(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}

// shows reports whether a string of a checkpoint is that of a ledger, possibly shortened.
func shows(shown, full string) bool {
	if shown == full {
		return true
	}
	full = strings.ToValidUTF8(full, "\uFFFD")
	head, cut := strings.CutSuffix(shown, cutMark)
	return shown == full || cut && strings.HasPrefix(full, head)
}
