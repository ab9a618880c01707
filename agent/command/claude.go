package command

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
)

// claudeLine is an event of "claude -p --output-format stream-json".
type claudeLine struct {
	Type      string  `json:"type"`
	Subtype   string  `json:"subtype"`
	SessionID string  `json:"session_id"`
	Model     string  `json:"model"`              // of the event "init"
	Parent    *string `json:"parent_tool_use_id"` // set in what a subagent does
	Message   struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   claudeUsage     `json:"usage"`
	} `json:"message"`
	Event claudeEvent `json:"event"`

	// Of type "system".
	Status       string  `json:"status"`
	RetryDelayMS float64 `json:"retry_delay_ms"`
	ErrorStatus  int     `json:"error_status"`
	Error        string  `json:"error"`
	Compact      struct {
		Trigger string `json:"trigger"`
	} `json:"compact_metadata"`

	// Of type "rate_limit_event".
	Limit struct {
		Status   string `json:"status"`
		ResetsAt int64  `json:"resetsAt"`
		Type     string `json:"rateLimitType"`
	} `json:"rate_limit_info"`

	claudeResult
}

// parent returns the subagent that did what the event reports, "" for none.
func (l *claudeLine) parent() string { return *cmp.Or(l.Parent, new(string)) }

// claudeResult has the additional fields of an event of type "result".
type claudeResult struct {
	IsError        bool                   `json:"is_error"`
	Result         string                 `json:"result"`
	Errors         []string               `json:"errors"`
	StopReason     string                 `json:"stop_reason"`
	TerminalReason string                 `json:"terminal_reason"`
	APIStatus      int                    `json:"api_error_status"`
	APIError       string                 `json:"api_error"`
	APIErrorType   string                 `json:"api_error_type"`
	ModelUsage     map[string]claudeModel `json:"modelUsage"`
	// SinceLast is what was used since the last result of this process; older
	// versions leave it out.
	SinceLast map[string]claudeModel `json:"model_usage_since_last_result"`
	Denials   []json.RawMessage      `json:"permission_denials"`
}

// claudeEvent is a part of a provider's answer.
type claudeEvent struct {
	Type    string `json:"type"`
	Message struct {
		Usage claudeUsage `json:"usage"`
	} `json:"message"`
	Usage claudeUsage `json:"usage"`
}

// claudeUsage is what one request used; the parts of the input add up.
type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

func (u claudeUsage) tokens() tokens {
	return tokens{in: u.Input + u.CacheRead + u.CacheWrite, out: u.Output, cached: u.CacheRead, written: u.CacheWrite}
}

// claudeModel is what one model used, of all requests, subagents' among them.
type claudeModel struct {
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheReadInputTokens"`
	CacheWrite int64   `json:"cacheCreationInputTokens"`
	CostUSD    float64 `json:"costUSD"`
	CostBasis  string  `json:"costBasis"`
	Window     int64   `json:"contextWindow"`
}

func (m claudeModel) tokens() tokens {
	return claudeUsage{Input: m.Input, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite, Output: m.Output}.tokens()
}

// guessed: of models it does not know it makes up a price and a window.
func (m claudeModel) guessed() bool { return m.CostBasis == "unknown" }

// sumOf adds models up. The cost is not known when that of one of them is not.
func sumOf(models map[string]claudeModel) (sum total, priced bool) {
	priced = true
	for _, m := range models {
		sum.tokens = sum.add(m.tokens())
		sum.costMicros += microsOf(m.CostUSD)
		priced = priced && !m.guessed()
	}
	return sum, priced
}

// claudeParser reads "claude -p --output-format stream-json".
type claudeParser struct {
	stream
	// parts: answers arrive in parts; the last ones report the usage.
	pieces bool
	// open are requests of which the final figure is not known yet, by the
	// subagent that made them.
	open    map[string]tokens
	counted string // the message whose usage was counted, without parts
	model   string // of the main conversation
	// compacting: the beginning of a compaction was reported.
	compacting bool
	since      *total
}

func (p *claudeParser) stdout(line []byte) {
	var l claudeLine
	if !object(line) || !decode(line, &l) {
		p.rec.say(agent.EventOutput, string(line))
		return
	}
	switch l.Type {
	case "system":
		p.system(l)
	case "stream_event":
		p.piece(l)
	case "assistant":
		p.assistant(l)
	case "user":
		p.user(l)
	case "rate_limit_event":
		p.limit(l)
	case "result":
		p.result(l)
	default:
		p.rec.say(agent.EventUnknown, "")
	}
}

func (p *claudeParser) system(l claudeLine) {
	switch l.Subtype {
	case "init":
		p.rec.opened(l.SessionID)
		p.model = l.Model
	case "status":
		if l.Status == "compacting" {
			p.compacting = true
			p.rec.say(agent.EventCompaction, "the context is being shortened")
		}
	case "compact_boundary":
		if !p.compacting {
			p.rec.say(agent.EventCompaction, "the context was shortened ("+l.Compact.Trigger+")")
		}
		p.compacting = false
	case "api_retry":
		p.retry(l)
	default:
		p.rec.say(agent.EventUnknown, "")
	}
}

// retry reads that the provider refused and that it is asked again.
func (p *claudeParser) retry(l claudeLine) {
	text := strings.TrimSpace("the provider refused: " + l.Error)
	found := classify(text, l.ErrorStatus, p.rec.now())
	if found.Class() != agent.ClassWait {
		p.rec.say(agent.EventNotice, text)
		return
	}
	if wait := time.Duration(l.RetryDelayMS) * time.Millisecond; wait > 0 && wait < maxWait {
		found.Until = p.rec.now().Add(wait).UTC()
	}
	p.rec.waits(found)
}

func (p *claudeParser) limit(l claudeLine) {
	switch l.Limit.Status {
	case "allowed", "":
	case "rejected":
		found := &agent.Error{Kind: agent.KindRateLimit, Msg: "the limit of the subscription is reached (" + l.Limit.Type +
			")"}
		if l.Limit.ResetsAt > 0 {
			found.Until = time.Unix(l.Limit.ResetsAt, 0).UTC()
		}
		p.rec.waits(found)
	default:
		p.rec.say(agent.EventNotice, "the limit of the subscription is near ("+l.Limit.Type+")")
	}
}

// usageOfPart reads the usage of an answer; its text comes again as a whole.
func (p *claudeParser) piece(l claudeLine) {
	p.pieces = true
	from := l.parent()
	switch l.Event.Type {
	case "message_start":
		p.close(from)
		p.open[from] = l.Event.Message.Usage.tokens()
		if from == "" {
			p.request(p.open[from])
		}
	case "message_delta":
		used := p.open[from]
		used.out = max(used.out, l.Event.Usage.Output)
		p.open[from] = used
	case "message_stop":
		p.close(from)
		p.rec.measured()
	}
}

// close counts a request whose figures are final.
func (p *claudeParser) close(from string) {
	used, ok := p.open[from]
	if !ok {
		return
	}
	delete(p.open, from)
	p.rec.used = p.rec.used.add(used)
	if from == "" {
		p.rec.context = used.in + used.out
	}
}

func (p *claudeParser) request(used tokens) {
	if used.in > 0 {
		p.rec.context = used.in + used.out
	}
}

// synthetic is the model of messages that Claude Code writes itself.
const synthetic = "<synthetic>"

func (p *claudeParser) assistant(l claudeLine) {
	if l.Message.Model == synthetic {
		return // an error, which the result reports too
	}
	sub := l.Parent != nil
	if !sub && l.Message.Model != "" {
		p.model, p.rec.model = l.Message.Model, l.Message.Model
	}
	if used := l.Message.Usage.tokens(); !p.pieces && l.Message.ID != p.counted {
		p.counted = l.Message.ID
		p.rec.used = p.rec.used.add(used)
		if !sub {
			p.request(used)
		}
		p.rec.measured()
	}
	for _, block := range blocks(l.Message.Content) {
		switch block.Type {
		case "text":
			if sub {
				p.rec.say(agent.EventMessage, block.Text)
			} else {
				p.rec.message(block.Text)
			}
		case "thinking":
			p.rec.say(agent.EventThought, block.Thinking)
		case "tool_use", "server_tool_use", "mcp_tool_use":
			p.callBegins(block.ID, block.Name, block.Input)
		}
	}
}

type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
}

// blocks reads a message's content, which is also written as plain text.
func blocks(raw json.RawMessage) []claudeBlock {
	var list []claudeBlock
	decode(raw, &list) // none of plain text
	return list
}

func (p *claudeParser) user(l claudeLine) {
	for _, block := range blocks(l.Message.Content) {
		if block.Type == "tool_result" {
			p.callEnds(block.ToolUseID, block.IsError)
		}
	}
}

// result reads the end of a turn. There may be several: background tasks begin
// turns of their own.
func (p *claudeParser) result(l claudeLine) {
	rec := p.rec
	rec.ended(cmp.Or(l.StopReason, l.TerminalReason, l.Subtype))
	p.count(l.claudeResult)
	if len(l.Denials) > 0 {
		rec.note("tool calls were denied: no user can be asked")
	}
	if !l.IsError && (l.Subtype == "success" || l.Subtype == "") {
		rec.text = cmp.Or(l.Result, rec.text)
		rec.opened(l.SessionID)
		rec.measured()
		return
	}
	text := strings.Join(append([]string{l.Result}, l.Errors...), " ")
	if strings.TrimSpace(text) == "" {
		text = cmp.Or(l.TerminalReason, l.Subtype)
	}
	rec.bad(text, l.APIStatus)
	f := rec.fault
	switch {
	case l.TerminalReason == "prompt_too_long":
		f.Kind = agent.KindOverflow
	case l.APIError == "max_output_tokens", strings.HasPrefix(l.Subtype, "error_max"):
		f.Kind = agent.KindLimit
	case l.APIErrorType == "insufficient_quota", l.APIErrorType == "billing_error":
		f.Kind = agent.KindQuota
	}
	if f.Kind != agent.KindSession {
		rec.opened(l.SessionID)
	}
	rec.measured()
}

const notePrice = "the agent does not know the price of the model: the cost it reports is a guess and is left out"

func (p *claudeParser) count(l claudeResult) {
	if l.ModelUsage == nil {
		return
	}
	sum, priced := sumOf(l.ModelUsage)
	p.rec.total = &sum
	if l.SinceLast != nil {
		since, pricedSince := sumOf(l.SinceLast)
		if p.since == nil {
			p.since = &total{}
		}
		p.since.tokens = p.since.add(since.tokens)
		p.since.costMicros += since.costMicros
		p.rec.reported, priced = &p.since.tokens, priced && pricedSince
	}
	if m, ok := l.ModelUsage[p.model]; ok && !m.guessed() {
		p.rec.sized(m.Window)
	}
	p.cost(sum, priced)
}

func (p *claudeParser) cost(sum total, priced bool) {
	p.rec.cost = nil
	micros := sum.costMicros - p.rec.from.base.costMicros
	switch {
	case !priced:
		p.rec.note(notePrice)
		return
	case p.since != nil:
		micros = p.since.costMicros
	case !p.rec.from.known || micros < 0:
		return
	}
	p.rec.cost = &micros
}

// finish judges: it exits with 0 also when it was interrupted.
func (p *claudeParser) finish(int) {
	for from := range p.open {
		p.close(from)
	}
	if !p.rec.over {
		p.rec.unfinished(errorLine(p.said))
	}
}

// claudeArgs is the command line; the prompt is on standard input.
func claudeArgs(c Config, id string) []string {
	return c.options("-p --output-format stream-json --verbose --include-partial-messages", map[Permission]string{
		PermissionRead:  "--permission-mode plan",
		PermissionEdits: "--permission-mode acceptEdits",
		PermissionAll:   "--permission-mode bypassPermissions",
	}, "--resume", id)
}
