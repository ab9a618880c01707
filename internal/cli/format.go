package cli

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
)

// The words of package human, short because every line of output uses them.

func duration(d time.Duration) string       { return human.Duration(d) }
func seconds(s float64) string              { return human.Seconds(s) }
func eta(left *float64) string              { return human.ETA(left) }
func ago(now, t time.Time) string           { return human.Ago(now, t) }
func dollars(usd float64) string            { return human.Dollars(usd) }
func cost(u perdure.Usage) string           { return human.Cost(u) }
func usage(u perdure.Usage) string          { return human.Usage(u) }
func count(n int64, noun string) string     { return human.Count(n, noun) }
func size(n int64) string                   { return human.Size(n) }
func stamp(t time.Time) string              { return human.Stamp(t) }
func bar(percent float64, width int) string { return human.Bar(percent, width) }
func wholePercent(percent float64) string   { return human.WholePercent(percent) }
func compact(n int64) string                { return human.Compact(n) }
