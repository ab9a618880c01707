package walk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/perdure/perdure/internal/corpus/charset"
	"github.com/perdure/perdure/internal/corpus/notebook"
	"github.com/perdure/perdure/internal/corpus/preprocess"
)

// isNotebook reports whether a file may be a notebook.
func isNotebook(name string, head []byte) bool {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	return strings.EqualFold(path.Ext(name), ".ipynb") && bytes.HasPrefix(trimmed, []byte("{"))
}

// notebook adds a notebook as the text of its cells, and what is none as its text.
func (c *collector) notebook(at candidate, all io.Reader, src *source) error {
	data, err := io.ReadAll(io.LimitReader(all, notebook.MaxBytes+1))
	if err != nil {
		return c.failed(at, src)
	}
	if len(data) > notebook.MaxBytes {
		return c.refuse(at, tooLarge(notebook.MaxBytes))
	}
	if text, ok := notebook.Render(data); ok {
		if err := c.sink.Add(at.name, bytes.NewReader(text)); err != nil {
			return c.unfinished(at, src, err)
		}
		c.added(at, "from a notebook: lines are those of its cells' text")
		return nil
	}
	encoding, f := c.encodingOf(at, data[:min(len(data), headBytes)], len(data) <= headBytes)
	if f != nil {
		return c.refuse(at, *f)
	}
	err = c.sink.Add(at.name, charset.NewReader(bytes.NewReader(data), encoding))
	if invalid := (*charset.InvalidError)(nil); errors.As(err, &invalid) {
		return c.invalid(at, invalid, nil)
	}
	if err != nil {
		return c.unfinished(at, src, err)
	}
	how := ""
	if !encoding.IsUTF8() {
		how = "from " + encoding.Name()
	}
	c.added(at, how)
	return nil
}

// preprocessed adds what a command makes of a file.
func (c *collector) preprocessed(at candidate, f *os.File, rule preprocess.Rule) error {
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
