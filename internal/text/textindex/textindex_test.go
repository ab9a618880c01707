package textindex_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/textindex"
)

func build(t testing.TB, texts ...textindex.Text) []byte {
	t.Helper()
	var buf bytes.Buffer
	err := textindex.Build(t.Context(), &buf, func(yield func(textindex.Text, error) bool) {
		for _, text := range texts {
			if !yield(text, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Passages are in order, do not overlap, leave out blank lines only, and end at runes.
func FuzzCut(f *testing.F) {
	f.Add("package x\n\n// F does.\nfunc F() {\n}\n\nvar y = 1\n")
	f.Add("# Title\n\ntext\n\n## More\n\ntext\n")
	f.Add(strings.Repeat("line\n", 100))
	f.Add(strings.Repeat("word ", 2000) + "\n\n\n" + strings.Repeat("\n", 50))
	f.Add(strings.Repeat("\u6f22\u5b57", 5000))
	f.Add("\xff\xfe" + strings.Repeat("\x80", 9000))
	f.Fuzz(func(t *testing.T, text string) {
		next := 0
		blank := func(s string) {
			if strings.TrimSpace(s) != "" {
				t.Errorf("%q is in no passage", s)
			}
		}
		textindex.Cut(text, func(from, to int) {
			if from < next && next-from > 256 || to <= from || to > len(text) || to-from > 3<<10 ||
				strings.Count(text[from:to], "\n") > 50 {
				t.Fatalf("passage %d to %d behind %d of %d", from, to, next, len(text))
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[from:to]) {
				t.Errorf("passage %d to %d cuts a rune", from, to)
			}
			blank(text[next:max(from, next)])
			next = to
		})
		blank(text[next:])
	})
}

// A damaged index is refused, or at least does no harm.
func FuzzOpen(f *testing.F) {
	whole := build(f, textindex.Text{Name: "a.go", Text: "func Open() error\n\nfunc Close() error\n"},
		textindex.Text{Name: "b.md", Offset: 100, Text: strings.Repeat("open the file and close it\n\n", 300)})
	f.Add(whole, 0, byte(0))
	f.Add(whole, 40, byte(1))
	f.Add(whole[:len(whole)/2], 0, byte(0))
	f.Add([]byte{}, 0, byte(0))
	f.Fuzz(func(t *testing.T, raw []byte, at int, flip byte) {
		raw = bytes.Clone(raw)
		if at >= 0 && at < len(raw) {
			raw[at] ^= flip
		}
		x, err := textindex.Open(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		s, err := x.Score(textindex.NewQuery("open files"))
		if err != nil {
			return
		}
		_, err = s.Best(nil, 10, func(textindex.Hit) (name, text string, err error) { return "a", "open", nil })
		if err != nil {
			t.Error(err)
		}
	})
}

func TestRefusesDamage(t *testing.T) {
	t.Parallel()
	whole := build(t, textindex.Text{Name: "a", Text: strings.Repeat("some words of a text\n", 400)})
	for i := range whole {
		raw := bytes.Clone(whole)
		raw[i] ^= 4
		if _, err := textindex.Open(bytes.NewReader(raw), int64(len(raw))); !errors.Is(err, textindex.ErrDamaged) {
			t.Fatalf("byte %d of %d changed: error %v", i, len(raw), err)
		}
		if _, err := textindex.Open(bytes.NewReader(whole[:i]), int64(i)); err == nil {
			t.Fatalf("cut behind %d of %d bytes: opened", i, len(raw))
		}
	}
}

// An index is smaller than its text, whatever the text is.
func TestIndexIsSmallerThanTheText(t *testing.T) {
	t.Parallel()
	var numbers, encoded, han strings.Builder
	state := uint64(1)
	next := func() uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return state >> 16
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for numbers.Len() < 1<<20 {
		fmt.Fprintf(&numbers, "%012x ", next()&(1<<48-1))
	}
	for encoded.Len() < 1<<20 {
		encoded.WriteByte(alphabet[next()%64])
		if encoded.Len()%77 == 76 {
			encoded.WriteByte('\n')
		}
	}
	for han.Len() < 1<<20 {
		han.WriteRune(rune(0x4e00 + next()%3000))
	}
	for name, text := range map[string]string{"numbers": numbers.String(), "encoded": encoded.String(),
		"han": han.String(), "prose": strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 20000)} {
		if n := len(build(t, textindex.Text{Name: name, Text: text})); n > len(text) {
			t.Errorf("%s: the index of %d bytes has %d", name, len(text), n)
		}
	}
}
