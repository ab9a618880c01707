package lookup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/packtest"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/repl/lookup"
)

// over returns a context of files.
func over(t testing.TB, files map[string]string, order ...string) *lookup.Context {
	t.Helper()
	var list []packtest.File
	for _, name := range order {
		list = append(list, packtest.File{Name: name, Text: files[name]})
	}
	r, _ := packtest.Open(t, list...)
	return &lookup.Context{Reader: r, Find: func(context.Context, string, int) ([]model.Citation, error) {
		return []model.Citation{{File: "b.txt", StartLine: 2, EndLine: 2, Text: "four", Score: 1.5}}, nil
	}}
}

func library(t testing.TB) *lookup.Context {
	t.Helper()
	return over(t, map[string]string{"a/x.go": "one\ntwo\nthree two\n", "b.txt": "zwölf\nfour"}, "a/x.go", "b.txt")
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ function, args, want string }{
		{"files", `{}`, `["a/x.go","b.txt"]`},
		{"files", `{"glob":"**/*.go"}`, `["a/x.go"]`},
		{"files", `{"glob":"none/**"}`, `[]`},
		{"files", `{"glob":"*"}`, `["a/x.go","b.txt"]`},
		{"files", `{"glob":"x.*"}`, `["a/x.go"]`},
		{"files", `{"glob":"./x.*"}`, `[]`},
		{"search", `{"query":"four","k":3}`, `[{"file":"b.txt","first":2,"last":2,"text":"four","score":1.5}]`},
		{"grep", `{"regex":"two","glob":"**","k":10}`,
			`[{"file":"a/x.go","line":2,"text":"two"},{"file":"a/x.go","line":3,"text":"three two"}]`},
		{"grep", `{"regex":"^t","glob":"","k":1}`, `[{"file":"a/x.go","line":2,"text":"two"}]`},
		{"grep", `{"regex":"r$","glob":"*.txt","k":5}`, `[{"file":"b.txt","line":2,"text":"four"}]`},
		{"grep", `{"regex":"nothing","k":5}`, `[]`},
		{"grep", `{"regex":"$","glob":"b.txt","k":9}`,
			`[{"file":"b.txt","line":1,"text":"zwölf"},{"file":"b.txt","line":2,"text":"four"}]`},
		{"lines", `{"file":"a/x.go","first":2,"last":3}`, `"two\nthree two"`},
		{"cite", `{"file":"b.txt","first":1,"last":1}`, `"[^b.txt:1-1]"`},
		{"read", `{"file":"b.txt","offset":2,"length":3}`, `{"data":"w7Zs"}`},
		{"read", `{"file":"b.txt","offset":11,"length":9}`, `{"data":""}`},
	} {
		got, err := library(t).Call(t.Context(), tt.function, json.RawMessage(tt.args))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s %s: %s, %v, want %s", tt.function, tt.args, got, err, tt.want)
		}
	}
}

// In a long line, results have the text round the match and the column at which it begins, and lines goes on
// from a column; trees of earlier versions read the beginning of the line.
func TestLongLines(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("é", 400_000) // 800,000 bytes
	long := `{"a": "` + pad + `", "first": "needle", "b": "` + pad + `", "second": "needle"}`
	files := map[string]string{"s.jsonl": "{}\n" + long + "\n" + `{"short": "needle"}`}
	type found struct {
		Line, Column int
		Text         string
	}
	call := func(c *lookup.Context, function, args string, into any) {
		t.Helper()
		raw, err := c.Call(t.Context(), function, json.RawMessage(args))
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := over(t, files, "s.jsonl")
	c.Columns = true
	var got []found
	call(c, "grep", `{"regex":"needle","glob":"**","k":10}`, &got)
	if len(got) != 3 || got[2] != (found{3, 0, `{"short": "needle"}`}) {
		t.Fatalf("%d lines: %.300v", len(got), got)
	}
	for i, m := range got[:2] {
		if m.Line != 2 || !strings.Contains(m.Text, "needle") || len(m.Text) > lookup.MaxLineBytes ||
			long[m.Column-1:m.Column-1+len(m.Text)] != m.Text {
			t.Errorf("match %d is in line %d, column %d: %.80q", i, m.Line, m.Column, m.Text)
		}
		var text string
		call(c, "lines", fmt.Sprintf(`{"file":"s.jsonl","first":2,"last":2,"column":%d}`, m.Column), &text)
		if text != long[m.Column-1:] {
			t.Errorf("from column %d the line is %.80q", m.Column, text)
		}
	}
	call(c, "grep", `{"regex":"^.{3}a","glob":"**","k":10}`, &got)
	if len(got) != 0 {
		t.Errorf("a match at the beginning of a line was found within it: %.200v", got)
	}
	call(over(t, files, "s.jsonl"), "grep", `{"regex":"second","glob":"**","k":10}`, &got)
	if len(got) != 1 || got[0].Column != 0 {
		t.Errorf("of an earlier version: %.200v", got)
	}
	c.Find = func(context.Context, string, int) ([]model.Citation, error) {
		return []model.Citation{{File: "s.jsonl", StartLine: 2, EndLine: 2, StartColumn: 800_012, Text: "needle"}}, nil
	}
	var passages []found
	call(c, "search", `{"query":"needle","k":3}`, &passages)
	if len(passages) != 1 || passages[0].Column != 800_012 {
		t.Errorf("%+v", passages)
	}
	for args, want := range map[string]string{`{"file":"none","first":1,"last":1,"column":9}`: "there is no file",
		`{"file":"s.jsonl","first":9,"last":9,"column":9}`:        "has no line 9",
		`{"file":"s.jsonl","first":1,"last":1,"column":99999999}`: "ends before column 99999999",
		`{"file":"s.jsonl","first":2,"last":1,"column":9}`:        "is before"} {
		if _, err := c.Call(t.Context(), "lines", json.RawMessage(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// The code receives what is wrong with its arguments.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ function, args, want string }{
		{"files", `{"glob":"["}`, "files: pattern"},
		{"search", `{"query":" ","k":3}`, "search: the query is empty"},
		{"search", `{"query":"x","k":0}`, "search: k is 0, not between 1 and 10000"},
		{"grep", `{"regex":"(?<=a)b","k":1}`, "no look-around"},
		{"grep", `{"regex":"a","k":99999}`, "not between 1 and 10000"},
		{"grep", `{"regex":5}`, "grep: json"},
		{"lines", `{"file":"none","first":1,"last":1}`, `lines: there is no file "none"`},
		{"lines", `{"file":"b.txt","first":2,"last":9}`, "has no lines 2 to 9, but 2 lines"},
		{"cite", `{"file":"b.txt","first":0,"last":1}`, "has no lines"},
		{"read", `{"file":"b.txt","offset":99,"length":1}`, "are not in"},
		{"read", `{"file":"b.txt","offset":0,"length":99999999}`, "are not in"},
		{"open", `{}`, "there is no such function"},
	} {
		_, err := library(t).Call(t.Context(), tt.function, json.RawMessage(tt.args))
		if p, ok := errors.AsType[*lookup.Problem](err); !ok || !strings.Contains(p.Text, tt.want) {
			t.Errorf("%s %s: %v, want %q", tt.function, tt.args, err, tt.want)
		}
	}
	none := &lookup.Context{}
	if _, err := none.Call(t.Context(), "files",
		json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), "no files") {
		t.Errorf("without a context: %v", err)
	}
}

// A match is found wherever a long line is cut while it is read, and such a line can be cited.
func TestLongLinesAreReadWhole(t *testing.T) {
	t.Parallel()
	for _, at := range []int{1<<20 - 10, 1<<20 - 8, 1<<20 - 3, 1 << 20, 1<<20 + 1, 1<<20 + 5} {
		line := strings.Repeat("x", at-5) + "needle ä" + strings.Repeat("y", 1<<20)
		c := over(t, map[string]string{"a.txt": "first\n", "b.txt": line + "\nneedle ä\n"}, "a.txt", "b.txt")
		c.Columns = true
		raw, err := c.Call(t.Context(), "grep", json.RawMessage(`{"regex":"needle ä","k":9}`))
		var got []struct {
			Line, Column int
			Text         string
		}
		if err != nil || json.Unmarshal(raw, &got) != nil || len(got) != 2 || got[0].Line != 1 || got[1].Line != 2 {
			t.Fatalf("at %d: %.300s, %v", at, raw, err)
		}
		if from := got[0].Column - 1; line[from:from+len(got[0].Text)] != got[0].Text {
			t.Errorf("at %d: column %d does not have the text", at, got[0].Column)
		}
		if _, err := c.Call(t.Context(), "cite", json.RawMessage(`{"file":"b.txt","first":1,"last":1}`)); err != nil {
			t.Fatal(err)
		}
		if place := c.Citations()[0]; place.Text != line[:lookup.MaxCitedBytes] || len(place.SHA256) != 64 {
			t.Errorf("%d bytes are cited", len(place.Text))
		}
	}
}

// A place is cited once, with its text and the hash of it.
func TestCitations(t *testing.T) {
	t.Parallel()
	c := library(t)
	for range 2 {
		if _, err := c.Call(t.Context(), "cite", json.RawMessage(`{"file":"b.txt","first":1,"last":2}`)); err != nil {
			t.Fatal(err)
		}
	}
	got := c.Citations()
	if len(got) != 1 || got[0].Text != "zwölf\nfour" || got[0].Kind != model.CitedQuote || len(got[0].SHA256) != 64 {
		t.Errorf("citations %+v", got)
	}
}

// A text is a context of one file.
func TestText(t *testing.T) {
	t.Parallel()
	c, err := lookup.Text("größe\nzwei\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Preview(4); err != nil || got != "gr\u00f6" && got != "gr\uFFFD" {
		t.Errorf("preview %q, %v", got, err)
	}
	raw, err := c.Call(t.Context(), "lines", json.RawMessage(`{"file":"`+lookup.TextName+`","first":2,"last":2}`))
	if err != nil || string(raw) != `"zwei"` {
		t.Errorf("lines: %s, %v", raw, err)
	}
}

// FuzzGrep checks that each line that is found matches, has its number, and is found once.
func FuzzGrep(f *testing.F) {
	f.Add("a", "a\nb\nab\n")
	f.Add("$", "\n\n")
	f.Add("", "x")
	f.Add("(?s)a.b", "a\nb")
	f.Fuzz(func(t *testing.T, regex, text string) {
		c := over(t, map[string]string{"f": text}, "f")
		args, err := json.Marshal(map[string]any{"regex": regex, "k": 1000})
		if err != nil {
			t.Skip()
		}
		raw, err := c.Call(t.Context(), "grep", args)
		if _, ok := errors.AsType[*lookup.Problem](err); ok {
			return
		}
		var found []struct{ Line int }
		if err != nil || json.Unmarshal(raw, &found) != nil {
			t.Fatal(err)
		}
		last := 0
		for _, m := range found {
			if m.Line <= last || m.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("line %d after %d of %q", m.Line, last, text)
			}
			last = m.Line
		}
	})
}

// counted counts the bytes that are read.
type counted struct {
	*bytes.Reader
	n int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}

// Lines that are longer than a result are refused before they are read: a file can have a gigabyte.
func TestLongLinesAreNotRead(t *testing.T) {
	t.Parallel()
	const lines = 2_000_000
	whole, data := packtest.Open(t, packtest.File{Name: "a", Text: strings.Repeat("a line of it\n", lines)})
	in := &counted{Reader: bytes.NewReader(data)}
	r, err := pack.NewReader(whole.Manifest(), in)
	if err != nil {
		t.Fatal(err)
	}
	c := &lookup.Context{Reader: r}
	for _, function := range []string{"lines", "cite"} {
		_, err := c.Call(t.Context(), function, json.RawMessage(fmt.Sprintf(`{"file":"a","first":1,"last":%d}`, lines)))
		want := fmt.Sprintf(`lines 1 to %d of "a" have %d bytes`, lines, lines*13-1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", function, err, want)
		}
	}
	if in.n > 4<<20 {
		t.Errorf("%d bytes were read", in.n)
	}
	if _, err := c.Call(t.Context(), "grep", json.RawMessage(`{"k":1,"regex":"`+strings.Repeat("a", 2<<20)+`"}`)); err == nil ||
		!strings.Contains(err.Error(), "regular expression has") {
		t.Errorf("a long regular expression: %v", err)
	}
}
