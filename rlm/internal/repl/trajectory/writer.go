package trajectory

import (
	"encoding/json"
	"io"
)

// Writer writes a log, one line at a time.
type Writer struct {
	out io.Writer
	n   int
}

// NewWriter returns a writer, which has written the settings.
func NewWriter(w io.Writer, m *Metadata) (*Writer, error) {
	line := *m
	line.Type = typeMetadata
	out := &Writer{out: w}
	return out, out.write(&line)
}

// Begin begins another run, with its settings if they are others.
func (w *Writer) Begin(m *Metadata) error {
	if w.n = 0; m == nil {
		return nil
	}
	line := *m
	line.Type = typeMetadata
	return w.write(&line)
}

// Write writes an iteration, with its type and number. Lists and times that the viewer
// requires are never null.
func (w *Writer) Write(it *Iteration) error {
	line := *it
	w.n++
	line.Type, line.Iteration = typeIteration, w.n
	line.Prompt = append([]Message{}, line.Prompt...)
	line.CodeBlocks = append([]CodeBlock{}, line.CodeBlocks...)
	for i := range line.CodeBlocks {
		r := &line.CodeBlocks[i].Result
		r.Calls = append([]Call{}, r.Calls...)
		if r.Locals == nil {
			r.Locals = map[string]json.RawMessage{}
		}
		if r.ExecutionTime == nil {
			r.ExecutionTime = new(float64)
		}
		for k := range r.Calls {
			if c := &r.Calls[k]; c.ExecutionTime == nil {
				c.ExecutionTime = new(float64)
			}
		}
	}
	return w.write(&line)
}

func (w *Writer) write(line any) error {
	raw, err := encode(line)
	if err != nil {
		return err
	}
	_, err = w.out.Write(append(pythonJSON(raw), '\n'))
	return err
}
