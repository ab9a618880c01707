package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// A suppressed warning, or code excluded from coverage, blocks in new code, too, unless
// it has a reason or is customary there.
func TestSilenceInNewCode(t *testing.T) {
	t.Parallel()
	const act, warn = "act", "warn"
	for _, test := range []struct{ path, old, added, want string }{
		{"src/a.py", "X = 1\n", "\n\ndef g(n):  # pragma: no cover\n    return 2 * n\n", act},
		{"src/a.py", "X = 1\n", "\n\nif __name__ == \"__main__\":  # pragma: no cover\n    run()\n", warn},
		{"src/a.py", "X = 1\n", "\n\nclass B:\n    def g(self):\n        raise NotImplementedError  # pragma: no cover\n",
			warn},
		{"src/a.py", "X = 1\n", "\n\ndef g(n):  # noqa: C901\n    return 2 * n\n", act},
		{"src/a.py", "X = 1\n", "\nfrom .b import h  # noqa: F401\n", warn},
		{"src/a.py", "X = 1\n", "\ntry:\n    import fast\nexcept ImportError:\n" +
			"    fast = None  # type: ignore[assignment]\n", warn},
		{"src/a.py", "X = 1\n", "\n\ndef g(n):  # type: ignore[no-untyped-def]\n    return 2 * n\n", act},
		{"a.go", "package a\n", "\n//nolint:gocyclo\nfunc G(n int) int {\n\treturn 2 * n\n}\n", act},
		{"a.go", "package a\n", "\n// G is twice of what it is given.\n//\n//nolint:gocyclo\nfunc G(n int) int {\n" +
			"\treturn 2 * n\n}\n", act},
		{"a.go", "package a\n", "\nconst long = \"a\" //nolint:lll\n", warn},
		{"src/a.js", "const x = 1\n", "\n// eslint-disable-next-line complexity\nexport function g (n) { return 2 * n }\n",
			act},
		{"src/a.js", "const x = 1\n", "\n/** Twice of what it is given. */\n// eslint-disable-next-line complexity\n" +
			"export function g (n) { return 2 * n }\n", act},
		{"src/a.js", "const x = 1\n", "\n// eslint-disable-next-line complexity -- a table reads worse\n" +
			"export function g (n) { return 2 * n }\n", warn},
		{"src/a.ts", "const x = 1\n", "\nexport function g(n: K) {\n  switch (n) {\n    /* c8 ignore next 2 */\n" +
			"    default:\n      throw new Error('unreachable')\n  }\n}\n", warn},
		{"src/A.java", "class A {\n}\n", "\nclass B {\n    @SuppressWarnings(\"unchecked\")\n    <T> T of(Object o) {\n" +
			"        return (T) o;\n    }\n}\n", warn},
		{"src/A.java", "class A {\n}\n", "\nclass B {\n    @SuppressWarnings(\"PMD.NPathComplexity\")\n" +
			"    int of(int o) {\n        return 2 * o;\n    }\n}\n", act},
		{"src/A.cs", "class A {\n}\n", "\nclass B {\n    [ExcludeFromCodeCoverage]\n    int G(int n) => 2 * n;\n}\n", act},
		{"src/A.cs", "class A {\n}\n", "\nclass B {\n    [ExcludeFromCodeCoverage(Justification = \"for the designer\")]\n" +
			"    int G(int n) => 2 * n;\n}\n", warn},
		{"src/a.rs", "const X: u32 = 1;\n", "\n#[allow(clippy::cast_possible_truncation)]\nfn g(n: u64) -> u32 {\n" +
			"    n as u32\n}\n", act},
		{"src/a.rs", "const X: u32 = 1;\n", "\n#[allow(clippy::cast_possible_truncation)] // a feed is short\n" +
			"fn g(n: u64) -> u32 {\n    n as u32\n}\n", warn},
		{"lib/a.rb", "X = 1\n", "\n# rubocop:disable Metrics/AbcSize\ndef g(n)\n  2 * n\nend\n", act},
		{"src/A.php", "<?php\n", "\n/** @codeCoverageIgnore */\nfunction g($n) {\n    return 2 * $n;\n}\n", act},
	} {
		for _, old := range []string{test.old, ""} { // in a new file, too
			now := test.old + test.added
			change := changes(map[string]string{test.path: old}, map[string]string{test.path: now})
			if old == "" {
				change = changes(nil, map[string]string{test.path: now})
			}
			report := find(t, &detect.Input{Changes: change})
			got := strings.Fields(strings.Join(patternsOf(report), " ") + " nothing")[0]
			if got != test.want {
				t.Errorf("%s (new file: %t), %q: %v, want to %s", test.path, old == "", test.added, patternsOf(report), test.want)
			}
		}
	}
}
