package agent

import "cmp"

// DefaultWindow is the size of an agent's context, in tokens, where nothing else
// is known.
const DefaultWindow = 200_000

const (
	// bytesPerToken is the average size of a token of text.
	bytesPerToken = 4
	// tokensPerMessage is the estimate for a message or tool call whose text is not
	// reported.
	tokensPerMessage = 500
)

// Gauge estimates how full an agent's context is: from what the agent reports, else
// from the bytes of its input and output, and as a last resort from the number of
// messages. It is for one turn and one goroutine.
type Gauge struct {
	window   int64
	last     *Context // the latest report; nil without one
	bytes    int64
	messages int64
	// crossed is the highest threshold that was reported.
	crossed float64
}

// NewGauge returns the gauge of a turn that begins with a prompt. window is the size
// of the context in tokens if the agent does not report it; 0 is DefaultWindow.
func NewGauge(window int64, prompt string) *Gauge {
	return &Gauge{window: cmp.Or(max(window, 0), DefaultWindow), bytes: int64(len(prompt))}
}

// Hear updates the gauge with an event.
func (g *Gauge) Hear(e *Event) {
	switch e.Kind {
	case EventUsage:
		if e.Context != nil {
			g.last = e.Context
		}
	case EventCompaction: // the agent reports the new fill later
		g.bytes, g.messages, g.crossed = 0, 0, 0
	case EventToolCall, EventToolResult:
		g.bytes += int64(len(e.Text))
		if e.Call != nil {
			g.bytes += int64(len(e.Call.Input))
		}
		g.messages++
	case EventMessage, EventThought:
		g.bytes += int64(len(e.Text))
		g.messages++
	case EventSession, EventRateLimited, EventNotice, EventOutput, EventStderr, EventUnknown,
		EventBackground:
	}
}

// Used is the part of the context in use, from 0 to 1, and where that is from.
func (g *Gauge) Used() (float64, Source) {
	if g.last != nil {
		size := cmp.Or(max(g.last.Size, 0), g.window)
		return min(float64(g.last.Used)/float64(size), 1), g.last.Source
	}
	tokens := max(g.bytes/bytesPerToken, g.messages*tokensPerMessage)
	return min(float64(tokens)/float64(g.window), 1), SourceEstimated
}

// Crosses reports whether a threshold was passed since it was asked last: the
// highest of those that were. Use that falls again arms them anew.
func (g *Gauge) Crosses(thresholds ...float64) (threshold float64, ok bool) {
	used, _ := g.Used()
	highest := 0.0
	for _, t := range thresholds {
		if t > 0 && used >= t {
			highest = max(highest, t)
		}
	}
	ok = highest > g.crossed
	g.crossed = highest
	return highest, ok
}
