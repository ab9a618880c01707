package extract

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
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

// Answer returns citations, best first, as a text for people: one line that
// says what it is, then the best passages with file and lines, quoted with
// line numbers, then the names of the other places. Long passages are quoted
// in part, long lines are cut, and bytes that would steer a terminal are
// replaced; the citations themselves are unchanged. Equal input gives equal
// text.
func Answer(prompt string, c []model.Citation) string {
	if len(c) == 0 {
		return "Nothing found by " + Name + " (offline retrieval, no model): no passage contains words of the prompt.\n"
	}
	w := &answer{tally: newTally(newQuery(prompt, newLexicon(), newAlphabet()).m)}
	w.WriteString("Passages found by " + Name + " (offline retrieval, no model)")
	if len(c) > shownPassages {
		fmt.Fprintf(w, ", the best %d of %d", shownPassages, len(c))
	}
	w.WriteString(":\n")
	for i, p := range c[:min(shownPassages, len(c))] {
		fmt.Fprintf(w, "\n%d. %s\n", i+1, heading(p))
		w.quote(p)
	}
	if len(c) > shownPassages {
		w.WriteString("\nMore passages:\n\n")
		for i, p := range c[shownPassages:] {
			line := fmt.Sprintf("%3d. %s  %s", i+1+shownPassages, heading(p), firstLine(p.Text))
			w.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return w.String()
}

func heading(c model.Citation) string {
	return harmless(c.File) + ":" + strconv.Itoa(c.StartLine) + "-" + strconv.Itoa(c.EndLine)
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
	tally *tally
}

// quote writes the lines of a passage with their numbers.
func (w *answer) quote(c model.Citation) {
	lines := strings.Split(c.Text, "\n")
	from, to := w.window(lines)
	width := len(strconv.Itoa(c.EndLine))
	if from > 0 {
		fmt.Fprintf(w, "   %*s |\n", width, "…")
	}
	limit := max(shownWidth, shownBytes/(to-from))
	for i := from; i < to; i++ {
		text := strings.TrimRight(harmless(w.excerpt(lines[i], limit)), " \t")
		line := fmt.Sprintf("   %*d | %s", width, c.StartLine+i, text)
		w.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if to < len(lines) {
		fmt.Fprintf(w, "   %*s |\n", width, "…")
	}
}

// window returns the range of lines to quote: those with most terms of the
// prompt, earlier ones on a tie.
func (w *answer) window(lines []string) (from, to int) {
	if len(lines) <= shownLines {
		return 0, len(lines)
	}
	weight := make([]int, len(lines))
	for i, l := range lines {
		w.tally.reset()
		w.tally.scan(l, 1)
		for t := w.tally.terms; t != 0; t &= t - 1 {
			weight[i]++
		}
	}
	sum, best := 0, -1
	for i := range lines {
		sum += weight[i]
		if i >= shownLines {
			sum -= weight[i-shownLines]
		}
		if i >= shownLines-1 && sum > best {
			best, from = sum, i-shownLines+1
		}
	}
	return from, from + shownLines
}

// excerpt cuts a long line to about limit bytes around the first words of the
// prompt.
func (w *answer) excerpt(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	from := 0
	for i := 0; i+limit/2 <= len(s); i += limit / 4 {
		w.tally.reset()
		w.tally.scan(s[i:i+limit/2], 1)
		if w.tally.terms != 0 {
			from = max(i-limit/4, 0)
			break
		}
	}
	to := min(from+limit, len(s))
	for from > 0 && from < to && !utf8.RuneStart(s[from]) {
		from++
	}
	for to < len(s) && to > from && !utf8.RuneStart(s[to]) {
		to--
	}
	out := s[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
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
