package syntax_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect/planted"
	"github.com/perdure/perdure/internal/detect/syntax"
)

// FuzzRead reads any text in every language: it must not fail, lines must be those of the text, Blank
// keeps lines and length, and what a reader read before makes no difference.
func FuzzRead(f *testing.F) {
	edits, err := planted.Edits()
	if err != nil {
		f.Fatal(err)
	}
	for i := 0; i < len(edits); i += 8 { // in all, they would take a minute under the race detector
		for _, text := range edits[i].New {
			f.Add(text)
		}
	}
	for _, s := range []string{"`${`", "<<~A\n<<-B\nA\n", "<<<'X'\n", "r###\"", "'\\", "%w(", "/[/]", "f'{", "\"\"\"",
		"fun a() = try { b() } catch (e: E) {", "$@\"", "def a = ", "it.each`", "=begin\n", "#[", "@", "<?php ?>", "\r\n\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		var used syntax.Reader
		for _, path := range []string{"a_test.go", "a.go", "a.js", "a.test.tsx", "a.py", "tests/test_a.py", "ATest.java",
			"ATest.kt", "ATests.cs", "a.rs", "a_spec.rb", "a.rb", "ATest.php"} {
			lang := syntax.LanguageOf(path)
			m := syntax.Read(lang, path, text)
			if again := used.Read(lang, path, text); !reflect.DeepEqual(m, again) {
				t.Fatalf("%s: a reader that read other texts before makes another model", path)
			}
			for _, test := range m.Tests {
				if test.Line < 1 || test.Line > lines || test.SkipLine > lines {
					t.Fatalf("%s: test %q in line %d of %d", path, test.Name, test.Line, lines)
				}
				for i := range test.Asserts {
					if l := test.Asserts[i].Line; l < 1 || l > lines {
						t.Fatalf("%s: assertion in line %d of %d", path, l, lines)
					}
				}
			}
			for _, fn := range m.Funcs {
				if fn.Line < 1 || fn.Line > lines || fn.Lines < 1 {
					t.Fatalf("%s: function %q in line %d of %d", path, fn.Name, fn.Line, lines)
				}
			}
			blank := syntax.Blank(lang, text, false)
			if len(blank) != len(text) || strings.Count(blank, "\n")+1 != lines {
				t.Fatalf("%s: %q became %q", path, text, blank)
			}
		}
	})
}
