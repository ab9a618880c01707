package model

import (
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// HintTooLong is what a person can do about a request that is longer than a model
// reads.
const HintTooLong = "the request is too long for the model: set a smaller context window"

// reTooLong matches what servers say of a request that is longer than the model
// reads: in the words of their codes, and of their messages.
var reTooLong = lazyregexp.New(`(?i)context_length|exceed_context|request_too_large|maximum context|context (length|limit|` +
	`size|window)|` +
	`(prompt|request|input) is too (long|large)|too many (input |prompt )?tokens|(input|prompt) token count.*exceeds|` +
	`too large for model`)

// Kind returns the kind of failure of a reply with an HTTP status and this fault.
func (f Fault) Kind(status int) Kind {
	kind := KindOfStatus(status)
	if kind == KindInvalid && f.Type == "API_KEY_INVALID" { // Gemini answers 400
		return KindAuth
	}
	if kind == KindInvalid && reTooLong().MatchString(f.Code+"\n"+f.Type+"\n"+f.Message) {
		return KindTooLong
	}
	return kind
}

// Text is what the fault says, short and in one line.
func (f Fault) Text() string {
	text, _ := Clean(clip.OneLine(f.Message))
	return clip.Bytes(text, maxFaultText)
}
