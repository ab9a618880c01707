// Package resettime finds the time at which a limit ends in the headers and messages of agents and of
// providers of models.
package resettime

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// The forms in which the end of a limit is named. They are compiled at their
// first use, not at every start of the program.
var (
	// "limit reached|1763672400", seconds since 1970
	reEpoch = lazyregexp.New(`\|(\d{10})\b`)
	// "retry in 34.07s", "try again in 1h2m3s", "retry after 20", "wait 30 seconds"
	reIn = lazyregexp.New(`(?i)(?:\b(?:retry|again|resets?|available)\s+(?:in|after)[:\s]+|\bwait\s+(?:for\s+)?` +
		`(?:at least\s+)?)((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|` +
		`days?|d|weeks?|w)?[\s,]*(?:and\s+)?)+)`)
	// one part of it
	rePart = lazyregexp.New(`(?i)(\d+(?:\.\d+)?)\s*([a-z]*)`)
	// "try again at Nov 21st, 2026 3:05 PM", "resets at 3:05 PM", "resets 3pm (Europe/Berlin)"
	reAt = lazyregexp.New(`(?i)\b(?:again|resets?|available)\s+(?:at\s+)?(?:([A-Z][a-z]{2})[a-z]*\s+(\d{1,` +
		`2})(?:st|nd|rd|th)?,?\s+(?:(\d{4}),?\s+)?(?:at\s+)?)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)\b` +
		`(?:\s*\(?([A-Z][A-Za-z]+(?:/[A-Za-z0-9_+-]+)*)\)?)?`)
	// "resets 2026-11-21T15:05:00Z", "regain access on 2026-11-21 at 15:05 UTC"; without a zone it is UTC
	reStamp = lazyregexp.New(`(\d{4}-\d\d-\d\d)(?:T|\s+(?:at\s+)?)(\d\d:\d\d)(:\d\d)?(?:\.\d+)?\s*` +
		`(Z|[+-]\d\d:\d\d)?`)
	// "X-RateLimit-Reset": "1741305600000" in the body of a reply
	reField = lazyregexp.New(`(?i)ratelimit-reset\W{1,5}(\d{10}(?:\d{3})?)\b`)
)

// maxWait is the longest wait that is accepted; longer ones are taken for errors.
const maxWait = 60 * 24 * time.Hour

// In returns the end of the limit that a text names; zero if it names none, or one that is over or far
// ahead. Times of day without a zone are in now's zone.
func In(text string, now time.Time) time.Time {
	until := time.Time{}
	switch {
	case reEpoch().MatchString(text):
		until = epoch(reEpoch().FindStringSubmatch(text)[1])
	case reField().MatchString(text):
		until = epoch(reField().FindStringSubmatch(text)[1])
	case reStamp().MatchString(text):
		until = stamp(reStamp().FindStringSubmatch(text))
	case reIn().MatchString(text):
		if d := Span(reIn().FindStringSubmatch(text)[1]); d > 0 {
			until = now.Add(d)
		}
	case reAt().MatchString(text):
		until = timeOfDay(reAt().FindStringSubmatch(text), now)
	}
	if !until.After(now) || until.Sub(now) > maxWait {
		return time.Time{}
	}
	return until.UTC()
}

// epoch reads seconds or milliseconds since 1970.
func epoch(digits string) time.Time {
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil:
		return time.Time{}
	case len(digits) > 10:
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}

// stamp reads the parts of reStamp: date, hour and minute, second, zone. It is zero for what is no time.
func stamp(parts []string) time.Time {
	zone, second := parts[4], parts[3]
	if zone == "" {
		zone = "Z"
	}
	if second == "" {
		second = ":00"
	}
	t, _ := time.Parse(time.RFC3339, parts[1]+"T"+parts[2]+second+zone)
	return t
}

// Span sums "2 days 3 hours" and "1h2m3.5s"; 0 for what is no span.
func Span(text string) time.Duration {
	var sum time.Duration
	for _, part := range rePart().FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil || n > maxWait.Seconds() {
			return 0
		}
		sum += time.Duration(n * float64(unit(strings.ToLower(part[2]))))
	}
	return sum
}

func unit(name string) time.Duration {
	switch {
	case strings.HasPrefix(name, "ms"), strings.HasPrefix(name, "milli"):
		return time.Millisecond
	case strings.HasPrefix(name, "m"):
		return time.Minute
	case strings.HasPrefix(name, "h"):
		return time.Hour
	case strings.HasPrefix(name, "d"):
		return 24 * time.Hour
	case strings.HasPrefix(name, "w"):
		return 7 * 24 * time.Hour
	}
	return time.Second
}

// timeOfDay reads the parts of reAt: month, day, year, hour, minute, am or pm, zone.
func timeOfDay(parts []string, now time.Time) time.Time {
	hour, err := strconv.Atoi(parts[4])
	if err != nil || hour < 1 || hour > 12 {
		return time.Time{}
	}
	minute, _ := strconv.Atoi(parts[5]) // empty is 0
	hour %= 12
	if strings.EqualFold(parts[6], "pm") {
		hour += 12
	}
	if parts[7] != "" {
		if zone, err := time.LoadLocation(parts[7]); err == nil {
			now = now.In(zone)
		}
	}
	year, month, day := now.Date()
	if parts[1] == "" {
		t := time.Date(year, month, day, hour, minute, 0, 0, now.Location())
		if !t.After(now) {
			t = t.AddDate(0, 0, 1)
		}
		return t
	}
	named, err := time.Parse("Jan", strings.ToUpper(parts[1][:1])+strings.ToLower(parts[1][1:]))
	if err != nil {
		return time.Time{}
	}
	day, _ = strconv.Atoi(parts[2]) // the pattern lets digits through only
	given := parts[3] != ""
	if given {
		year, _ = strconv.Atoi(parts[3])
	}
	t := time.Date(year, named.Month(), day, hour, minute, 0, 0, now.Location())
	if !given && !t.After(now) {
		t = t.AddDate(1, 0, 0)
	}
	return t
}
