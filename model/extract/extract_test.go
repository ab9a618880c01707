package extract_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

// checkCitation fails unless a citation is exactly lines of its document.
func checkCitation(t *testing.T, c model.Citation, docs []model.Document) {
	t.Helper()
	sum := sha256.Sum256([]byte(c.Text))
	if c.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%s:%d: the hash is not that of the text", c.File, c.StartLine)
	}
	if !(c.Score > 0) || math.IsInf(c.Score, 0) {
		t.Errorf("%s:%d: score %v", c.File, c.StartLine, c.Score)
	}
	for _, d := range docs {
		lines := strings.SplitAfter(d.Text, "\n")
		from := c.StartLine - d.StartLine
		if d.File != c.File || from < 0 || from >= len(lines) {
			continue
		}
		rest := strings.Join(lines[from:], "")[max(c.StartColumn-1, 0):]
		if strings.HasPrefix(rest, c.Text) && c.EndLine == c.StartLine+strings.Count(c.Text, "\n") &&
			(c.StartColumn > 0 || len(c.Text) >= 2<<10 || rest == c.Text || rest[len(c.Text)] == '\n') {
			return
		}
	}
	t.Errorf("%s:%d-%d is not these lines of a document: %.80q", c.File, c.StartLine, c.EndLine, c.Text)
}

func generate(t *testing.T, prompt string, docs ...model.Document) *model.Response {
	t.Helper()
	resp, err := extract.New(extract.Config{}).Generate(t.Context(), &model.Request{Prompt: prompt, Documents: docs})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

const gardenText = `# The garden

Tomatoes want sun and warm soil. Plant them after the last frost, and
water them in the morning.

## Pests

Aphids suck the sap of young shoots.
Ladybirds eat them; do not spray while ladybirds are about.

## Tools

Clean the spade after use and oil its handle once a year.
`

func TestCitesThePassage(t *testing.T) {
	t.Parallel()
	doc := model.Document{File: "garden.md", StartLine: 11, Text: gardenText}
	resp := generate(t, "What eats aphids?", doc)
	if len(resp.Citations) == 0 {
		t.Fatal("nothing found")
	}
	c := resp.Citations[0]
	checkCitation(t, c, []model.Document{doc})
	if !strings.Contains(c.Text, "Ladybirds eat them") {
		t.Errorf("cited %q", c.Text)
	}
	if resp.Model != extract.Name || resp.Tries != 1 || resp.Usage != (model.Usage{}) {
		t.Errorf("response %+v", resp)
	}
	first, _, _ := strings.Cut(resp.Text, "\n")
	if !strings.Contains(first, "builtin:extract") || !strings.Contains(first, "no model") {
		t.Errorf("the first line does not say what this is: %q", first)
	}
	if !strings.Contains(resp.Text, fmt.Sprintf("garden.md:%d-%d", c.StartLine, c.EndLine)) {
		t.Errorf("the place is missing in:\n%s", resp.Text)
	}
}

func TestSaysWhenNothingIsFound(t *testing.T) {
	t.Parallel()
	for _, docs := range [][]model.Document{
		nil,
		{{File: "garden.md", StartLine: 1, Text: gardenText}},
		{{File: "empty", StartLine: 1}},
		{{File: "blank", StartLine: 1, Text: "\n\r\n \t\n"}},
	} {
		resp := generate(t, "zymurgy quarterly", docs...)
		if len(resp.Citations) != 0 || !strings.HasPrefix(resp.Text, "Nothing found") {
			t.Errorf("found %v, text %q", resp.Citations, resp.Text)
		}
	}
}

func TestTellsTextWhileItArrives(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	req := &model.Request{
		Prompt: "frost", Documents: []model.Document{{File: "g", StartLine: 1, Text: gardenText}},
		OnText: func(s string) { got.WriteString(s) },
	}
	resp, err := extract.New(extract.Config{}).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != resp.Text {
		t.Errorf("told %q, returned %q", got.String(), resp.Text)
	}
}

func TestFindsForms(t *testing.T) {
	t.Parallel()
	const filler = "Nothing to see in this line.\n\n"
	for _, tc := range []struct{ prompt, line string }{
		{"how is memory allocated", "The allocator takes a page."},
		{"ServeHTTP", "srv.serve_http(w)"},
		{"max open conns", "db.SetMaxOpenConns(4)"},
		{"hash table", "a hashtable of names"},
		{"configuration file", "read cfg from disk"},
		{"Größe der Straße", "die STRASSE, die größe"},
		{"漢字の変換", "漢字を変換する"},
		{"to be or not to be", "To be, or not to be, that is the question:"},
		{"the `for` statement", "for i := range n {"},
	} {
		text := strings.Repeat(filler, 8) + tc.line + "\n\n" + strings.Repeat(filler, 8)
		resp := generate(t, tc.prompt, model.Document{File: "x.txt", StartLine: 1, Text: text})
		if len(resp.Citations) == 0 || !strings.Contains(resp.Citations[0].Text, tc.line) {
			t.Errorf("%q does not find %q", tc.prompt, tc.line)
		}
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := extract.New(extract.Config{})
	docs := []model.Document{{File: "g", StartLine: 1, Text: gardenText}}
	_, err := e.Generate(ctx, &model.Request{Prompt: "frost", Documents: docs})
	var me *model.Error
	if !errors.As(err, &me) || me.Kind != model.KindCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("generate: %v", err)
	}
}

// Text in lines of any length is found, and cited by its column.
func TestFindsTextInLongLines(t *testing.T) {
	t.Parallel()
	const needle = "the brass key is under the third stair"
	filler := map[string]string{
		"words": "nothing of interest here, ", "json": `{"role":"user","n":1},`, "script": "var a=b(c);",
		"cells": "12.5;x;", "cjk": "\u6f22\u5b57\u3068\u4eee\u540d", "encoded": "aGVsbG8gd29ybGQgd2l0aG91dCBzcGFjZXM",
		"accents": "\u00e9\u00fc\u00df ",
	}
	for name, unit := range filler {
		for _, size := range []int{5 << 10, 70 << 10, 1 << 20} {
			for _, place := range []int{0, 3, 6} { // of six
				n := size / len(unit)
				head := strings.Repeat(unit, n*place/6)
				docs := []model.Document{
					{File: "short.txt", StartLine: 1, Text: strings.Repeat("filler\n", 50)},
					{File: "long.jsonl", StartLine: 1,
						Text: "first\n" + head + " " + needle + " " + strings.Repeat(unit, n-n*place/6)},
				}
				resp := generate(t, "Where is the brass key?", docs...)
				if len(resp.Citations) == 0 {
					t.Errorf("%s, %d bytes, place %d: nothing found", name, size, place)
					continue
				}
				c := resp.Citations[0]
				checkCitation(t, c, docs)
				if c.StartLine != 2 || !strings.Contains(c.Text, "brass key") || len(c.Text) > 4<<10 ||
					!utf8.ValidString(c.Text) {
					t.Errorf("%s, %d bytes, place %d: cited %d:%d %.60q", name, size, place, c.StartLine, c.StartColumn, c.Text)
				}
				if !strings.Contains(resp.Text, "brass key") || place > 0 && !strings.Contains(resp.Text, "   2:") {
					t.Errorf("%s, %d bytes, place %d: the match is not shown with its column:\n%.900s", name, size, place, resp.Text)
				}
			}
		}
	}
}

func TestHighlightsWordsOfQuotes(t *testing.T) {
	t.Parallel()
	got := extract.Highlight("brass keys", "1. keys.txt:1-1\n   1 | a key of Brass | keys\n")
	want := "1. keys.txt:1-1\n   1 | a \x1b[1mkey\x1b[22m of \x1b[1mBrass\x1b[22m | \x1b[1mkeys\x1b[22m\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMergeLeavesOutRepetition(t *testing.T) {
	t.Parallel()
	cite := func(file string, from, to int, score float64, text string) model.Citation {
		sum := sha256.Sum256([]byte(text))
		return model.Citation{
			File: file, StartLine: from, EndLine: to, Score: score, Text: text, SHA256: hex.EncodeToString(sum[:]),
		}
	}
	lines := "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon"
	a := cite("a.go", 10, 20, 9, lines)
	found := [][]model.Citation{
		{cite("b.go", 1, 2, 3, "second"), a},
		{cite("a.go", 15, 30, 8, "overlaps the best"), cite("c.go", 1, 1, 7, lines), cite("a.go", 21, 22, 3, "first")},
		{cite("d.go", 1, 1, 6, lines+" phi"), a, cite("b.go", 1, 2, 3, "second")},
	}
	want := []string{"a.go:10", "a.go:21", "b.go:1"}
	var got []string
	for _, c := range extract.Merge(found, 0) {
		got = append(got, fmt.Sprintf("%s:%d", c.File, c.StartLine))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	slices.Reverse(found)
	if diff := cmp.Diff(extract.Merge(found, 2), extract.Merge(found, 0)[:2]); diff != "" {
		t.Errorf("the order of the input or the limit matters (-want +got)\n%s", diff)
	}
}

func TestAnswerIsHarmless(t *testing.T) {
	t.Parallel()
	got := extract.Answer("color", []model.Citation{{
		File: "evil\x1b]0;name\a.txt", StartLine: 1, EndLine: 3,
		Text: "color \x1b[31mred\x1b[0m\x00\r\n\u202etxet esrever color\n" + strings.Repeat("color ", 4000),
	}})
	checkText(t, got)
	if len(got) > 4000 {
		t.Errorf("the answer has %d bytes", len(got))
	}
}

func TestAnswerNamesFurtherPlaces(t *testing.T) {
	t.Parallel()
	var found []model.Citation
	for i := range 7 {
		found = append(found, model.Citation{
			File: "garden.md", StartLine: 10*i + 1, EndLine: 10*i + 3, Text: fmt.Sprintf("{\nAphids, part %d.\r\n}", i),
		})
	}
	got := extract.Answer("aphids", found)
	for _, want := range []string{
		"Passages found by builtin:extract (offline retrieval, no model), the best 5 of 7:\n\n",
		"\n2. garden.md:11-13\n   11 | {\n   12 | Aphids, part 1.\n   13 | }\n",
		"\nMore passages:\n\n  6. garden.md:51-53  Aphids, part 5.\n  7. garden.md:61-63  Aphids, part 6.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// checkText fails when a text could steer a terminal.
func checkText(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Error("not valid UTF-8")
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Errorf("the text holds %U", r)
		}
	}
}
