package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/guard"
)

// Variables that programs get in their environment, besides the notice as JSON on
// standard input.
const (
	VarEvent = "PERDURE_EVENT"
	VarLoop  = "PERDURE_LOOP"
	VarTitle = "PERDURE_TITLE"
	VarText  = "PERDURE_TEXT"
)

// Command tells by a command line for the shell. It is ended, with all that it
// started, when its time is over.
type Command struct {
	Line string
	// Dir is the folder it runs in.
	Dir string
	// Hold are files that stay open until it is gone.
	Hold []*os.File
}

// Send runs the command. A status other than 0 is an error with the end of what it
// said.
func (c *Command) Send(ctx context.Context, n *Notice) error {
	f := fitted(n)
	doc, err := json.Marshal(&f)
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
