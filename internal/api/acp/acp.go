// Package acp is perdure as an agent of the Agent Client Protocol: an editor sends prompts
// over standard input and output, and each prompt starts or continues a run or a loop. Gates
// become permission requests.
//
// The package speaks version 1 of the protocol and follows trees through the API. Its [Host],
// which the command implements, opens stores and prepares what a prompt starts. [Serve] reads
// requests (handle.go), sessions hold the prompts of an editor (session.go), and a turn is the
// execution of one prompt (turn.go): it opens the store, creates or continues a tree, and
// translates what happens to updates (run.go, loop.go).
package acp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/loop/record"
)

// Mode is what the prompts of a session start.
type Mode string

// The modes.
const (
	// ModeRun answers the prompt over the attached files or the folder.
	ModeRun Mode = "run"
	// ModeLoop repeats a coding agent on the folder until a check passes.
	ModeLoop Mode = "loop"
)

// Limits of what an editor sends and of what it gets back.
const (
	// DefaultMaxMessageBytes is the maximum size of a message of the editor.
	DefaultMaxMessageBytes = 32 << 20
	// MaxBlocks is the maximum number of content blocks of a prompt.
	MaxBlocks = 1000
	// MaxSessions is the maximum number of open sessions.
	MaxSessions = 1000
	// MaxReplayedEvents is the maximum number of events of a tree that are replayed, the
	// newest ones.
	MaxReplayedEvents = 1000
)

// Config configures an agent.
type Config struct {
	// Host opens stores. Required.
	Host Host
	// View writes what happens in loops and runs. Required.
	View View
	// Mode is the mode of new sessions. Required.
	Mode Mode
	// Version is the version of the program.
	Version string
	// User is the name with which gates are answered.
	User string
	// Logger receives what the editor does not see; nil discards it.
	Logger *slog.Logger
	// MaxMessageBytes is the maximum size of a message of the editor; 0 is
	// DefaultMaxMessageBytes.
	MaxMessageBytes int
}

// Host opens the stores of folders.
type Host interface {
	// Open opens the store of a folder. It returns an [*UntrustedError] if something would act
	// that the user does not trust.
	Open(ctx context.Context, req *OpenRequest) (*Project, error)
	// Trust records that the user trusts a folder in which req.Trusted would act.
	Trust(ctx context.Context, req *OpenRequest) error
}

// OpenRequest asks for the store of a folder.
type OpenRequest struct {
	// Dir is the folder, absolute.
	Dir string
	// Read only reads: a store has to exist, and nothing is executed.
	Read bool
	// Mode is the kind of the tree that is created or, if Stored is set, continued.
	Mode   Mode
	Stored bool
	// Own is set if this process has created the tree, so that it may answer gates with their
	// tokens.
	Own bool
	// Trusted are the lines of an [UntrustedError] that the user trusts: exactly these may act.
	Trusted []string
	// Until and Agent replace the check and the agent of new loops, if not empty.
	Until, Agent string
}

// UntrustedError is the error of a folder in which settings or stored trees would act that the
// user does not trust.
type UntrustedError struct {
	// Dir is the folder of the settings, Lines what would act.
	Dir   string
	Lines []string
	// Hint is set if the user cannot be asked here, because the list is too long.
	Hint string
}

// Error returns the folder.
func (e *UntrustedError) Error() string { return e.Dir + " is not trusted" }

// Project is an open store.
type Project struct {
	*client.Client
	// Tokens returns the tokens of gates; nil if a daemon executes trees.
	Tokens Tokens
	// Work executes trees; nil for a store that is only read.
	Work Work
	// Close closes the store.
	Close func() error
}

// Tokens returns the tokens of the gates that this process has opened.
type Tokens interface {
	// GateToken returns the token of an open gate, "" if this process has not made it.
	GateToken(ctx context.Context, tree perdure.TreeID, number int) string
}

// Work starts, continues and executes trees in a project.
type Work interface {
	// Prepare returns the request that creates the tree of a prompt. Nothing is created yet.
	Prepare(ctx context.Context, p *Prompt) (client.TreeRequest, error)
	// Create creates the tree of a request, or returns the one that was created with its key.
	Create(ctx context.Context, req client.TreeRequest) (perdure.Tree, error)
	// Resume prepares a tree to continue. It reports whether another process executes it.
	Resume(ctx context.Context, id perdure.TreeID) (elsewhere bool, err error)
	// Follow calls follow while this process executes the trees that it created or resumed,
	// unless a daemon or another process does. If that other process ends before its tree, this
	// one executes it, and follow is called again with a context of its own.
	Follow(ctx context.Context, follow func(context.Context) error) error
}

// View writes what happens in loops and runs.
type View interface {
	// Line returns an event of a loop as one line, "" for one that is not shown.
	Line(e *perdure.Event) string
	// Summary returns the state of a loop as one line.
	Summary(l *record.Loop) string
	// Answer returns the answer of a run, and why it is incomplete or missing, if it is.
	Answer(r *client.Result) (text, problem string)
}

// Prompt is the content of a prompt.
type Prompt struct {
	// Text is the question or the task.
	Text string `json:"text"`
	// Files are the attached files and folders, Parts the attached text.
	Files []string `json:"files,omitempty"`
	Parts []Part   `json:"parts,omitempty"`
}

// Task returns the prompt as the task of a loop: the agent reads attached files itself, and
// other attached text follows the task.
func (p *Prompt) Task() string {
	var b strings.Builder
	b.WriteString(p.Text)
	for i := range p.Parts {
		if part := &p.Parts[i]; !part.File {
			fmt.Fprintf(&b, "\n\n%s:\n\n%s", part.Name, part.Text)
		}
	}
	return b.String()
}

// Part is text that the editor attached, under the name of its file.
type Part struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// File reports whether the text is in a file of this machine too.
	File bool `json:"file,omitempty"`
}
