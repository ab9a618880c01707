package config_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/config"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "300s": 5 * time.Minute, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute,
		"7d": 7 * day, "0d": 0, "1d12h": 36 * time.Hour, "106751d": 106751 * day, "-5s": -5 * time.Second, "0s": 0,
	} {
		got, err := config.ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "0", "d", "-1d", "1d-1h", "1d+1h", "1d1d", "1.5d", "7days", "7 d", "106752d",
		"106751d24h", "99999999999999d", "1w", "inf"} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "5m", time.Hour: "1h", 90 * time.Minute: "1h30m", 7 * day: "7d", 36 * time.Hour: "1d12h",
		day + time.Second: "1d1s", 0: "0s", 1500 * time.Millisecond: "1.5s", 10 * time.Minute: "10m", 10 * time.Hour: "10h",
		-time.Hour: "-1h",
	} {
		if got := config.FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", d, got, want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	f.Add("1d12h")
	f.Add("106751d23h47m16.854775807s")
	f.Add("-1.5h")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := config.ParseDuration(text)
		if err != nil {
			return
		}
		again, err := config.ParseDuration(config.FormatDuration(d))
		if err != nil || again != d {
			t.Errorf("%q is %d, written %q and read back %d, %v", text, d, config.FormatDuration(d), again, err)
		}
	})
}
