package pack_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/packtest"
	"github.com/perdure/perdure/model"
)

// source is a file to be packed.
type source struct{ name, text string }

func build(t testing.TB, files ...source) (*pack.Reader, []byte) {
	t.Helper()
	var buf bytes.Buffer
	b := pack.NewBuilder(&buf, pack.Limits{})
	for _, f := range files {
		if err := b.Add(f.name, strings.NewReader(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, b, buf.Bytes())
}

// open ends a pack and reads it through an encoded manifest.
func open(t testing.TB, b *pack.Builder, data []byte) (*pack.Reader, []byte) {
	t.Helper()
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := pack.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, decoded); diff != "" {
		t.Fatalf("manifest changed in transport (-want +got):\n%s", diff)
	}
	r, err := pack.NewReader(decoded, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return r, data
}

func all(t testing.TB, r *pack.Reader) []model.Document {
	t.Helper()
	var docs []model.Document
	for d, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d)
	}
	return docs
}

func TestManifest(t *testing.T) {
	t.Parallel()
	r, data := build(t, source{"a.txt", "one\ntwo\n"}, source{"empty", ""}, source{"/abs/../b", "no newline"},
		source{"c", "\n"})
	want := &pack.Manifest{
		Version: 1,
		Files: []pack.File{
			{Name: "a.txt", Offset: 0, Length: 8, Lines: 2},
			{Name: "empty", Offset: 8, Length: 0, Lines: 0},
			{Name: "/abs/../b", Offset: 8, Length: 10, Lines: 1},
			{Name: "c", Offset: 18, Length: 1, Lines: 1},
		},
		Bytes: 19,
		Lines: 4,
	}
	if diff := cmp.Diff(want, r.Manifest()); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if string(data) != "one\ntwo\nno newline\n" {
		t.Errorf("pack %q", data)
	}
	if got := r.Manifest().Tokens(); got != 5 {
		t.Errorf("tokens %d, want 5", got)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	r, _ := build(t, source{"a", "one\ntwo\nthree"}, source{"empty", ""}, source{"b", "x\ny\n"},
		source{"c", "ab\xff\xfeé"})
	doc := func(file string, line int, text string) model.Document {
		return model.Document{File: file, StartLine: line, Text: text}
	}
	tests := []struct {
		off, length int64
		want        []model.Document
	}{
		{0, 24 - 1, []model.Document{doc("a", 1, "one\ntwo\nthree"), doc("b", 1, "x\ny\n"), doc("c", 1, "ab\uFFFDé")}},
		{4, 4, []model.Document{doc("a", 2, "two\n")}},
		{8, 7, []model.Document{doc("a", 3, "three"), doc("b", 1, "x\n")}},
		{15, 2, []model.Document{doc("b", 2, "y\n")}},
		{5, 2, []model.Document{{File: "a", StartLine: 2, StartColumn: 2, Text: "wo"}}},
		{21, 1, []model.Document{{File: "c", StartLine: 1, StartColumn: 5, Text: "\uFFFD"}}}, // half a rune
		{13, 0, nil},
		{23, 0, nil},
	}
	for _, tt := range tests {
		got, err := r.Documents(tt.off, tt.length)
		if err != nil {
			t.Errorf("documents(%d, %d): %v", tt.off, tt.length, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("documents(%d, %d) (-want +got):\n%s", tt.off, tt.length, diff)
		}
	}
	for _, bad := range [][2]int64{{-1, 1}, {0, -1}, {0, 24}, {24, 0}, {1 << 62, 1 << 62}} {
		if _, err := r.Documents(bad[0], bad[1]); !errors.Is(err, pack.ErrRange) {
			t.Errorf("documents(%d, %d): %v, want outside the pack", bad[0], bad[1], err)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	r, _ := build(t, source{"x", "no newline"}, source{"a", "one\r\ntwo\n\nfour\xff"}, source{"empty", ""},
		source{"b", "z\n"})
	tests := []struct {
		file       string
		start, end int
		want       string
		err        error
	}{
		{"x", 1, 1, "no newline", nil},
		{"a", 1, 1, "one\r", nil},
		{"a", 1, 2, "one\r\ntwo", nil},
		{"a", 3, 3, "", nil},
		{"a", 2, 4, "two\n\nfour\uFFFD", nil},
		{"b", 1, 1, "z", nil},
		{"b", 1, 2, "", pack.ErrRange},
		{"a", 0, 1, "", pack.ErrRange},
		{"a", 3, 2, "", pack.ErrRange},
		{"empty", 1, 1, "", pack.ErrRange},
		{"nobody", 1, 1, "", fs.ErrNotExist},
	}
	for _, tt := range tests {
		got, err := r.Lines(tt.file, tt.start, tt.end)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("lines(%q, %d, %d) = %q, %v; want %q, %v", tt.file, tt.start, tt.end, got, err, tt.want, tt.err)
		}
	}
}

// TestLargeFiles crosses many marks and parts, with lines of all lengths.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	var files []source
	for i := range 3 {
		var b strings.Builder
		for b.Len() < 3<<20 {
			b.WriteString(strings.Repeat("é", rnd.IntN(200)))
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat("ü", 1_300_000)) // one line of 2.6 MB, not ended
		files = append(files, source{fmt.Sprint("file", i), b.String()})
	}
	r, data := build(t, files...)
	texts := map[string]string{}
	for _, d := range all(t, r) {
		if len(d.Text) > 1<<20 || !utf8.ValidString(d.Text) || strings.Contains(d.Text, "\uFFFD") {
			t.Fatalf("piece of %d bytes of %s is too long or cuts a rune", len(d.Text), d.File)
		}
		if want := strings.Count(texts[d.File], "\n") + 1; d.StartLine != want {
			t.Errorf("piece of %s starts at line %d, want %d", d.File, d.StartLine, want)
		}
		texts[d.File] += d.Text
	}
	for _, f := range files {
		if texts[f.name] != f.text {
			t.Errorf("pieces of %s do not add up", f.name)
		}
		lines := strings.Split(f.text, "\n")
		for range 50 {
			n := 1 + rnd.IntN(len(lines)-1)
			to := min(n+rnd.IntN(3), len(lines)-1)
			got, err := r.Lines(f.name, n, to)
			if err != nil || got != strings.Join(lines[n-1:to], "\n") {
				t.Errorf("lines(%s, %d, %d): wrong text (%v)", f.name, n, to, err)
			}
		}
	}
	for range 100 {
		off := rnd.Int64N(int64(len(data)))
		docs, err := r.Documents(off, min(10, int64(len(data))-off))
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for r.Manifest().Files[i].End() <= off {
			i++
		}
		start := r.Manifest().Files[i].Offset
		if want := bytes.Count(data[start:off], []byte("\n")) + 1; docs[0].StartLine != want {
			t.Errorf("line at %d is %d, want %d", off, docs[0].StartLine, want)
		}
	}
}

func TestPropertyDocumentsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[ab\n]{0,20}`), 0, 6).Draw(t, "texts")
		files := make([]packtest.File, len(texts))
		for i, text := range texts {
			files[i] = packtest.File{Name: fmt.Sprint(i), Text: text}
		}
		r, _ := packtest.Open(t, files...)
		m := r.Manifest()
		cut := rapid.Int64Range(0, m.Bytes).Draw(t, "cut")
		head, err1 := r.Documents(0, cut)
		tail, err2 := r.Documents(cut, m.Bytes-cut)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(texts))
		for _, d := range append(head, tail...) {
			var i int
			if _, err := fmt.Sscan(d.File, &i); err != nil {
				t.Fatal(err)
			}
			if want := strings.Count(got[i], "\n") + 1; d.StartLine != want {
				t.Fatalf("line %d, want %d", d.StartLine, want)
			}
			got[i] += d.Text
		}
		if diff := cmp.Diff(append([]string{}, texts...), got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAddFailures(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	tests := []struct {
		name   string
		file   string
		limits pack.Limits
		w      io.Writer
		want   string
		is     error
	}{
		{name: "empty name", file: "", want: "empty"},
		{name: "NUL", file: "a\x00b", want: "control character"},
		{name: "newline", file: "a\nb", want: "control character"},
		{name: "not UTF-8", file: "a\xff", want: "UTF-8"},
		{name: "too long", file: strings.Repeat("n", pack.MaxNameBytes+1), want: "longer"},
		{name: "slash at the end", file: "dir/", want: "slash"},
		{name: "twice", file: "first", want: "twice"},
		{name: "too many", file: "second", limits: pack.Limits{Files: 1}, want: "limit of 1 files", is: pack.ErrLimit},
		{name: "too large", file: "second", limits: pack.Limits{Bytes: 9}, want: "limit of 9 bytes", is: pack.ErrLimit},
		{name: "writer", file: "second", w: &failingWriter{after: 5, err: full}, want: "disk full", is: full},
		{name: "short write", file: "second", w: &failingWriter{after: 5}, want: "short write", is: io.ErrShortWrite},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := tt.w
			if w == nil {
				w = io.Discard
			}
			b := pack.NewBuilder(w, tt.limits)
			if err := b.Add("first", strings.NewReader("12345")); err != nil {
				t.Fatal(err)
			}
			err := b.Add(tt.file, strings.NewReader("67890"))
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err := b.Add("third", strings.NewReader("")); err == nil {
				t.Error("a spoilt pack takes another file")
			}
			if _, err := b.Manifest(); err == nil {
				t.Error("a spoilt pack has a manifest")
			}
		})
	}
}

type failingWriter struct {
	after int
	err   error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// TestAddBrokenReader: what was read of a large file stays as bytes of no file.
func TestAddBrokenReader(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 10, 1_000_000} {
		for _, cause := range []error{errors.New("gone"), io.ErrUnexpectedEOF} {
			t.Run(fmt.Sprint(size, " ", cause), func(t *testing.T) {
				t.Parallel()
				var buf bytes.Buffer
				b := pack.NewBuilder(&buf, pack.Limits{})
				broken := io.MultiReader(strings.NewReader(strings.Repeat("x\n", size/2)), iotest.ErrReader(cause))
				var readErr *pack.ReadError
				if err := b.Add("broken", broken); !errors.As(err, &readErr) || !errors.Is(err, cause) || readErr.Name != "broken" {
					t.Fatalf("error %v, want a read error", err)
				}
				b.Skip("broken", "unreadable", "it broke")
				if err := b.Add("after", strings.NewReader("one\ntwo\n")); err != nil {
					t.Fatal(err)
				}
				r, _ := open(t, b, buf.Bytes())
				want := []model.Document{{File: "after", StartLine: 1, Text: "one\ntwo\n"}}
				got, err := r.Documents(0, r.Manifest().Bytes)
				if err != nil || !cmp.Equal(want, got) || !cmp.Equal(want, all(t, r)) {
					t.Errorf("documents %+v, %v; want %+v", got, err, want)
				}
				if line, err := r.Lines("after", 2, 2); err != nil || line != "two" {
					t.Errorf("line 2 is %q, %v", line, err)
				}
			})
		}
	}
}

func TestSkipped(t *testing.T) {
	t.Parallel()
	b := pack.NewBuilder(io.Discard, pack.Limits{})
	b.Skip("bad\xff", "odd", strings.Repeat("é", pack.MaxReasonBytes))
	for range pack.MaxSkipped + 5 {
		b.Skip("f", "binary", "it is binary")
	}
	r, _ := open(t, b, nil)
	m := r.Manifest()
	if len(m.Skipped) != pack.MaxSkipped || m.MoreSkipped != 6 {
		t.Errorf("%d listed and %d more, want %d and 6", len(m.Skipped), m.MoreSkipped, pack.MaxSkipped)
	}
	if want := map[string]int64{"odd": 1, "binary": pack.MaxSkipped + 5}; !cmp.Equal(want, m.SkippedKinds) {
		t.Errorf("kinds %v, want %v", m.SkippedKinds, want)
	}
	if s := m.Skipped[0]; s.File != "bad\uFFFD" || len(s.Why) != pack.MaxReasonBytes || !utf8.ValidString(s.Why) {
		t.Errorf("first is %q, %d bytes", s.File, len(s.Why))
	}
}

func TestNewReaderChecksTheSize(t *testing.T) {
	t.Parallel()
	r, data := build(t, source{"a", "content"})
	if _, err := pack.NewReader(r.Manifest(), bytes.NewReader(data[1:])); err == nil {
		t.Error("opened a pack that is too short")
	}
	noSize := struct{ io.ReaderAt }{bytes.NewReader(data[:3])}
	cut, err := pack.NewReader(r.Manifest(), noSize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cut.Documents(0, 7); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("documents of a cut pack: %v", err)
	}
	for _, err := range cut.All() {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("all of a cut pack: %v", err)
		}
	}
	if _, err := cut.Lines("a", 1, 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("lines of a cut pack: %v", err)
	}
}

func BenchmarkAdd(b *testing.B) {
	text := bytes.Repeat([]byte("a line of some forty characters, or so..\n"), 64<<20/41)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		builder := pack.NewBuilder(io.Discard, pack.Limits{})
		if err := builder.Add("f", bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAll(b *testing.B) {
	r, data := build(b, source{"f", strings.Repeat("a line of some forty characters, or so..\n", 64<<20/41)})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for _, err := range r.All() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Ranges are the lines of the file, within the limits of lines and bytes.
func TestRange(t *testing.T) {
	t.Parallel()
	r, _ := packtest.Open(t, packtest.File{Name: "a", Text: "1\n2\n3\n4\n5"},
		packtest.File{Name: "long", Text: strings.Repeat("ä", 100) + "\nx\n"})
	for _, c := range []struct {
		file         string
		start, lines int
		most         int64
		want         string
	}{
		{"a", 2, 2, 100, "2\n3\n"}, {"a", 4, 100, 100, "4\n5"}, {"a", 1, 100, 5, "1\n2\n"},
		{"long", 1, 5, 5, "ää"}, {"long", 2, 5, 5, "x\n"}, {"a", 6, 1, 9, "error"}, {"a", 0, 1, 9, "error"},
		{"b", 1, 1, 9, "error"},
	} {
		got, err := r.Range(c.file, c.start, 1, c.lines, c.most)
		if (err != nil) != (c.want == "error") || err == nil && got.Text != c.want {
			t.Errorf("%+v: %q, %v", c, got.Text, err)
		}
	}
	for _, c := range []struct {
		file          string
		start, column int
		text          string
		from          int // the column of the text
	}{
		{"a", 1, 1, "1\n", 0}, {"a", 1, 2, "\n", 2}, {"a", 1, 3, "", 0}, {"a", 5, 1, "5", 0}, {"a", 5, 2, "", 2},
		{"a", 5, 3, "", 0},
		{"long", 1, 3, "ä", 3}, {"long", 1, 4, "ä", 3}, {"long", 1, 2, "ä", 0}, {"long", 1, 201, "\n", 201},
		{"long", 1, 202, "", 0}, {"long", 2, 2, "\n", 2}, {"long", 2, 3, "", 3}, {"long", 1, 204, "", 0},
	} {
		got, err := r.Range(c.file, c.start, c.column, 1, 3)
		want := model.Document{File: c.file, StartLine: c.start, StartColumn: c.from, Text: c.text}
		switch {
		case c.text == "" && c.from == 0:
			if !errors.Is(err, pack.ErrRange) {
				t.Errorf("%+v: %+v, %v", c, got, err)
			}
		case err != nil || got != want:
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
