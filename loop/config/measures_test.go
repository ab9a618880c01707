package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/loop/config"
)

func TestSensitive(t *testing.T) {
	t.Parallel()
	var m config.Measures
	m.SetDefaults()
	for name, want := range map[string]bool{
		"auth/login.go": true, "src/basic_auth.go": true, "web/LoginForm.tsx": true, "lib/userSession.js": true,
		"Payments/pay.rb": true,
		"author.go":       false, "src/authority/x.go": false, "main.go": false, "docs/blog.in": false,
	} {
		if m.Sensitive(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
	m.SensitivePaths = []string{"src/core/**", "*.sql", "vault"}
	for name, want := range map[string]bool{
		"src/core/a/b.go": true, "SRC/Core/x": true, "schema.sql": true, "db/schema.sql": false, "lib/vault.py": true,
		"auth/login.go": false,
	} {
		if m.Sensitive(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}

func TestParseMetric(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Metric{
		"size=du -k .":             {Name: "size", Command: "du -k ."},
		"speed:up=a --b=c":         {Name: "speed", Command: "a --b=c", Better: config.BetterUp},
		" bundle.kb:down = x | y ": {Name: "bundle.kb", Command: "x | y", Better: config.BetterDown},
	} {
		if got, err := config.ParseMetric(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"size": "is not NAME=COMMAND", "=x": "a name has", "a b=x": "a name has", "a:sideways=x": `better is "sideways"`,
		"a=": "has no command", "lint=x": "the name is taken",
		"a=\x00": "NUL", strings.Repeat("a", 65) + "=x": "a name has",
	} {
		if _, err := config.ParseMetric(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMeasuresAreChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(m *config.Measures){
		"is a duplicate": func(m *config.Measures) {
			m.Metrics = []config.Metric{{Name: "a", Command: "x"}, {Name: "a", Command: "y"}}
		},
		"the limit is 20":         func(m *config.Measures) { m.Metrics = make([]config.Metric, 21) },
		"at most 100 percent":     func(m *config.Measures) { m.CoverageThreshold = 101 },
		"must be a word":          func(m *config.Measures) { m.SensitivePaths = []string{"a/[b"} },
		"lint contains a NUL":     func(m *config.Measures) { m.Lint = "a\x00" },
		"coverage contains a NUL": func(m *config.Measures) { m.Coverage = strings.Repeat("a", config.MaxCommandBytes+1) },
	} {
		var m config.Measures
		m.SetDefaults()
		change(&m)
		if err := errors.Join(m.Validate()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	var m config.Measures
	m.SetDefaults()
	if errs := m.Validate(); len(errs) > 0 || m.Coverage != config.Auto || m.CoverageThreshold != 2 ||
		m.SensitiveThreshold != 0.5 {
		t.Errorf("%v, %+v", errs, m)
	}
}
