package detect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect"
)

const (
	thrownSharp = "class A {\n  int F(Body body, string text) {\n    if (body == null) throw new E(nameof(body));\n" +
		"    G(text);\n    H(body.Size, text.Length);\n    return body.Size;\n  }\n}\n"
	thrown      = "if (body == null) throw new E(nameof(body));"
	keptSharp   = "class A {\n  B b;\n  A(B other) {\n    b = other ?? throw new E(nameof(other));\n    G(b);\n  }\n}\n"
	foundKotlin = "fun f(tag: Int): View {\n  val view = context.findView(tag)\n  if (view == null) {\n" +
		"    throw NotFound(tag)\n  }\n  return view\n}\n"
	readKotlin = "fun booleanOr(map: Map?, key: String, default: Boolean): Boolean = if (map?.has(key) == true) " +
		"map.get(key) else default\n"
)

// Rewritten code does not block, removed code does.
func TestRewrites(t *testing.T) {
	t.Parallel()
	edit := func(path, old, from, to string) (was, now map[string]string) {
		if !strings.Contains(old, from) {
			t.Fatalf("%q is not in %q", from, old)
		}
		return map[string]string{path: old}, map[string]string{path: strings.Replace(old, from, to, 1)}
	}
	type files = map[string]string
	tests := []struct {
		name string
		make func() (was, now files)
		want []string
	}{
		{"nothing is returned where something was thrown", func() (files, files) {
			return edit("A.cs", thrownSharp, thrown, "if (body == null) return null;")
		}, []string{"act guard-removed", "act throw-became-return"}},
		{"nothing is returned for another reason", func() (files, files) {
			return edit("A.cs", thrownSharp, thrown, "if (text.Length == 0) return null;")
		}, []string{"warn guard-removed"}},
		{"a value or an error became the value", func() (files, files) {
			return edit("A.cs", keptSharp, " ?? throw new E(nameof(other))", "")
		}, []string{"act guard-removed"}},
		{"a check became a value or an error", func() (files, files) {
			return edit("a.kt", foundKotlin, "\n  if (view == null) {\n    throw NotFound(tag)\n  }\n",
				"\n    ?: throw NotFound(tag)\n")
		}, nil},
		{"a check of one of two that are alike", func() (files, files) {
			body := " {\n    if (other == null) throw new E();\n    Other = other;\n  }\n"
			return edit("A.cs", "class A {\n  A(B other)"+body+"  A(B other, C queue) : base(queue)"+body+"}\n",
				"    if (other == null) throw new E();\n", "")
		}, []string{"act guard-removed"}},
		{"a function became an extension", func() (files, files) {
			return files{"a.kt": readKotlin + "fun use(map: Map?) = booleanOr(map, \"a\", true)\n", "b.kt": "fun g() = 1\n"},
				files{"a.kt": "fun use(map: Map?) = map.booleanOr(\"a\", true)\n",
					"b.kt": "fun g() = 1\n" + strings.Replace(readKotlin, "booleanOr(map: Map?, ",
						"Map<String, List<Int>?>?.booleanOr(", 1)}
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report := find(t, &detect.Input{Changes: changes(test.make())})
			if diff := cmp.Diff(test.want, patternsOf(report)); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A function that asserts only in tests inside it has no assertion of its own.
func TestHollowWithoutAssertions(t *testing.T) {
	t.Parallel()
	const old = "function all() { it('x', () => { expect(f()).toBe(1); }); }\n"
	report := find(t, &detect.Input{Changes: edited("a.test.js", old, "function all() { }\n")})
	if diff := cmp.Diff([]string{"act test-removed"}, patternsOf(report)); diff != "" {
		t.Errorf("findings differ (-want +got):\n%s", diff)
	}
}
