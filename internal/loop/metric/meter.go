package metric

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
)

// Meter measures a workspace. It is for one goroutine.
type Meter struct {
	Measures *config.Measures
	Files    *workspace.Workspace
	// Plan is set by [Meter.Begin]; the caller stores it.
	Plan *Plan
	// Scratch is the absolute path of a folder for results, outside of the workspace.
	Scratch string
	// Limit bounds the time of one command; 0 or less means no limit.
	Limit time.Duration
	// Run runs a command in the workspace with a time limit. Errors are those of the
	// machine and of the context, not of the command.
	Run func(ctx context.Context, c *project.Command, limit time.Duration) (*Ran, error)
	// Save stores data under a name, Load returns it.
	Save func(ctx context.Context, data []byte) (name string, err error)
	Load func(ctx context.Context, name string) ([]byte, error)
	// Logger receives warnings; nil discards them.
	Logger *slog.Logger
}

// Ran is the result of a command.
type Ran struct {
	Began time.Time
	Exit  int
	// TimedOut is set if the command was stopped at the time limit.
	TimedOut bool
	// Stdout is the command's standard output, Both that with standard error; their
	// positions are undefined. End is the end of Both.
	Stdout, Both *os.File
	End          string
	// Close removes the files.
	Close func()
}

// lastLine returns the last line that the command printed.
func (r *Ran) lastLine() string { return lastLine(r.End) }

// result returns the last line of standard output.
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
	return clip.Bytes(clip.LastLine(text), maxReason)
}

// maxReason limits a reason, in bytes.
const maxReason = 600
