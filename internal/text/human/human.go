// Package human formats numbers and times for people, and makes text from outside safe
// to print.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
// reorders text (bidirectional controls) is replaced. Characters without width next to a
// quote, as in the error for an unexpected character, are written as \u200b.
func Visible(text string) string {
	text = quotedShown(strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return '\u2400' + r
		case r == 0x7f:
			return '\u2421'
		case unicode.IsControl(r), Reorders(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Reorders reports whether a character changes the order in which text is shown.
func Reorders(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' ||
		r == '\u061c'
}

// noWidth reports whether a character that is not a control takes no place on a screen.
func noWidth(r rune) bool {
	return unicode.Is(unicode.Cf, r) && !Reorders(r)
}

// quotedShown writes out the runs of characters without width that touch a quote.
func quotedShown(text string) string {
	if strings.IndexFunc(text, noWidth) < 0 {
		return text
	}
	quote := func(r rune) bool { return strings.ContainsRune("'\"`", r) }
	var b strings.Builder
	var run []rune
	last := rune(0)
	flush := func(next rune) {
		for _, r := range run {
			if quote(last) || quote(next) {
				b.WriteString(strings.Trim(strconv.QuoteToASCII(string(r)), "\""))
			} else {
				b.WriteRune(r)
			}
		}
		run = run[:0]
	}
	for _, r := range text {
		if noWidth(r) {
			run = append(run, r)
			continue
		}
		flush(r)
		b.WriteRune(r)
		last = r
	}
	flush(0)
	return b.String()
}

// Escaped returns text for a terminal: controls of eight bits and bidirectional controls
// become escapes such as \u202e, which are valid in the strings of JSON, too. rest is an
// incomplete character at the end of text.
func Escaped(text []byte) (shown, rest []byte) {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && size <= 1 && !utf8.FullRune(text[at:]):
			return shown, text[at:]
		case r == utf8.RuneError && size <= 1:
			shown = utf8.AppendRune(shown, r)
		case r >= 0x7f && r < 0xa0, Reorders(r):
			shown = fmt.Appendf(shown, `\u%04x`, r)
		default:
			shown = append(shown, text[at:at+size]...)
		}
		at += size
	}
	return shown, nil
}

// OneLine joins the lines of a text and makes its control characters visible.
func OneLine(text string) string { return Visible(clip.OneLine(text)) }
