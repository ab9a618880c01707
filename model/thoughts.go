package model

import (
	"strings"

	"github.com/perdure/perdure/model/internal/thoughts"
)

// Verbatim is implemented by models whose text is not only what a language model wrote. It returns
// how they are searched for thoughts.
type Verbatim interface {
	Verbatim() TextKind
}

// TextKind is what the text of a model's answers is.
type TextKind int

const (
	// TextGenerated was written by a language model. Thoughts are found before and within it.
	TextGenerated TextKind = iota
	// TextPrinted was printed by a program, which can be a language model or a file. Thoughts are
	// found before it.
	TextPrinted
	// TextQuoted quotes the context. It has no thoughts.
	TextQuoted
)

// textKind returns what the text of a model's answers is.
func textKind(m Model) TextKind {
	if v, ok := find[Verbatim](m); ok {
		return v.Verbatim()
	}
	return TextGenerated
}

// MaxThoughtsBytes is what is kept of the thoughts of one reply.
const MaxThoughtsBytes = 1 << 20

// SeparateThoughts returns a response of m with the thoughts in its text moved to Thoughts: what
// models write between marks such as <think> and </think>. A response that is Separated is returned as
// it is. The text is empty if all of it was thoughts.
func SeparateThoughts(m Model, resp *Response) *Response {
	if resp == nil || resp.Separated {
		return resp
	}
	out := *resp
	out.Separated = true
	found := ""
	switch textKind(m) {
	case TextGenerated:
		out.Text, found = thoughts.Cut(resp.Text, thoughts.Generated)
	case TextPrinted:
		out.Text, found = thoughts.Cut(resp.Text, thoughts.Printed)
	case TextQuoted:
	}
	if found != "" && out.Thoughts != "" {
		found = "\n\n" + found
	}
	out.Thoughts, _ = Clean(out.Thoughts + found)
	out.Thoughts = cutThoughts(out.Thoughts)
	return &out
}

func cutThoughts(text string) string {
	if len(text) <= MaxThoughtsBytes {
		return text
	}
	text = text[:MaxThoughtsBytes]
	return text[:wholeCharacters(text)] + "\n… (cut)"
}

// OnlyThoughts returns the error of a response whose reply holds thoughts and no answer, nil if it
// has an answer. name is the name of the model.
func OnlyThoughts(name string, resp *Response) *Error {
	if strings.TrimSpace(resp.Text) != "" || len(resp.Citations) > 0 || resp.Thoughts == "" {
		return nil
	}
	e := &Error{Kind: KindThoughts, Usage: resp.Usage, Thoughts: resp.Thoughts,
		Msg: name + ": the reply holds only thoughts and no answer",
		Hint: "switch the model's thinking off or lower its effort, or choose another model; `perdure show TASK` " +
			"prints the thoughts"}
	if resp.IsCut() {
		e.Kind = KindInvalid
		e.Msg = name + ": the limit for answers was reached within the model's thoughts, before there was an answer"
		e.Hint = "raise the limit for answers (a larger --context-window), or lower the model's thinking"
	}
	return e
}

// answerStream passes text on to onText as it arrives, without thoughts.
func (g *Guarded) answerStream(onText func(string)) *thoughts.Stream {
	s := &thoughts.Stream{Pass: onText, Closed: g.closedOnly.Load()}
	if textKind(g.cfg.Model) == TextPrinted {
		s.Style = thoughts.Printed
	}
	return s
}

// noteClosedOnly remembers that the replies of the model have only the closing mark of thoughts, so
// that the text of later ones is not taken for the answer while it arrives.
func (g *Guarded) noteClosedOnly(text string) {
	if thoughts.HasClosedOnly(text) {
		g.closedOnly.Store(true)
	}
}
