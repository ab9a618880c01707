package extract

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/textindex"
	"github.com/perdure/perdure/model"
)

const (
	// shownPassages are quoted, the others only named.
	shownPassages = 5
	// shownLines of a passage are quoted, those with most of the prompt.
	shownLines = 16
	// shownWidth is how many bytes of a line are quoted; a passage of few
	// lines shares shownBytes instead.
	shownWidth = 240
	shownBytes = 2400
	// shownName is how many characters of a place that is only named are shown.
	shownName = 60
)

// Answer returns citations, best first, as a text for people: one line that says what it is, then
// the best passages with file and lines, quoted with line numbers, then the names of the other
// places. Of long passages and lines the part round the words of the prompt is quoted, and bytes
// that would steer a terminal are replaced; the citations themselves are unchanged. Equal input
// gives equal text.
func Answer(prompt string, c []model.Citation) string {
	if len(c) == 0 {
		return "Nothing found by " + Name + " (offline retrieval, no model): no passage contains words of the prompt.\n"
	}
	w := &answer{q: textindex.NewQuery(prompt)}
	w.WriteString("Passages found by " + Name + " (offline retrieval, no model)")
	if len(c) > shownPassages {
		fmt.Fprintf(w, ", the best %d of %d", shownPassages, len(c))
	}
	w.WriteString(":\n")
	for i, p := range c[:min(shownPassages, len(c))] {
		fmt.Fprintf(w, "\n%d. %s\n", i+1, harmless(p.Place()))
		w.quote(p)
	}
	if len(c) > shownPassages {
		w.WriteString("\nMore passages:\n\n")
		for i, p := range c[shownPassages:] {
			line := fmt.Sprintf("%3d. %s  %s", i+1+shownPassages, harmless(p.Place()), firstLine(p.Text))
			w.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return w.String()
}

// firstLine returns the first line of a passage that says anything, cut.
func firstLine(text string) string {
	for l := range strings.Lines(text) {
		if strings.IndexFunc(l, unicode.IsLetter) < 0 {
			continue
		}
		l = strings.TrimSpace(l)
		l = clip.OneLine(harmless(strings.ToValidUTF8(clip.Prefix(l, 4*shownName), "")))
		return clip.Runes(l, shownName)
	}
	return ""
}

type answer struct {
	strings.Builder
	q *textindex.Query
}

// quote writes the lines of a passage with their numbers, and with the column of those that are not
// shown from their beginning.
func (w *answer) quote(c model.Citation) {
	lines := strings.Split(c.Text, "\n")
	from := w.densest(lines)
	to := min(from+shownLines, len(lines))
	width := len(strconv.Itoa(c.EndLine))
	if from > 0 {
		fmt.Fprintf(w, "   %*s |\n", width, "…")
	}
	limit := max(shownWidth, shownBytes/(to-from))
	for i := from; i < to; i++ {
		text, column := w.excerpt(lines[i], limit)
		if i == 0 && c.StartColumn > 0 {
			column += c.StartColumn - 1
		}
		number := strconv.Itoa(c.StartLine + i)
		if column > 0 {
			number += ":" + strconv.Itoa(column+1)
		}
		line := fmt.Sprintf("   %*s | %s", width, number, strings.TrimRight(harmless(text), " \t"))
		w.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if to < len(lines) {
		fmt.Fprintf(w, "   %*s |\n", width, "…")
	}
}

// densest returns the first of shownLines lines with the most words of the prompt, the earlier ones
// on a tie.
func (w *answer) densest(lines []string) (from int) {
	sum, most := 0, -1
	found := make([]int, len(lines))
	for i, l := range lines {
		found[i] = len(w.q.Matches(l))
		sum += found[i]
		if i >= shownLines {
			sum -= found[i-shownLines]
		}
		if i >= shownLines-1 && sum > most {
			most, from = sum, i-shownLines+1
		}
	}
	return from
}

// excerpt cuts a long line to about limit bytes round the words of the prompt. column is the number
// of bytes before them.
func (w *answer) excerpt(s string, limit int) (text string, column int) {
	if len(s) <= limit {
		return s, 0
	}
	from, most := 0, 0
	found := w.q.Matches(s)
	for i, m := range found {
		n := 0
		for n < len(found)-i && found[i+n].End <= m.Start+limit*3/4 {
			n++
		}
		if n > most {
			most, from = n, max(0, min(m.Start-limit/4, len(s)-limit))
		}
	}
	to := min(from+limit, len(s))
	for from < to && !utf8.RuneStart(s[from]) {
		from++
	}
	for to < len(s) && to > from && !utf8.RuneStart(s[to]) {
		to--
	}
	text = s[from:to]
	if from > 0 {
		text = "…" + text
	}
	if to < len(s) {
		text += "…"
	}
	return text, from
}

// Highlight returns an answer with the words of the prompt in its quoted lines in bold, for a
// terminal.
func Highlight(prompt, answer string) string {
	q := textindex.NewQuery(prompt)
	var b strings.Builder
	for l := range strings.Lines(answer) {
		at := strings.Index(l, " | ")
		if at < 0 {
			b.WriteString(l)
			continue
		}
		at += len(" | ")
		b.WriteString(l[:at])
		l = l[at:]
		at = 0
		for _, m := range q.Matches(l) {
			b.WriteString(l[at:m.Start] + "\x1b[1m" + l[m.Start:m.End] + "\x1b[22m")
			at = m.End
		}
		b.WriteString(l[at:])
	}
	return b.String()
}

// harmless replaces what would steer a terminal or turn the direction of text.
func harmless(s string) string {
	clean, _ := model.Clean(strings.TrimSuffix(s, "\r"))
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return utf8.RuneError
		}
		return r
	}, clean)
}
