// Package notify tells people that a loop or a run wants something of them, or is over: by
// a program of theirs, by a webhook, or on their desktop.
//
// Who is told is told in good faith: an error of [Sender].Send is for the log, and
// nothing waits for a person to have read anything.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
)

// Limits of a [Notice], in bytes; what is longer is cut.
const (
	MaxTitleBytes = 500
	MaxTextBytes  = 8 << 10
)

// Timeout is how long it may take to tell somebody, on all ways together.
const Timeout = 10 * time.Second

// Event is why somebody is told.
type Event string

// The events.
const (
	// GateOpened: a person has to answer. Paused: something has to be mended.
	GateOpened Event = "gate_opened"
	Paused     Event = "loop_paused"
	// Ended: the loop is completed, failed or aborted.
	Ended Event = "loop_complete"
)

// Notice is what somebody is told.
type Notice struct {
	// ID is the same when the same is told once more, which a crash at the wrong
	// moment can lead to.
	ID    string `json:"id"`
	Event Event  `json:"event"`
	// Loop is the loop that it is about; empty when it is about a run.
	Loop string `json:"loop_id,omitempty"`
	Tree string `json:"tree_id,omitempty"`
	// Title is one line; Text says all in words, with how to answer.
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Time  time.Time `json:"time"`
	// Folder is where commands about the loop are given.
	Folder    string `json:"folder,omitempty"`
	Iteration int    `json:"iteration"`
	// Gate is set for GateOpened, Status for the others.
	Gate   *Gate  `json:"gate,omitempty"`
	Status string `json:"status,omitempty"`
}

// Gate is the question.
type Gate struct {
	Number  json.Number `json:"gate"`
	Kind    string      `json:"kind"`
	Options []Option    `json:"options"`
}

// Option is an answer, what it does, and the command that gives it.
type Option struct {
	Answer  string `json:"answer"`
	Effect  string `json:"effect"`
	Command string `json:"command"`
}

// Sender is a way to tell people. Implementations are safe for concurrent use.
type Sender interface {
	// Send returns when it is done, or soon after ctx ends.
	Send(ctx context.Context, n *Notice) error
}

// fitted is a notice within the limits, without control characters but line
// breaks in its text.
func fitted(n *Notice) Notice {
	f := *n
	f.Title = clip.Bytes(strings.Map(printable(false), n.Title), MaxTitleBytes)
	f.Text = clip.Bytes(strings.Map(printable(true), n.Text), MaxTextBytes)
	return f
}

func printable(lines bool) func(rune) rune {
	return func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case r < ' ' || r == 0x7f || r == utf8.RuneError:
			return ' '
		}
		return r
	}
}

// ErrNoDesktop is a machine without a way to reach somebody's desktop.
var ErrNoDesktop = errors.New("there is no program for desktop notifications")
