package acp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// phase is how far a turn is. It decides whether an update is news.
type phase int

const (
	// opening: the session begins or is loaded. Reports of messages and
	// tool calls is history.
	opening phase = iota
	// working: the prompt was sent.
	working
)

// update is a session/update: the fields of all kinds that are looked at.
type update struct {
	Kind      string `json:"sessionUpdate"`
	MessageID string `json:"messageId"`
	Entries   []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`
	Used          *count `json:"used"`
	Size          count  `json:"size"`
	Cost          *cost  `json:"cost"`
	Severity      string `json:"severity"`
	Description   string `json:"description"`
	Error         string `json:"error"`
	CurrentModeID string `json:"currentModeId"`
	// toolFields has the content, the title and the status of other kinds, too.
	toolFields
}

// story is what a turn's updates add up to. It is not safe for concurrent use.
type story struct {
	phase phase
	// titleIsName: the first title of a tool call is the tool's name.
	titleIsName bool
	calls       calls
	// text is the last message; fresh reports whether the next part begins another.
	text      ending
	messageID string
	fresh     bool
	messages  int // without tool calls
	context   *agent.Context
	// model is the model of the session, as the agent names it; empty when unknown. prices
	// reports whether the agent knows its price.
	model  string
	prices func(model string) bool
	// cost is what the session cost until now, before what it cost when the
	// prompt was sent; nil when unknown.
	cost, before *int64
	// replayed counts parts of history.
	replayed int
	// broken is whether the agent says that its session failed; it says why in
	// its last message.
	broken bool
}

// take takes in an update and returns the events it makes. Raw is set in them
// by the caller. Updates of other sessions, those of subagents, count only for
// their tool calls.
func (s *story) take(u *update, foreign bool) []agent.Event {
	switch u.Kind {
	case "tool_call", "tool_call_update":
		return s.takeCall(&u.toolFields, u.Kind == "tool_call")
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "plan", "compaction_update",
		"compaction_summary_chunk":
		if s.phase == opening {
			s.replayed++
			return nil
		}
	}
	if foreign {
		return unknown()
	}
	switch u.Kind {
	case "agent_message_chunk":
		return s.takeMessage(u)
	case "agent_thought_chunk":
		return one(agent.EventThought, u.Content.text())
	case "user_message_chunk":
		s.fresh = true
	case "plan":
		return one(agent.EventNotice, planText(u))
	case "usage_update":
		return s.takeUsage(u)
	case "notice":
		return takeNotice(u)
	case "compaction_update":
		return one(agent.EventCompaction, strings.TrimSpace(clean(u.Status+" "+u.Error)))
	case "compaction_summary_chunk":
		return one(agent.EventCompaction, u.Content.text())
	case "current_mode_update":
		return one(agent.EventNotice, fmt.Sprintf("the agent's mode is %q now", clean(u.CurrentModeID)))
	case "session_info_update":
		return s.takeInfo(u)
	}
	return unknown()
}

func unknown() []agent.Event { return []agent.Event{{Kind: agent.EventUnknown}} }

func one(kind agent.EventKind, text string) []agent.Event {
	return []agent.Event{{Kind: kind, Text: text}}
}

func (s *story) takeMessage(u *update) []agent.Event {
	text := u.Content.text()
	if s.fresh || s.messages == 0 || u.MessageID != s.messageID {
		s.text, s.fresh, s.messageID = ending{}, false, u.MessageID
		s.messages++
	}
	s.text.add(text)
	return one(agent.EventMessage, text)
}

// takeCall takes in a tool call. A beginning with the ID of a call that ended
// is that of another.
func (s *story) takeCall(f *toolFields, begins bool) []agent.Event {
	if s.phase == opening {
		s.replayed++
		return nil
	}
	if f.ToolCallID == "" {
		return unknown()
	}
	if old := s.calls.known[f.ToolCallID]; begins && old != nil && toolEnded(old.call.Status) {
		s.calls.forget(f.ToolCallID)
	}
	first := s.calls.known[f.ToolCallID] == nil
	k := s.calls.merge(f)
	if first && s.titleIsName && k.call.Name == "" {
		k.call.Name = k.call.Title
	}
	s.fresh = true
	call := k.call
	e := agent.Event{Kind: agent.EventToolCall, Call: &call}
	if toolEnded(call.Status) {
		e.Kind, e.Text = agent.EventToolResult, s.calls.takeOutput(k)
	}
	return []agent.Event{e}
}

// asks records the call of a permission request. It keeps an input that was reported
// before: the one of the request is formatted for users.
func (s *story) asks(f *toolFields) agent.ToolCall {
	if k := s.calls.known[f.ToolCallID]; k != nil && len(k.call.Input) > len("{}") {
		f.RawInput = nil
	}
	f.Content = slices.DeleteFunc(f.Content, func(b block) bool { return b.Type != "diff" })
	s.fresh = true
	return s.calls.merge(f).call
}

func toolEnded(s agent.ToolStatus) bool {
	return s == agent.ToolCompleted || s == agent.ToolFailed || s == agent.ToolDenied
}

// refused records that a call was refused.
func (s *story) refused(id string) {
	for _, k := range s.calls.known {
		if k.call.ID == id {
			k.denied = true
		}
	}
}

func (s *story) takeUsage(u *update) []agent.Event {
	if micros, ok := u.Cost.micros(); ok {
		s.cost = &micros
		if s.phase == opening {
			s.before = &micros
		}
	}
	if u.Used == nil {
		return unknown()
	}
	s.context = &agent.Context{Used: int64(*u.Used), Size: int64(u.Size), Source: agent.SourceReported}
	return []agent.Event{{Kind: agent.EventUsage, Context: new(*s.context), Model: s.modelName(), CostMicros: s.spent()}}
}

// takeNotice also finds rate limits, which agents report as text.
func takeNotice(u *update) []agent.Event {
	text := ""
	if u.Title != nil {
		text = clean(*u.Title)
	}
	if u.Description != "" {
		text += ": " + clean(u.Description)
	}
	e := agent.Event{Kind: agent.EventNotice, Text: text}
	if kind := kindOfText(text); u.Severity != "info" && (kind == agent.KindRateLimit || kind == agent.KindQuota) {
		e.Kind = agent.EventRateLimited
	}
	return []agent.Event{e}
}

// takeInfo finds the errors that the Codex adapter reports here: those after which it
// retries, and the final one, which is not in the result of the prompt. The rest, such
// as a session's title, is ignored.
func (s *story) takeInfo(u *update) []agent.Event {
	var meta map[string]struct {
		Status struct {
			Type string `json:"type"`
		} `json:"threadStatus"`
		Error struct {
			Message string `json:"message"`
			Details string `json:"additionalDetails"`
		} `json:"error"`
	}
	if jsonrpc.Lenient(u.Meta, &meta) != nil {
		return unknown()
	}
	for _, vendor := range meta {
		if status := vendor.Status.Type; status != "" && s.phase == working {
			s.broken = status == "systemError"
			s.fresh = true
		}
		text := strings.TrimSpace(vendor.Error.Message + " " + vendor.Error.Details)
		if text == "" {
			continue
		}
		if e, ok := retryOf(text); ok {
			return []agent.Event{e}
		}
		return one(agent.EventNotice, clean(text))
	}
	return unknown()
}

// reRetry matches how agents say that they try again: "Reconnecting... 1/5", "Attempt 2 failed".
var reRetry = lazyregexp.New(`Reconnecting\.\.\. (\d{1,6})/(\d{1,6})|Attempt (\d{1,6}) failed`)

// retryOf returns the event of a text by which an agent says that it tries again; false for
// another text.
func retryOf(text string) (agent.Event, bool) {
	e := agent.Event{Kind: agent.EventRateLimited, Text: clean(text)}
	m := reRetry().FindStringSubmatch(text)
	if m == nil {
		return e, kindOfText(text) == agent.KindRateLimit
	}
	e.Attempt, _ = strconv.Atoi(m[1] + m[3]) // digits
	e.Of, _ = strconv.Atoi(m[2])             // 0 without
	return e, true
}

// planText is a plan in one line.
func planText(u *update) string {
	done, now := 0, ""
	for _, e := range u.Entries {
		switch e.Status {
		case "completed":
			done++
		case "in_progress":
			now = e.Content
		}
	}
	text := fmt.Sprintf("plan: %d of %d steps done", done, len(u.Entries))
	if now != "" {
		text += "; now: " + clip.Prefix(clip.FirstLine(clean(now)), 200)
	}
	return text
}

// spent is what the turn cost, nil when that is unknown. A cost of 0 is also that of a model
// without a known price.
func (s *story) spent() *int64 {
	if s.cost == nil || s.before == nil || *s.cost <= *s.before || s.madeUp() {
		return nil
	}
	return new(*s.cost - *s.before)
}

// madeUp reports whether the agent reports a cost of a model whose price it does not know.
func (s *story) madeUp() bool {
	return s.cost != nil && *s.cost > 0 && s.prices != nil && !s.prices(s.model)
}

// modelName returns the model without the effort that the Codex adapter adds: "gpt-5[medium]".
func (s *story) modelName() string {
	name, _, _ := strings.Cut(s.model, "[")
	return name
}
