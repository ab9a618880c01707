package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// ParseDuration parses a duration as time.ParseDuration does, with days of 24 hours
// before the other units: "30s", "1h30m", "7d", "1d12h". A number without a unit is
// an error, 0 included.
func ParseDuration(text string) (time.Duration, error) {
	bad := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("%q is not a duration such as 30s, 5m or 7d%s", text, why)
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		if _, number := strconv.ParseFloat(text, 64); number == nil {
			return bad(": it has no unit")
		}
		if err != nil {
			return bad("")
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil {
		return bad("")
	}
	if n > uint64(math.MaxInt64/day) {
		return bad(": it is too long")
	}
	d := time.Duration(n) * day
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || rest[0] < '0' || rest[0] > '9' {
		return bad("")
	}
	if more > math.MaxInt64-d {
		return bad(": it is too long")
	}
	return d + more, nil
}

// FormatDuration returns the shortest form of a duration that [ParseDuration] parses:
// "5m", "7d", "1d12h".
func FormatDuration(d time.Duration) string {
	if d < day {
		return short(d)
	}
	text := strconv.FormatInt(int64(d/day), 10) + "d"
	if rest := d % day; rest != 0 {
		text += short(rest)
	}
	return text
}

// short returns Duration.String without zero units at the end.
func short(d time.Duration) string {
	text := d.String()
	if before, ok := strings.CutSuffix(text, "m0s"); ok {
		text = before + "m"
	}
	if before, ok := strings.CutSuffix(text, "h0m"); ok {
		text = before + "h"
	}
	return text
}
