package config_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/loop/config"
)

// FuzzParseMetric: what is taken can be run and named, and means the same again.
func FuzzParseMetric(f *testing.F) {
	for _, text := range []string{"a=b", "size:down=du -sk . | cut -f1", "x:y:z=", "=", "lines=1", "ä=b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := config.ParseMetric(text)
		if err != nil {
			return
		}
		name := m.Name
		if m.Better != "" {
			name += ":" + m.Better
		}
		again, err := config.ParseMetric(name + "=" + m.Command)
		if err != nil || again != m || m.Name == "" || m.Command == "" {
			t.Errorf("%q is %+v, and again %+v, %v", text, m, again, err)
		}
	})
}

// FuzzSensitive: a folder that is called as a word is sensitive, whatever is below
// it.
func FuzzSensitive(f *testing.F) {
	f.Add("src/auth/a.go", "auth")
	f.Add("a*b", "**/x")
	f.Fuzz(func(t *testing.T, name, word string) {
		m := config.Measures{SensitivePaths: []string{word}}
		m.SetDefaults()
		sensitive := m.Sensitive(name)
		if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" && !m.Sensitive(word+"/"+name) {
			t.Errorf("%q is not sensitive to %q, and %q alone: %t", word+"/"+name, word, name, sensitive)
		}
	})
}
