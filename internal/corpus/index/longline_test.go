package index_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/corpus/index"
	"github.com/perdure/perdure/internal/corpus/packtest"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

// longCase is a text with a long line: it is made of parts, and the sentence is put behind one of them.
type longCase struct {
	name string
	part func(i int) string
	// before and after are the text round all parts.
	before, after string
	size          int
}

func longCases() []longCase {
	words := strings.Fields("plan read open file test error value path module result check write list index node cache")
	word := func(i int) string { return words[(i*7+i/3)%len(words)] }
	return []longCase{
		{"transcript.jsonl", func(i int) string {
			return fmt.Sprintf(`{"type":"tool_result","n":%d,"text":"%s the %s of %s\n"},`, i, word(i), word(i+1), word(i+2))
		}, "{\"type\":\"start\"}\n{\"messages\":[", "{}]}\n{\"type\":\"end\"}\n", 4 << 20},
		{"session.jsonl", func(i int) string {
			return fmt.Sprintf(`\n%d\t%s(%s) {\n`, i, word(i), word(i+3))
		}, "{\"role\":\"user\",\"content\":\"", "\"}\n", 100 << 10},
		{"bundle.min.js", func(i int) string {
			return fmt.Sprintf("function %s%d(a,b){return a.%s(b)||%d}", word(i), i, word(i+1), i)
		}, "/*! min */", "\n//# sourceMappingURL=x\n", 600 << 10},
		{"cells.csv", func(i int) string { return fmt.Sprintf("%s %s %d; ", word(i), word(i+2), i) },
			"id,notes,ok\n1,\"", "\",yes\n2,short,no\n", 300 << 10},
		{"image.txt", func(i int) string { return strings.Repeat(fmt.Sprintf("QUJD%04dREVG+/", i%10000), 4) },
			"data:image/png;base64,", "==\nend\n", 200 << 10},
		{"日本語.txt", func(i int) string {
			return []string{"今日は天気が良いので散歩に行きました。", "本を読むのが好きです、", "会議は三時から始まる"}[i%3]
		},
			"", "\n次の行\n", 150 << 10},
		{"one-line.html", func(i int) string { return fmt.Sprintf("<div class=%q>%s %d</div>", word(i), word(i+1), i) },
			"<html><body>", "</body></html>", 250 << 10},
	}
}

// text returns the text with the sentence at a share of it in percent, "" for without.
func (c *longCase) text(sentence string, at int) string {
	var b strings.Builder
	b.WriteString(c.before)
	done := sentence == ""
	for i := 0; b.Len() < c.size; i++ {
		if !done && b.Len() >= c.size*at/100 {
			b.WriteString(" " + sentence + " ")
			done = true
		}
		b.WriteString(c.part(i))
	}
	if !done {
		b.WriteString(" " + sentence + " ")
	}
	return b.String() + c.after
}

// TestTextInLongLinesIsFoundWithItsColumn proves that a sentence in a line of 100 KB to 4 MB is the first
// passage, with the column at which it begins, and shown; in a text without it, it is not found.
func TestTextInLongLinesIsFoundWithItsColumn(t *testing.T) {
	t.Parallel()
	const sentence, prompt = "the quokka password is heliotrope", "What is the quokka password?"
	for _, c := range longCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, at := range []int{1, 50, 99, 100} {
				text := c.text(sentence, at)
				found := findIn(t, c.name, text, prompt)
				if len(found) == 0 || !strings.Contains(found[0].Text, sentence) {
					t.Errorf("at %d%%: not the first of %d passages", at, len(found))
					continue
				}
				first := found[0]
				line := strings.SplitAfter(text, "\n")[first.StartLine-1:]
				rest := strings.Join(line, "")[max(first.StartColumn-1, 0):]
				if !strings.HasPrefix(rest, first.Text) || len(first.Text) > 8<<10 || at > 1 && first.StartColumn == 0 {
					t.Errorf("at %d%%: line %d, column %d, %d bytes", at, first.StartLine, first.StartColumn, len(first.Text))
				}
				answer := extract.Answer(prompt, found)
				place := fmt.Sprintf("1. %s:%d:%d\n", c.name, first.StartLine, first.StartColumn)
				if !strings.Contains(answer, sentence) || first.StartColumn > 0 && !strings.Contains(answer, place) {
					t.Errorf("at %d%%: the answer has no %q or no %q: %.400s", at, sentence, place, answer)
				}
			}
			for _, twin := range findIn(t, c.name, c.text("", 0), prompt) {
				if strings.Contains(twin.Text, "quokka") {
					t.Errorf("found what is not there: %.80q", twin.Text)
				}
			}
		})
	}
}

// findIn returns the passages of a text of one file.
func findIn(t *testing.T, name, text, prompt string) []model.Citation {
	t.Helper()
	r, _ := packtest.Open(t, packtest.File{Name: name, Text: text})
	x, err := index.BuildInMemory(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	found, err := x.Find(prompt, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
