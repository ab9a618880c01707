package detect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

const (
	component = "<template><p>{{ x }}</p></template>\n<script setup lang=\"ts\">\nexport function go(x: string) {\n" +
		"  if (!x) throw new Error(\"x\");\n  return x;\n}\n</script>\n<style>p { color: red }</style>\n"
	cellsBefore = `{"cells": [
 {"cell_type": "markdown",
  "source": ["if it is below, raise it\n"]},
 {"cell_type": "code", "outputs": [{"text": ["if x"]}],
  "source": [
   "%matplotlib inline\n",
   "def go(x):\n",
   "    if x < 0:\n",
   "        raise ValueError('x')\n",
   "    return x"
  ]}
], "nbformat": 4}
`
	program = "#!/usr/bin/env python3\nimport os\n\ndef go(x):\n    if x is None:\n        raise ValueError('x')\n" +
		"    return x\n"
)

// TestEmbedded: code inside other formats is read with its line numbers, and files that
// are not read as code are listed.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	guard := func(text string, parts ...string) string {
		for _, p := range parts {
			text = strings.Replace(text, p, "", 1)
		}
		return text
	}
	test := "def test_a():\n    assert f(2) == 4\n"
	for _, c := range []struct{ path, old, now, want string }{
		{"App.vue", component, guard(component, "  if (!x) throw new Error(\"x\");\n"), "guard-removed App.vue:4"},
		{"App.svelte", component, strings.Replace(component, "red", "blue", 1), ""},
		{"a.ipynb", cellsBefore, guard(cellsBefore, `   "    if x < 0:\n",`+"\n", `   "        raise ValueError('x')\n",`+
			"\n"), "guard-removed a.ipynb:8"},
		{"a.ipynb", cellsBefore, strings.Replace(cellsBefore, "is below", "is above", 1), ""},
		{"a.ipynb", cellsBefore, "{", ""},
		{"tool", program, guard(program, "    if x is None:\n        raise ValueError('x')\n"), "guard-removed tool:5"},
		{"runtests", "#!/bin/sh\nmake test\n", "#!/bin/sh\nmake test || true\n", "exit-ignored runtests:2"},
		{"LICENSE", "if x: raise\n", "\n", ""},
		{"test_a.py", test, "\uFEFF" + test, ""},
		{"a.cpp", "int f();\n", "int g();\n", "not read as code, because their languages are not supported: a.cpp"},
	} {
		report, err := detect.Run(t.Context(), &detect.Input{Changes: edited(c.path, c.old, c.now)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range report.Findings {
			got = append(got, fmt.Sprintf("%s %s:%d", f.Pattern, f.File, f.Line))
		}
		for _, s := range report.Skipped {
			got = append(got, s.File+s.Why)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
}

func FuzzEmbedded(f *testing.F) {
	f.Add("a.ipynb", cellsBefore)
	f.Add("A.vue", component)
	f.Add("tool", program)
	f.Fuzz(func(t *testing.T, path, text string) {
		if _, err := detect.Run(t.Context(), &detect.Input{Changes: edited(path, text, strings.ToUpper(text))}); err != nil {
			t.Fatal(err)
		}
	})
}
