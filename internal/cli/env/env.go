// Package env is the environment of the commands: streams, working folder,
// environment variables, settings and the connection to the store. It also holds
// the flags, completions, usage errors and exit statuses that all commands share.
package env

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/charmbracelet/x/term"
)

// Process is the environment that a process passes to its command. The zero value
// of a field is valid.
type Process struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Terminal returns the width of the terminal behind one of the three
	// streams, and false if there is none.
	Terminal func(stream any) (width int, ok bool)
	// Args are the arguments without the program's name.
	Args []string
	// Environ holds the environment variables as NAME=value.
	Environ []string
	// Cwd is the working directory, absolute.
	Cwd string
	// Signals delivers SIGINT, SIGTERM and, unless it was ignored at the start, SIGHUP. The first stops
	// cleanly, the second at once; SIGHUP counts once, because a terminal that is closed sends several.
	Signals <-chan os.Signal
	// Opener replaces [Env.Open], for tests.
	Opener Opener
}

// System returns the process's own environment. It takes over the process's
// signals: a closed pipe becomes an error of the write instead of the end of
// the process, and children do not inherit that.
func System(cwd string) Process {
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup makes it
		signal.Notify(stops, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: terminalWidth,
		Args:     os.Args[1:],
		Environ:  os.Environ(),
		Cwd:      cwd,
		Signals:  stops,
	}
}

// terminalWidth returns the width that the operating system reports. A query to the
// terminal itself would block if the terminal does not answer.
func terminalWidth(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return 0, false
	}
	width, _, err := term.GetSize(f.Fd())
	if err != nil || width <= 0 {
		width = defaultWidth
	}
	return width, true
}

// Env is the environment of one execution of the program.
type Env struct {
	Process
	// Out and Err are standard output and standard error.
	Out, Err *Stream
	// JSON is the flag --json.
	JSON bool
	// UsesTokens is set if the command answers gates with their tokens on behalf of the user.
	UsesTokens bool
	// trustErr is why the trust record of a store that this process created was not written.
	trustErr error
}

// New returns the environment of a command in p.
func New(p Process) *Env {
	if p.Stdin == nil {
		p.Stdin = strings.NewReader("")
	}
	if p.Stdout == nil {
		p.Stdout = io.Discard
	}
	if p.Stderr == nil {
		p.Stderr = io.Discard
	}
	if p.Terminal == nil {
		p.Terminal = func(any) (int, bool) { return 0, false }
	}
	e := &Env{Process: p}
	e.Out, e.Err = e.stream(p.Stdout), e.stream(p.Stderr)
	return e
}

// Getenv returns the value of an environment variable, the last one of its name.
func (e *Env) Getenv(name string) string {
	for _, entry := range slices.Backward(e.Environ) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// Path returns name as an absolute path.
func (e *Env) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.Cwd, name)
}

// OpenFile opens the file name, or standard input for "-". Close it after use.
func (e *Env) OpenFile(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.Stdin), nil
	}
	return os.Open(e.Path(name))
}

// StdinTerminal reports whether standard input is a terminal.
func (e *Env) StdinTerminal() bool {
	_, ok := e.Terminal(e.Stdin)
	return ok
}

// CanAsk reports whether the command can ask the user: standard input and
// standard error are terminals.
func (e *Env) CanAsk() bool { return e.Err.Terminal && e.StdinTerminal() }

// User returns the name of the user who runs the program, or "".
func User() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// Printf writes to standard output.
func (e *Env) Printf(format string, args ...any) { fmt.Fprintf(e.Out, format, args...) }

// Print writes v as JSON with --json, or else calls text.
func (e *Env) Print(v any, text func()) error {
	if e.JSON {
		return e.PrintJSON(v)
	}
	text()
	return nil
}

// PrintJSON writes v to standard output as one line.
func (e *Env) PrintJSON(v any) error {
	enc := json.NewEncoder(e.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	return nil
}

// PrintTable writes lines to standard output and aligns their cells, which tabs separate.
func (e *Env) PrintTable(lines []string) {
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(w, strings.Join(lines, "\n")+"\n") // e.Out keeps the error
	_ = w.Flush()
}

// Note writes a line to standard error.
func (e *Env) Note(format string, args ...any) {
	fmt.Fprint(e.Err, e.Err.Wrap(fmt.Sprintf("perdure: "+format+"\n", args...)))
}

// Hint writes a line of advice to standard error.
func (e *Env) Hint(format string, args ...any) { e.Note("hint: "+format, args...) }
