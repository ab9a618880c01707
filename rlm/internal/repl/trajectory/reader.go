package trajectory

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// LineError is what is wrong with a line of a log.
type LineError struct {
	Line int // from 1
	Msg  string
}

// Error returns the line with what is wrong.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Reader reads a log, one line at a time.
type Reader struct {
	in         *bufio.Reader
	line       int
	meta       *Metadata
	last, seen int
	max        int
	raw        []byte
}

// NewReader returns a reader of a log.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), max: MaxLineBytes}
}

// Metadata returns the settings, once the first iteration was read; nil if the log has none.
func (r *Reader) Metadata() *Metadata { return r.meta }

// Line returns the number of the line that was read last, from 1.
func (r *Reader) Line() int { return r.line }

// Raw returns the line of the last iteration, which is valid until the next one is read.
func (r *Reader) Raw() []byte { return r.raw }

// Next returns the next iteration, and io.EOF after the last one. A line that is not of the
// format is a *LineError. The settings are the first line or absent, and the numbers of the
// iterations are in sequence; 1 begins another question to the same REPL.
func (r *Reader) Next() (*Iteration, error) {
	for {
		line, err := r.next()
		if err != nil {
			return nil, err
		}
		var kind struct {
			Type *string `json:"type"`
		}
		if err := r.decode(line, &kind); err != nil {
			return nil, err
		}
		switch {
		case kind.Type == nil:
			return nil, r.wrong("type is missing")
		case *kind.Type == typeMetadata:
			if r.meta != nil || r.seen > 0 {
				return nil, r.wrong("metadata is not the first line")
			}
			r.meta = new(Metadata)
			if err := r.decode(line, r.meta); err != nil {
				return nil, err
			}
		case *kind.Type == typeIteration:
			return r.iteration(line)
		default:
			return nil, r.wrong("type %.40q is neither metadata nor iteration", *kind.Type)
		}
	}
}

// iteration reads the line of an iteration.
func (r *Reader) iteration(line []byte) (*Iteration, error) {
	if r.seen++; r.seen > MaxIterations {
		return nil, r.wrong("more than %d iterations", MaxIterations)
	}
	if name := missing(line, "iteration", "timestamp", "prompt", "response", "code_blocks"); name != "" {
		return nil, r.wrong("%s is missing", name)
	}
	it := new(Iteration)
	if err := r.decode(line, it); err != nil {
		return nil, err
	}
	if it.Iteration != r.last+1 && it.Iteration != 1 {
		return nil, r.wrong("iteration %d follows %d", it.Iteration, r.last)
	}
	r.last, r.raw = it.Iteration, line
	var blocks struct {
		List []struct {
			Result json.RawMessage `json:"result"`
		} `json:"code_blocks"`
	}
	if err := r.decode(line, &blocks); err != nil {
		return nil, err
	}
	for i := range blocks.List {
		if name := missing(blocks.List[i].Result, "stdout", "stderr", "locals", "rlm_calls"); name != "" {
			return nil, r.wrong("code block %d: %s is missing", i+1, name)
		}
	}
	return it, nil
}

// missing returns the first name of a member that an object does not have, or has as null.
func missing(raw []byte, names ...string) string {
	var all map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &all) != nil {
		return "the object"
	}
	for _, name := range names {
		if v, ok := all[name]; !ok || string(v) == "null" {
			return name
		}
	}
	return ""
}

// decode reads JSON.
func (r *Reader) decode(line []byte, v any) error {
	err := json.Unmarshal(line, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return r.wrong("%s has the type %s", cmp.Or(wrong.Field, "the line"), wrong.Value)
	}
	if err != nil {
		return r.wrong("%v", err)
	}
	return nil
}

// next returns the next line that is not empty.
func (r *Reader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > r.max {
			r.line++
			return nil, r.wrong("longer than %d bytes", r.max)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read log: %w", err)
		case err != nil && len(line) == 0:
			return nil, io.EOF
		}
		if r.line++; r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // as all readers of JSON here
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if !utf8.Valid(text) {
				return nil, r.wrong("not UTF-8")
			}
			return text, nil
		}
		line = line[:0]
	}
}

func (r *Reader) wrong(format string, args ...any) error {
	return &LineError{r.line, fmt.Sprintf(format, args...)}
}
