package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/model"
)

// shownReads bounds the places that were read and are listed.
const shownReads = 200

// citations returns the citations to list, and how many others there are.
func (d *Document) citations() (shown []client.Citation, hidden int64) {
	reads := 0
	for _, c := range d.Result.Citations {
		if c.Kind == model.CitedRead {
			if reads++; reads > shownReads {
				hidden++
				continue
			}
		}
		shown = append(shown, c)
	}
	return shown, hidden + int64(d.Result.MoreCitations)
}

// readMark marks a place that was read but not quoted.
func readMark(c client.Citation) string {
	if c.Kind == model.CitedRead {
		return " (read)"
	}
	return ""
}

// linesOf returns the place of a citation in its file.
func linesOf(c client.Citation) string {
	text := fmt.Sprintf("lines %d to %d", c.StartLine, c.EndLine)
	if c.Cell > 0 {
		text = fmt.Sprintf("cell %d, %s", c.Cell, text)
	}
	if c.StartColumn > 0 {
		text += fmt.Sprintf(", from column %d", c.StartColumn)
	}
	return text
}

// answerPart is text of an answer, or a reference to a citation by its number.
type answerPart struct {
	Text string
	Ref  int
}

// footnote is a reference of an answer to a citation.
var footnote = lazyregexp.New(`\[\^(\d{1,5})\]`)

// answerParts divides an answer at its references to quotes.
func (d *Document) answerParts(answer string) []answerPart {
	var parts []answerPart
	at := 0
	for _, found := range footnote().FindAllStringSubmatchIndex(answer, -1) {
		n, err := strconv.Atoi(answer[found[2]:found[3]])
		if err != nil || !d.quoted(n) {
			continue
		}
		parts = append(parts, answerPart{Text: answer[at:found[0]]}, answerPart{Ref: n})
		at = found[1]
	}
	return append(parts, answerPart{Text: answer[at:]})
}

// quoted reports whether the citation of a number is a quote.
func (d *Document) quoted(n int) bool {
	return d.Result != nil && n >= 1 && n <= len(d.Result.Citations) && d.Result.Citations[n-1].Kind == model.CitedQuote
}

// markdownSources links the references of an answer to the list of citations.
func (d *Document) markdownSources(m *human.MarkdownText, answer string) {
	var links []string
	seen := make(map[int]bool)
	for _, p := range d.answerParts(answer) {
		if p.Ref > 0 && !seen[p.Ref] {
			seen[p.Ref] = true
			links = append(links, fmt.Sprintf("[%d](#citation-%d)", p.Ref, p.Ref))
		}
	}
	if len(links) > 0 {
		m.Line("")
		m.Line("Quotes: %s.", strings.Join(links, ", "))
	}
}
