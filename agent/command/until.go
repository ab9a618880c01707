package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// The forms in which agents name the end of a limit. They are compiled at their
// first use, not at every start of the program.
var (
	// "limit reached|1763672400", seconds since 1970
	reEpoch = lazyregexp.New(`\|(\d{10})\b`)
	// "retry in 34.07s", "try again in 2 days 3 hours 4 minutes", "retry after 20"
	reIn = lazyregexp.New(`(?i)\b(?:retry|again|resets?|available)\s+(?:in|` +
		`after)[:\s]+((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|` +
		`weeks?|w)?[\s,]*(?:and\s+)?)+)`)
	// one part of it
	rePart = lazyregexp.New(`(?i)(\d+(?:\.\d+)?)\s*([a-z]*)`)
	// "try again at Nov 21st, 2026 3:05 PM", "resets at 3:05 PM", "resets 3pm"
	reAt = lazyregexp.New(`(?i)\b(?:again|resets?|available)\s+(?:at\s+)?(?:([A-Z][a-z]{2})[a-z]*\s+(\d{1,` +
		`2})(?:st|nd|rd|th)?,?\s+(?:(\d{4}),?\s+)?(?:at\s+)?)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)\b`)
	// "resets 2026-11-21T15:05:00Z"
	reStamp = lazyregexp.New(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`)
)

// maxWait is the longest wait that is accepted; longer ones are taken for errors.
const maxWait = 60 * 24 * time.Hour

// untilIn returns the end of the limit that a message names; zero if it names none
// or cannot be parsed. Times of day are in now's zone, which is that of the machine
// the agent runs on.
func untilIn(text string, now time.Time) time.Time {
	until := time.Time{}
	switch {
	case reEpoch().MatchString(text):
		seconds, err := strconv.ParseInt(reEpoch().FindStringSubmatch(text)[1], 10, 64)
		if err == nil {
			until = time.Unix(seconds, 0)
		}
	case reStamp().MatchString(text):
		until, _ = time.Parse(time.RFC3339, reStamp().FindString(text)) // zero when it is not a time
	case reIn().MatchString(text):
		if d := span(reIn().FindStringSubmatch(text)[1]); d > 0 {
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

// span sums "2 days 3 hours".
func span(text string) time.Duration {
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

// timeOfDay reads the parts of reAt: month, day, year, hour, minute, am or pm.
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
