package handoff

import (
	"strings"
	"unicode/utf8"
)

// cutMark ends a text that was shortened.
const cutMark = "…"

// size is how much of a text a checkpoint shows.
type size int

const (
	partialSize size = iota
	reasonSize       // of decisions and of failures
	textSize
	actionSize
	pathSize // a longer path is left out, never cut

	// What is never left out has at least this much.
	floorID
	floorRef
	floorAction
	floorText
	floorCheck
	floorAgent
	floorKeyword
)

// sizes are in characters, and in bytes of the JSON form without the quotes.
// Both count the mark of what is cut.
var sizes = [...]struct{ chars, bytes int }{
	partialSize:  {200, 800},
	reasonSize:   {100, 300},
	textSize:     {200, 400},
	actionSize:   {400, 600},
	pathSize:     {200, 200},
	floorID:      {96, 96},
	floorRef:     {80, 80},
	floorAction:  {160, 160},
	floorText:    {96, 96},
	floorCheck:   {64, 64},
	floorAgent:   {48, 48},
	floorKeyword: {24, 24},
}

// clipped returns as much of a text as may be shown, with the mark when something
// was cut. Bytes that are not UTF-8 become U+FFFD.
func clipped(text string, most size) string {
	limit := sizes[most]
	chars, bytes := 0, 0
	keep := 0 // how much of the text stays when the mark has to fit behind it
	for at, r := range text {
		width := encodedLen(r)
		if chars+1 > limit.chars || bytes+width > limit.bytes {
			return strings.ToValidUTF8(text[:keep], "\uFFFD") + cutMark
		}
		chars++
		bytes += width
		if chars+1 <= limit.chars && bytes+len(cutMark) <= limit.bytes {
			keep = at + runeLen(text[at:])
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func runeLen(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// encodedLen is how many bytes a character takes in a JSON text as it is written
// here.
func encodedLen(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}

// shows tells whether a text of a checkpoint is that of a ledger, whole or cut.
func shows(shown, full string) bool {
	if shown == full {
		return true
	}
	full = strings.ToValidUTF8(full, "\uFFFD")
	if shown == full {
		return true
	}
	head, cut := strings.CutSuffix(shown, cutMark)
	return cut && strings.HasPrefix(full, head)
}
