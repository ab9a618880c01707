package yamltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"

	"github.com/perdure/perdure/internal/text/yamltext"
)

const limit = 100_000

// bomb is text of about 1 KB whose aliases expand to 10 to the power of levels values.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	keys := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	tests := []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a mapping", "a: 1\n", ""},
		{"size", strings.Repeat("x", limit+1), "larger than 100000 bytes"},
		{"UTF-8", "a\nb\xff", "line 2 is not valid UTF-8"},
		{"NUL", "a\x00", "NUL"},
		{"brackets", strings.Repeat("{", 101), "nested too deeply"},
		{"both brackets", strings.Repeat("{[", 51), "nested too deeply"},
		{"dashes", "a: 1\n" + strings.Repeat("- ", 100) + "a", "nested too deeply"},
		{"question marks", strings.Repeat("?\t: ", 50) + "a", "nested too deeply"},
		{"brackets one after the other", "[" + strings.Repeat("[],", 200) + "1]", ""},
		{"dashes in many lines", strings.Repeat(strings.Repeat("- ", 60)+"a\n", 50), ""},
		{"aliases", bomb(12), "line 1, column 5: an anchor (&) is not allowed here"},
		{"an alias", "a: 1\nb: *x\n", "line 2, column 4: an alias (*) is not allowed here"},
		{"a merge key", "b:\n  <<: *x\n", "line 2, column 7: an alias"},
		{"an anchor in brackets", "[a, &b c]", "line 1, column 5: an anchor"},
		{"quoted", "a: '*b'\nc: \"&d\"\ne: f & g *h\n", ""},
		{"text", "a: |\n  &b\n  *c\n# *d\n", ""},
		{"keys", keys(2001, "k%d: 1\n"), "line 2001, column 6: the mapping has more than 2000 keys"},
		{"keys with tags", keys(2001, "!!str k%d: 1\n"), "more than 2000 keys"},
		{"keys with question marks", keys(2001, "? k%d\n: 1\n"), "more than 2000 keys"},
		{"keys below", "a:\n" + keys(2001, "  k%d: 1\n"), "more than 2000 keys"},
		{"as many keys as allowed", keys(2000, "k%d: 1\n"), ""},
		{"keys of a list's entries", keys(1500, "- k%d: 1\n  b: 2\n"), ""},
		{"keys in several mappings", keys(200, "s%d:\n"+keys(20, "  k%d: 1\n")+"#%[1]d\n"), ""},
		{"keys in brackets", "[" + keys(3000, "{k%d: 1}, ") + "{a: 1}]", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, parsed := yamltext.Parse([]byte(tt.text), limit)
			var v any
			decoded := yamltext.Decode([]byte(tt.text), limit, &v)
			for _, problem := range []*yamltext.Error{parsed, decoded} {
				switch {
				case tt.want == "" && problem != nil:
					t.Errorf("error %v", problem)
				case tt.want != "" && (problem == nil || !strings.Contains(problem.Error(), tt.want)):
					t.Errorf("error %v, want %q", problem, tt.want)
				}
			}
			if tt.want != "" && v != nil {
				t.Errorf("%.50v was decoded", v)
			}
		})
	}
}

func TestErrorForms(t *testing.T) {
	t.Parallel()
	_, anchor := yamltext.Parse([]byte("a: &b 1"), limit)
	_, syntax := yamltext.Parse([]byte("a: 1\nb: [1"), limit)
	unknown := yamltext.Decode([]byte("a: 1\nbb: 2"), limit, &struct {
		A int `yaml:"a"`
	}{})
	if anchor == nil || syntax == nil || unknown == nil {
		t.Fatalf("no error: %v, %v, %v", anchor, syntax, unknown)
	}
	const no = "an anchor (&) is not allowed here; repeat the value where it is used"
	for got, want := range map[string]string{
		anchor.In("f").Error():  "f:1:4: " + no,
		anchor.Message():        "column 4: " + no,
		syntax.In("f").Error():  "f:2: " + syntax.Msg,
		syntax.Message():        syntax.Msg,
		unknown.In("f").Error(): `f:2: unknown field "bb"`,
	} {
		if got != want || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Text with comments only is an empty document, as the library reads it.
func TestCommentsOnly(t *testing.T) {
	t.Parallel()
	for text, filled := range map[string]bool{
		"": false, "\n": false, "# a": false, "# a\r\n\n  # b: 1\n": false,
		"# a\nb: 1": true, "|\n  # b": true, "# a\n-": true, "'# a'": true,
	} {
		file, problem := yamltext.Parse([]byte(text), 100)
		tokens, err := parser.Parse(lexer.Tokenize(text), 0)
		if problem != nil || err != nil || len(file.Docs) != 1 || (file.Docs[0].Body != nil) != filled ||
			file.String() != tokens.String() {
			t.Errorf("%q: %v, %v, %v", text, file, problem, err)
		}
	}
}

// What is accepted has no anchor and no alias in the tree of the library, so decoding it
// takes no more values than it has, and nothing makes the library panic.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		bomb(5), "a: &a [*a]", "- &a\n- *a", "? &x a\n: *x", "<<: *a", "a: !!map &b {c: *b}", "[&a,*a]", "{? *a : b}",
		"a: |\n &b",
		"k: v\n? q\n: r\n-", "%YAML 1.2\n--- &a\n...\n*a", "a: - b", "\t*a", "'&a': \"*a\"", "!!binary &a x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, problem := yamltext.Parse([]byte(text), 1<<16)
		var v any
		decoded := yamltext.Decode([]byte(text), 1<<16, &v)
		if problem != nil {
			if problem.Msg == "" || decoded == nil {
				t.Errorf("%q: error %q, decoded with %v", text, problem.Error(), decoded)
			}
			return
		}
		for _, doc := range file.Docs {
			if doc.Body != nil {
				ast.Walk(noAliases{t}, doc.Body)
			}
		}
		if written, err := yaml.Marshal(v); decoded == nil && err == nil && len(written) > 100*len(text)+100 {
			t.Errorf("%q of %d bytes became %d bytes", text, len(text), len(written))
		}
	})
}

type noAliases struct{ t *testing.T }

func (n noAliases) Visit(node ast.Node) ast.Visitor {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		n.t.Errorf("%s at %v was accepted", node.Type(), node.GetToken().Position)
	}
	return n
}
