package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure"
)

// duration writes d as people say it: 230ms, 4.2s, 2m 15s, 3h 05m, 2d 4h.
func duration(d time.Duration) string {
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

func seconds(s float64) string { return duration(time.Duration(s * float64(time.Second))) }

// eta writes the time left, "unknown" before it can be known.
func eta(left *float64) string {
	if left == nil {
		return "unknown"
	}
	return "~" + seconds(max(*left, 0))
}

// ago writes when t was.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	if d < time.Second {
		return "now"
	}
	return duration(d.Truncate(time.Second)) + " ago"
}

// dollars writes an amount with at least four places, as the sums are small.
func dollars(usd float64) string {
	if usd != 0 && usd < 0.0001 {
		return "<$0.0001"
	}
	return fmt.Sprintf("$%.4f", usd)
}

// cost writes what is known of the cost of u; calls whose price is unknown are
// named, never counted as free.
func cost(u perdure.Usage) string {
	if u.UnpricedCalls == 0 {
		return dollars(u.CostUSD)
	}
	unknown := "unknown price"
	if u.UnpricedCalls < u.Calls {
		unknown = fmt.Sprintf("%s + %s of unknown price", dollars(u.CostUSD), count(u.UnpricedCalls, "call"))
	}
	return unknown
}

// usage writes calls, tokens and cost in one line.
func usage(u perdure.Usage) string {
	parts := []string{count(u.Calls, "call")}
	if u.InputTokens+u.OutputTokens > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", humanize.Comma(u.InputTokens), humanize.Comma(u.OutputTokens)))
	}
	parts = append(parts, cost(u))
	if u.UncertainCalls > 0 {
		parts = append(parts, count(u.UncertainCalls, "uncertain call"))
	}
	return strings.Join(parts, ", ")
}

// count writes a number with its noun: 1 task, 1,234 tasks.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(n) + " " + noun + "s"
}

// size writes a number of bytes.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) } //nolint:gosec // not negative

// stamp writes an instant for people who may compare it with logs.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// bar draws a progress bar of width cells between brackets.
func bar(percent float64, width int) string {
	filled := int(math.Round(min(max(percent, 0), 100) / 100 * float64(width)))
	if filled == width && percent < 100 {
		filled-- // full means done
	}
	return "[" + strings.Repeat("█", filled) + strings.Repeat("▒", width-filled) + "]"
}

// wholePercent rounds down, so that 100 % means all.
func wholePercent(percent float64) string {
	return fmt.Sprintf("%d%%", int(min(max(percent, 0), 100)))
}

// compact writes a large number short: 950, 12.3k, 4.5M.
func compact(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", math.Floor(float64(n)/100)/10)
	}
	return fmt.Sprintf("%.1fM", math.Floor(float64(n)/100_000)/10)
}
