package quote

import (
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

var (
	// mark is a footnote in a text: its label is a place, whose file may have blanks and
	// brackets, or a short word.
	mark = lazyregexp.New(`[ \t]?\[\^((?:[^\n\[\]]|\[[^\n\[\]]*\])+:\d+-\d+|[^\]\s]{1,40})\]`)
	// class is the label of what is no footnote but a class of a regular expression, such
	// as [^a-z].
	class = lazyregexp.New(`^(?:\w-\w|\\\w|_|[^\w:/])+$`)
	// code is a fenced block, which may lack its end, or text between backquotes.
	code = lazyregexp.New("(?m)^ {0,3}```[^`\\n]*$(?:(?s:.*?)^ {0,3}```+[ \\t]*$|(?s:.*))" +
		"|^ {0,3}~~~[^\\n]*$(?:(?s:.*?)^ {0,3}~~~+[ \\t]*$|(?s:.*))" +
		"|``[^`\\n]+(?:`[^`\\n]+)*``|`[^`\\n]+`")
)

// replaceMarks replaces each footnote mark by to of its label. Marks for which that is empty
// are removed with the blank before them. A mark without a definition is removed and counted,
// unless it is in code or keep is true for it: as it is, it could name a quote of another
// answer.
func replaceMarks(text string, to map[string]string, keep func(mark string) bool) (out string, undefined int) {
	var b strings.Builder
	inCode := code().FindAllStringIndex(text, -1)
	at := 0
	for _, m := range mark().FindAllStringSubmatchIndex(text, -1) {
		for len(inCode) > 0 && inCode[0][1] <= m[0] {
			inCode = inCode[1:]
		}
		open, label := m[2]-len("[^"), text[m[2]:m[3]]
		with, defined := to[label]
		switch {
		case with != "":
			with = text[m[0]:open] + with
		case defined:
		case len(inCode) > 0 && inCode[0][0] <= open, class().MatchString(label), keep(text[open:m[1]]):
			continue
		default:
			undefined++
		}
		b.WriteString(text[at:m[0]] + with)
		at = m[1]
	}
	return b.String() + text[at:], undefined
}
