package metric

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
)

// Meter takes metrics of a workspace. It is for one goroutine.
type Meter struct {
	Measures *config.Measures
	Files    *workspace.Workspace
	// Plan is filled in by [Meter.Begin] and is to be kept.
	Plan *Plan
	// Scratch is the absolute path of a folder for results, outside of the
	// workspace's files.
	Scratch string
	// Limit bounds one command; 0 or less is no limit.
	Limit time.Duration
	// Run runs a command in the workspace, for at most a time. An error is one of
	// the machine, or the context's.
	Run func(ctx context.Context, c *project.Command, limit time.Duration) (*Ran, error)
	// Save keeps data under a name, Load returns it.
	Save func(ctx context.Context, data []byte) (name string, err error)
	Load func(ctx context.Context, name string) ([]byte, error)
	// Logger: nil discards.
	Logger *slog.Logger
}

// Ran is what a command left.
type Ran struct {
	Began time.Time
	Exit  int
	// TimedOut tells that the command was stopped.
	TimedOut bool
	// Stdout is what it printed, Both that with standard error; positioned
	// anywhere. End is the end of Both.
	Stdout, Both *os.File
	End          string
	// Close removes the files.
	Close func()
}

// lastLine is the last line that a command printed.
func (r *Ran) lastLine() string { return lastLine(r.End) }

// result is the last line of standard output.
func (r *Ran) result() (string, error) {
	const end = 4 << 10
	size, err := r.Stdout.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(r.Stdout, max(0, size-end), end))
	return lastLine(strings.ToValidUTF8(string(text), "\uFFFD")), err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return clip(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), maxReason)
}

// maxReason is how long a reason is, in bytes.
const maxReason = 600

// clip shortens a text to a number of bytes, at the end of a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
