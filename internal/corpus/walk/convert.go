package walk

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/perdure/perdure/internal/corpus/notebook"
	"github.com/perdure/perdure/internal/corpus/preprocess"
)

// isNotebook reports whether a file may be a notebook.
func isNotebook(name string, head []byte) bool {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	return strings.EqualFold(path.Ext(name), ".ipynb") && bytes.HasPrefix(trimmed, []byte("{"))
}

// notebook adds a notebook as the text of its cells. A file that is no notebook, such as one that was cut
// off, is added as it is, with a note.
func (c *collector) notebook(at candidate, all io.Reader, src *source) error {
	data, err := io.ReadAll(io.LimitReader(all, notebook.MaxBytes+1))
	if err != nil {
		return c.failed(at, src)
	}
	if len(data) > notebook.MaxBytes {
		return c.refuse(at, tooLarge(notebook.MaxBytes))
	}
	text, broken := notebook.Render(data)
	if broken == nil {
		if err := c.sink.Add(at.name, bytes.NewReader(text)); err != nil {
			return c.unfinishedError(at, src, err)
		}
		c.noteAdded(at, "from a notebook: lines are those of its cells' text")
		return nil
	}
	encoding, f := c.encodingOf(at, data[:min(len(data), headBytes)], len(data) <= headBytes)
	if f != nil {
		return c.refuse(at, *f)
	}
	before := c.files
	if err = c.addText(at, bytes.NewReader(data), encoding, src, nil); c.files > before {
		c.sink.Note(at.name, NoteBroken, fmt.Sprintf("%s, so it was read as text, and not as a notebook", broken))
	}
	return err
}

// runCommand adds the output of the command for a file.
func (c *collector) runCommand(at candidate, f *os.File, rule preprocess.Rule) error {
	run := rule.Start(c.ctx, at.path, f)
	defer run.Close()
	at.command = rule.Command
	return c.text(at, run, nil)
}

// commandFault is the fault of a command, by its error.
func commandFault(e *preprocess.Error) fault {
	return fault{kind: KindCommand, why: fmt.Sprintf("command %q: %s", e.Command, e), hint: e.Hint()}
}

// emptyFault is the fault of a file or of a command's output without text.
func emptyFault(at candidate) fault {
	if at.command != "" {
		return fault{kind: KindCommand, why: fmt.Sprintf("command %q wrote no text", at.command),
			hint: "run the command by itself; the document may have images only"}
	}
	return fault{kind: KindEmpty, why: "it is empty", hint: "write text to it, or leave it out"}
}
