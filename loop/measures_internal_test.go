package loop

import (
	"strings"
	"testing"
)

func TestSensitive(t *testing.T) {
	t.Parallel()
	var m Measures
	m.setDefaults()
	for name, want := range map[string]bool{
		"auth/login.go": true, "src/basic_auth.go": true, "web/LoginForm.tsx": true, "lib/userSession.js": true, "Payments/pay.rb": true,
		"author.go": false, "src/authority/x.go": false, "main.go": false, "docs/blog.in": false,
	} {
		if m.sensitive(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
	m.SensitivePaths = []string{"src/core/**", "*.sql", "vault"}
	for name, want := range map[string]bool{
		"src/core/a/b.go": true, "SRC/Core/x": true, "schema.sql": true, "db/schema.sql": false, "lib/vault.py": true, "auth/login.go": false,
	} {
		if m.sensitive(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}

func TestParseMetric(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]CustomMetric{
		"size=du -k .":             {Name: "size", Command: "du -k ."},
		"speed:up=a --b=c":         {Name: "speed", Command: "a --b=c", Better: BetterUp},
		" bundle.kb:down = x | y ": {Name: "bundle.kb", Command: "x | y", Better: BetterDown},
	} {
		if got, err := ParseMetric(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"size": "is not NAME=COMMAND", "=x": "a name has", "a b=x": "a name has", "a:sideways=x": `better is "sideways"`, "a=": "has no command",
		"a=\x00": "NUL", strings.Repeat("a", 65) + "=x": "a name has",
	} {
		if _, err := ParseMetric(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMeasuresAreChecked(t *testing.T) {
	t.Parallel()
	base := Config{Task: "t", Until: "u", Agent: "a", Workspace: "/w"}
	for want, change := range map[string]func(m *Measures){
		"given twice":         func(m *Measures) { m.Metrics = []CustomMetric{{Name: "a", Command: "x"}, {Name: "a", Command: "y"}} },
		"the limit is 20":     func(m *Measures) { m.Metrics = make([]CustomMetric, 21) },
		"at most 100 percent": func(m *Measures) { m.CoverageThreshold = 101 },
		"is no word":          func(m *Measures) { m.SensitivePaths = []string{"a/[b"} },
		"lint has a NUL":      func(m *Measures) { m.Lint = "a\x00" },
		"coverage has a NUL":  func(m *Measures) { m.Coverage = strings.Repeat("a", MaxCommandBytes+1) },
	} {
		c := base.withDefaults()
		change(&c.Measures)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	c := base.withDefaults()
	if err := c.validate(); err != nil || c.Coverage != MetricAuto || c.CoverageThreshold != 2 || c.SensitiveThreshold != 0.5 {
		t.Errorf("%v, %+v", err, c.Measures)
	}
}
