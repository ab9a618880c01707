package hook

import (
	"context"
	"errors"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// FaultKind says what kind of failure a [FaultError] is.
type FaultKind string

// The kinds of faults.
const (
	// FaultTimeout: the handler's time was over.
	FaultTimeout FaultKind = "timeout"
	// FaultCanceled: the loop was stopped meanwhile.
	FaultCanceled FaultKind = "canceled"
	// FaultHung: the handler, a Go value, did not return after its time was over,
	// now or in an earlier invocation.
	FaultHung FaultKind = "hung"
	// FaultPanic: the handler, a Go value, panicked.
	FaultPanic FaultKind = "panic"
	// FaultReturned: the handler, a Go value, returned an error of its own.
	FaultReturned FaultKind = "error"
	// FaultMessage: the message could not be sent: it is too large, or an input
	// is no JSON.
	FaultMessage FaultKind = "message"
	// FaultStart: the program is missing or cannot be run.
	FaultStart FaultKind = "start"
	// FaultExit: the program ended with a status other than 0 and 2, or by a
	// signal.
	FaultExit FaultKind = "exit"
	// FaultReply: the reply is invalid.
	FaultReply FaultKind = "reply"
	// FaultTooLarge: the reply is larger than it may be.
	FaultTooLarge FaultKind = "too_large"
	// FaultNetwork: the endpoint cannot be reached, or its reply broke off.
	FaultNetwork FaultKind = "network"
	// FaultRedirect: the endpoint answered with a redirect.
	FaultRedirect FaultKind = "redirect"
	// FaultStatus: the endpoint answered with another status than 2xx.
	FaultStatus FaultKind = "status"
)

// maxFaultBytes is the longest text of a fault.
const maxFaultBytes = 2 << 10

// FaultError is the failure of a handler. Recognised secrets are removed from its
// messages.
type FaultError struct {
	Kind FaultKind
	// Msg says what happened, for people.
	Msg string
	// Detail is the output of the handler, for example the end of its standard
	// error, or the stack of a panic; may be empty, may have many lines.
	Detail string
	// Err is the cause; may be nil.
	Err error
}

// Error returns the kind, the message and the cause in one line of at most
// 2 KiB.
func (f *FaultError) Error() string {
	text := string(f.Kind) + ": " + f.text()
	return clip.Bytes(text, maxFaultBytes)
}

// text is the message and the cause in one line.
func (f *FaultError) text() string {
	text := f.Msg
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return clip.Bytes(clip.OneLine(text), maxFaultBytes)
}

// recorded is the fault as it is written down. Of a stack the beginning says
// most, of what programs say the end.
func (f *FaultError) recorded() *RecordedFault {
	detail := clip.End(f.Detail, maxFaultBytes)
	if f.Kind == FaultPanic {
		detail = clip.Bytes(f.Detail, maxFaultBytes)
	}
	return &RecordedFault{Kind: f.Kind, Message: f.text(), Detail: strings.ToValidUTF8(detail, "\uFFFD")}
}

// Unwrap returns the cause.
func (f *FaultError) Unwrap() error { return f.Err }

// stopped is the fault of a handler whose context ended.
func stopped(ctx context.Context) *FaultError {
	err := ctx.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return &FaultError{Kind: FaultTimeout, Msg: "no reply in time", Err: err}
	}
	return &FaultError{Kind: FaultCanceled, Msg: "stopped before there was a reply", Err: err}
}

// asFault makes a fault of what a handler returned.
func asFault(ctx context.Context, err error) *FaultError {
	var fault *FaultError
	switch {
	case errors.As(err, &fault):
		return fault
	case ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		return stopped(ctx)
	}
	return &FaultError{Kind: FaultReturned, Msg: "the handler says", Err: model.RedactError(err)}
}

// clean is text of others, fit for people: valid UTF-8 and without secrets.
func clean(text string, secrets ...string) string {
	text, _ = model.Clean(text)
	return strings.TrimSpace(model.Redact(text, secrets...))
}
