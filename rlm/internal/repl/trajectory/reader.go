package trajectory

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// LineError is what is wrong with a line of a log.
type LineError struct {
	Line int // from 1
	Msg  string
	// Hint says what to do, "" if there is nothing particular.
	Hint string
}

// Error returns the line with what is wrong.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Reader reads a log, one line at a time.
type Reader struct {
	source io.Reader
	in     *bufio.Reader // nil until the first line is read
	line   int
	meta   *Metadata
	last   int // the number of the last iteration of the run
	seen   int
	run    int
	torn   int
	max    int
	raw    []byte
	begin  bool // a metadata was read, and the next iteration begins a run
	time   Time // of the last iteration
	// at and next are the offsets of the last line and of the one after it, start is that of the run.
	at, next, start int64
	// settings is the line of the last metadata.
	settings []byte
	isOwn    bool // the run has settings of its own
}

// NewReader returns a reader of a log, also of one that gzip compressed or that is in UTF-16 with a
// byte order mark.
func NewReader(r io.Reader) *Reader { return &Reader{source: r, max: MaxLineBytes} }

// Metadata returns the settings of the run of the last iteration; nil if the log has none.
func (r *Reader) Metadata() *Metadata { return r.meta }

// Line returns the number of the line that was read last, from 1.
func (r *Reader) Line() int { return r.line }

// Raw returns the line of the last iteration as JSON, which is valid until the next one is read.
func (r *Reader) Raw() []byte { return r.raw }

// Run returns the number of the run of the last iteration, from 1: a log has several if one logger
// was used for several completions, or if logs were joined.
func (r *Reader) Run() int { return r.run }

// Start returns the offset of the first line of the run, as [Decode] returns the log.
func (r *Reader) Start() int64 { return r.start }

// Settings returns the line of the metadata if it is that of an earlier run, else nil.
func (r *Reader) Settings() []byte {
	if r.isOwn {
		return nil
	}
	return r.settings
}

// Torn returns the number of the last line if it is cut off, after the end of the log; else 0.
func (r *Reader) Torn() int { return r.torn }

// Next returns the next iteration, and io.EOF after the last one. A line that is not of the
// format is a *LineError, unless it is the last one and its end is missing, see [Reader.Torn].
// Settings, or the number 1, begin a run; the numbers of its iterations are in sequence.
func (r *Reader) Next() (*Iteration, error) {
	for {
		line, err := r.nextLine()
		if err != nil {
			return nil, err
		}
		if r.seen == 0 && r.meta == nil && !isLogLine(line) {
			return nil, r.foreign(line)
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
			r.meta, r.last, r.begin = new(Metadata), 0, true
			r.start, r.settings = r.at, pythonJSON(bytes.Clone(line))
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

// date sets the time of an iteration without one: that of the iteration or the metadata before it, else
// the beginning of 1970.
func (r *Reader) date(it *Iteration) {
	if !it.Timestamp.IsZero() {
		r.time = it.Timestamp
		return
	}
	if r.begin && r.meta != nil {
		r.time = r.meta.Timestamp
	}
	if r.time.IsZero() {
		r.time = Time{time.Unix(0, 0).UTC()}
	}
	it.Timestamp = r.time
}

// iteration reads the line of an iteration.
func (r *Reader) iteration(line []byte) (*Iteration, error) {
	if r.seen++; r.seen > MaxIterations {
		return nil, r.wrong("more than %d iterations", MaxIterations)
	}
	if name := missing(line, "iteration", "prompt", "response", "code_blocks"); name != "" {
		return nil, r.wrong("%s is missing", name)
	}
	it := new(Iteration)
	if err := r.decode(line, it); err != nil {
		return nil, err
	}
	if it.Iteration != r.last+1 && it.Iteration != 1 {
		return nil, r.wrong("iteration %d follows %d", it.Iteration, r.last)
	}
	if r.begin || it.Iteration == 1 {
		r.run++
		if r.isOwn = r.begin; !r.isOwn {
			r.start = r.at
		}
	}
	r.date(it)
	r.last, r.raw, r.begin = it.Iteration, line, false
	var blocks struct {
		List []struct {
			Result json.RawMessage `json:"result"`
		} `json:"code_blocks"`
	}
	if err := r.decode(line, &blocks); err != nil {
		return nil, err
	}
	for i := range blocks.List {
		if name := missing(blocks.List[i].Result, "stdout", "stderr", "rlm_calls"); name != "" {
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

// nextLine returns the next line that is not empty, as JSON. At the end of the log, a line whose end is
// missing counts as none.
func (r *Reader) nextLine() ([]byte, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	for {
		line, last, err := r.readLine()
		if err != nil {
			return nil, err
		}
		text := plainJSON(bytes.TrimSpace(line))
		if last {
			text = plainJSON(bytes.TrimSpace(withoutTail(line)))
		}
		switch {
		case last && isCutOff(text, line):
			return nil, r.cutOff()
		case len(text) == 0:
			continue
		case !utf8.Valid(text) && r.seen == 0 && r.meta == nil:
			return nil, r.foreign(text)
		case !utf8.Valid(text):
			return nil, r.wrong("not UTF-8")
		}
		return text, nil
	}
}

// readLine returns the next line, and whether it is the last one.
func (r *Reader) readLine() (line []byte, last bool, err error) {
	r.at = r.next
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		r.next += int64(len(part))
		if len(line) > r.max {
			r.line++
			return nil, false, r.wrong("longer than %d bytes", r.max)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.ErrUnexpectedEOF): // compressed data that is cut off
			r.line++
			return nil, false, r.cutOff()
		case err != nil && !errors.Is(err, io.EOF):
			r.line++
			return nil, false, r.unreadable(err)
		case err != nil && len(line) == 0:
			return nil, false, io.EOF
		}
		r.line++
		if err == nil {
			_, err = r.in.Peek(1)
		}
		return line, errors.Is(err, io.EOF), nil
	}
}

// cutOff ends a log whose last line is cut off. It is an error if nothing is before that line.
func (r *Reader) cutOff() error {
	r.torn = r.line
	if r.seen == 0 {
		return r.wrong("the line is cut off, and no iteration is before it")
	}
	return io.EOF
}

func (r *Reader) wrong(format string, args ...any) error {
	return &LineError{Line: r.line, Msg: fmt.Sprintf(format, args...)}
}
