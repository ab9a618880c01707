package quote_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/quote"
)

func docs() []model.Document {
	return []model.Document{
		{File: "src/a.go", StartLine: 10, Text: "func a() {\n\tx := 1\n\treturn x\n}\n"},
		{File: "src/b c.md", StartLine: 1, Text: "# Title\n\nThe lease is\nrenewed every 10 s.\n\nreturn x\n"},
		{File: "src/a.go", StartLine: 90, Text: "func b() {\n\treturn x\n}\n"},
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	type place struct {
		File       string
		Start, End int
		Text       string
	}
	cases := []struct {
		name, reply, answer string
		want                []place
		dropped             int
	}{
		{"the documented form",
			"It is one.[^1] Yes.\n\n[^1]: src/a.go:11-12\n> \tx := 1\n> \treturn x\n",
			"It is one.[^src/a.go:11-12] Yes.", []place{{"src/a.go", 11, 12, "\tx := 1\n\treturn x"}}, 0},
		{"other white space, and the frame's form of a place",
			"Often [^lease].\n[^lease]: \"src/b c.md\" lines 3-4\n\n> The lease   is renewed\n> every 10 s.",
			"Often [^src/b c.md:3-4].", []place{{"src/b c.md", 3, 4, "The lease is\nrenewed every 10 s."}}, 0},
		{"the place nearest to the lines", "[^1]\n[^1]: src/a.go:91\n> return x",
			"[^src/a.go:91-91]", []place{{"src/a.go", 91, 91, "return x"}}, 0},
		{"a shortened name and wrong lines", "[^1]\n[^1]: a.go:500-501\n> x := 1",
			"[^src/a.go:11-11]", []place{{"src/a.go", 11, 11, "x := 1"}}, 0},
		{"another file than the one named", "[^1]\n[^1]: nowhere.txt\n> # Title",
			"[^src/b c.md:1-1]", []place{{"src/b c.md", 1, 1, "# Title"}}, 0},
		{"a quote that is not there",
			"Sure [^1], and [^2].\n[^1]: src/a.go:10\n> func c() {\n[^2]: src/a.go:10\n> func a() {",
			"Sure, and [^src/a.go:10-10].", []place{{"src/a.go", 10, 10, "func a() {"}}, 1},
		{"a definition without lines", "Sure[^1].\n[^1]: src/a.go:10", "Sure.", nil, 1},
		{"nothing but marks", "Sure[^1].\n[^1]: src/a.go:13\n> }", "Sure.", nil, 1},
		{"what is no mark", `A class [^a-z], [^\s_] and m[1].`, `A class [^a-z], [^\s_] and m[1].`, nil, 0},
		{"marks without a definition", "One [^1], two[^9] [^note].\n[^2]: src/a.go:10\n> func a() {",
			"One, two.", []place{{"src/a.go", 10, 10, "func a() {"}}, 3},
		{"marks without a definition in code", "`a[^1]` [^1]\n```go\nb[^1]\n```\n[^1] ``c`[^1]`` `[^1]\n~~~\n[^1]",
			"`a[^1]`\n```go\nb[^1]\n```\n ``c`[^1]`` `\n~~~\n[^1]", nil, 3},
		{"references that the model wrote", "One [^src/b c.md:1-1], [^app/[id].ts:1-2], but [^src/a.go:1-2] was shown.",
			"One,, but [^src/a.go:1-2] was shown.", nil, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer, found, dropped := quote.Apply(c.reply, "earlier: [^src/a.go:1-2] [^9]", docs())
			var got []place
			for _, f := range found {
				got = append(got, place{f.File, f.StartLine, f.EndLine, f.Text})
			}
			if answer != c.answer || dropped != c.dropped || !cmp.Equal(got, c.want) {
				t.Errorf("answer %q, dropped %d, want %q, %d\n%s", answer, dropped, c.answer, c.dropped, cmp.Diff(c.want, got))
			}
		})
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	answer, found, _ := quote.Apply("B[^2] and A[^1], B[^2]\n[^1]: src/a.go:10\n> func a() {\n"+
		"[^2]: src/a.go:90\n> func b() {\n[^3]: src/b c.md:1\n> # Title", "", docs())
	read := model.Citation{Kind: model.CitedRead, File: "z", StartLine: 1, EndLine: 1}
	text, sorted := quote.Number(answer, append([]model.Citation{read}, found...))
	var order []string
	for _, c := range sorted {
		order = append(order, c.File+" "+c.Text)
	}
	want := []string{"src/a.go func b() {", "src/a.go func a() {", "src/b c.md # Title", "z "}
	if text != "B[^1] and A[^2], B[^1]" || !cmp.Equal(order, want) {
		t.Errorf("%q, %v", text, order)
	}
	if bare := quote.Strip(answer, found); bare != "B and A, B" {
		t.Errorf("stripped: %q", bare)
	}
}

// requireInText fails for a citation whose text is not at its place in a document.
func requireInText(t *testing.T, in []model.Document, found []model.Citation) {
	t.Helper()
	for _, c := range found {
		ok := false
		for _, d := range in {
			if d.File != c.File || c.StartLine < d.StartLine || c.EndLine > d.EndLine() {
				continue
			}
			lines := strings.Split(d.Text, "\n")[c.StartLine-d.StartLine : c.EndLine-d.StartLine+1]
			ok = ok || strings.Contains(strings.Join(lines, "\n"), c.Text)
		}
		if !ok || strings.TrimSpace(c.Text) == "" {
			t.Errorf("%q is cited of %q, lines %d to %d, where it is not", c.Text, c.File, c.StartLine, c.EndLine)
		}
	}
}

// Replies that quote the text exactly, with other white space, wrongly, or with parts
// left out: each quote that is kept is in the text at its place, and those that were
// copied are kept.
func TestQuotesAreInTheText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test repeats itself
	words := []string{"\u00a0", "\r", "a", "b", "(x)", "lease", "größe", "\t", " ", "  ", "\n", "\n\n",
		"return", "}", ">", "[^1]"}
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[r.IntN(len(words))] + " ")
		}
		return b.String()
	}
	copied := 0
	for range 3000 {
		in := []model.Document{{File: "a", StartLine: 1 + r.IntN(50), Text: text(60)},
			{File: "b", StartLine: 1, Text: text(60)}}
		var reply strings.Builder
		reply.WriteString("Answer [^1] [^2] [^3]\n")
		for i := range 3 {
			d := in[r.IntN(2)]
			from := r.IntN(len(d.Text) / 2)
			part := strings.ToValidUTF8(d.Text[from:from+1+r.IntN(len(d.Text)/2)], "")
			switch r.IntN(4) {
			case 0:
				part = strings.ReplaceAll(part, "lease", "release") + "?"
			case 1:
				part = strings.Join(strings.Fields(part), " ")
			case 2:
				part = text(5)
			}
			fmt.Fprintf(&reply, "\n[^%d]: %s:%d\n> %s\n", i+1, d.File, r.IntN(60), strings.ReplaceAll(part, "\n", "\n> "))
		}
		answer, found, dropped := quote.Apply(reply.String(), "", in)
		requireInText(t, in, found)
		if len(found)+dropped > 3 {
			t.Fatalf("%d quotes, %d dropped: %q", len(found), dropped, answer)
		}
		copied += len(found)
	}
	if copied < 2000 {
		t.Errorf("%d quotes were found; those that were copied are to be", copied)
	}
}

// A quote far behind the beginning of its line, or in a text that begins within a line, has the column at
// which it begins; other quotes have none.
func TestColumnsOfQuotes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("größe ", 300) + "the needle is here"
	in := []model.Document{{File: "long.jsonl", StartLine: 7, Text: "{}\n" + long + "\nshort needle\n"},
		{File: "part.jsonl", StartLine: 3, StartColumn: 5001, Text: "rest of a line with a pin\nnext pin is there\n"}}
	reply := "One.[^1] Two.[^2] Three.[^3] Four.[^4]\n\n[^1]: long.jsonl:8\n> the needle is here\n" +
		"[^2]: long.jsonl:9\n> short needle\n[^3]: part.jsonl:3\n> with a pin\n[^4]: part.jsonl:4\n> pin is there\n"
	_, found, dropped := quote.Apply(reply, "", in)
	if len(found) != 4 || dropped > 0 {
		t.Fatalf("%d dropped, found %+v", dropped, found)
	}
	for i, want := range []struct{ line, column int }{{8, strings.Index(long, "the") + 1}, {9, 0},
		{3, 5001 + strings.Index("rest of a line with a pin", "with")}, {4, 0}} {
		if c := found[i]; c.StartLine != want.line || c.StartColumn != want.column {
			t.Errorf("quote %d is at %s, want line %d, column %d", i+1, c.Place(), want.line, want.column)
		}
	}
}

// The time to find a quote is linear in the text: each of these takes half a minute, if
// the words are compared at each place.
func TestQuotesOfRepeatedWords(t *testing.T) {
	t.Parallel()
	in := []model.Document{{File: "a", StartLine: 1, Text: strings.Repeat("a ", 500_000) + "\n\na  c"}}
	var reply strings.Builder
	for i := range quote.MaxQuotes - 1 {
		fmt.Fprintf(&reply, "[^%d]: a:1\n> %sb\n", i, strings.Repeat("a  ", 2600))
	}
	reply.WriteString("[^c]: a:1\n> a a  a c\n")
	_, found, dropped := quote.Apply(reply.String(), "", in)
	if len(found) != 1 || dropped != quote.MaxQuotes-1 || found[0].Text != "a a \n\na  c" {
		t.Errorf("%d dropped, found %+v", dropped, found)
	}
}

func FuzzApply(f *testing.F) {
	f.Add("It is one.[^1]\n\n[^1]: src/a.go:11-12\n> \tx := 1\n")
	f.Add("[^1]: \"src/b c.md\" lines 3-4\n\n> The lease   is\n[^1]: :9-\n>\n[^]: x\n> y")
	f.Add("[^x]: a:99999999999999999999\n> return x\r\n> }")
	f.Fuzz(func(t *testing.T, reply string) {
		answer, found, dropped := quote.Apply(reply, "", docs())
		requireInText(t, docs(), found)
		if len(found) > quote.MaxQuotes || dropped < 0 {
			t.Errorf("%d quotes, %d dropped", len(found), dropped)
		}
		if again, more := quote.Parse(answer); len(more) == 0 && len(again) > len(answer) {
			t.Errorf("the answer %q grew to %q", answer, again)
		}
		text, sorted := quote.Number(answer, found)
		if len(sorted) != len(found) || len(text) > len(answer) {
			t.Errorf("%d of %d citations, %q of %q", len(sorted), len(found), text, answer)
		}
	})
}
