package extract_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
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
		lines := strings.Split(d.Text, "\n")
		from, to := c.StartLine-d.StartLine, c.EndLine-d.StartLine+1
		if d.File == c.File && from >= 0 && from < to && to <= len(lines) &&
			strings.Join(lines[from:to], "\n") == c.Text {
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

// The types in comments and the names given to them say little about what happens.
func TestTypesInCommentsCountLess(t *testing.T) {
	t.Parallel()
	aliases := strings.Repeat("/** @typedef {import(\"./chunk\").Chunk} Chunk */\n", 3)
	types := "/**\n * @param {Chunk} a\n * @param {Map<Chunk>} b\n */\nfunction f(a, b) {\n  return a\n}\n"
	text := "/**\n * Moves modules out of a large chunk.\n * A chunk may stay empty.\n */\n" +
		"function g(c) {\n  return c\n}\n"
	docs := []model.Document{
		{File: "a.js", StartLine: 1, Text: aliases}, {File: "b.js", StartLine: 1, Text: types},
		{File: "c.js", StartLine: 1, Text: text},
	}
	resp, err := extract.New(extract.Config{}).Generate(t.Context(),
		&model.Request{Prompt: "What is a chunk?", Documents: docs})
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Citations) != 3 || resp.Citations[0].File != "c.js" {
		t.Errorf("the best passage is not in c.js:\n%s", resp.Text)
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

func TestHugeLinesAreNotQuoted(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("needle in a haystack, ", 10<<20/22)
	resp := generate(t, "needle",
		model.Document{File: "huge.txt", StartLine: 1, Text: huge},
		model.Document{File: "small.txt", StartLine: 1, Text: "one needle\r\nand a thread"})
	if len(resp.Citations) != 1 || resp.Citations[0].Text != "one needle\r\nand a thread" {
		t.Errorf("citations %+v", resp.Citations)
	}
	if len(resp.Notes) != 1 || !strings.Contains(resp.Notes[0], "not quoted") {
		t.Errorf("notes %q", resp.Notes)
	}
}

func TestStatisticsAreOfTheWholeContext(t *testing.T) {
	t.Parallel()
	// "common" is rare in the part but not in the whole.
	part := model.Document{File: "part.txt", StartLine: 1, Text: "a common thing\n\n" + strings.Repeat("filler\n", 30) +
		"\na rare thing\n"}
	whole := []model.Document{part}
	for i := range 200 {
		whole = append(whole, model.Document{File: fmt.Sprint(i), StartLine: 1, Text: "common"})
	}
	e := extract.New(extract.Config{TopK: 1})
	prepared, err := e.Prepare(t.Context(), "common rare", each(whole))
	if err != nil {
		t.Fatal(err)
	}
	req := &model.Request{Prompt: "common rare", Documents: []model.Document{part}, Prepared: prepared}
	resp, err := e.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Citations) != 1 || !strings.Contains(resp.Citations[0].Text, "rare") {
		t.Errorf("best passage is %+v", resp.Citations)
	}
}

func TestBadStatistics(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"{", "[]", `{"version":99}`, `{"version":1,"passages":-1}`, `"x"`} {
		_, err := extract.New(extract.Config{}).Generate(t.Context(), &model.Request{
			Prompt: "a question", Prepared: json.RawMessage(raw),
		})
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.KindInvalid {
			t.Errorf("%s: error %v", raw, err)
		}
	}
	resp, err := extract.New(extract.Config{}).Generate(t.Context(), &model.Request{
		Prompt: "frost", Prepared: json.RawMessage(`{"version":1,"passages":1,"words":1,"holding":{"other":1}}`),
		Documents: []model.Document{{File: "g", StartLine: 1, Text: gardenText}},
	})
	if err != nil || len(resp.Citations) == 0 || len(resp.Notes) != 1 {
		t.Errorf("statistics of another prompt: %+v, %v", resp, err)
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
	if _, err := e.Prepare(ctx, "frost", each(docs)); !errors.Is(err, context.Canceled) {
		t.Errorf("prepare: %v", err)
	}
	broken := errors.New("disk on fire")
	_, err = e.Prepare(t.Context(), "frost", func(yield func(model.Document, error) bool) {
		if yield(docs[0], nil) {
			yield(model.Document{}, broken)
		}
	})
	if !errors.Is(err, broken) {
		t.Errorf("prepare: %v, want the error of the documents", err)
	}
}

// few returns documents of a real package.
func few(t *testing.T) []model.Document {
	t.Helper()
	docs := corpus(t, func(file string) bool {
		return strings.HasPrefix(file, "net/http/") && !strings.Contains(file, "_test.go")
	})
	if len(docs) < 20 {
		t.Fatalf("only %d documents", len(docs))
	}
	return docs
}

const redirects = "When does the client follow a redirect and keep the request body?"

// The same question has one answer, however the work is shared.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	docs := few(t)
	e := extract.New(extract.Config{})
	want := ask(t, e, redirects, docs, chunked(docs, chunkBytes))
	if len(want) != 20 {
		t.Fatalf("%d citations", len(want))
	}
	for _, c := range want {
		checkCitation(t, c, docs)
	}
	var wg sync.WaitGroup
	for workers := 1; workers <= 4; workers++ {
		wg.Go(func() {
			e := extract.New(extract.Config{Workers: workers})
			got := ask(t, e, redirects, docs, chunked(docs, chunkBytes))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d workers: (-want +got)\n%s", workers, diff)
			}
		})
	}
	wg.Wait()
}

// Where the context is cut matters little: passages that are not at a cut stay
// what they are.
func TestChunkBoundaries(t *testing.T) {
	t.Parallel()
	docs := few(t)
	e := extract.New(extract.Config{})
	best := func(size int) []string {
		var out []string
		for _, c := range ask(t, e, redirects, docs, chunked(docs, size))[:10] {
			out = append(out, fmt.Sprintf("%s:%d-%d", c.File, c.StartLine, c.EndLine))
		}
		return out
	}
	whole := best(1 << 30)
	for _, size := range []int{16 << 10, 64 << 10, chunkBytes} {
		same := 0
		for _, c := range best(size) {
			if slices.Contains(whole, c) {
				same++
			}
		}
		if same < 8 {
			t.Errorf("with parts of %d bytes only %d of the first ten passages are the same", size, same)
		}
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
	for _, c := range extract.Merge("anything", found, 0) {
		got = append(got, fmt.Sprintf("%s:%d", c.File, c.StartLine))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	slices.Reverse(found)
	if diff := cmp.Diff(extract.Merge("x", found, 2), extract.Merge("x", found, 0)[:2]); diff != "" {
		t.Errorf("the order of the input or the limit matters (-want +got)\n%s", diff)
	}
}

func TestMergeRanksWhatHasNoScore(t *testing.T) {
	t.Parallel()
	found := [][]model.Citation{{
		{File: "a", StartLine: 1, EndLine: 1, Text: "the spade and the rake"},
		{File: "b", StartLine: 1, EndLine: 1, Text: "aphids on young shoots"},
	}}
	got := extract.Merge("what about aphids", found, 1)
	if len(got) != 1 || got[0].File != "b" || found[0][1].Score != 0 {
		t.Errorf("merged %+v from %+v", got, found)
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
