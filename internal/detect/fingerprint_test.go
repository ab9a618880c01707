package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
)

// A finding keeps its fingerprint when other lines moved it, and only then.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	first := find(t, &detect.Input{Changes: edited("tests/test_a.py", skipOld, skipNew)}).Findings
	moved := find(t, &detect.Input{
		Changes: edited("tests/test_a.py", "import os\n\n"+skipOld, "import os\n\n"+skipNew)}).Findings
	other := find(t, &detect.Input{Changes: edited("tests/test_b.py", skipOld, skipNew)}).Findings
	if len(first) == 0 || len(moved) == 0 || len(other) == 0 {
		t.Fatal("nothing was found")
	}
	if first[0].Line == moved[0].Line || first[0].Fingerprint() != moved[0].Fingerprint() {
		t.Errorf("moved from line %d to %d: %s and %s", first[0].Line, moved[0].Line, first[0].Fingerprint(),
			moved[0].Fingerprint())
	}
	if first[0].Fingerprint() == other[0].Fingerprint() {
		t.Error("the same in another file")
	}
}

// The user's actions override tier and mode.
func TestActions(t *testing.T) {
	t.Parallel()
	rules := func(c detect.Config) *detect.Rules {
		r, err := detect.NewRules(c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	set := rules(detect.Config{Actions: map[string]detect.Action{"T002": detect.Tell}})
	report := find(t, &detect.Input{Changes: edited("test_a.py", skipOld, skipNew), Rules: set})
	if report.Verdict != detect.Allow || len(report.Findings) == 0 || report.Findings[0].Action != detect.Tell {
		t.Errorf("%+v", report)
	}
	custom := detect.Custom{ID: "no-print", Type: detect.FeatureRemoval, Tier: detect.Sign, Severity: detect.Low,
		Message: "m", Match: `print\(`, Confidence: 0.6}
	for sure, want := range map[float64]detect.Verdict{0: detect.Warns, 0.5: detect.Block, 0.7: detect.Warns} {
		r := rules(detect.Config{Patterns: []detect.Custom{custom}, ActConfidence: sure})
		if report := find(t, &detect.Input{Changes: edited("a.py", "x = 1\n", "x = 1\nprint(x)\n"),
			Rules: r}); report.Verdict != want {
			t.Errorf("acts from %g: %s, want %s", sure, report.Verdict, want)
		}
	}
	_, err := detect.NewRules(detect.Config{Actions: map[string]detect.Action{"nosuch": "act", "T001": "explode"},
		ActConfidence: 2})
	for _, want := range []string{`unknown pattern "nosuch"`, `actions.T001: unknown action "explode"`,
		"act_confidence: 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A waiver by fingerprint hides one finding, wherever its lines moved, and no other one.
func TestWaiverByFingerprint(t *testing.T) {
	t.Parallel()
	const two = "def f():\n    a = 1\n    b = 2\n"
	ignored := strings.ReplaceAll(two, "1\n", "1  # type: ignore\n")
	both := strings.ReplaceAll(strings.ReplaceAll(two, "a = 1", "a = g()  # type: ignore"), "b = 2",
		"a = g()  # type: ignore")
	alike := find(t, &detect.Input{Changes: edited("a.py", two, both)})
	if len(alike.Findings) != 2 || alike.Findings[0].Fingerprint() == alike.Findings[1].Fingerprint() {
		t.Fatalf("two lines alike: %+v", alike.Findings)
	}
	w := detect.Waiver{Fingerprint: alike.Findings[0].Fingerprint(), Reason: "r"}
	report := find(t, &detect.Input{Changes: edited("a.py", two, "import x\n\n"+both), Waivers: []detect.Waiver{w}})
	if len(report.Waived) != 1 || len(report.Findings) != 1 || report.Findings[0].Repeat != 1 ||
		report.Waived[0].Line != alike.Findings[0].Line+2 || len(report.Unused) != 0 {
		t.Errorf("waived %v, left %v", report.Waived, report.Findings)
	}
	report = find(t, &detect.Input{Changes: edited("a.py", two, ignored), Waivers: []detect.Waiver{w}})
	if len(report.Waived) != 0 || len(report.Findings) != 1 || len(report.Unused) != 1 || report.Unused[0] != w {
		t.Errorf("another suppression: waived %v, unused %v", report.Waived, report.Unused)
	}
}

// The fingerprint of a finding about a whole file changes with the change, and not with
// other lines.
func TestFingerprintOfAFile(t *testing.T) {
	t.Parallel()
	of := func(old, now string) string {
		t.Helper()
		report := find(t, &detect.Input{Changes: func(yield func(detect.Change, error) bool) {
			yield(detect.Change{Old: detect.Version{Path: "ci.yml", Content: []byte(old)},
				New: detect.Version{Path: "ci.yml", Content: []byte(now)}, Protected: "the settings protect it"}, nil)
		}})
		for i := range report.Findings {
			if f := &report.Findings[i]; f.Pattern == "protected-file" {
				return f.Fingerprint()
			}
		}
		t.Fatalf("%+v", report.Findings)
		return ""
	}
	if first, second := of("a\x00b", "a\x00c"), of("a\x00b", "a\x00d"); first == second {
		t.Errorf("two changes of a binary file have the fingerprint %s", first)
	}
	const was = "on: push\nsteps:\n  - run: make test\n"
	first := of(was, strings.Replace(was, "make test", "make quick", 1))
	moved := of("name: ci\n"+was, "name: ci\n"+strings.Replace(was, "make test", "make quick", 1))
	other := of(was, strings.Replace(was, "make test", "make none", 1))
	if first != moved || first == other {
		t.Errorf("first %s, moved %s, another change %s", first, moved, other)
	}
}

// Evidence is a diff of the lines in question, and a finding about a function has the line
// that changed.
func TestDiff(t *testing.T) {
	t.Parallel()
	const was = "def load(p):\n    try:\n        return read(p)\n    except OSError as e:\n        raise Bad(p) from e\n"
	now := strings.Replace(was, "raise Bad(p) from e", "return None", 1)
	report := find(t, &detect.Input{Changes: edited("a.py", was, now)})
	at := make(map[string]int)
	for i := range report.Findings {
		f := &report.Findings[i]
		at[f.Pattern] = f.Line
		const want = "@@ -4,2 +4,2 @@\n     except OSError as e:\n-        raise Bad(p) from e\n+        return None\n"
		if f.Diff != want {
			t.Errorf("%s: %s", f.Pattern, f.Diff)
		}
	}
	if at["throw-became-return"] != 5 {
		t.Errorf("lines %v", at)
	}
}

// A finding about a function has the line of its change: of the new version if there is one,
// or else of the old one.
func TestLineOfAFunction(t *testing.T) {
	t.Parallel()
	const was = "import x\n\n\ndef fetch(url):\n    r = get(url)\n" +
		"    if not r.ok:\n        raise Bad(r)\n    return r.json()\n"
	now := strings.Replace(strings.Replace(was, "    if not r.ok:\n        raise Bad(r)\n", "", 1), "import x\n", "", 1)
	report := find(t, &detect.Input{Changes: edited("a.py", was, now)})
	if len(report.Findings) != 1 || report.Findings[0].Line != 6 || !report.Findings[0].Gone {
		t.Fatalf("%+v", report.Findings)
	}
	if got, want := report.Findings[0].Place(), "a.py:6 in the old version"; got != want {
		t.Errorf("place %q, want %q", got, want)
	}
}

// Another change in the same function is another finding.
func TestFingerprintOfAFunction(t *testing.T) {
	t.Parallel()
	const was = "def load(p):\n    if p == 1:\n        raise Bad(1)\n" +
		"    if p == 2:\n        raise Bad(2)\n    return read(p)\n"
	of := func(old, now string) string {
		t.Helper()
		report := find(t, &detect.Input{Changes: edited("a.py", old, now)})
		for i := range report.Findings {
			if f := &report.Findings[i]; f.Pattern == "throw-became-return" {
				return f.Fingerprint()
			}
		}
		t.Fatalf("%+v", report.Findings)
		return ""
	}
	first := of(was, strings.Replace(was, "raise Bad(1)", "return None", 1))
	moved := of("import x\n"+was, "import x\n"+strings.Replace(was, "raise Bad(1)", "return None", 1))
	second := of(was, strings.Replace(was, "raise Bad(2)", "return None", 1))
	if first != moved || first == second {
		t.Errorf("first %s, moved %s, second %s", first, moved, second)
	}
}

// A weaker setting of checks has the same fingerprint whatever else changes in its file.
func TestFingerprintOfASetting(t *testing.T) {
	t.Parallel()
	of := func(now string) string {
		t.Helper()
		report := find(t, &detect.Input{Changes: func(yield func(detect.Change, error) bool) {
			yield(detect.Change{Old: detect.Version{Path: "Makefile", Content: []byte("test:\n\tpytest\n")},
				New: detect.Version{Path: "Makefile", Content: []byte(now)}, Configures: project.Manifest}, nil)
		}})
		for i := range report.Findings {
			if f := &report.Findings[i]; f.Pattern == "protected-file" {
				return f.Fingerprint()
			}
		}
		t.Fatalf("%+v", report.Findings)
		return ""
	}
	if first, second := of("test:\n\tpytest || true\n"), of("# tests\ntest:\n\tpytest || true\n"); first != second {
		t.Errorf("fingerprints %s and %s", first, second)
	}
}

// A test that the change of another line skips has that line.
func TestLineOfASkip(t *testing.T) {
	t.Parallel()
	const was = "describe('a', () => {\n  it('b', () => {\n    expect(f(2)).toBe(4);\n  });\n});\n"
	report := find(t, &detect.Input{Changes: edited("a.test.js", was, strings.Replace(was, "describe", "fdescribe", 1))})
	if len(report.Findings) != 1 || report.Findings[0].Line != 1 ||
		!strings.Contains(report.Findings[0].Diff, "+fdescribe") {
		t.Errorf("%+v", report.Findings)
	}
}
