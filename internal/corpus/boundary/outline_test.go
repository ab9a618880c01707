package boundary_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/corpus/boundary"
)

// outline returns all marks of a text.
func outline(t testing.TB, name, text string) []boundary.Mark {
	t.Helper()
	o := boundary.NewOutline(strings.NewReader(text), 0, int64(len(text)), boundary.Find(name, []byte(text)), nil)
	marks, err := o.Marks(int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

func rankName(r boundary.Rank) string {
	names := []string{"", "paragraph", "inner", "member", "statement", "block", "declaration", "record", "h6", "h5",
		"h4", "h3", "h2", "h1"}
	return names[r]
}

// ranked shows a text with the rank of each line before it.
func ranked(t testing.TB, name, text string) string {
	t.Helper()
	marks := outline(t, name, text)
	var b strings.Builder
	at := int64(0)
	for line := range strings.Lines(text) {
		rank := ""
		if len(marks) > 0 && marks[0].Offset == at {
			rank, marks = rankName(marks[0].Rank), marks[1:]
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s|%s", rank, line), "\n") + "\n")
		at += int64(len(line))
	}
	return b.String()
}

// marked is a text with the rank of each line before it.
type marked struct{ file, want string }

func codes() []marked {
	return []marked{
		{"a.go", `
statement|// License.
|
declaration|package a
|
declaration|import (
|	"fmt"
|)
|
declaration|// F does.
|//go:noinline
block|func F() {
member|	x := []int{
inner|		1,
inner|		2,
|	}
|
member|	if x {
|	}
|}
statement|// G does.
`},
		{"a.py", `
statement|"""Doc.
|
|def no():
|"""
|
declaration|@a(
|    1,
|)
block|def f(x,
|      y):
inner|    if x:
|        return 1
|    else:
|        return 2
statement|x = 1
statement|# inside
|
declaration|class A:
|
inner|    """Doc."""
|
member|    # Does.
inner|    def f(self):
|        pass
`},
	}
}

func others() []marked {
	return []marked{
		{"a.md", `
|---
|# title: no
|---
h1|Title
|=====
|text
|
member|Example:
|
inner|~~~
|# no
|
paragraph|more
|~~~
|
h3|### Three ###
|
member|- an item
|  goes on
inner|- another
|
paragraph|  its second paragraph
|
h2|Under
|-----
|#no heading
`},
		{"a.log", `
|continued from before
record|2024-01-02 15:04:05,123 first
|	at a
|
|Caused by: b
record|2024-01-02 15:04:06,000 second
`},
		{"a.csv", `
record|a;b
record|1;"x
|y;"";
|"
record|2;it is 5" wide
record|3;
`},
		{"a.json", `
|{
member|  "a": [
inner|    1,
inner|    2
|  ],
member|  "b": {}
|}
`},
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	for _, tt := range append(codes(), others()...) {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			want := strings.TrimPrefix(tt.want, "\n")
			var text strings.Builder
			for line := range strings.Lines(want) {
				_, line, _ = strings.Cut(line, "|")
				text.WriteString(line)
			}
			if diff := cmp.Diff(want, ranked(t, tt.file, text.String())); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFind: the content determines the form of a text whose name does not.
func TestFind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, text string
		want             boundary.Rank // of the second line
	}{
		{"json lines", "-", "{\"a\": 1}\n{\"a\": 2}\n", boundary.Record},
		{"log", "messages", "2024-01-02 15:04:05 a\n2024-01-02 15:04:05 b\nJan  2 15:04:05 c\n2024-01-02 d\n2024-01-02 e\n",
			boundary.Record},
		{"shell", "configure", "#!/bin/sh\nf() {\n}\n", boundary.Member},
		{"python", "tool", "#!/usr/bin/env python3.11\ndef f():\n  x\n", boundary.Block},
		{"unknown interpreter", "tool", "#!/usr/bin/frobnicate\ndef f():\n  x\n", boundary.Line},
		{"diff", "-", "diff --git a b\n@@ -1 +1 @@\n+x\n", boundary.Section4},
		{"git log", "-", "commit 123\ncommit 124\n\ndiff --git a b\n", boundary.Section1},
		{"prose", "README", "One line.\nAnother.\n", boundary.Line},
		{"file name", "Makefile", "a:\nb:\n", boundary.Statement},
		{"upper case", "A.GO", "package a\nfunc f()\n", boundary.Declaration},
		{"windows path", `C:\x.y\A.GO`, "package a\nfunc f()\n", boundary.Declaration},
		{"turned log", "app.log.1", "first\nsecond\n", boundary.Record},
		{"tabs", "a.tsv", "a\tb\n\"x\t\"\n", boundary.Record},
		{"no text", "a.unknown", "x\ny\n", boundary.Line},
	}
	for _, tt := range tests {
		second := int64(strings.IndexByte(tt.text, '\n') + 1)
		got := boundary.Line
		for _, m := range outline(t, tt.file, tt.text) {
			if m.Offset == second {
				got = m.Rank
			}
		}
		if got != tt.want {
			t.Errorf("%s: the second line has rank %q, want %q", tt.name, rankName(got), rankName(tt.want))
		}
	}
}

// TestMisreadingEnds: what is opened and never closed does not hide the rest of
// a long text.
func TestMisreadingEnds(t *testing.T) {
	t.Parallel()
	const lines = 20_000
	tests := []struct {
		file, head, line string
		rank             boundary.Rank
	}{
		{"a.go", "var x = `\n", "func f%06d() { return 1 }\n", boundary.Declaration},
		{"a.c", "/* never closed\n", "int f%06d(void) { return 1; }\n", boundary.Declaration},
		{"a.sh", "cat <<EOF\n", "function f%06d { return 1; }\n", boundary.Declaration},
		{"a.csv", "\"never closed\n", "%06d,some text,more of it\n", boundary.Record},
		{"a.go", "func f() { if {{{\n", "func f%06d() { return 1 }\n", boundary.Declaration},
	}
	for _, tt := range tests {
		var b strings.Builder
		b.WriteString(tt.head)
		for i := range lines {
			fmt.Fprintf(&b, tt.line, i)
		}
		n := 0
		for _, m := range outline(t, tt.file, b.String()) {
			if m.Rank == tt.rank {
				n++
			}
		}
		if n < lines/3 {
			t.Errorf("%s after %q: %d of %d lines are found", tt.file, tt.head, n, lines)
		}
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, text string
		want       int
	}{
		{"a.csv", "id,name\n1,x\n", 8},
		{"a.csv", "\"id\",\"first\nname\"\n1,x\n", 18},
		{"a.csv", "id,name", 0}, // nothing but a header
		{"a.csv", "1,x\n2,y\n", 0},
		{"a.csv", "", 0},
		{"a.csv", "\n", 0},
		{"a.csv", "id,\"name\n", 0},
		{"a.go", "id,name\n1,x\n", 0},
		{"a.tsv", "id\tname\n1\tx\n", 8},
	} {
		if got := boundary.Find(tt.file, []byte(tt.text)).Header([]byte(tt.text)); got != tt.want {
			t.Errorf("%s %q: header of %d bytes, want %d", tt.file, tt.text, got, tt.want)
		}
	}
}

// TestOutlineReadsOn: lines longer than the window, text in the middle of
// others, and readers that fail.
func TestOutlineReadsOn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600<<10)
	before, text := "# no\n", "# One\n"+long+"\n\n# Two\n"
	all := before + text + "# no\n"
	form := boundary.Find("a.md", nil)
	o := boundary.NewOutline(strings.NewReader(all), int64(len(before)), int64(len(before+text)), form, nil)
	marks, err := o.Marks(int64(len(all)))
	want := []boundary.Mark{{Offset: 5, Rank: boundary.Section1},
		{Offset: int64(len(before+text) - 6), Rank: boundary.Section1}}
	if err != nil || !cmp.Equal(marks, want) {
		t.Errorf("marks %v, %v; want %v", marks, err, want)
	}
	if o.Forget(6); len(o.Buffer()) == 0 {
		t.Error("no buffer")
	}
	if marks, _ := o.Marks(0); !cmp.Equal(marks, want[1:]) {
		t.Errorf("after forgetting: %v", marks)
	}
	cut := boundary.NewOutline(strings.NewReader("# One\n"), 0, 100, form, nil)
	if _, err := cut.Marks(100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a text that is too short: %v", err)
	}
}

// FuzzOutline: marks lie at the beginnings of lines, in order, and are the same
// in one look and in many.
func FuzzOutline(f *testing.F) {
	names := []string{"a", "a.md", "a.txt", "a.go", "a.js", "a.java", "a.c", "a.cs", "a.rs", "a.php", "a.py", "a.rb",
		"a.sh", "a.sql", "a.json",
		"a.yaml", "a.xml", "a.csv", "a.jsonl", "a.log", "a.tex", "a.diff", "a.x"}
	for i := range names {
		f.Add(uint8(i), []byte("#!/bin/sh\n\n/* a\n\n*/ @x(\n"+
			"{\"'`\n\n}<<EOF\nEOF\n\"a\n\",b\n\n```\n2024-01-02 15:04:05\n"), uint16(7))
	}
	f.Fuzz(func(t *testing.T, kind uint8, text []byte, step uint16) {
		name := names[int(kind)%len(names)]
		all := outline(t, name, string(text))
		last := int64(-1)
		for _, m := range all {
			if m.Offset <= last || m.Offset >= int64(len(text)) || m.Rank == boundary.Line || m.Rank >= boundary.Ranks {
				t.Fatalf("%s: mark %v after %d of %d bytes", name, m, last, len(text))
			}
			if m.Offset > 0 && text[m.Offset-1] != '\n' {
				t.Fatalf("%s: mark %v is within a line", name, m)
			}
			last = m.Offset
		}
		var piecewise []boundary.Mark
		o := boundary.NewOutline(bytes.NewReader(text), 0, int64(len(text)), boundary.Find(name, text), nil)
		for at := int64(0); at < int64(len(text)); at += int64(step) + 1 {
			marks, err := o.Marks(at + 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range marks {
				if m.Offset <= at {
					piecewise = append(piecewise, m)
				}
			}
			o.Forget(at + 1)
		}
		rest, err := o.Marks(int64(len(text)))
		if err != nil || !slices.Equal(all, append(piecewise, rest...)) {
			t.Fatalf("%s: at once %v, piecewise %v (%v)", name, all, piecewise, err)
		}
		if n := boundary.Find(name, text).Header(text); n < 0 || n > len(text) {
			t.Fatalf("header of %d bytes", n)
		}
	})
}
