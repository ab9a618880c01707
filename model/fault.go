package model

import (
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
)

// HintTooLong is what a person can do about a request that is longer than a model
// reads.
const HintTooLong = "the request is too long for the model: set a smaller context window"

// Kind returns the kind of failure of a reply with an HTTP status and this fault.
func (f Fault) Kind(status int) Kind {
	kind := KindOfStatus(status)
	limit, passed := f.TokenLimit(status)
	switch {
	case passed && limit.Output:
		return KindInvalid
	case passed:
		return KindTooLong
	}
	return f.kindBySigns(status, kind)
}

// Text is what the fault says, short and in one line, with the field of the request that it names.
func (f Fault) Text() string {
	message := f.Message
	if f.Param != "" && !strings.Contains(message, f.Param) {
		message = f.Param + ": " + message
	}
	text, _ := Clean(clip.OneLine(message))
	return clip.Bytes(text, maxFaultText)
}
