package chunk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/corpus/chunk"
)

// kinds are names of files, one for each machine and language.
func kinds() []string {
	return []string{"a", "a.md", "a.txt", "a.go", "a.js", "A.java", "a.c", "a.cs", "a.rs", "a.php", "a.kt", "a.py",
		"a.rb", "a.sh", "a.sql",
		"a.lua", "a.pl", "a.json", "a.yaml", "a.toml", "Makefile", "a.xml", "a.css", "a.csv", "a.tsv", "a.jsonl", "a.log",
		"a.rst", "a.adoc",
		"a.org", "a.tex", "a.diff", "a.unknown"}
}

// FuzzPack: whatever a text holds, the chunks are its bytes in order, none is
// empty or too large, no character is cut, and the same text gives the same
// chunks.
func FuzzPack(f *testing.F) {
	for i, kind := range kinds() {
		f.Add(uint8(i), []byte(kind+"\n\n# a\n```\nx\n\n{\"a\": \"b\"}\n/* \" ' ` \n*/ func f() {\n\n}\nid,\"a\nb\"\n"),
			uint16(5+i), int16(i-5), false)
	}
	f.Add(uint8(11), []byte("@a(\n1)\n@b\n\ndef f():\n  '''\n\nx\n'''\n"), uint16(3), int16(0), true)
	f.Add(uint8(23), []byte("a,b\n1,\"\n\n\n\"\"\n\",2\n,,\n\"x\"y\n"), uint16(2), int16(1), false)
	f.Add(uint8(1), []byte("Title\n=====\n\n- a\n  - b\n\n~~~\nno end\n\n# not\n"), uint16(4), int16(2), false)
	f.Fuzz(func(t *testing.T, kind uint8, content []byte, tokens uint16, overlap int16, perFile bool) {
		if len(content) > 20_000 {
			return // longer input takes long to check and finds nothing new
		}
		names := kinds()
		cfg := chunk.Config{ChunkTokens: 1 + int(tokens)%200, PerFile: perFile}
		cfg.OverlapTokens = min(int(overlap), cfg.ChunkTokens/2)
		name := names[int(kind)%len(names)]
		r, data := openPack(t, text{"before", "x\n"}, text{name, string(content)}, text{"after", "y"})
		chunks, err := chunk.Pack(r, cfg)
		if err != nil {
			t.Fatal(err)
		}
		checkChunks(t, r, data, chunks, cfg)
		again, err := chunk.Pack(r, cfg)
		if err != nil || !slices.Equal(chunks, again) {
			t.Fatal("the second split differs", err)
		}
	})
}

// TestPropertyDeclarations: random files of declarations of random sizes, split
// at random sizes: what fits is whole.
func TestPropertyDeclarations(t *testing.T) {
	t.Parallel()
	forms := []struct {
		file, begin, line, end string
	}{
		{"a.go", "// F does.\nfunc F%d() {\n", "\tx := \"}\"\n\n\tif x {\n\t}\n", "}\n"},
		{"a.py", "@d\ndef f%d():\n", "    x = '''\n# x\n'''\n\n    if x:\n        y\n", ""},
		{"a.md", "# T %d\n", "\ntext\n```\n# x\n```\n\n- a\n", ""},
		{"a.c", "/* F. */\nint\nf%d(void)\n{\n", "  x = '}';\n\n  /* } */\n", "}\n"},
		{"a.rb", "# Does.\ndef f%d\n", "  x = 1\n\n  if x\n    y\n  end\n", "end\n"},
	}
	rapid.Check(t, func(t *rapid.T) {
		form := rapid.SampledFrom(forms).Draw(t, "form")
		sizes := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 30).Draw(t, "sizes")
		var all []string
		for i, n := range sizes {
			all = append(all, fmt.Sprintf(form.begin, i)+strings.Repeat(form.line, n)+form.end)
		}
		between := rapid.SampledFrom([]string{"", "\n", "\n\n"}).Draw(t, "between")
		tokens := rapid.IntRange(10, 150).Draw(t, "tokens")
		cfg := chunk.Config{ChunkTokens: tokens, OverlapTokens: rapid.IntRange(-1, tokens/2).Draw(t, "overlap")}
		r, data := openPack(t, text{form.file, strings.Join(all, between)})
		chunks, err := chunk.Pack(r, cfg)
		if err != nil {
			t.Fatal(err)
		}
		checkChunks(t, r, data, chunks, cfg)
		for _, d := range all {
			if len(d) > 4*tokens {
				continue
			}
			from := int64(strings.Index(data, d))
			whole := false
			for _, c := range chunks {
				whole = whole || c.Offset <= from && from+int64(len(d)) <= c.End()
			}
			if !whole {
				t.Fatalf("chunks of %d bytes cut apart\n%s\nof\n%s", 4*tokens, d, data)
			}
		}
	})
}
