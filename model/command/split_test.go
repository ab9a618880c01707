package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model/command"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want []string
		err  string
	}{
		{line: "", want: nil},
		{line: " \t\n ", want: nil},
		{line: "cat", want: []string{"cat"}},
		{line: "  llm   -m small ", want: []string{"llm", "-m", "small"}},
		{line: `a "b c" 'd e'`, want: []string{"a", "b c", "d e"}},
		{line: `a"b c"'d e'f`, want: []string{"ab cd ef"}},
		{line: `a "" ''`, want: []string{"a", "", ""}},
		{line: `a\ b \"c\" \\`, want: []string{"a b", `"c"`, `\`}},
		{line: `"a\"b\\c\$d\n"`, want: []string{`a"b\c$d\n`}},
		{line: `'a\b"c'`, want: []string{`a\b"c`}},
		{line: "$HOME *.txt", want: []string{"$HOME", "*.txt"}},
		{line: `"a | b" 'c > d' \&`, want: []string{"a | b", "c > d", "&"}},
		{line: "\"a\nb\"", want: []string{"a\nb"}},
		{line: "grün 日本", want: []string{"grün", "日本"}},
		{line: "a | b", err: "column 3: '|' needs a shell"},
		{line: "a && b", err: "column 3: '&'"},
		{line: "a > b", err: "column 3: '>'"},
		{line: "a `b`", err: "column 3: '`'"},
		{line: "a 'b", err: "column 3: single quote without its end"},
		{line: `a "b`, err: "column 3: double quote without its end"},
		{line: `a "b\`, err: "column 3: double quote without its end"},
		{line: `a \`, err: "column 3: backslash at the end"},
	}
	for _, tt := range tests {
		got, err := command.Split(tt.line)
		switch {
		case tt.err == "" && err != nil:
			t.Errorf("Split(%q): %v", tt.line, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("Split(%q): error = %v, want %q", tt.line, err, tt.err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Split(%q): %s", tt.line, diff)
		}
	}
}

// FuzzSplit checks that quoted words come back as they were, whatever they
// hold, and that no line makes it panic or lose an unquoted word.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"", "a b", `a "b c" 'd'`, `\`, `"`, "'", "a|b", `"\$"`, "a\xff\x00b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		quoted := "x '" + strings.ReplaceAll(line, "'", `'\''`) + "'"
		words, err := command.Split(quoted)
		if err != nil || len(words) != 2 || words[1] != line {
			t.Errorf("Split(%q) = %q, %v", quoted, words, err)
		}
		words, err = command.Split(line)
		if err == nil && !strings.ContainsAny(line, `'"\`) {
			want := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\r", r) })
			if strings.Join(words, "\x1f") != strings.Join(want, "\x1f") {
				t.Errorf("Split(%q) = %q, want %q", line, words, want)
			}
		}
	})
}
