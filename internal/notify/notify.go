// Package notify notifies the user that a loop or a run needs an answer or has ended: by a
// command of the user, a webhook or the desktop.
//
// Delivery is best effort: an error of [Sender].Send is only logged, and nothing waits until
// the user has read a notice.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
)

// Limits of a [Notice], in bytes; what is longer is cut.
const (
	MaxTitleBytes = 500
	MaxTextBytes  = 8 << 10
)

// Timeout limits the delivery of one notice by all senders together.
const Timeout = 10 * time.Second

// Event is the reason for a notice.
type Event string

// The events.
const (
	// GateOpened: a question waits for an answer. Paused: the user has to fix something.
	GateOpened Event = "gate_opened"
	Paused     Event = "loop_paused"
	// Ended: the loop is completed, failed or aborted.
	Ended Event = "loop_complete"
)

// Notice is one notification.
type Notice struct {
	// ID stays the same when a notice is sent again after a crash.
	ID    string `json:"id"`
	Event Event  `json:"event"`
	// Loop is the ID of the loop; empty for a run.
	Loop string `json:"loop_id,omitempty"`
	Tree string `json:"tree_id,omitempty"`
	// Title is one line; Text is the whole notice, including how to answer.
	Title string    `json:"title"`
	Text  string    `json:"text"`
	Time  time.Time `json:"time"`
	// Folder is the folder in which commands about the loop work.
	Folder    string `json:"folder,omitempty"`
	Iteration int    `json:"iteration"`
	// Gate is set for GateOpened, Status for the others.
	Gate   *Gate  `json:"gate,omitempty"`
	Status string `json:"status,omitempty"`
}

// Gate is the question that waits for an answer.
type Gate struct {
	Number  json.Number `json:"gate"`
	Kind    string      `json:"kind"`
	Options []Option    `json:"options"`
	// Approver says who can answer, in one line; Token is the token of the gate. Both can be
	// empty. Senders do not pass the token in arguments and environment variables, which
	// other programs of the user can read.
	Approver string `json:"approver,omitempty"`
	Token    string `json:"token,omitempty"`
}

// Option is a possible answer, its effect, and the command that gives it.
type Option struct {
	Answer  string `json:"answer"`
	Effect  string `json:"effect"`
	Command string `json:"command"`
}

// Sender delivers notices. Implementations are safe for concurrent use.
type Sender interface {
	// Send delivers a notice. It returns soon after ctx ends.
	Send(ctx context.Context, n *Notice) error
}

// fitted returns the notice within the limits, without characters that control a terminal or
// the order of text, other than line breaks and tabs in its text.
func fitted(n *Notice) Notice {
	f := *n
	f.Title = clip.Bytes(strings.Map(printable(false), n.Title), MaxTitleBytes)
	f.Text = clip.Bytes(strings.Map(printable(true), n.Text), MaxTextBytes)
	return f
}

// document returns the notice as JSON; its text contains the token.
func (n *Notice) document() ([]byte, error) {
	f := *n
	if f.Gate != nil && f.Gate.Token != "" {
		f.Text += "\ntoken: " + f.Gate.Token
	}
	return json.Marshal(&f)
}

func printable(lines bool) func(rune) rune {
	return func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case unicode.IsControl(r), human.Reorders(r), r == utf8.RuneError:
			return ' '
		}
		return r
	}
}

// ErrNoDesktop reports that the system cannot show desktop notifications.
var ErrNoDesktop = errors.New("desktop notifications are not available")
