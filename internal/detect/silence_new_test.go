package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// Suppressing all warnings, or excluding code from coverage, blocks in new code, too.
func TestSilenceInNewCode(t *testing.T) {
	t.Parallel()
	const act, warn = "act", "warn"
	for _, test := range []struct{ path, old, added, want string }{
		{"src/a.py", "X = 1\n", "\n\ndef g(n):  # pragma: no cover\n    return 2 * n\n", act},
		{"src/a.py", "X = 1\n", "\n\nif __name__ == \"__main__\":  # pragma: no cover\n    run()\n", warn},
		{"src/a.py", "X = 1\n", "\n\nclass B:\n    def g(self):\n        raise NotImplementedError  # pragma: no cover\n",
			warn},
		{"src/a.py", "X = 1\n", "\nif TYPE_CHECKING:  # pragma: no cover\n    import typing\n", warn},
		{"src/a.py", "X = 1\n", "\nif typing.TYPE_CHECKING:\n    import ssl  # pragma: no cover\n", warn},
		{"tests/test_a.py", "X = 1\n", "\n\ndef helper(n):  # pragma: no cover\n    return 2 * n\n", warn},
		{"src/a.py", "X = 1\n", "\n\ndef g(n):  # noqa\n    return 2 * n\n", act},
		{"src/a.py", "X = 1\n", "\n\ndef g(n):  # noqa: C901\n    return 2 * n\n", warn},
		{"a.go", "package a\n", "\n//nolint\nfunc G(n int) int {\n\treturn 2 * n\n}\n", act},
		{"src/a.ts", "const x = 1\n", "\nexport function g(n: K) {\n  switch (n) {\n    /* c8 ignore next 2 */\n" +
			"    default:\n      throw new Error('unreachable')\n  }\n}\n", warn},
		{"src/A.cs", "class A {\n}\n", "\nclass B {\n    [ExcludeFromCodeCoverage]\n    int G(int n) => 2 * n;\n}\n", act},
		{"src/A.cs", "class A {\n}\n", "\nclass B {\n    [ExcludeFromCodeCoverage(Justification = \"for the designer\")]\n" +
			"    int G(int n) => 2 * n;\n}\n", warn},
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

// Of equal suppressions the finding has the line of the new one.
func TestSilenceBesideOthers(t *testing.T) {
	t.Parallel()
	const was = "class Unset:\n    pass  # pragma: no cover\n"
	now := "def g(n):  # pragma: no cover\n    return n\n\n\n" + was
	report := find(t, &detect.Input{Changes: edited("src/a.py", was, now)})
	if len(report.Findings) != 1 || report.Findings[0].Line != 1 {
		t.Errorf("%+v", report.Findings)
	}
}
