package command

import (
	"math"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agent"
)

// tokens are what requests used.
type tokens struct {
	in, out, cached, written int64
}

func (t tokens) add(o tokens) tokens {
	return tokens{t.in + o.in, t.out + o.out, t.cached + o.cached, t.written + o.written}
}

func (t tokens) sub(o tokens) tokens {
	return tokens{t.in - o.in, t.out - o.out, t.cached - o.cached, t.written - o.written}
}

// includes reports whether o can be a part of t.
func (t tokens) includes(o tokens) bool { return t.in >= o.in && t.out >= o.out }

func (t tokens) usage(reported bool) agent.Usage {
	return agent.Usage{
		InputTokens: max(0, t.in), OutputTokens: max(0, t.out), CachedTokens: max(0, t.cached),
		CacheWriteTokens: max(0, t.written),
		Reported:         reported,
	}
}

// total is what a session used until now.
type total struct {
	tokens
	costMicros int64
}

// maxDollars is more than any turn costs; larger reports are ignored.
const maxDollars = 1e9

// microsOf converts US dollars to millionths of one.
func microsOf(dollars float64) int64 {
	return int64(math.Round(min(max(0, dollars), maxDollars) * 1e6))
}

// session is a session to continue: the agent's ID, and what it had used when
// its last turn ended, since some agents report running totals. Both travel in
// one text, ID#in.out.cached.written.cost, so that a total is never lost from
// its session.
type session struct {
	id   string
	base total
	// known is false for an ID that was passed without its details.
	known bool
}

const sessionMark = "#"

func readSession(text string) session {
	at := strings.LastIndex(text, sessionMark)
	if at < 0 {
		return session{id: text, known: text == ""}
	}
	fields := strings.Split(text[at+1:], ".")
	var n [5]int64
	if len(fields) != len(n) {
		return session{id: text}
	}
	for i, field := range fields {
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil || v < 0 {
			return session{id: text}
		}
		n[i] = v
	}
	return session{
		id: text[:at], known: true,
		base: total{tokens: tokens{in: n[0], out: n[1], cached: n[2], written: n[3]}, costMicros: n[4]},
	}
}

func (s session) String() string {
	if s.id == "" {
		return ""
	}
	if !s.known {
		return s.id
	}
	var fields []string
	for _, v := range []int64{s.base.in, s.base.out, s.base.cached, s.base.written, s.base.costMicros} {
		fields = append(fields, strconv.FormatInt(max(0, v), 10))
	}
	return s.id + sessionMark + strings.Join(fields, ".")
}
