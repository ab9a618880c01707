package testreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonWalker reads one large object in parts.
type jsonWalker struct {
	*builder
	in *jsonReader
	d  *json.Decoder
}

func newJSONWalker(r io.Reader, b *builder) *jsonWalker {
	in := &jsonReader{r: r, limit: b.cfg.MaxLine, starts: []int64{0}, line: 1}
	return &jsonWalker{builder: b, in: in, d: json.NewDecoder(in)}
}

// document reads the object and then checks it. An object that ends too early is a report
// that is not complete.
func (p *jsonWalker) document(each func(key string) error, check func() error) error {
	err := p.object(each)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF) && p.d.InputOffset() == 0:
		return p.incomplete("", "the input is empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		at := p.in.place(p.d.InputOffset())
		return p.incomplete("", fmt.Sprintf("line %d, column %d: the object has no end", at.Line, at.Column))
	case errors.As(err, &syntax), errors.As(err, &kind):
		return p.wrong(p.d.InputOffset(), err.Error()) // at the end of the valid input
	case err != nil:
		return err
	}
	return check()
}

// wrong returns a syntax error at an offset.
func (p *jsonWalker) wrong(offset int64, msg string) error {
	at := p.in.place(offset)
	at.Msg = msg
	return at
}

// line returns the number of the current line.
func (p *jsonWalker) line() int { return p.in.place(p.d.InputOffset()).Line }

// token returns the next token; values before it no longer count for the limit.
func (p *jsonWalker) token() (json.Token, error) {
	p.in.next(p.d.InputOffset())
	return p.d.Token()
}

func (p *jsonWalker) value(to any) error {
	p.in.next(p.d.InputOffset())
	return p.d.Decode(to)
}

// object calls each for every key of the next object.
func (p *jsonWalker) object(each func(key string) error) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	for p.d.More() {
		key, err := p.token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := each(name); err != nil {
			return err
		}
	}
	return p.expect('}')
}

// list calls each for every element of the next list.
func (p *jsonWalker) list(each func() error) error {
	if err := p.expect('['); err != nil {
		return err
	}
	for p.d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	return p.expect(']')
}

func (p *jsonWalker) expect(want json.Delim) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	if t != want {
		return p.wrong(p.d.InputOffset(), fmt.Sprintf("%v where %v should be", t, want))
	}
	return nil
}

// skip skips a value of any size: with --coverage there is a huge one.
func (p *jsonWalker) skip() error {
	depth := 0
	for {
		t, err := p.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		if depth > p.cfg.MaxDepth {
			return &LimitError{Limit: "max depth", Max: p.cfg.MaxDepth, Line: p.line()}
		}
	}
}

// jsonReader limits the size of single values and records where lines begin.
type jsonReader struct {
	r      io.Reader
	limit  int
	read   int64   // bytes read so far
	from   int64   // where the value begins that is being read
	starts []int64 // offsets of the lines that begin after from, and of its own
	line   int     // number of the line that starts[0] begins
}

// next marks everything up to an offset as processed.
func (j *jsonReader) next(offset int64) {
	j.from = offset
	drop := 0
	for drop+1 < len(j.starts) && j.starts[drop+1] <= offset {
		drop++
	}
	j.line += drop
	j.starts = append(j.starts[:0], j.starts[drop:]...)
}

// Read reads on unless the value is too large.
func (j *jsonReader) Read(p []byte) (int, error) {
	if j.read-j.from > int64(j.limit) {
		return 0, &LimitError{Limit: "max line", Max: j.limit, Line: j.line}
	}
	n, err := j.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			j.starts = append(j.starts, j.read+int64(i)+1)
		}
	}
	j.read += int64(n)
	return n, err
}

// place returns the line and column of an offset that is not yet processed.
func (j *jsonReader) place(offset int64) *SyntaxError {
	at := &SyntaxError{Line: j.line, Column: int(offset-j.starts[0]) + 1}
	for i, start := range j.starts {
		if start <= offset {
			at.Line, at.Column = j.line+i, int(offset-start)+1
		}
	}
	return at
}
