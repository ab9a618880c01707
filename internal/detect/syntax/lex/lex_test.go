package lex_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// dialects returns rules that cover each field of Rules.
func dialects() map[string]*lex.Rules {
	double, single := lex.Quote{Open: `"`, Close: `"`, Escape: '\\'}, lex.Quote{Open: "'", Close: "'", Escape: '\\'}
	all := map[string]*lex.Rules{
		"script": {Line: []string{"//"}, Block: "/*", Regex: true, Dollar: true, Quotes: []lex.Quote{
			double, single, {Open: "`", Close: "`", Escape: '\\', Lines: true, Code: "${"}}},
		"sharp": {Line: []string{"//"}, Block: "/*", Char: true, Prefixes: "$@", Preprocessor: true, Raw: true},
		"rust": {Line: []string{"//"}, Block: "/*", Nested: true, Char: true, Hashes: true, Prefixes: "brc",
			Quotes: []lex.Quote{double}},
		"ruby": {Line: []string{"#"}, Block: "=begin", Regex: true, Percent: true, Documents: "<<~", At: true, Query: true,
			Dollar: true,
			Quotes: []lex.Quote{double, single}},
		"php": {Line: []string{"//", "#"}, Block: "/*", Dollar: true, Documents: "<<<", Tag: "<?",
			Quotes: []lex.Quote{double, single}},
		"kotlin": {Line: []string{"//"}, Block: "/*", Quotes: []lex.Quote{double, {Open: "`", Close: "`", Name: true}}},
		"sql":    {Line: []string{"--"}, Quotes: []lex.Quote{{Open: "'", Close: "'", Lines: true, Doubled: true}}},
	}
	for _, rules := range all {
		rules.Prepare()
	}
	return all
}

// shown describes tokens and comments with their position and kind.
func shown(tokens []lex.Token, comments []lex.Comment) []string {
	var all []string
	for i := range tokens {
		t := &tokens[i]
		first := ""
		if t.First {
			first = "first "
		}
		all = append(all, fmt.Sprintf("%d:%d %s%s %s", t.Line, t.Col, first,
			[]string{"word", "number", "text", "op"}[t.Kind], t.S))
	}
	for _, c := range comments {
		alone := ""
		if c.Alone {
			alone = "alone "
		}
		all = append(all, fmt.Sprintf("%d %scomment %s", c.Line, alone, c.S))
	}
	return all
}

// Tokens have the right extent, kind and position.
func TestTokens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		dialect, text string
		want          []string
	}{
		{"script", "$a ===\n 1.5e3 // b", []string{"1:0 first word $a", "1:3 op ===", "2:1 first number 1.5e3",
			"2 comment // b"}},
		{"script", "/* a\n*/ `b${'`'}`/2", []string{"2:3 first text `b${'`'}`", "2:12 op /", "2:13 number 2",
			"1 alone comment /* a\n*/"}},
		{"script", "return /[/]'/g", []string{"1:0 first word return", "1:7 text /[/]'/g"}},
		{"rust", "'a br##\"b\"#\"## '\\''", []string{"1:0 first op '", "1:1 word a", "1:3 text br##\"b\"#\"##",
			"1:15 text '\\''"}},
		{"rust", "/* a /* b */ */ c", []string{"1:16 first word c", "1 alone comment /* a /* b */ */"}},
		{"ruby", "@@a? <<~B\n  c\n  B\n%w[d]", []string{"1:0 first word @@a?", "1:5 text <<~B", "2:0 text   c\n  B",
			"4:0 first text %w[d]"}},
		{"php", "a <?php b # c ?> d <?= 1", []string{"1:8 first word b", "1:23 first number 1", "1 comment # c "}},
		{"kotlin", "\ufeff`a b`(\"c\"", []string{"1:0 first word `a b`", "1:5 op (", "1:6 text \"c\""}},
		{"sharp", "#!a\nb $\"{c(\"d\")}\"", []string{"2:0 first word b", "2:2 text $\"{c(\"d\")}\""}},
		{"sql", "'it''s' 'a\nb' 'c", []string{"1:0 first text 'it''s'", "1:8 text 'a\nb'", "2:3 op '", "2:4 word c"}},
	}
	all := dialects()
	for _, test := range tests {
		if diff := cmp.Diff(test.want, shown(new(lex.Reader).Read(all[test.dialect], test.text))); diff != "" {
			t.Errorf("%s %q: tokens differ (-want +got):\n%s", test.dialect, test.text, diff)
		}
	}
}

// A preprocessor line is a comment, and tokens are under its conditions.
func TestUnder(t *testing.T) {
	t.Parallel()
	var reader lex.Reader
	tokens, comments := reader.Read(dialects()["sharp"],
		"a\n#if B\nc\n# if D // why\ne\n# endif\nf\n#if false\ng\n#endif\n#else\nh\n#endif\ni")
	if n := len(comments); n != 7 {
		t.Errorf("%d comments", n)
	}
	var got []string
	for i := range tokens {
		c := reader.Under(i)
		got = append(got, fmt.Sprintf("%s %d %d %s", tokens[i].S, c.Deep, c.Line, c.S))
	}
	want := []string{"a 0 0 ", "c 1 2 #if B", "e 2 4 # if D", "f 1 2 #if B", "h 1 2 #if B", "i 0 0 "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
	reader.Read(dialects()["sharp"], "a")
	if c := reader.Under(0); c != (lex.Condition{}) {
		t.Errorf("the next text stands under %v", c)
	}
}

// Strings in different quotes have the same hash, which differs from that of a name.
func TestMeaning(t *testing.T) {
	t.Parallel()
	tokens, _ := new(lex.Reader).Read(dialects()["script"], "a 'a' \"a\" `a` 'b'")
	var got []uint32
	for i := range tokens {
		got = append(got, tokens[i].Meaning())
	}
	a := lex.TextHash("a")
	if diff := cmp.Diff([]uint32{lex.Hash("a"), a, a, a, lex.TextHash("b")}, got); diff != "" {
		t.Errorf("hashes differ (-want +got):\n%s", diff)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(got))); len(distinct) != 3 {
		t.Errorf("%d hashes of three meanings", len(distinct))
	}
}

func TestUnquote(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{`"a"`: "a", `f'''a"b'''`: `a"b`, `""""""`: "", "/a/": "a", `r"a"`: "a",
		`"`: "", "a": "a"} {
		if got := lex.Unquote(s); got != want {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
}

// FuzzTokens reads any text under all rules: tokens and comments are parts of it in order and have the
// right positions, Blank keeps lines and length, and what a reader read before makes no difference.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{"`${`", "<<~A\n<<-B\nA\n", "<<<'X'\n", "r###\"", "'\\", "%w(", "/[/]", "f'{", "\"\"\"",
		"$@\"", "=begin\n", "#[", "@@", "<?php ?>", "\r\n\r", "\ufeffa\n#!", "#if a\n{\n#else\n#endif", "'a''"} {
		f.Add(s)
	}
	all := dialects()
	names := slices.Sorted(maps.Keys(all))
	f.Fuzz(func(t *testing.T, text string) {
		var used lex.Reader
		for _, name := range names {
			rules := all[name]
			tokens, comments := new(lex.Reader).Read(rules, text)
			if diff := cmp.Diff(shown(tokens, comments), shown(used.Read(rules, text))); diff != "" {
				t.Fatalf("%s: a reader that read other texts before reads another way (-new +used):\n%s", name, diff)
			}
			end := 0
			for i := range tokens {
				from := int(tokens[i].Off)
				if from < end || !strings.HasPrefix(text[from:], tokens[i].S) || tokens[i].S == "" {
					t.Fatalf("%s: token %q at %d, after one that ends at %d", name, tokens[i].S, from, end)
				}
				end = from + len(tokens[i].S)
				atPlace(t, text, &tokens[i])
			}
			end = 0
			for _, c := range comments {
				if int(c.Off) < end || !strings.HasPrefix(text[c.Off:], c.S) || int(c.Line) != 1+strings.Count(text[:c.Off], "\n") {
					t.Fatalf("%s: comment %q at %d in line %d, after one that ends at %d", name, c.S, c.Off, c.Line, end)
				}
				end = int(c.Off) + len(c.S)
			}
			for _, comments := range []bool{false, true} {
				if blank := lex.Blank(rules, text, comments); len(blank) != len(text) ||
					strings.Count(blank, "\n") != strings.Count(text, "\n") {
					t.Fatalf("%s: %q became %q", name, text, blank)
				}
			}
		}
	})
}

// atPlace checks the line and the column of a token.
func atPlace(t *testing.T, text string, token *lex.Token) {
	t.Helper()
	before := strings.TrimPrefix(text[:token.Off], "\ufeff")
	line, col := 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')-1
	if int(token.Line) != line || int(token.Col) != col {
		t.Fatalf("token %q in %d:%d, not %d:%d", token.S, token.Line, token.Col, line, col)
	}
}
