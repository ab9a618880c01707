package notify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/guard"
)

// Environment variables of commands, in addition to the notice as JSON on standard input.
const (
	VarEvent = "PERDURE_EVENT"
	VarLoop  = "PERDURE_LOOP"
	VarTitle = "PERDURE_TITLE"
	VarText  = "PERDURE_TEXT"
)

// Command sends notices to a shell command. The command and everything it started are
// stopped when the context ends.
type Command struct {
	Line string
	// Dir is the folder it runs in.
	Dir string
	// Hold are files that stay open until the command is gone.
	Hold []*os.File
}

// Send runs the command. An exit status other than 0 is an error with the end of the
// command's output.
func (c *Command) Send(ctx context.Context, n *Notice) error {
	f := fitted(n)
	doc, err := f.document()
	if err != nil {
		return err
	}
	shell, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/c"
	}
	said := &end{}
	err = guard.Run(ctx, guard.Config{
		Path: shell, Args: []string{flag, c.Line}, Dir: c.Dir, Hold: c.Hold, Stdin: bytes.NewReader(append(doc, '\n')),
		Stdout: said, Stderr: said,
		Env: slices.Concat(os.Environ(), []string{VarEvent + "=" + string(f.Event), VarLoop + "=" + f.Loop,
			VarTitle + "=" + f.Title, VarText + "=" + f.Text}),
	})
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(said.text()); text != "" {
		return fmt.Errorf("the command: %w: %s", err, text)
	}
	return fmt.Errorf("the command: %w", err)
}

// end keeps the end of what is written to it.
type end struct{ kept []byte }

const maxSaid = 500

// Write keeps the last bytes.
func (e *end) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p[max(0, len(p)-maxSaid):]...)
	e.kept = e.kept[max(0, len(e.kept)-maxSaid):]
	return len(p), nil
}

func (e *end) text() string { return strings.Map(printable(false), string(e.kept)) }
