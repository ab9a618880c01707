package env_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/cli/env"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "90s": 90 * time.Second, "7d": 7 * 24 * time.Hour, "0": -1,
		"0s": -1, "-5m": -1, "soon": -1} {
		got, err := env.ParseDuration("timeout", text)
		if failed := want < 0; failed != (err != nil) || !failed && got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		least int64
		want  int64 // -1: refused
	}{
		{"", 1, 0}, {"0", 0, 0}, {"0", 1, -1}, {"0.5", 1, -1}, {"1", 1, 1}, {"10MB", 1, 10_000_000}, {"1KiB", 1, 1024},
		{"2PB", 1, -1}, {"-1", 0, -1}, {"large", 0, -1},
	}
	for _, test := range tests {
		got, err := env.ParseSize("max-file-size", test.text, test.least)
		if failed := test.want < 0; failed != (err != nil) || !failed && got != test.want {
			t.Errorf("%q of at least %d: %d, %v", test.text, test.least, got, err)
		}
	}
}
