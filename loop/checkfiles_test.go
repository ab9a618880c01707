package loop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// calcTest is a test file in JavaScript that checks only format.
const calcTest = "import test from 'node:test';\nimport assert from 'node:assert/strict';\n" +
	"test('add', () => { assert.equal(add(2, 5), 7); });\ntest('mul', () => { assert.equal(mul(2, 5), 10); });\n"

// fixes makes the failing test pass, and writes further files.
func fixes(files ...string) func(w *turn) error {
	return func(w *turn) error {
		for i := 0; i < len(files); i += 2 {
			if err := w.write(files[i], files[i+1]); err != nil {
				return err
			}
		}
		return w.write("tests/b", "pass")
	}
}

// written are checks that write files, and what an agent does with them.
var written = map[string]struct {
	// before are commands of the check before its tests, existing files of the workspace.
	before   string
	existing []string
	turn     func(w *turn) error
	// found is in a regression; empty: the loop completes, with these artifacts.
	found     string
	artifacts []string
	sealed    bool
}{
	"coverage report": {
		before: `mkdir -p coverage/src; echo "/* eslint-disable */" > coverage/sorter.js; date +%N > coverage/src/a.js.html
ls src > coverage/index.html 2>&1; echo "/* eslint-disable */" > "coverage/src/page$(ls tests | wc -l).js"`,
		turn:      fixes("src/new.js", "export const a = 1;\n", "coverage/sorter.js", "/* eslint-disable */\n"),
		artifacts: []string{"src", "src/new.js", "tests/b"},
	},
	"profile that is tracked": {
		before:    `echo "mode: set $$" > c.out; echo run $$ >> logs/test.log`,
		existing:  []string{"c.out", "mode: set 1\n", "logs/test.log", "\n"},
		turn:      fixes(),
		artifacts: []string{"tests/b"},
	},
	"caches and lock files": {
		before: `mkdir -p .vite/deps .turbo; date +%N > .vite/deps/_metadata.json; date +%N > .turbo/run.log
echo "# lock $(ls tests | wc -l)" > yarn.lock; date +%N > result-$$.json`,
		turn:      fixes(),
		artifacts: []string{"tests/b"},
	},
	"formatter": {
		before:    `sed 's/[ ]*$//' calc.test.js > /tmp/fmt$$; cat /tmp/fmt$$ > calc.test.js; rm /tmp/fmt$$`,
		existing:  []string{"calc.test.js", strings.ReplaceAll(calcTest, ";\n", ";   \n")},
		turn:      fixes(),
		artifacts: []string{"tests/b"},
	},
	"fixture that each run writes": {
		before: `echo "{\"at\": $$}" > tests_data/fixtures/state.json
date +%N > tests_data/__snapshots__/a.snap`,
		existing:  []string{"tests_data/fixtures/state.json", "{}", "tests_data/__snapshots__/a.snap", "0"},
		turn:      fixes(),
		artifacts: []string{"tests/b"},
	},
	"generated code": {
		before: `mkdir -p src/gen; for f in tests/*; do
echo "export const $(basename $f) = $$; // nolint"; done > src/gen/api.js`,
		existing:  []string{"src/a.js", "export const x = 1;\n"},
		turn:      fixes("src/gen/api.js", "export const a = 1; // nolint\n"),
		artifacts: []string{"tests/b"},
	},
	"work in a folder of the check": {
		before:    `mkdir -p reports; date +%N > reports/run`,
		turn:      fixes("reports/summary.md", "All pass.\n"),
		artifacts: []string{"reports", "reports/summary.md", "tests/b"},
	},
	"test that the check formats is skipped": {
		before:   `sed 's/[ ]*$//' calc.test.js > /tmp/fmt$$; cat /tmp/fmt$$ > calc.test.js; rm /tmp/fmt$$`,
		existing: []string{"calc.test.js", strings.ReplaceAll(calcTest, ";\n", ";   \n")},
		turn:     fixes("calc.test.js", strings.Replace(calcTest, "test('mul'", "test.skip('mul'", 1)),
		found:    "calc.test.js",
	},
	"test that the check touches is removed": {
		before:   `touch calc.test.js`,
		existing: []string{"calc.test.js", calcTest},
		turn:     fixes("calc.test.js", calcTest[:strings.Index(calcTest, "test('mul'")]),
		found:    "calc.test.js",
	},
	"setting that the check makes once": {
		before: `[ -f .eslintrc.json ] || echo '{"rules": {"no-undef": "error"}}' > .eslintrc.json
mkdir -p out; date > out/x`,
		turn: fixes(".eslintrc.json", `{"rules": {"no-undef": "off"}}`, "out/b.test.js",
			"test.skip('b', () => {});\n"),
		artifacts: []string{".eslintrc.json", "tests/b"},
	},
	"result hidden in a report": {
		before: `mkdir -p coverage; date > coverage/index.html; [ -f coverage/forced ] && { echo "1..2"; echo "ok 1 - a"
echo "ok 2 - b"; exit 0; }`,
		turn:   func(w *turn) error { return w.write("coverage/forced", "yes") },
		found:  "coverage/forced",
		sealed: true,
	},
}

// TestFilesOfTheCheck: what the check writes is not the agent's work, and no hiding place.
func TestFilesOfTheCheck(t *testing.T) {
	t.Parallel()
	for what, c := range written {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.turn)
			for i := 0; i < len(c.existing); i += 2 {
				b.put(c.existing[i], c.existing[i+1])
			}
			b.launch(func(cfg *config.Config) {
				cfg.Until, cfg.MaxIterations = c.before+"\n"+checkTAP, 1
				if !c.sealed {
					cfg.Sealed = config.SealOff
				}
			})
			l := b.work()
			out := b.outcomes()[1]
			if c.found != "" {
				named := func(file string) bool { return strings.Contains(file, c.found) }
				if len(out.Regressions) == 0 || !slices.ContainsFunc(out.Regressions[0].Files, named) {
					t.Errorf("%q not found: %s, %+v, %+v", c.found, show(l), out.Regressions, out.Findings)
				}
				return
			}
			if l.Status != record.Completed || len(out.Regressions) != 0 || !slices.Equal(out.Artifacts, c.artifacts) {
				t.Errorf("artifacts %q, regressions %+v, findings %+v, %s", out.Artifacts, out.Regressions, out.Findings,
					show(l))
			}
			if strings.Contains(c.before, "coverage") && b.read("coverage/index.html") == "" {
				t.Error("the report of the check was removed")
			}
		})
	}
}
