package resettime_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/text/resettime"
)

// now is the time of the replies below.
var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func TestIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"Limit 30000, Used 29000. Please try again in 20s.":                  20 * time.Second,
		"Please try again in 1h2m3s.":                                        time.Hour + 2*time.Minute + 3*time.Second,
		"Please try again in 12m57.6s.":                                      12*time.Minute + 57600*time.Millisecond,
		"Please try again in 540ms":                                          540 * time.Millisecond,
		"try again in 6 minutes":                                             6 * time.Minute,
		"Try again in 2 days 3 hours and 4 minutes":                          51*time.Hour + 4*time.Minute,
		"Please retry in 34.5s.":                                             34500 * time.Millisecond,
		"Please retry after 6 seconds.":                                      6 * time.Second,
		"You have to wait 30 seconds":                                        30 * time.Second,
		"please wait for 2 minutes before another request":                   2 * time.Minute,
		"resets at 2026-11-28T15:05:00Z":                                     3*time.Hour + 5*time.Minute,
		"resets at 2026-11-28 13:05 UTC":                                     time.Hour + 5*time.Minute,
		"You will regain access on 2026-12-01 at 00:00 UTC.":                 60 * time.Hour,
		"Limit resets at 3pm (Europe/Berlin)":                                2 * time.Hour,
		"resets 3pm":                                                         3 * time.Hour,
		"You've hit your session limit · resets 11:30pm (UTC)":               11*time.Hour + 30*time.Minute,
		"You've hit your weekly limit · resets Dec 2, 9am (America/Chicago)": 4*24*time.Hour - 9*time.Hour + 12*time.Hour,
		"Opus weekly limit reached ∙ resets Nov 30 at 3pm (Etc/GMT+2)":       53 * time.Hour,
		"resets 8am (America/Port-au-Prince)":                                time.Hour,
		"resets at 11:30 AM":                                                 23*time.Hour + 30*time.Minute,
		"limit reached|1795878000":                                           3 * time.Hour,
		`"X-RateLimit-Reset":"1795870800000"`:                                time.Hour,
		// those name no time, or one that is over or far away
		"Rate limit reached":                            0,
		"resets at 2020-01-01T00:00:00Z":                0,
		"resets at 2036-01-01T00:00:00Z":                0,
		"You exceeded your current quota, please check": 0,
		"Used 29000 of 30000":                           0,
		"model f-2026-11-29 is limited":                 0,
		"wait until somebody answers 5 calls":           0,
		"try again in 99999999999999999999999 days":     0,
	} {
		var got time.Duration
		if until := resettime.In(text, now); !until.IsZero() {
			got = until.Sub(now)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	tests := []struct {
		header http.Header
		want   time.Duration
	}{
		{http.Header{"Retry-After": {"20"}}, 20 * time.Second},
		{http.Header{"Retry-After": {"1.5"}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After": {"20s"}}, 20 * time.Second},
		{http.Header{"Retry-After": {"Sat, 28 Nov 2026 13:00:00 GMT"}}, time.Hour},
		{http.Header{"Retry-After": {"2026-11-28T13:00:00Z"}}, time.Hour},
		{http.Header{"Retry-After": {"1795867800"}}, 10 * time.Minute},
		{http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, 250 * time.Millisecond},
		{http.Header{"X-Ratelimit-Reset-Requests": {"6m0s"}, "X-Ratelimit-Remaining-Requests": {"0"},
			"X-Ratelimit-Reset-Tokens": {"9h"}, "X-Ratelimit-Remaining-Tokens": {"5000"}}, 6 * time.Minute},
		{http.Header{"X-Ratelimit-Reset-Tokens": {"2m59.56s"}}, 179560 * time.Millisecond},
		{http.Header{"X-Ratelimit-Reset": {"1795870800000"}}, time.Hour},
		{http.Header{"X-Ratelimit-Reset": {"1795870800"}}, time.Hour},
		{http.Header{"Ratelimit-Reset": {"30"}, "Ratelimit-Remaining": {"0"}}, 30 * time.Second},
		{http.Header{"Anthropic-Ratelimit-Requests-Reset": {"2026-11-28T12:00:30Z"},
			"Anthropic-Ratelimit-Requests-Remaining": {"0"}}, 30 * time.Second},
		{http.Header{"Anthropic-Ratelimit-Requests-Reset": {"2026-11-28T12:00:30Z"},
			"Anthropic-Ratelimit-Requests-Remaining": {"17"}}, 0},
		// a clock that is an hour late
		{http.Header{"Retry-After": {"Sat, 28 Nov 2026 11:00:30 GMT"},
			"Date": {"Sat, 28 Nov 2026 11:00:00 GMT"}}, 30 * time.Second},
		{http.Header{"Retry-After": {"-1"}}, 0},
		{http.Header{"Retry-After": {"soon"}}, 0},
		{http.Header{"Retry-After": {"NaN"}}, 0},
		{http.Header{"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}}, 0},
		{http.Header{"Retry-After": {"1e300"}}, 60 * 24 * time.Hour},
		{http.Header{}, 0},
	}
	for _, tt := range tests {
		if got := resettime.Header(tt.header, now); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.header, got, tt.want)
		}
	}
}

func FuzzIn(f *testing.F) {
	f.Add("try again in 1h2m3s", "20")
	f.Add("resets at 3pm (Europe/Berlin)", "Sat, 28 Nov 2026 13:00:00 GMT")
	f.Fuzz(func(t *testing.T, text, header string) {
		if until := resettime.In(text, now); !until.IsZero() && !until.After(now) {
			t.Errorf("%q ends %s", text, until)
		}
		if wait := resettime.Header(http.Header{"Retry-After": {header}}, now); wait < 0 {
			t.Errorf("%q waits %s", header, wait)
		}
	})
}
