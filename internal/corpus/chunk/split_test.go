package chunk_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/corpus/chunk"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/packtest"
)

// text is a file of a context.
type text struct{ name, content string }

// openPack returns a context and its bytes.
func openPack(t packtest.T, texts ...text) (*pack.Reader, string) {
	t.Helper()
	files := make([]packtest.File, len(texts))
	for i, f := range texts {
		files[i] = packtest.File{Name: f.name, Text: f.content}
	}
	r, data := packtest.Open(t, files...)
	return r, string(data)
}

// parts returns the text of each chunk.
func parts(t testing.TB, cfg chunk.Config, texts ...text) []string {
	t.Helper()
	r, data := openPack(t, texts...)
	chunks, err := chunk.Pack(r, cfg)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, c := range chunks {
		list = append(list, data[c.Offset:c.End()])
	}
	return list
}

func lines(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%02d\n", prefix, i)
	}
	return b.String()
}

func TestSplitGroupsSmallFiles(t *testing.T) {
	t.Parallel()
	a, b, c := strings.Repeat("a", 100), strings.Repeat("b", 100), strings.Repeat("c", 300)
	texts := []text{{"1", a}, {"2", b}, {"e", ""}, {"3", c}, {"4", a}}
	tests := []struct {
		name string
		cfg  chunk.Config
		want []string
	}{
		// a and b: 200 bytes, and 101 for the heading of the second.
		{"two fit", chunk.Config{ChunkTokens: 76}, []string{a + b, c, a}},
		{"heading does not fit", chunk.Config{ChunkTokens: 75}, []string{a, b, c, a}},
		{"all fit", chunk.Config{ChunkTokens: 1000}, []string{a + b + c + a}},
		{"per file", chunk.Config{ChunkTokens: 1000, PerFile: true}, []string{a, b, c, a}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, parts(t, tt.cfg, texts...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := parts(t, chunk.Config{ChunkTokens: 1}, text{"e", ""}); len(got) != 0 {
		t.Errorf("empty files make chunks %q", got)
	}
}

func TestSplitCutsWhereTheTextAllows(t *testing.T) {
	t.Parallel()
	none := chunk.Config{ChunkTokens: 40, OverlapTokens: -1} // 160 bytes, the last 40 are searched
	body := lines("line ", 17)                               // 136 bytes
	tests := []struct{ name, file, head, tail string }{
		{"chapter", "a.md", body, "## Title\nx\n\ny\n"},
		{"chapter before a later section", "a.md", body, "# Title\n### B\nx\n"},
		{"section before a later paragraph", "a.md", body, "### B\nx\n\ny\n"},
		{"paragraph before a later line", "a.md", body + "\n", "x\ny\nz\n"},
		{"line", "a.md", lines("line ", 20), "x\n"},
		{"no heading in code", "a.py", body + "# not a heading\n\n", "x = 1\n"},
		{"declaration with its comment", "a.go", body + "\n", "// F does.\nfunc F() {\n\n\tx()\n"},
		{"declaration without a blank line", "a.go", body, "func F() {\n\tx()\n"},
		{"end of a block is not a block", "a.go", body + "\tx()\n\n}\n", ""},
		{"block of unknown language", "a.toml", body + "\n", "[table]\n\n  x\n"},
		{"windows line ends", "a.md", strings.ReplaceAll(lines("line ", 15), "\n", "\r\n") + "\r\n", "x\r\ny\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rest := tt.tail + strings.Repeat("the rest of the file goes on\n", 20)
			got := parts(t, none, text{tt.file, tt.head + rest})
			if got[0] != tt.head {
				t.Errorf("first piece ends\n%q\nwant\n%q", tail(got[0]), tail(tt.head))
			}
		})
	}
}

func tail(s string) string { return s[max(0, len(s)-40):] }

func TestSplitOverlap(t *testing.T) {
	t.Parallel()
	content := lines("l", 100) // lines of 4 bytes
	tests := []struct {
		name    string
		overlap int
		want    int64
	}{
		{"default", 0, 8}, // a twentieth of 50 tokens: 2 tokens, 8 bytes
		{"none", -1, 0},
		{"one line", 1, 4},
		{"five tokens", 5, 20},
		{"half of a part", 25, 100},
	}
	for _, tt := range tests {
		r, data := openPack(t, text{"small", "x\n"}, text{"big", content}, text{"after", "y\n"})
		chunks, err := chunk.Pack(r, chunk.Config{ChunkTokens: 50, OverlapTokens: tt.overlap})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range chunks {
			first := i <= 1 || i == len(chunks)-1 // the small files and the first part
			if want := tt.want; first && c.Overlap != 0 || !first && c.Overlap != want {
				t.Errorf("%s: chunk %d repeats %d bytes %q", tt.name, i, c.Overlap, data[c.Offset:c.Offset+c.Overlap])
			}
		}
	}
}

func TestSplitLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1000) // 2000 bytes
	got := parts(t, chunk.Config{ChunkTokens: 100}, text{"a", "one\ntwo\n" + long + "\nend\n"})
	if got[0] != "one\ntwo\n" {
		t.Errorf("first piece %q, want the lines before the long one", got[0])
	}
	for _, p := range got {
		if len(p) > 400 || !utf8.ValidString(p) {
			t.Errorf("piece of %d bytes is too long or cuts a character", len(p))
		}
	}
}

func TestSplitMakesNoTinyTail(t *testing.T) {
	t.Parallel()
	got := parts(t, chunk.Config{ChunkTokens: 100, OverlapTokens: -1}, text{"a", lines("line ", 55)}) // 440 bytes
	if len(got) != 2 || len(got[1]) < 150 {
		t.Errorf("%d pieces, the last of %d bytes; want two halves", len(got), len(got[len(got)-1]))
	}
}

// TestSplitARange divides a part of a pack: what is outside has no part in it.
func TestSplitARange(t *testing.T) {
	t.Parallel()
	files := []text{{"a", lines("a", 20)}, {"b", lines("b", 3)}, {"c", lines("c", 20)}}
	_, data := openPack(t, files...)
	const from, to = 40, 115 // the second half of a, all of b, and a part of c
	got := parts(t, chunk.Config{ChunkTokens: 8, OverlapTokens: -1, From: from, To: to}, files...)
	if diff := cmp.Diff(data[from:to], strings.Join(got, "")); diff != "" || len(got) < 3 {
		t.Errorf("%d parts (-want +got):\n%s", len(got), diff)
	}
}

func TestSplitRefuses(t *testing.T) {
	t.Parallel()
	r, _ := openPack(t, text{"a", "x"})
	for _, cfg := range []chunk.Config{{}, {ChunkTokens: -1}, {ChunkTokens: 10, OverlapTokens: 6}} {
		if _, err := chunk.Pack(r, cfg); err == nil || !strings.Contains(err.Error(), "split config") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	whole, data := openPack(t, text{"cut", lines("l", 1000)})
	cut, err := pack.NewReader(whole.Manifest(), struct{ io.ReaderAt }{strings.NewReader(data[:100])})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chunk.Pack(cut, chunk.Config{ChunkTokens: 100}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a pack that is too short: %v", err)
	}
}

func TestPropertySplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		contents := rapid.SliceOfN(rapid.StringMatching(`([a-c# é\n]|\n\n){0,300}`), 0, 6).Draw(t, "contents")
		texts := make([]text, len(contents))
		for i, c := range contents {
			texts[i] = text{fmt.Sprint(i,
				rapid.SampledFrom([]string{"", ".md", ".go", ".py", ".json", ".csv", ".log", ".c"}).Draw(t, "kind")), c}
		}
		tokens := rapid.IntRange(1, 80).Draw(t, "tokens")
		cfg := chunk.Config{
			ChunkTokens:   tokens,
			OverlapTokens: rapid.IntRange(-1, tokens/2).Draw(t, "overlap"),
			PerFile:       rapid.Bool().Draw(t, "per file"),
		}
		r, data := openPack(t, texts...)
		chunks, err := chunk.Pack(r, cfg)
		if err != nil {
			t.Fatal(err)
		}
		again, err := chunk.Pack(r, cfg)
		if err != nil || !cmp.Equal(chunks, again) {
			t.Fatal("the second split differs", err)
		}
		checkChunks(t, r, data, chunks, cfg)
	})
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface{ Fatalf(string, ...any) }

// checkChunks checks what every split promises.
func checkChunks(t fataler, r *pack.Reader, data string, chunks []chunk.Chunk, cfg chunk.Config) {
	files := r.Manifest().Files
	var end int64
	for i, c := range chunks {
		where := chunkName{i, c}
		if c.Offset+c.Overlap != end || c.Overlap < 0 || c.Length <= c.Overlap {
			t.Fatalf("%s: does not continue at %d", where, end)
		}
		end = c.End()
		if c.Length > int64(4*cfg.ChunkTokens) || c.Tokens > int64(cfg.ChunkTokens) || c.Tokens < (c.Length+3)/4 {
			t.Fatalf("%s: too large, or its tokens are wrong", where)
		}
		checkFiles(t, where, files, cfg)
		f := files[c.File]
		repeated, rest := data[c.Offset:c.Offset+c.Overlap], data[c.Offset+c.Overlap:c.End()]
		if c.Overlap > 0 && (c.Offset > f.Offset && data[c.Offset-1] != '\n' || repeated[len(repeated)-1] != '\n') {
			t.Fatalf("%s: repeats %q", where, repeated)
		}
		if n := strings.Count(repeated, "\n"); int(c.Overlap) > max(4*cfg.OverlapTokens, cfg.ChunkTokens/20*4) || n > 10 &&
			cfg.OverlapTokens == 0 {
			t.Fatalf("%s: repeats %d lines, %q", where, n, repeated)
		}
		if c.End() < f.End() && data[c.End()-1] != '\n' && strings.Contains(rest, "\n") {
			t.Fatalf("%s: cut within a line although it has an end of a line", where)
		}
		if cfg.ChunkTokens > 1 && utf8.ValidString(data) && !utf8.ValidString(repeated+rest) {
			t.Fatalf("%s: cuts a character", where)
		}
	}
	if end != int64(len(data)) {
		t.Fatalf("chunks end at %d of %d", end, len(data))
	}
}

// chunkName names a chunk in an error.
type chunkName struct {
	number int
	chunk.Chunk
}

// String is "chunk 3 {…}".
func (n chunkName) String() string { return fmt.Sprintf("chunk %d %+v", n.number, n.Chunk) }

// checkFiles checks that a chunk holds whole files or a part of one that does
// not fit.
func checkFiles(t fataler, c chunkName, files []pack.File, cfg chunk.Config) {
	first, last := c.File, c.File
	for last+1 < len(files) && (files[last+1].Length == 0 || files[last+1].Offset < c.End()) {
		last++
	}
	if first != last && cfg.PerFile && files[last].Offset < c.End() && files[last].Length > 0 {
		t.Fatalf("%s: more than one file", c)
	}
	f := files[first]
	whole := c.Offset == f.Offset && c.End() >= f.End()
	if !whole && f.Length <= int64(4*cfg.ChunkTokens) {
		t.Fatalf("%s: cuts a file that fits", c)
	}
	if !whole && (c.Offset < f.Offset || c.End() > f.End()) {
		t.Fatalf("%s: a piece goes beyond its file", c)
	}
	if c.Header < 0 || c.Header > 0 && (whole || f.Offset+c.Header > c.Offset+c.Overlap) {
		t.Fatalf("%s: shows a header it holds", c)
	}
}

func BenchmarkSplit(b *testing.B) {
	var source strings.Builder
	for i := 0; source.Len() < 100<<20; i++ {
		fmt.Fprintf(&source, "// F%d does something that takes a line to tell.\nfunc F%d(x int) int {\n\treturn x + %d\n}\n"+
			"\n", i, i, i)
	}
	r, data := openPack(b, text{"big.go", source.String()})
	for _, tokens := range []int{1_000, 8_000, 32_000} {
		b.Run(fmt.Sprint(tokens), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := chunk.Pack(r, chunk.Config{ChunkTokens: tokens}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
