package mutate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/verify/mutate"
)

func all(int) bool { return true }

// changes returns what a file's mutations make of their lines.
func changes(path, src string) []string {
	var list []string
	for _, m := range mutate.Find(path, src, all, 100) {
		list = append(list, m.After)
	}
	return list
}

// Each language has the operators that the tests of changed lines are tried with.
func TestOperators(t *testing.T) {
	for _, tt := range []struct {
		path, src string
		want      []string
	}{
		{"a.go", `package a

func add(a, b int) (int, error) {
	if a > b && b != 0 {
		return a - b, nil
	}
	return a + 1, nil
}
`,
			[]string{"func add(a, b int) (int, error) { if true { return *new(int), *new(error) };",
				"if a <= b && b != 0 {",
				"if !(a > b && b != 0) {", "if a > b && b == 0 {", "if a > b || b != 0 {", "return a + b, nil",
				"return a - 1, nil",
				"if a > b && b != 1 {", "return a + 2, nil"}},
		{"a.go", `package a

func f(p *T) {
	if x := g(*p); x {
		p.n++
	}
}
`,
			[]string{"func f(p *T) { if true { return };", "if x := g(*p); !(x) {", "p.n--"}},
		{"a.py", `def add(a, b):
    """Adds."""
    if not a or b == 'x':
        log.info(a)
        return True
    return a * 2.5
`,
			[]string{"return None", "return None", "if not (not a or b == 'x'):",
				"if not a or b != 'x':", "if not a and b == 'x':",
				"pass", "return a / 2.5", "return False", "return a * 0.0", "if not a or b == '':"}},
		{"a.js", `import x from 'y';
export function add(a, b) {
  if (!a) {
    store.set(a, 'k');
  }
  return a
    .plus(b);
}
`,
			[]string{"return undefined;", "if (!(!a)) {", "if (a) {", "void 0;", "store.set(a, '');"}},
		{"a.ts", "export const at = (m: Map<string, number>, k: string): number => m.size < 3 ? m.get(k)! : -1;\n",
			[]string{"export const at = (m: Map<string, number>, k: string): number => m.size >= 3 ? m.get(k)! : -1;",
				"export const at = (m: Map<string, number>, k: string): number => m.size < 4 ? m.get(k)! : -1;",
				"export const at = (m: Map<string, number>, k: string): number => m.size < 3 ? m.get(k)! : -2;"}},
		{"a.rb", `def add(a, b)
  if a > b
    return a
  end
  a + b
end
`,
			[]string{"return nil", "if !(a > b)", "if a <= b", "a - b"}},
		{"a.rs", `pub fn add(a: i32, b: &i32) -> i32 {
    if let Some(x) = f(*b) { return x; }
    a + *b
}
`, nil},
		{"A.java", `class A {
  int add(int a, int b) {
    if (a >= b) { return a / b; }
    return a;
  }
}
`,
			[]string{"if (!(a >= b)) { return a / b; }", "if (a < b) { return a / b; }",
				"if (a >= b) { return a * b; }"}},
		{"a.php", `<?php
function add($a, $b) {
  return $a + $b;
}
`, []string{"return null;", "return $a - $b;"}},
		{"a_test.go", `package a

func TestA(t *testing.T) { if 1 != 2 { t.Fatal() } }
`, nil},
		{"README.md", "1 + 1 == 2\n", nil},
	} {
		got := changes(tt.path, tt.src)
		for _, w := range tt.want {
			i := slices.Index(got, w)
			if i < 0 {
				t.Errorf("%s: no change to %q", tt.path, w)
				continue
			}
			got = slices.Delete(got, i, i+1)
		}
		if len(got) > 0 && tt.want != nil || strings.HasSuffix(tt.path, "_test.go") && len(got) > 0 {
			t.Errorf("%s: further changes %q", tt.path, got)
		}
	}
}

// Functions take turns, so that the first changes cover all of them, and only selected lines change.
func TestFunctionsTakeTurns(t *testing.T) {
	src := `def a(x):
    return x + 1

def b(x):
    return x + 2

def c(x):
    return x + 3
`
	var lines []int
	for _, m := range mutate.Find("a.py", src, func(line int) bool { return line > 3 }, 3) {
		lines = append(lines, m.Line)
	}
	if !slices.Equal(lines, []int{5, 8, 5}) {
		t.Errorf("lines %v, want 5, 8 and 5", lines)
	}
}

// A change stays in its line or the statement that begins there, and its text is what was announced.
func FuzzFind(f *testing.F) {
	f.Add("a.go", `package a
func f() int { if x := 1; x > 0 { return 1 }; return 2 }
`)
	f.Add("a.py", `def f(a):
  if a and (b == 1:
    return [a,
 1]
`)
	f.Add("a.js", "if (a { return } else if (b) c(); return\n'use strict'; x = `${a + b}`")
	f.Add("a.rb", `return a if b
unless c
`)
	f.Fuzz(func(t *testing.T, path, src string) {
		for _, m := range mutate.Find(path, src, all, 1000) {
			if now := m.Apply(src); now == src || m.Line < 1 || m.Line > strings.Count(src, "\n")+1 {
				t.Errorf("line %d: %q for %q changes nothing or lies outside", m.Line, m.After, m.Before)
			}
		}
	})
}
