package resettime

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// limits are the headers in which providers name the end of a limit: name of the end, name of what is
// left of it.
func limits() [][2]string {
	list := [][2]string{{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"}, {"Ratelimit-Reset", "Ratelimit-Remaining"}}
	for _, what := range []string{"requests", "tokens", "requests-day", "tokens-minute", "requests-minute"} {
		list = append(list, [2]string{"X-Ratelimit-Reset-" + what, "X-Ratelimit-Remaining-" + what})
	}
	for _, what := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		list = append(list, [2]string{"Anthropic-Ratelimit-" + what + "-Reset", "Anthropic-Ratelimit-" + what + "-Remaining"})
	}
	return append(list, [2]string{"Anthropic-Ratelimit-Unified-Reset", ""})
}

// Header returns how long the headers of a refused request ask to wait, 0 if they do not say. Dates are
// compared with the server's own clock where it names it. Of several limits, the one counts that
// ends last among those that are used up.
func Header(h http.Header, now time.Time) time.Duration {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms > 0 {
		return within(ms / 1000)
	}
	if wait := value(h.Get("Retry-After"), now); wait > 0 {
		return wait
	}
	var longest time.Duration
	for _, l := range limits() {
		if left := h.Get(l[1]); l[1] != "" && left != "" && strings.Trim(left, "0. ") != "" {
			continue // not used up
		}
		longest = max(longest, value(h.Get(l[0]), now))
	}
	return longest
}

// value reads seconds, a span, seconds or milliseconds since 1970, or a date; 0 for
// anything else, and for a time that is over.
func value(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case n > 1e12:
			n = n/1000 - float64(now.UnixMilli())/1000
		case n > 1e9:
			n -= float64(now.UnixMilli()) / 1000
		}
		return within(n)
	}
	if date, err := http.ParseTime(text); err == nil {
		return within(date.Sub(now).Seconds())
	}
	if date, err := time.Parse(time.RFC3339, text); err == nil {
		return within(date.Sub(now).Seconds())
	}
	if text[0] < '0' || text[0] > '9' {
		return 0
	}
	return min(Span(text), maxWait)
}

// within returns seconds as a duration of at most maxWait.
func within(seconds float64) time.Duration {
	switch {
	case !(seconds > 0): // not a number included
		return 0
	case seconds >= maxWait.Seconds():
		return maxWait
	}
	return time.Duration(seconds * float64(time.Second))
}
