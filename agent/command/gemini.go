package command

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// geminiLine is an event of "gemini -o stream-json".
type geminiLine struct {
	Type       string          `json:"type"`
	SessionID  string          `json:"session_id"`
	Model      string          `json:"model"`
	Role       string          `json:"role"`
	Content    string          `json:"content"`
	Delta      bool            `json:"delta"`
	ToolName   string          `json:"tool_name"`
	ToolID     string          `json:"tool_id"`
	Parameters json.RawMessage `json:"parameters"`
	Status     string          `json:"status"`
	Message    string          `json:"message"`
	Error      struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats *geminiStats `json:"stats"`
}

// geminiStats sums one run, including side requests. The input includes
// cached tokens; the output excludes thoughts.
type geminiStats struct {
	Total  int64 `json:"total_tokens"`
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Cached int64 `json:"cached"`
}

// geminiParser reads "gemini -o stream-json".
type geminiParser struct {
	stream
	// answer is the message that arrives in parts.
	answer strings.Builder
	last   string
}

func (p *geminiParser) stdout(line []byte) {
	var l geminiLine
	if !object(line) || !decode(line, &l) {
		p.rec.say(agent.EventOutput, string(line))
		return
	}
	if l.Type != "message" {
		p.answer.Reset()
	}
	switch l.Type {
	case "init":
		if p.rec.from.id != "" && l.SessionID != "" && l.SessionID != p.rec.from.id {
			p.rec.another(l.SessionID)
			return
		}
		p.rec.model = cmp.Or(l.Model, p.rec.model)
		p.rec.opened(l.SessionID)
	case "message":
		p.message(l)
	case "tool_use":
		p.callBegins(l.ToolID, l.ToolName, l.Parameters)
	case "tool_result":
		p.callEnds(l.ToolID, l.Status != "success")
	case "error":
		p.last = cmp.Or(l.Message, l.Error.Message)
		p.rec.say(agent.EventNotice, p.last)
	case "result":
		p.end(l)
	default:
		p.rec.say(agent.EventUnknown, "")
	}
}

func (p *geminiParser) message(l geminiLine) {
	if l.Role != "assistant" {
		p.answer.Reset()
		return
	}
	again := p.answer.Len() > 0 && l.Delta
	if !l.Delta {
		p.answer.Reset()
	}
	if p.answer.Len() < 2*agent.MaxTextBytes {
		p.answer.WriteString(l.Content)
	}
	p.rec.say(agent.EventMessage, l.Content)
	p.rec.text = p.answer.String()
	if again {
		p.rec.messages-- // a further part of the same message
	}
}

func (p *geminiParser) end(l geminiLine) {
	p.rec.ended(l.Status)
	if s := l.Stats; s != nil && s.Total+s.Input+s.Output > 0 {
		p.rec.reported = &tokens{in: s.Input, out: max(s.Output, s.Total-s.Input), cached: s.Cached}
		p.rec.measured()
	}
	if l.Status != "success" {
		p.last = cmp.Or(l.Error.Message, p.last, "the turn ended with status "+l.Status)
		p.rec.bad(p.last, 0)
	}
}

// reAttempt is how it says that it tries again; it may do so without end.
var reAttempt = lazyregexp.New(`Attempt \d+ failed(?: with status (\d{3}))?`)

func (p *geminiParser) stderr(line string) {
	p.stream.stderr(line)
	m := reAttempt().FindStringSubmatch(line)
	if m == nil {
		return
	}
	status, _ := strconv.Atoi(m[1]) // 0 without one
	if limit := classify(line, status, p.rec.now()); limit.Class() == agent.ClassWait || limit.Kind == agent.KindQuota {
		p.rec.waits(limit)
	}
}

// Exit statuses of Gemini CLI. For errors of the API it takes their HTTP
// status, of which the system keeps the rest of a division by 256.
const (
	geminiExitAuth      = 41
	geminiExitInput     = 42
	geminiExitSandbox   = 44
	geminiExitConfig    = 52
	geminiExitTurns     = 53
	geminiExitUntrusted = 55
)

func httpOfExit(exit int) int {
	if status := exit + 256; exit > 0 && exit < 256 && status >= 400 && status < 512 {
		return status
	}
	return 0
}

func (p *geminiParser) finish(exit int) {
	status := httpOfExit(exit)
	if p.rec.over && (p.rec.fault == nil || status == 0) {
		return
	}
	if status != 0 {
		p.rec.bad(cmp.Or(p.last, errorLine(p.said)), status)
	} else {
		p.rec.unfinished(p.last, errorLine(p.said))
	}
	f := p.rec.fault
	if f.Kind != agent.KindFailed {
		return
	}
	switch exit {
	case geminiExitAuth:
		f.Kind = agent.KindAuth
	case geminiExitUntrusted:
		f.Kind = agent.KindInvalid
		f.Hint = "trust the workspace once in the interactive mode, or give the option --skip-trust; the settings and " +
			"hooks of a trusted workspace are obeyed"
	case geminiExitInput, geminiExitConfig, geminiExitSandbox:
		f.Kind = agent.KindInvalid
	case geminiExitTurns:
		f.Kind = agent.KindLimit
	}
}

// geminiArgs is the command line; the prompt is on standard input.
func geminiArgs(c Config, id string) []string {
	return c.options("--output-format stream-json", map[Permission]string{
		PermissionRead:  "--approval-mode plan",
		PermissionEdits: "--approval-mode auto_edit",
		PermissionAll:   "--approval-mode yolo",
	}, "--resume", id)
}
