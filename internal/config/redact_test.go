package config_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/config"
)

func TestRedactURLs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"no URL, password: geheim":                             "no URL, password: geheim",
		"https://example.com/v1?model=x":                       "https://example.com/v1?model=x",
		"get https://me:geheim@host/a: timeout":                "get https://xxxxx:xxxxx@host/a: timeout",
		"https://geheim@host/a":                                "https://xxxxx@host/a",
		"postgres://me:geheim@host/db":                         "postgres://me:xxxxx@host/db",
		"postgres://me@host/db":                                "postgres://me@host/db",
		"\"https://host/?access_token=geheim&a=1\".":           "\"https://host/?a=1&access_token=xxxxx\".",
		"(https://host/?sig=geheim).":                          "(https://host/?sig=xxxxx).",
		"https://host/?X-Amz-Signature=geheim":                 "https://host/?X-Amz-Signature=xxxxx",
		"https://hooks.example.com/s/T0/geheimgeheimgeheim123": "https://hooks.example.com/s/T0/xxxxx",
		"https://example.com/documentation-of-the-settings":    "https://example.com/documentation-of-the-settings",
	} {
		if got := config.RedactURLs(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func FuzzRedactURLs(f *testing.F) {
	f.Add("https://a:b@c/d?token=e#f")
	f.Add("x://%zz ://?&;=")
	f.Fuzz(func(t *testing.T, text string) {
		if got := config.RedactURLs("https://u:geheim@h/" + text); strings.Contains(got, "u:geheim") {
			t.Errorf("%q: %s", text, got)
		}
	})
}
