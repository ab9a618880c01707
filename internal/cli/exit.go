package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// The exit statuses. Programs rely on them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitIncomplete  = 3
	exitNotFound    = 4
	exitConflict    = 5
	exitGate        = 6
	exitUnavailable = 7
	exitInterrupted = 130
)

// errInterrupted is the cause of a context that the first Ctrl-C ended.
var errInterrupted = errors.New("interrupted")

// outcome is an error that decides the exit status by itself. With an empty
// message nothing is printed: the command has said all there is to say.
type outcome struct {
	status int
	msg    string
	hint   string
}

func (o *outcome) Error() string { return o.msg }

// exitStatus is the one table from errors to exit statuses.
func exitStatus(err error) int {
	if err == nil {
		return exitDone
	}
	var own *outcome
	if errors.As(err, &own) {
		return own.status
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	switch perdure.CodeOf(err) {
	case perdure.CodeInvalid:
		return exitUsage
	case perdure.CodeBudgetExceeded:
		return exitIncomplete
	case perdure.CodeNotFound:
		return exitNotFound
	case perdure.CodeConflict, perdure.CodeLeaseLost:
		return exitConflict
	case perdure.CodeUnavailable:
		return exitUnavailable
	case perdure.CodeCanceled:
		return exitInterrupted
	case perdure.CodeDamaged, perdure.CodeInternal:
		return exitFailed
	}
	return exitFailed
}

// printError prints err once: what was wrong, then what to do about it.
func printError(s *stream, err error) {
	msg := err.Error()
	hint := perdure.HintOf(err)
	var own *outcome
	if errors.As(err, &own) {
		msg, hint = own.msg, own.hint
	}
	if msg == "" {
		return
	}
	fmt.Fprintf(s, "perdure: error: %s\n", paragraph(msg))
	if hint != "" {
		fmt.Fprintf(s, "perdure: hint: %s\n", paragraph(hint))
	}
}

// paragraph keeps a message of several lines below its first word, and its
// control characters away from the terminal.
func paragraph(text string) string {
	return strings.ReplaceAll(visible(strings.TrimSpace(text)), "\n", "\n  ")
}
