// Package human formats numbers and times for people, and makes text from outside safe
// to print.
package human

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/internal/text/clip"
)

// Duration formats d: 230ms, 4.2s, 2m 15s, 3h 05m, 2d 4h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0ms"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", math.Floor(d.Seconds()*10)/10)
	}
	s := int64(d.Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
}

// Seconds formats a number of seconds as [Duration] does.
func Seconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// ETA formats the time left, "unknown" for nil.
func ETA(left *float64) string {
	if left == nil {
		return "unknown"
	}
	return "~" + Seconds(max(*left, 0))
}

// Ago formats how long ago t was.
func Ago(now, t time.Time) string {
	d := now.Sub(t)
	if d < time.Second {
		return "now"
	}
	return Duration(d.Truncate(time.Second)) + " ago"
}

// Dollars formats an amount with four decimal places, because the sums are small.
func Dollars(usd float64) string {
	if usd != 0 && usd < 0.0001 {
		return "<$0.0001"
	}
	return fmt.Sprintf("$%.4f", usd)
}

// Count formats a number with its noun: 1 task, 1,234 tasks.
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(int64(n)) + " " + noun + "s"
}

// Size formats a number of bytes.
func Size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Stamp formats a time as in logs: RFC 3339, in UTC.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// Bar returns a progress bar of width cells between brackets.
func Bar(percent float64, width int) string {
	filled := int(math.Round(min(max(percent, 0), 100) / 100 * float64(width)))
	if filled == width && percent < 100 {
		filled-- // full means done
	}
	return "[" + strings.Repeat("█", filled) + strings.Repeat("▒", width-filled) + "]"
}

// WholePercent formats a percentage rounded down, so that 100% means all.
func WholePercent(percent float64) string {
	return fmt.Sprintf("%d%%", int(min(max(percent, 0), 100)))
}

// Compact formats a large number in few characters: 950, 12.3k, 4.5M.
func Compact(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", math.Floor(float64(n)/100)/10)
	}
	return fmt.Sprintf("%.1fM", math.Floor(float64(n)/100_000)/10)
}

// Visible makes control characters visible. Line ends and tabs stay; what
// reorders text (bidirectional controls) is replaced.
func Visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return '\u2400' + r
		case r == 0x7f:
			return '\u2421'
		case unicode.IsControl(r), reorders(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func reorders(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// OneLine joins the lines of a text and makes its control characters visible.
func OneLine(text string) string { return Visible(clip.OneLine(text)) }
