package detect_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect"
)

func one(c detect.Change) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) { yield(c, nil) }
}

func edited(path, old, now string) iter.Seq2[detect.Change, error] {
	return changes(map[string]string{path: old}, map[string]string{path: now})
}

func patternsOf(report *detect.Report) []string {
	var all []string
	for _, f := range report.Findings {
		all = append(all, fmt.Sprintf("%s %s", f.Action, f.Pattern))
	}
	return all
}

const (
	skipOld = "def test_a():\n    assert f(2) == 4\n"
	skipNew = "import pytest\n\n@pytest.mark.skip\ndef test_a():\n    assert f(2) == 4\n"
)

// Edits similar to cheats warn, and the cheats next to them block.
func TestNeighboursWarn(t *testing.T) {
	t.Parallel()
	const two = "class A {\n  void f(String s) {\n    try {\n      URL u = new URL(s);\n      " +
		"u.open().use(false);\n" +
		"    } catch (MalformedURLException e) {\n" +
		"      throw Unchecked.of(e);\n    } catch (IOException e) {\n      throw Unchecked.of(e);\n    }\n  }\n}\n"
	const first = " catch (MalformedURLException e) {\n      throw Unchecked.of(e);\n    }"
	const second = " catch (IOException e) {\n      throw Unchecked.of(e);\n    }"
	loads := "def f(data):\n    return pickle.loads(data)\n"
	for _, test := range []struct{ name, path, old, now, want string }{
		{"one handler for two " +
			"errors", "A.java", two, strings.Replace(two, first, "", 1), "warn error-handling-removed"},
		{"no handler any more", "A.java", two, strings.Replace(strings.Replace(two, first, "", 1), second,
			" finally {\n    }", 1), "act error-handling-removed"},
		{"silenced and said why", "a.py", loads,
			strings.Replace(loads, "loads(data)", "loads(data)  # nosec: only our own "+
				"files", 1), "warn complaint-silenced"},
		{"silenced", "a.py", loads, strings.Replace(loads, "loads(data)", "loads(data)  # nosec", 1),
			"act complaint-silenced"},
		{"silenced with a word", "a.py", loads, strings.Replace(loads, "loads(data)", "loads(data)  # "+
			"nosec: fine", 1),
			"act complaint-silenced"},
	} {
		wantPatterns(t, test.name, edited(test.path, test.old, test.now), test.want)
	}
}

// wantPatterns checks the actions and patterns of a change.
func wantPatterns(t *testing.T, name string, changes iter.Seq2[detect.Change, error], want string) {
	t.Helper()
	if got := strings.Join(patternsOf(find(t, &detect.Input{Changes: changes})), ", "); got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// The effect of a finding depends on its tier, its confidence and the mode.
func TestModes(t *testing.T) {
	t.Parallel()
	guardOld := "def f(a):\n    if a < 0:\n        raise ValueError('a')\n    return g(a, 'x', 'y') + h(a)\n"
	guardNew := "def f(a):\n    return g(a, 'x', 'y') + h(a)\n"
	weakOld, weakNew := "def test_a():\n    assert f(22) == 44\n", "def test_a():\n    assert f(22) > 0\n"
	condNew := "import sys, pytest\n\n@pytest.mark.skipif(sys.platform == 'win32', reason='x')\ndef test_a():\n" +
		"    assert f(2) == 4\n"
	tests := []struct {
		name, path, old, now string
		want                 map[detect.Mode]string
	}{
		{"fact", "test_a.py", skipOld, skipNew, map[detect.Mode]string{
			detect.Off: "", detect.Minimal: "act skip-added", "": "act skip-added", detect.Standard: "act skip-added",
			detect.Aggressive: "act skip-added"}},
		{"sure sign", "a.py", guardOld, guardNew, map[detect.Mode]string{
			detect.Off: "", detect.Minimal: "warn guard-removed", detect.Standard: "act guard-removed",
			detect.Aggressive: "act guard-removed"}},
		{"unsure sign", "test_a.py", skipOld, condNew, map[detect.Mode]string{
			detect.Minimal: "warn skip-conditional", detect.Standard: "warn skip-conditional",
			detect.Aggressive: "act skip-conditional"}},
		{"hint", "test_a.py", weakOld, weakNew, map[detect.Mode]string{
			detect.Minimal: "tell assertion-weaker", detect.Standard: "tell assertion-weaker",
			detect.Aggressive: "warn assertion-weaker"}},
	}
	for _, test := range tests {
		for mode, want := range test.want {
			report := find(t, &detect.Input{Mode: mode, Changes: edited(test.path, test.old, test.now)})
			if got := strings.Join(patternsOf(report), ", "); got != want {
				t.Errorf("%s in mode %q: %s, want %s", test.name, mode, got, want)
			}
			verdict := map[string]detect.Verdict{"": detect.Allow, "act": detect.Block, "warn": detect.Warns,
				"tell": detect.Allow}[strings.Split(want, " ")[0]]
			if report.Verdict != verdict {
				t.Errorf("%s in mode %q: verdict %s, want %s", test.name, mode, report.Verdict, verdict)
			}
		}
	}
}

// A finding has its place and the line.
func TestFinding(t *testing.T) {
	t.Parallel()
	report := find(t, &detect.Input{Changes: edited("tests/test_a.py", skipOld, skipNew)})
	want := []detect.Finding{{
		Type: detect.TestSkipping, Tier: detect.Fact, Severity: detect.High, Pattern: "skip-added",
		File:    "tests/test_a.py",
		Line:    3,
		Subject: "test_a", Message: "test skipped", Evidence: "@pytest.mark.skip", Confidence: 0.95,
		Action: detect.Act, Diff: "@@ -1 +1,4 @@\n+import pytest\n+\n+@pytest.mark.skip\n def test_a():\n",
	}}
	if diff := cmp.Diff(want, report.Findings); diff != "" {
		t.Errorf("findings differ (-want +got):\n%s", diff)
	}
	for want, f := range map[string]detect.Finding{
		"test skipped: test_a (tests/test_a.py:3)": want[0],
		"m (a.py)":                      {Message: "m", File: "a.py", Subject: "a.py"},
		"f no longer calls g (a:1)":     {Message: "f no longer calls g", File: "a", Line: 1, Subject: "f"},
		"m":                             {Message: "m"},
		"m: f (a:1 in the old version)": {Message: "m", File: "a", Line: 1, Gone: true, Subject: "f"},
	} {
		if got := f.Summary(); got != want {
			t.Errorf("summary %q, want %q", got, want)
		}
	}
}

func TestNotAnalysed(t *testing.T) {
	t.Parallel()
	good := "def test_a():\n    assert f(2) == 4\n"
	version := func(text string) detect.Version { return detect.Version{Path: "test_a.py", Content: []byte(text)} }
	conflict := "<<<<<<< a\nx = 1\n=======\nx = 2\n>>>>>>> b\n" + good
	tests := []struct {
		name     string
		old, now detect.Version
		why      string
		want     []string
	}{
		{"binary", version(good), version("a\x00b"), "binary", []string{"act tests-unreadable"}},
		{"invalid UTF-8", version(good), version("a = '\xff'\n"), "not valid " +
			"UTF-8", []string{"act tests-unreadable"}},
		{"too large", version(good), detect.Version{Path: "test_a.py", Size: 100 << 20},
			"too large: 104857600 bytes, at most 4194304", []string{"act tests-unreadable"}},
		{"link", version(good), detect.Version{Path: "test_a.py", Kind: detect.Link}, "a symbolic link",
			[]string{"act tests-unreadable"}},
		{"nested repository", version(good), detect.Version{Path: "test_a.py", Kind: detect.Other},
			"not a regular file",
			[]string{"act tests-unreadable"}},
		{"minified", version(good), version(good + "x = '" + strings.Repeat("a", 30_000) + "'\n"), "minified",
			[]string{"act tests-unreadable"}},
		{"conflict", version(good), version(conflict), "has merge conflict " +
			"markers", []string{"act tests-unreadable"}},
		{"generated", detect.Version{}, version("# Code generated by x. DO NOT EDIT.\n" + good), "generated", nil},
		{"said to be generated", version(good), version("# Code generated by x. DO NOT EDIT.\n"), "",
			[]string{"act test-removed"}},
		{"vendored", detect.Version{}, detect.Version{Path: "vendor/a.go", Content: []byte("package a")},
			"a copy of another project's code", nil},
		{"binary before", version("a\x00b"), version(good), "baseline: binary", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report := find(t, &detect.Input{Changes: one(detect.Change{Old: test.old, New: test.now})})
			why := ""
			for _, s := range report.Skipped {
				why += s.Why
			}
			if why != test.why {
				t.Errorf("not analysed %q, want %q", why, test.why)
			}
			if diff := cmp.Diff(test.want, patternsOf(report)); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProtected(t *testing.T) {
	t.Parallel()
	c := detect.Change{
		Old:       detect.Version{Path: ".golangci.yml", Content: []byte("a: 1\n")},
		New:       detect.Version{Path: ".golangci.yml", Content: []byte("a: 2\n")},
		Protected: "decides what the linter says",
	}
	report := find(t, &detect.Input{Mode: detect.Minimal, Changes: one(c)})
	if diff := cmp.Diff([]string{"act protected-file"}, patternsOf(report)); diff != "" {
		t.Errorf("findings differ (-want +got):\n%s", diff)
	}
	c.New.Content = c.Old.Content
	if report := find(t, &detect.Input{Changes: one(c)}); len(report.Findings) != 0 {
		t.Errorf("an unchanged file: %v", report.Findings)
	}
}

func TestWaivers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := find(t, &detect.Input{Changes: edited("tests/test_a.py", skipOld, skipNew)}).Findings[0].Fingerprint()
	tests := []struct {
		name   string
		waiver detect.Waiver
		waived bool
	}{
		{"by pattern", detect.Waiver{Pattern: "skip-added", Path: "tests/**", Reason: "r"}, true},
		{"by alias", detect.Waiver{Pattern: "T002", Path: "tests/**", Reason: "r"}, true},
		{"all", detect.Waiver{Pattern: "*", Path: "**", Reason: "r"}, true},
		{"not expired", detect.Waiver{Pattern: "*", Path: "**", Reason: "r", Expires: now.Add(time.Second)}, true},
		{"expired", detect.Waiver{Pattern: "*", Path: "**", Reason: "r", Expires: now.Add(-time.Second)}, false},
		{"another pattern", detect.Waiver{Pattern: "test-removed", Path: "**", Reason: "r"}, false},
		{"another path", detect.Waiver{Pattern: "*", Path: "src/**", Reason: "r"}, false},
		{"no reason", detect.Waiver{Pattern: "*", Path: "**"}, false},
		{"by fingerprint", detect.Waiver{Fingerprint: id, Reason: "r"}, true},
		{"by fingerprint, " +
			"expired", detect.Waiver{Fingerprint: id, Reason: "r", Expires: now.Add(-time.Second)}, false},
		{"by fingerprint, without a reason", detect.Waiver{Fingerprint: id}, false},
		{"by fingerprint in another path", detect.Waiver{Fingerprint: id, Path: "src/**", Reason: "r"}, false},
		{"by fingerprint with its pattern", detect.Waiver{Fingerprint: id, Pattern: "T002", Reason: "r"}, true},
		{"by fingerprint with another pattern", detect.Waiver{Fingerprint: id, Pattern: "test-removed", Reason: "r"},
			false},
		{"another fingerprint", detect.Waiver{Fingerprint: "0123456789abcdef", Pattern: "*", Path: "**", Reason: "r"},
			false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report := find(t, &detect.Input{Changes: edited("tests/test_a.py", skipOld, skipNew),
				Waivers: []detect.Waiver{test.waiver}, Now: now})
			if got := len(report.Waived) == 1 && len(report.Findings) == 0 &&
				report.Verdict == detect.Allow; got != test.waived {
				t.Errorf("waived %t, want %t: %v", got, test.waived, report)
			}
		})
	}
	bad := detect.Waiver{Pattern: "No Such", Path: "[", Reason: " "}
	for _, want := range []string{`pattern: unknown pattern "No Such"`, `path: invalid glob "["`, "reason: "} {
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v, want %q", err, want)
		}
	}
	if err := (&detect.Waiver{Pattern: "T001", Path: "a/**", Reason: "obsolete"}).Check(); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk")
	_, err := detect.Run(context.Background(),
		&detect.Input{Changes: func(yield func(detect.Change, error) bool) { yield(detect.Change{}, broken) }})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the one of the changes", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := detect.Run(ctx, &detect.Input{Changes: edited("a.py", "a", "b")}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
	if _, err := detect.Run(context.Background(), &detect.Input{Mode: "strict"}); err == nil ||
		!strings.Contains(err.Error(), "off, minimal, standard or aggressive") {
		t.Errorf("error %v, want the modes", err)
	}
	var limit *detect.LimitError
	_, err = detect.Run(context.Background(), &detect.Input{
		Changes: changes(nil, map[string]string{"a.py": "a", "b.py": "b"}), Limits: detect.Limits{Files: 1},
	})
	if !errors.As(err, &limit) || limit.Max != 1 {
		t.Errorf("error %v, want the limit", err)
	}
}

// Facts stay when a report has more findings than its limit.
func TestManyFindings(t *testing.T) {
	t.Parallel()
	var old, now strings.Builder
	for i := range 50 {
		fmt.Fprintf(&old, "def test_%d():\n    assert f(%d) == %d\n    g(%d)\n\n", i, i+10, i*7, i*13)
		fmt.Fprintf(&now, "def test_%d():\n    assert f(%d) > %d\n    g(%d)\n\n", i, i+10, i*7, i*13)
	}
	old.WriteString("def test_z():\n    assert f('z') == 'zz'\n    h('last')\n")
	report := find(t, &detect.Input{Changes: edited("test_a.py", old.String(), now.String()),
		Limits: detect.Limits{Findings: 3}})
	if len(report.Findings) != 3 || report.Findings[0].Pattern != "test-removed" || report.Verdict != detect.Block {
		t.Errorf("%v", patternsOf(report))
	}
	if len(report.Skipped) != 1 || !strings.HasPrefix(report.Skipped[0].Why, "48 more findings") {
		t.Errorf("skipped: %v", report.Skipped)
	}
}

// The catalogue lists every pattern once, and covers each family of the public catalogues
// that can be found without running the loop.
func TestCatalog(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	covered := make(map[string]bool)
	for _, p := range detect.Catalog() {
		if seen[p.ID] || p.Title == "" || p.Type == "" || p.Tier < detect.Fact || p.Tier > detect.Hint || p.Severity == "" {
			t.Errorf("%+v", p)
		}
		seen[p.ID] = true
		for _, a := range p.Aliases {
			covered[a] = true
		}
	}
	// 020 is about the progress of a loop; A002 to A004 and D002 are about plans and
	// documents; P001 has no agreed meaning.
	for n := 1; n <= 24; n++ {
		if id := fmt.Sprintf("%03d", n); !covered[id] && n != 20 {
			t.Errorf("family %s is not covered", id)
		}
	}
	for _, id := range []string{"T001", "T002", "T003", "T004", "T005", "F001", "F002", "F003", "F004",
		"C001", "C002",
		"C003", "A001", "P002"} {
		if !covered[id] {
			t.Errorf("family %s is not covered", id)
		}
	}
}

// The result of Run does not depend on the order of the files.
func TestOrder(t *testing.T) {
	t.Parallel()
	old := map[string]string{"a_test.py": skipOld, "b_test.py": strings.ReplaceAll(skipOld, "test_a", "test_b"),
		"c.py": "x = 1\n"}
	now := map[string]string{"a_test.py": skipNew, "d_test.py": strings.ReplaceAll(skipOld, "test_a", "test_b")}
	var all []detect.Change
	for c := range changes(old, now) {
		all = append(all, c)
	}
	first := find(t, &detect.Input{Changes: changes(old, now)})
	slices.Reverse(all)
	second := find(t, &detect.Input{Changes: func(yield func(detect.Change, error) bool) {
		for _, c := range all {
			if !yield(c, nil) {
				return
			}
		}
	}})
	if diff := cmp.Diff(first.Findings, second.Findings); diff != "" {
		t.Errorf("findings differ:\n%s", diff)
	}
}

// Equality that is asserted in another form is neither lost nor trivial.
func TestEqualityInAnotherForm(t *testing.T) {
	t.Parallel()
	class := func(asserts string) string {
		return "class ATest {\n    @Test\n    void same() {\n        A a = new A();\n        A b = new " +
			"A();\n" + asserts + "    }\n}\n"
	}
	old := class("        assertTrue(a.equals(a));\n        assertTrue(a.equals(b));\n        " +
		"assertFalse(a.equals(c));\n")
	for now, want := range map[string]string{
		class("        assertEquals(a, a);\n        assertEquals(a, b);\n        assertNotEquals(a, c);\n"): "",
		class("        assertEquals(a, a);\n        assertEquals(a, b);\n        assertEquals(a, " +
			"c);\n"): "warn assertion",
		class("        assertEquals(a, a);\n        assertNotEquals(a, " +
			"c);\n"): "act assertion",
	} {
		got := strings.Join(patternsOf(find(t, &detect.Input{Changes: edited("src/test/java/ATest.java",
			old, now)})), " ")
		if !strings.Contains(got, want) || want == "" && strings.Contains(got, "assertion") {
			t.Errorf("%s\nfindings %q, want %q", now, got, want)
		}
	}
}
