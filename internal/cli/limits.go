package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
)

// The names of limits in the store.
const (
	limitCalls = "calls"
	limitCost  = "cost_micros"
	limitTime  = "wall_time_ms"
	limitNode  = "nodes"
)

// limitText returns the use of a limit: $0.81 of $1.00.
func limitText(l perdure.LimitUse) string {
	switch l.Limit {
	case limitCost:
		return human.Dollars(float64(l.Used)/1e6) + " of " + human.Dollars(float64(l.Value)/1e6)
	case limitTime:
		return human.Duration(milliseconds(l.Used)) + " of " + human.Duration(milliseconds(l.Value))
	case limitNode:
		return fmt.Sprintf("%d of %s", l.Used, human.Count(l.Value, "task"))
	}
	return fmt.Sprintf("%s of %s %s", human.Compact(l.Used), human.Compact(l.Value), l.Limit)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// budgets returns the limits to show: all but that of the tasks, which is always set
// and shown only if it is nearly reached.
func budgets(limits []perdure.LimitUse) []perdure.LimitUse {
	var set []perdure.LimitUse
	for _, l := range limits {
		if l.Limit != limitNode || l.Warned || l.Exceeded {
			set = append(set, l)
		}
	}
	return set
}

// limitMark returns the warning of a limit, or "".
func limitMark(l perdure.LimitUse) string {
	switch {
	case l.Exceeded:
		return "reached"
	case l.Warned:
		return "over 80%"
	}
	return ""
}

// reached returns the limits that were reached with the flags that raise them, or "".
func reached(limits []perdure.LimitUse) string {
	var texts []string
	for _, l := range limits {
		if l.Exceeded {
			texts = append(texts, fmt.Sprintf("%s (%s)", limitText(l), l.Flag))
		}
	}
	return strings.Join(texts, ", ")
}
