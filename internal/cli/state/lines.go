package state

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// lines is the input of a session.
type lines interface {
	// read shows a prompt and returns a line without its line break. io.EOF ends the
	// session, errLongLine does not.
	read(prompt string) (string, error)
}

// maxLine bounds a line that is not typed, in bytes.
const maxLine = 1 << 20

var errLongLine = errors.New("the line is longer than 1048576 bytes")

// pipedLines reads lines from a file or a pipe, without a prompt.
type pipedLines struct{ r *bufio.Reader }

func (p *pipedLines) read(string) (string, error) {
	var line []byte
	long := false
	for {
		part, err := p.r.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		} else {
			long = true // the rest of the line is dropped
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return "", errLongLine
		case err != nil && len(line) == 0:
			return "", err
		}
		return strings.TrimRight(string(line), "\r\n"), nil
	}
}

// typedLines reads lines from a terminal, with editing, history and completion. The
// terminal is in raw mode only while a line is read, so that Ctrl-C interrupts a
// computation.
type typedLines struct {
	term *term.Terminal
	raw  func() (restore func(), err error)
}

// rawTerminal returns a function that puts a terminal into raw mode.
func rawTerminal(f *os.File) func() (func(), error) {
	return func() (func(), error) {
		state, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		return func() { _ = term.Restore(int(f.Fd()), state) }, nil // fails only for a closed terminal
	}
}

func newTypedLines(in io.Reader, out io.Writer, complete completer, raw func() (func(), error)) *typedLines {
	t := &typedLines{raw: raw, term: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&clearing{in}, out}, "")}
	t.term.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		newLine, newPos, choices := complete(line, pos)
		if len(choices) > 1 {
			_, _ = io.WriteString(t.term, strings.Join(choices, "  ")+"\n") // the line is redrawn after it
		}
		return newLine, newPos, true
	}
	return t
}

func (t *typedLines) read(prompt string) (string, error) {
	restore, err := t.raw()
	if err != nil {
		return "", err
	}
	defer restore()
	t.term.SetPrompt(prompt)
	line, err := t.term.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return line, err
}

// clearing makes Ctrl-C clear the typed line instead of ending the session: it replaces
// the key by "end of line" and "delete to the beginning".
type clearing struct{ r io.Reader }

// Read reads keys and replaces Ctrl-C.
func (c *clearing) Read(p []byte) (int, error) {
	const ctrlC, ctrlE, ctrlU = 3, 5, 21
	half := p[:max(1, len(p)/2)] // a key can become two
	n, err := c.r.Read(half)
	if n == 0 || len(p) < 2 {
		return n, err
	}
	out := make([]byte, 0, 2*n)
	for _, key := range half[:n] {
		if key == ctrlC {
			out = append(out, ctrlE, ctrlU)
			continue
		}
		out = append(out, key)
	}
	return copy(p, out), err
}

// completer completes a line at a position. It returns the line, the new position and the
// choices.
type completer func(line string, pos int) (newLine string, newPos int, choices []string)

// completeWord completes the word before a position with the common beginning of the
// candidates, whose slice it changes.
func completeWord(line string, pos int, candidates []string) (string, int, []string) {
	start := pos
	for start > 0 && isWord(line[start-1]) {
		start--
	}
	word := line[start:pos]
	fitting := slices.DeleteFunc(candidates, func(one string) bool { return !strings.HasPrefix(one, word) })
	if len(fitting) == 0 {
		return line, pos, nil
	}
	same := fitting[0]
	for _, one := range fitting[1:] {
		for !strings.HasPrefix(one, same) {
			same = same[:len(same)-1]
		}
	}
	if len(same) > len(word) {
		fitting = nil // show choices only after the common beginning
	}
	return line[:start] + same + line[pos:], start + len(same), fitting
}

func isWord(c byte) bool {
	return c == '_' || c == ':' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
