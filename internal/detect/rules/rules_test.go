package rules_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
)

const full = `
detection: aggressive
patterns_enabled: [test_deletion, test_skipping]
patterns_off: [open-ends, T005]
pattern_actions: {symbol-removed: tell}
act_confidence: 0.9
protected_paths: ["deploy/**"]
patterns:
  - id: no-sleep
    type: test_skipping
    tier: 1
    severity: high
    message: a test waits
    languages: [go]
    tokens: time . Sleep (
  - {id: banned, type: feature_removal, message: banned, match: 'ba(n|d)', paths: ["src/**"], in: text, when: removed, confidence: 0.5}
waivers:
  - {pattern: test-removed, path: "old/**", reason: given up, expires: 2027-01-31, by: ann}
  - {pattern: no-sleep, path: "**", reason: known, expires: "2027-01-31T12:00:00+02:00"}
  - {pattern: T002, path: "a", reason: r}
  - {fingerprint: 1234567890123456, reason: only digits}
  - {fingerprint: 123456789012e456, path: "a", reason: like a number}
`

func TestParse(t *testing.T) {
	t.Parallel()
	p, err := rules.Parse("f.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if p.Detection != detect.Aggressive || len(p.Types) != 2 || len(p.Patterns) != 2 || len(p.Waivers) != 5 ||
		p.ActConfidence != 0.9 || p.Protected[0] != "deploy/**" {
		t.Errorf("%+v", p)
	}
	if at := p.Waivers[0].Expires; !at.Equal(time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC)) || p.Waivers[0].By != "ann" {
		t.Errorf("expires at %s by %q", at, p.Waivers[0].By)
	}
	if at := p.Waivers[1].Expires; !at.Equal(time.Date(2027, 1, 31, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("expires at %s", at)
	}
	for i, want := range []string{"1234567890123456", "123456789012e456"} {
		if got := p.Waivers[3+i].Fingerprint; got != want {
			t.Errorf("fingerprint %q, want %q", got, want)
		}
	}
	for _, empty := range []string{"", "# nothing\n", "waivers: []\n"} {
		if p, err := rules.Parse("f.yaml", []byte(empty)); err != nil || len(p.Waivers) != 0 {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"detection: loud":                                                       `detection: unknown mode "loud"`,
		"nosuch: 1":                                                             `unknown field "nosuch"`,
		"patterns: [{id: x, nosuch: 1}]":                                        `unknown field "nosuch"`,
		"patterns_enabled: [deletion]":                                          `types[0]: unknown type "deletion"`,
		"patterns_off: [nosuch]":                                                `off[0]: unknown pattern "nosuch"`,
		"pattern_actions: {T001: stop}":                                         `actions.T001: unknown action "stop"`,
		"act_confidence: 7":                                                     "7 is not between 0 and 1",
		"protected_paths: [\"a[\"]":                                             `protected_paths[0]: invalid glob "a["`,
		"patterns: [{id: X Y, match: x}]":                                       `patterns[0] "X Y": id: `,
		"patterns: [{id: a, match: x, tokens: x}]":                              `patterns[0] "a": match and tokens`,
		"patterns: [{id: a}]":                                                   `patterns[0] "a": match and tokens`,
		"patterns: [{id: a, match: \"(\"}]":                                     "missing closing )",
		"patterns: [{id: test-removed, match: x}]":                              `patterns[0] "test-removed": id: `,
		"waivers: [{fingerprint: 12ab, reason: r}]":                             `fingerprint: "12ab" is not one`,
		"waivers: [{fingerprint: 0a1b2c3d4e5f6071}]":                            "waivers[0]: reason: ",
		"waivers: [{fingerprint: 0a1b2c3d4e5f6071, reason: …}]":                 "waivers[0]: reason: ",
		"waivers: [{pattern: test-removed}]":                                    "waivers[0]: path: ",
		"waivers: [{path: a, reason: r, pattern: test-remved}]":                 `did you mean "test-removed"?`,
		"waivers: [{path: a, reason: r, pattern: test-removed, expires: soon}]": `waivers[0]: expires: invalid time "soon"`,
		"waivers: [{path: \"[\", reason: r, pattern: test-removed}]":            `waivers[0]: path: invalid glob "["`,
		"a: [":                   "f.yaml:1",
		"a\x00b":                 "NUL",
		"\xff":                   "not valid UTF-8",
		strings.Repeat("[", 200): "nested too deeply",
	} {
		_, err := rules.Parse("f.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f.yaml") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Patterns of tokens match with any blanks, and not parts of words.
func TestTokens(t *testing.T) {
	t.Parallel()
	change := func(line string) *detect.Input {
		s := rules.Settings{Patterns: []rules.Pattern{
			{Custom: detect.Custom{ID: "p", Type: detect.TestSkipping, Message: "m"}, Tokens: "time . Sleep ("},
			{Custom: detect.Custom{ID: "q", Type: detect.TestSkipping, Message: "m"}, Tokens: "return nil"}}}
		rules, err := s.Rules()
		if err != nil {
			t.Fatal(err)
		}
		return &detect.Input{Rules: rules, Changes: func(yield func(detect.Change, error) bool) {
			yield(detect.Change{Old: detect.Version{Path: "a.txt", Content: []byte("x\n")},
				New: detect.Version{Path: "a.txt", Content: []byte("x\n" + line + "\n")}}, nil)
		}}
	}
	for line, found := range map[string]bool{"time.Sleep(1)": true, "time . Sleep  (": true, "mytime.Sleep(1)": false,
		"time.Sleeps(1)": false,
		"return  nil":    true, "returnnil": false, "return nilly": false, "x": false} {
		report, err := detect.Run(context.Background(), change(line))
		if err != nil || (len(report.Findings) > 0) != found {
			t.Errorf("%q: found %t, want %t: %v", line, len(report.Findings) > 0, found, err)
		}
	}
}

// The user's settings override the project's.
func TestWith(t *testing.T) {
	t.Parallel()
	own := rules.Settings{Actions: map[string]detect.Action{"T001": detect.Warn},
		Patterns: []rules.Pattern{{Custom: detect.Custom{ID: "a", Message: "own"}}}, Off: []string{"x"}}
	below := rules.Settings{Types: []detect.Type{detect.TestDeletion},
		Actions:  map[string]detect.Action{"T001": detect.Tell, "T002": detect.Tell},
		Patterns: []rules.Pattern{{Custom: detect.Custom{ID: "a"}}, {Custom: detect.Custom{ID: "b"}}}, Off: []string{"y"},
		Protected: []string{"p"}, ActConfidence: 0.5}
	s := own.With(&below)
	if len(s.Types) != 1 || s.Actions["T001"] != detect.Warn || s.Actions["T002"] != detect.Tell ||
		len(s.Patterns) != 2 || s.Patterns[0].Message != "own" ||
		len(s.Off) != 2 || len(s.Protected) != 1 || s.ActConfidence != 0.5 {
		t.Errorf("%+v", s)
	}
	if len(below.Actions) != 2 || below.Actions["T001"] != detect.Tell {
		t.Error("the settings below were changed")
	}
}

// The user's waivers come only from outside the workspace.
func TestOwn(t *testing.T) {
	t.Parallel()
	home, work := t.TempDir(), t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	env := func(vars map[string]string) func(string) string {
		return func(name string) string { return vars[name] }
	}
	own := func(vars map[string]string) ([]detect.Waiver, error) { return rules.Own(env(vars), work) }
	if all, err := own(map[string]string{"HOME": home}); err != nil || all != nil {
		t.Errorf("without a file: %v, %v", all, err)
	}
	if all, err := own(nil); err != nil || all != nil {
		t.Errorf("without a home: %v, %v", all, err)
	}
	const text = "waivers: [{pattern: mine, path: a, reason: r}]\n"
	put(filepath.Join(home, ".config", "perdure", "waivers.yaml"), text)
	if all, err := own(map[string]string{"HOME": home}); err != nil || len(all) != 1 {
		t.Errorf("of the home folder: %v, %v", all, err)
	}
	inside := put(filepath.Join(work, "w.yaml"), text)
	link := filepath.Join(home, "link.yaml")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{inside: "in the workspace", link: "in the workspace",
		"w.yaml": "not an absolute path", filepath.Join(home, "nosuch"): "no such file",
		home: "not a regular file", put(filepath.Join(home, "bad.yaml"), "waivers: [{pattern: x}]"): "reason: ",
		put(filepath.Join(home, "odd.yaml"), "patterns_off: [x]"): "unknown field"} {
		if _, err := own(map[string]string{rules.WaiversVariable: name}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// Any file is read or refused; the settings read from it compile.
func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add("patterns: [{id: a, type: test_deletion, message: m, tokens: \"( ) \\\\ [\"}]")
	f.Add("waivers: [{pattern: '*', path: '**', reason: r, expires: 2027-02-30}]")
	f.Add("detection: &a off\npatterns_off: [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := rules.Parse("f", []byte(text))
		if err != nil {
			if msg := err.Error(); !strings.HasPrefix(msg, "f") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if _, err := p.Rules(); err != nil {
			t.Errorf("%q is read and does not compile: %v", text, err)
		}
		for _, own := range p.Patterns {
			if own.Match != "" {
				regexp.MustCompile(own.Match)
			}
		}
		for i := range p.Waivers {
			if err := p.Waivers[i].Check(); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
