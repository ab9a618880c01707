package rlm

import (
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// output is the message behind a reply, which can be written again with less of what was printed.
type output struct {
	done  turn.Done
	write func(turn.Done) string
}

// shown is how a conversation is shown in requests. It changes only in one direction, so that the
// requests of later turns begin like those before, and depends on nothing but the messages and the
// room that they had: a conversation that is repeated makes the same requests.
type shown struct {
	// Most is how many characters are shown of the output of a turn, from turn 1; 0 for those that
	// are not shortened.
	Most []int `json:"most,omitempty"`
	// From counts the turns, from the first one, that are left out. Summary is what the model wrote of the
	// first of them, and Summarized counts these; it may be empty.
	From       int    `json:"from,omitempty"`
	Summary    string `json:"summary,omitempty"`
	Summarized int    `json:"summarized,omitempty"`
	// Unsummarized is the turn up to which the model wrote no summary when it was asked last.
	Unsummarized int `json:"unsummarized,omitempty"`
	// Where is the expression of the code that has the whole conversation; it may be empty.
	Where string `json:"where,omitempty"`
}

// isWhole reports whether nothing is shortened.
func (s *shown) isWhole() bool { return s.From == 0 && len(s.Most) == 0 }

// clone returns a copy that can be changed.
func (s *shown) clone() shown {
	out := *s
	out.Most = slices.Clone(s.Most)
	return out
}

// take shows the conversation as it was recorded; nil is one that is not shortened.
func (s *shown) take(recorded *shown) {
	if recorded == nil {
		return
	}
	summary := s.Summary
	*s = recorded.clone()
	if s.Summary == "" {
		s.Summary = summary
	}
}

// shorten shows so many characters of the output of a turn, 0 for all.
func (s *shown) shorten(turn, most int) {
	for len(s.Most) < turn {
		s.Most = append(s.Most, 0)
	}
	s.Most[turn-1] = most
}

// levels are how many characters of the last output are shown, until the conversation fits. It is
// shown less than wellShown only if that is not enough although the turns before are left out.
func levels() []int { return []int{10_000, wellShown, 2500, 1200, turn.Brief} }

const wellShown = 5000

// messagesShown returns the messages as they are shown.
func (c *console) messagesShown() []model.Message {
	s := &c.shown
	if s.isWhole() {
		return slices.Clone(c.messages)
	}
	var out []model.Message
	if s.From > 0 {
		l := turn.LeftOut{Turns: s.From, Question: c.questionLeftOut()}
		if s.Where != "" {
			l.Where = fmt.Sprintf("%s[1:%d]", s.Where, 2*s.From+1)
		}
		reply := s.Summary
		if l.Summarized = s.Summarized; reply == "" {
			reply, l.Summarized = l.Reply(), 0
		}
		out = append(out, model.Message{Reply: true, Text: reply}, model.Message{Text: l.Message()})
	}
	for i := 2 * s.From; i < len(c.messages); i++ {
		m := c.messages[i]
		if number := i/2 + 1; !m.Reply && number <= len(s.Most) && s.Most[number-1] > 0 {
			m.Text = c.outputShown(number, s.Most[number-1])
		}
		out = append(out, m)
	}
	return out
}

// outputShown returns the message behind a reply with so many characters of each output.
func (c *console) outputShown(number, most int) string {
	o := c.outputs[number-1]
	o.done.Most = most
	if c.shown.Where != "" {
		o.done.Where = fmt.Sprintf("%s[%d]", c.shown.Where, 2*number)
	}
	return o.write(o.done)
}

// questionLeftOut returns the question that is asked now, if it was asked in a turn that is left out.
func (c *console) questionLeftOut() string {
	if c.asked > 0 && c.asked <= c.shown.From {
		return c.question
	}
	return ""
}

// newHistory returns the messages of the conversation that the variable history does not have yet;
// none before the conversation is shortened for the first time.
func (c *console) newHistory() (out []engine.Message) {
	if c.shown.Where == "" {
		return nil
	}
	all := append([]model.Message{{Text: c.first}}, c.messages...)
	for i := c.inCode; i < len(all); i++ {
		m := engine.Message{Role: "user", Content: all[i].Text}
		switch {
		case all[i].Reply:
			m.Role = "assistant"
		case i > 0:
			m.Content = c.outputShown(i/2, turn.Whole)
		}
		out = append(out, m)
	}
	c.inCode = len(all)
	return out
}

// historyName returns the expression of the code that has the conversation.
func (c *console) historyName() string {
	const name = "history"
	switch _, bound := c.vars[name]; {
	case !bound:
		return name
	case c.profile.KeepsNames():
		return "perdure." + name
	}
	return "" // the code has a variable with this name
}

// lastOutput returns the beginning of what the code printed last, for a run that ends without an answer.
func (c *console) lastOutput() string {
	const most = 2000
	for _, o := range slices.Backward(c.outputs) {
		for _, done := range slices.Backward(o.done.Outcomes) {
			if done.Output != "" {
				return "\n\nWhat the code printed last:\n" + clip.Bytes(done.Output, most)
			}
		}
	}
	return ""
}

// noteShortened adds a note to the result, if the conversation is shortened.
func (c *console) noteShortened() {
	const note = "the conversation became longer than the model reads, so that old outputs are shortened in it; " +
		"--context-window says how much it reads"
	if !c.shown.isWhole() && !slices.Contains(c.notes, note) {
		c.notes = append(c.notes, note)
	}
}

// shrink shortens outputs, the oldest first, until the conversation has room, and reports whether it has.
// Of the last one, at least so many characters stay. There is a reply.
func (a *attempt) shrink(c *console, room int64, least int) bool {
	if a.turnTokens(c) <= room {
		return true
	}
	c.shown.Where = c.historyName()
	last := c.number
	for number := c.shown.From + 1; number < last; number++ {
		if number <= len(c.shown.Most) && c.shown.Most[number-1] == turn.Brief {
			continue
		}
		if c.shown.shorten(number, turn.Brief); a.turnTokens(c) <= room*3/4 { // so that it has room for a while
			return true
		}
	}
	for _, most := range levels() {
		if a.turnTokens(c) <= room {
			return true
		}
		if most < least {
			return false
		}
		c.shown.shorten(last, most)
	}
	return a.turnTokens(c) <= room
}

// turnTokens estimates the tokens of the request for the next reply.
func (a *attempt) turnTokens(c *console) int64 {
	return model.EstimateTokens(requestBytes(a.turnRequest(c)))
}
