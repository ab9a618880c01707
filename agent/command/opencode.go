package command

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/opencode"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// opencodeLine is an event of "opencode run --format json".
type opencodeLine struct {
	Type      string       `json:"type"`
	SessionID string       `json:"sessionID"`
	Part      opencodePart `json:"part"`
	Error     struct {
		Name string `json:"name"`
		Data struct {
			Message string            `json:"message"`
			Status  int               `json:"statusCode"`
			Headers map[string]string `json:"responseHeaders"`
		} `json:"data"`
	} `json:"error"`
}

type opencodePart struct {
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"`
	Metadata  struct {
		Compaction bool `json:"compaction_continue"`
	} `json:"metadata"`
	Tool   string `json:"tool"`
	CallID string `json:"callID"`
	State  struct {
		Status string          `json:"status"`
		Input  json.RawMessage `json:"input"`
		Error  string          `json:"error"`
	} `json:"state"`
	Reason string `json:"reason"`
	Tokens struct {
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
	Cost float64 `json:"cost"`
}

// opencodeParser reads "opencode run --format json".
type opencodeParser struct {
	stream
	// reason is that of the last step, until something went wrong after it.
	reason string
	fault  *agent.Error
	cost   float64
	logged string // the last failure of its log
	// attempt counts the failures of its log since the last step.
	attempt int
}

func (p *opencodeParser) stdout(line []byte) {
	var l opencodeLine
	if !object(line) || !decode(line, &l) {
		p.rec.say(agent.EventOutput, string(line))
		return
	}
	if p.rec.from.id != "" && l.SessionID != "" && l.SessionID != p.rec.from.id {
		p.rec.another(l.SessionID)
		return
	}
	p.rec.opened(l.SessionID)
	switch l.Type {
	case "step_start":
	case "text":
		p.text(l.Part)
	case "reasoning":
		p.rec.say(agent.EventThought, l.Part.Text)
	case "tool_use":
		p.call(l.Part)
	case "step_finish":
		p.step(l.Part)
	case "error":
		p.trouble(l)
	default:
		p.rec.say(agent.EventUnknown, "")
	}
}

func (p *opencodeParser) text(part opencodePart) {
	switch {
	case part.Metadata.Compaction:
		p.rec.say(agent.EventCompaction, "the context was shortened")
	case part.Synthetic: // its own words to the model
		p.rec.say(agent.EventNotice, part.Text)
	default:
		p.rec.message(part.Text)
	}
}

// call reads a tool call, which is reported when it has ended.
func (p *opencodeParser) call(part opencodePart) {
	call := agent.Describe(part.CallID, part.Tool, part.State.Input)
	why := ""
	switch part.State.Status {
	case "completed":
		call.Status = agent.ToolCompleted
		if tool, denied := leftOut(part); denied {
			call.Name, call.Kind, call.Title, call.Status = tool.Name, tool.Kind, tool.Title, agent.ToolDenied
		}
	case "error":
		call.Status = agent.ToolFailed
		if opencode.Denied(part.State.Error) {
			call.Status = agent.ToolDenied
			why, _, _ = strings.Cut(part.State.Error, " Here are") // the rules follow
		}
	default:
		call.Status = agent.ToolRunning
		p.rec.tell(agent.Event{Kind: agent.EventToolCall, Call: &call})
		return
	}
	begun := call
	begun.Status = agent.ToolRunning
	p.rec.tell(agent.Event{Kind: agent.EventToolCall, Call: &begun})
	p.rec.tell(agent.Event{Kind: agent.EventToolResult, Call: &call, Text: clip.Bytes(why, maxWhy)})
}

// maxWhy is how much is kept of why a call was denied, in bytes.
const maxWhy = 300

// leftOut returns the tool that the model called although its permissions leave it out.
// opencode reports such a call as one of its tool "invalid".
func leftOut(part opencodePart) (agent.ToolCall, bool) {
	var input struct {
		Tool string `json:"tool"`
	}
	if part.Tool != "invalid" || !decode(part.State.Input, &input) {
		return agent.ToolCall{}, false
	}
	call := agent.Describe("", input.Tool, nil)
	return call, call.Kind != agent.ToolOther
}

func (p *opencodeParser) step(part opencodePart) {
	t := part.Tokens
	// Its input leaves out what was read from or written to the cache, its
	// output what was thought.
	used := tokens{in: t.Input + t.Cache.Read + t.Cache.Write, out: t.Output + t.Reasoning, cached: t.Cache.Read,
		written: t.Cache.Write}
	p.rec.used = p.rec.used.add(used)
	p.rec.context = used.in + used.out
	p.reason, p.rec.stop = part.Reason, part.Reason
	p.attempt = 0
	p.fault = nil
	if p.cost += part.Cost; p.cost > 0 {
		// 0 is also what a model without a known price costs.
		p.rec.cost = new(microsOf(p.cost))
	}
	p.rec.measured()
}

func (p *opencodeParser) trouble(l opencodeLine) {
	data := l.Error.Data
	text := cmp.Or(data.Message, l.Error.Name, "unknown error")
	p.fault = classify(text, data.Status, p.rec.now())
	if l.Error.Name == "ContextOverflowError" {
		p.fault.Kind, p.fault.Until = agent.KindOverflow, time.Time{}
	}
	if p.fault.Class() == agent.ClassWait && p.fault.Until.IsZero() {
		p.fault.Until = retryAfter(data.Headers, p.rec.now())
	}
	p.rec.say(agent.EventNotice, text)
}

// retryAfter returns when the wait that a Retry-After header asks for ends; zero
// without one, or when the wait is not below maxWait.
func retryAfter(headers map[string]string, now time.Time) time.Time {
	h := http.Header{}
	for name, value := range headers {
		h.Set(name, value)
	}
	if wait := model.RetryAfter(h, now, maxWait); wait > 0 && wait < maxWait {
		return now.Add(wait).UTC()
	}
	return time.Time{}
}

// stderr finds in the log what the stream does not report: that the provider
// refuses and opencode retries, possibly without end.
func (p *opencodeParser) stderr(line string) {
	p.rec.say(agent.EventStderr, line)
	if !strings.HasPrefix(line, "timestamp=") {
		p.said = lastLines(p.said, line)
	} else if _, text, ok := strings.Cut(line, " error=\""); ok && strings.Contains(line, "message=failed") {
		p.logged, _, _ = strings.Cut(text, "\"")
	}
	_, text, ok := strings.Cut(line, "error.error=")
	if !ok || !strings.Contains(line, `"stream error"`) || strings.Contains(line, "small=true") {
		return
	}
	if limit := classify(strings.Trim(text, `"`), 0, p.rec.now()); limit.Class() == agent.ClassWait ||
		limit.Kind == agent.KindQuota {
		p.attempt++
		p.rec.waits(limit, p.attempt, 0)
	}
}

// finish judges: it exits with 1 also when it went on after an error, and with
// 0 when an answer was cut.
func (p *opencodeParser) finish(exit int) {
	p.rec.fault = p.fault
	switch {
	case p.fault != nil && p.fault.Kind == agent.KindFailed && p.logged != "":
		p.rec.bad(p.logged, 0) // the stream only refers to the log
	case p.fault != nil:
	case p.reason == "length":
		p.rec.fault = &agent.Error{Kind: agent.KindLimit, Msg: "the answer was cut at the model's limit for its length"}
	case p.reason == "stop":
		p.rec.over = true
	case p.reason != "" && exit == 0:
		p.rec.over = true
		if p.reason == "tool-calls" {
			p.rec.note("the turn ended at a tool call that was not permitted")
		}
	default:
		p.rec.unfinished(errorLine(p.said))
	}
}

// opencodeArgs is the command line; the prompt is on standard input. Errors of
// its log are asked for because its stream is silent about refusals.
func opencodeArgs(c Config, id string) []string {
	return c.options("run --format json --print-logs --log-level ERROR", map[Permission]string{PermissionAll: "--auto"},
		"--session", id)
}

// opencodeEnv says what may be done, without rules for commands.
func opencodeEnv(c Config) []string {
	return append([]string{"OPENCODE_DISABLE_AUTOUPDATE=1"}, opencode.Permission(c.Permission, nil)...)
}
