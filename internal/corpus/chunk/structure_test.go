package chunk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/corpus/chunk"
)

// TestDeclarationsThatFitAreWhole puts many declarations of each language into
// one file and splits it small: each has to be in one chunk with its comment.
func TestDeclarationsThatFitAreWhole(t *testing.T) {
	t.Parallel()
	tests := []struct{ file, declaration string }{
		{"a.go", "// F¤ does.\n//\n// More of it.\nfunc F¤(a int) string {\n\tif a > 0 {\n\n\t\treturn `\nfunc not() {\n`\n" +
			"\t}\n\n\treturn \"}\"\n}\n"},
		{"b.go", "/*\nF¤ does.\n\nfunc not() {}\n*/\ntype F¤ struct {\n\tA int\n\n\t// B.\n\tB func() error\n}\n"},
		{"a.py", "# F¤ does.\n@cached(\n    size=3,\n)\n@other\ndef f¤(a,\n       b):\n    \"\"\"Does.\n\ndef not():\n" +
			"    \"\"\"\n    x = {\n        1: 2,\n    }\n\n    # inner\n    return '''\n#\n'''\n"},
		{"b.py", "class C¤:\n    x = 1\n\n    def f(self):\n        pass\n\n    @property\n    def g(self):\n" +
			"        if self.x:\n            return 1\n        else:\n            return 2\n"},
		{"a.js", "/**\n * Does.\n *\n */\nexport function f¤(a) {\n  const s = `\nfunction not() {\n  ${a}`\n" +
			"  return a.replace(/[/`\"{]/g, '\"')\n\n    .trim()\n}\n"},
		{"a.ts", "@Component({\n  selector: 'x',\n})\nexport class C¤ {\n  private x = 1\n\n  f(): number {\n" +
			"    return this.x\n  }\n}\n"},
		{"A.java", "/** Does. */\n@Deprecated\n@SuppressWarnings({\n  \"a\"\n})\npublic class C¤ {\n" +
			"    private int x = '{';\n\n    // Inner.\n    @Override\n    public int f() {\n        return x;\n    }\n}\n"},
		{"a.c", "/* Does. */\n#define X¤ \\\n  1 \\\n  2\n"},
		{"b.c", "/* Does. */\nstatic int\nf¤(int a,\n   int b)\n{\n\tchar c = '{';\n\n#ifdef X\n\tif (a) {\n#else\n" +
			"\tif (b) {\n#endif\n\t\treturn 1;\n\t}\nout:\n\treturn a;\n}\n"},
		{"a.cpp", "// Does.\ntemplate <typename T>\nclass C¤ : public B {\n public:\n  C¤();\n\n" +
			"  int f() const { return 1; }\n\n private:\n  int x_;\n};\n"},
		{"a.cs", "/// <summary>Does.</summary>\n[Serializable]\npublic class C¤\n{\n    public string S = @\"\n}\n\";\n\n" +
			"    public int F() { return 1; }\n}\n"},
		{"a.rs", "/// Does.\n#[derive(Debug,\n  Clone)]\npub fn f¤<'a>(x: &'a str) -> &'a str {\n    let c = '{';\n\n" +
			"    let s = r#\"\n}\n\"#;\n    x\n}\n"},
		{"a.rb", "# Does.\ndef f¤(a)\n  x = <<~TEXT\ndef not\n  TEXT\n\n  if a\n    1\n  else\n    2\n  end\nend\n"},
		{"a.php", "/** Does. */\n#[Pure]\nfunction f¤($a) {\n    $x = <<<EOT\n}\n\nEOT;\n    return $a;\n}\n"},
		{"a.sh", "# Does.\nf¤() {\n  if true; then\n    cat <<'EOF'\n}\n\nfunction not\nEOF\n  fi\n\n  case $1 in\n" +
			"    a) echo \"x\ny\" ;;\n  esac\n}\n"},
		{"a.sql", "-- Does.\nCREATE TABLE t¤ (\n  a TEXT DEFAULT 'x;\ny',\n\n  b INT\n);\n"},
		{"b.sql", "CREATE FUNCTION f¤() RETURNS INT AS $$\nBEGIN\n\n  SELECT 1;\nEND;\n$$ LANGUAGE plpgsql;\n"},
		{"a.kt", "/** Does. */\n@Test\nfun f¤(a: Int): Int {\n    return listOf(a)\n        .map { it + 1 }\n\n" +
			"        .first()\n}\n"},
		{"a.lua", "-- Does.\nfunction f¤(a)\n  if a then\n\n    return 1\n  end\nend\n"},
		{"a.yaml", "# Does.\nkey¤:\n  - a: 1\n\n    b: 2\n"},
		{"a.xml", "<item id=\"¤\">\n  <!--\n\n<not>\n  -->\n  <a>1</a>\n\n  <b/>\n</item>\n"},
		{"a.md", "## Title ¤\n\nSome text about it.\n\n```go\n# not a title\n\n## nor this\n```\n\n- an item\n\n" +
			"  more of it\n"},
		{"a.tex", "\\section{Title ¤}\n\nSome text.\n\nMore of it.\n"},
		{"a.txt", "CHAPTER ¤. A Title\n\nSome text.\n\nMore of it.\n"},
		{"a.diff", "diff --git a/f¤ b/f¤\n--- a/f¤\n+++ b/f¤\n@@ -1 +1 @@\n-a\n\n+b\n"},
		{"a.csv", "\"name ¤\",\"a text\nin two lines, with \"\"quotes\"\"\",#\n"},
		{"a.jsonl", "{\"n\": ¤, \"text\": \"some text that takes a while\"}\n"},
		{"a.log", "2024-01-02T15:04:05Z ERROR request ¤ failed\njava.lang.Error: x\n\tat a.b(C.java:1)\n\nCaused by: y\n" +
			"\t... 3 more\n"},
		{"b.log", "[Jan  2 15:04:05] request ¤\n  goes on\n"},
		{"c.log", "request ¤\n  goes on\n  and on\n"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			for _, between := range []string{"\n", ""} {
				if between == "" && tt.file == "a.txt" {
					continue // there a chapter follows a blank line
				}
				checkWhole(t, tt.file, tt.declaration, between)
			}
		})
	}
}

func checkWhole(t *testing.T, file, declaration, between string) {
	t.Helper()
	var content strings.Builder
	var all []string
	for i := range 100 {
		// Lengths differ, so that the cuts fall everywhere.
		d := strings.ReplaceAll(declaration, "¤", strings.Repeat("1", 1+i*7%23))
		all = append(all, d)
		content.WriteString(d + between)
	}
	tokens := max((len(declaration)+100*strings.Count(declaration, "¤"))/4, 40)
	for _, size := range []int{tokens, tokens * 3 / 2, tokens * 3} {
		got := parts(t, chunk.Config{ChunkTokens: size, OverlapTokens: -1}, text{file, content.String()})
		if strings.Join(got, "") != content.String() {
			t.Fatal("the parts are not the file")
		}
		for _, d := range all {
			if !containedIn(got, d) {
				t.Errorf("between %q, chunks of %d tokens: cut apart\n%s\nthe chunks:\n%s", between, size, d,
					strings.Join(got[:min(4, len(got))], "\n=====\n"))
				return
			}
		}
	}
}

func containedIn(list []string, s string) bool {
	for _, p := range list {
		if strings.Contains(p, s) {
			return true
		}
	}
	return false
}

// TestMembersThatFitAreWhole: where a declaration does not fit, what is directly
// inside of it is kept together.
func TestMembersThatFitAreWhole(t *testing.T) {
	t.Parallel()
	tests := []struct{ file, head, member, tail string }{
		{"a.java", "public class A {\n", "    /** Does. */\n    @Override\n    public int f¤() {\n        int a = 1;\n\n" +
			"        return a;\n    }\n\n", "}\n"},
		{"a.cs", "namespace N\n{\n    public class A\n    {\n", "        [Fact]\n        public int F¤()\n        {\n" +
			"            int a = 1;\n\n            return a;\n        }\n\n", "    }\n}\n"},
		{"a.py", "class A:\n    \"\"\"Doc.\"\"\"\n\n",
			"    # Does.\n    @cached\n    def f¤(self):\n        x = 1\n\n        return x\n\n", ""},
		{"a.ts", "export class A {\n",
			"  // Does.\n  @Input()\n  f¤(a: number) {\n    const b = 1\n\n    return b\n  }\n\n", "}\n"},
		{"a.cpp", "namespace n {\n", "// Does.\nint f¤(int a) {\n  int b = 1;\n\n  return b;\n}\n\n", "}\n"},
		{"a.rs", "impl A {\n", "    /// Does.\n    #[inline]\n    pub fn f¤(&self) -> u8 {\n        let a = 1;\n\n" +
			"        a\n    }\n\n", "}\n"},
		{"a.rb", "class A\n", "  # Does.\n  def f¤\n    a = 1\n\n    a\n  end\n\n", "end\n"},
		{"a.json", "[\n", "  {\n    \"n\": \"¤\",\n\n    \"list\": [1,\n      2]\n  },\n", "  {}\n]\n"},
		{"a.md", "# Title\n\nIntroduction.\n\n", "### Section ¤\n\nText:\n\n```\na\n\nb\n```\n\n", "# End\n\nx\n"},
		{"a.md", "# Title\n\n", "- Item ¤\n  goes on here\n  and here.\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			content := tt.head
			var all []string
			for i := range 60 {
				m := strings.ReplaceAll(tt.member, "¤", strings.Repeat("1", 1+i*7%23))
				all = append(all, strings.TrimRight(m, "\n"))
				content += m
			}
			content += tt.tail
			size := len(tt.member)/4 + 30
			got := parts(t, chunk.Config{ChunkTokens: size, OverlapTokens: -1}, text{tt.file, content})
			for _, m := range all {
				if !containedIn(got, m) {
					t.Fatalf("cut apart\n%s\nthe chunks:\n%s", m, strings.Join(got[:min(4, len(got))], "\n=====\n"))
				}
			}
		})
	}
}

// TestHeadersOfTables: the parts after the first have the row with the names.
func TestHeadersOfTables(t *testing.T) {
	t.Parallel()
	rows := ""
	for i := range 100 {
		rows += fmt.Sprintf("%d,\"a\nb\",x\n", i)
	}
	tests := []struct {
		name, file, header string
		want               int64
	}{
		{"names", "a.csv", "id,text,kind\n", 13},
		{"names over two lines", "a.csv", "id,\"text\nof it\",kind\n", 21},
		{"byte order mark", "a.csv", "\ufeffid,text,kind\n", 16},
		{"data", "a.csv", "1,text,kind\n", 0},
		{"an empty field", "a.csv", "id,,kind\n", 0},
		{"too long", "a.csv", strings.Repeat("name,", 40) + "z\n", 0},
		{"no table", "a.txt", "id,text,kind\n", 0},
	}
	for _, tt := range tests {
		r, data := openPack(t, text{"before", "x\n"}, text{tt.file, tt.header + rows})
		const tokens = 150
		chunks, err := chunk.Pack(r, chunk.Config{ChunkTokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range chunks {
			want := tt.want
			if i < 2 { // the file before, and the part that begins with the header
				want = 0
			}
			if c.Header != want || c.Tokens > tokens {
				t.Errorf("%s: chunk %d %+v, want a header of %d bytes", tt.name, i, c, want)
			}
			if tt.file == "a.csv" && strings.Count(data[c.Offset:c.End()], `"`)%2 != 0 {
				t.Errorf("%s: chunk %d cuts a row apart", tt.name, i)
			}
		}
	}
}

// TestOverlapFollowsTheStructure: what is repeated are whole units.
func TestOverlapFollowsTheStructure(t *testing.T) {
	t.Parallel()
	var records, paragraphs, functions string
	for i := range 200 {
		records += fmt.Sprintf("2024-01-02 15:04:05 entry %d\n\tat a\n\tat b\n", i)
		paragraphs += fmt.Sprintf("Paragraph %d has one line\nand another one.\n\n", i)
		functions += fmt.Sprintf("// F%d does.\nfunc F%d() {\n\tx()\n}\n\n", i, i)
	}
	for _, tt := range []struct{ file, content, begins string }{
		{"a.log", records, "2024"}, {"a.md", paragraphs, "Paragraph"}, {"a.go", functions, "// F"},
	} {
		r, data := openPack(t, text{tt.file, tt.content})
		chunks, err := chunk.Pack(r, chunk.Config{ChunkTokens: 200, OverlapTokens: 40})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range chunks {
			if !strings.HasPrefix(data[c.Offset:], tt.begins) || !strings.HasPrefix(data[c.Offset+c.Overlap:], tt.begins) {
				t.Errorf("%s: chunk %d begins with %q, after what it repeats %q", tt.file, i, data[c.Offset:c.Offset+20],
					data[c.Offset+c.Overlap:][:20])
			}
			if i > 0 && (c.Overlap < 40 || c.Overlap > 160) {
				t.Errorf("%s: chunk %d repeats %d bytes", tt.file, i, c.Overlap)
			}
		}
	}
}

// TestLongLinesAreCutBetweenWords as far as there are any.
func TestLongLinesAreCutBetweenWords(t *testing.T) {
	t.Parallel()
	got := parts(t, chunk.Config{ChunkTokens: 100}, text{"a", strings.Repeat("word ", 1000)},
		text{"b", strings.Repeat("It is so. ", 1000)})
	for _, p := range got {
		if !strings.HasSuffix(p, "word ") && !strings.HasSuffix(p, "so. ") {
			t.Errorf("ends with %q", tail(p))
		}
	}
}
