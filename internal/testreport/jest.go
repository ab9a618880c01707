package testreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// jestTest is an element of assertionResults.
type jestTest struct {
	AncestorTitles  []string `json:"ancestorTitles"`
	Title           string   `json:"title"`
	Status          string   `json:"status"`
	Duration        *float64 `json:"duration"` // milliseconds
	FailureMessages []string `json:"failureMessages"`
	RetryReasons    []string `json:"retryReasons"`
}

type jestFile struct {
	name, status, message string
	tests                 []jestTest
}

type jestParser struct {
	*builder
	in          *jsonReader
	d           *json.Decoder
	total       int // numTotalTests; -1 when missing
	listed      int
	interrupted bool
	any         bool // a key of the format was seen
}

// ParseJest reads the object that jest --json and vitest --reporter=json write.
// It is complete when the object is closed, the run was not interrupted, and
// the number of tests is the one it tells.
func ParseJest(r io.Reader, cfg Config) (*Report, error) {
	b, err := newBuilder(Jest, cfg)
	if err != nil {
		return nil, wrap(Jest, err)
	}
	in := &jsonReader{r: r, limit: b.cfg.MaxLine, starts: []int64{0}, line: 1}
	p := &jestParser{builder: b, in: in, d: json.NewDecoder(in), total: -1}
	if err := p.read(); err != nil {
		return nil, wrap(Jest, err)
	}
	return &b.report, nil
}

func (p *jestParser) read() error {
	err := p.object(p.top)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF) && p.d.InputOffset() == 0:
		return p.incomplete("", "the input is empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		at := p.in.place(p.d.InputOffset())
		return p.incomplete("", fmt.Sprintf("line %d, column %d: the object has no end", at.Line, at.Column))
	case errors.As(err, &syntax), errors.As(err, &kind):
		at := p.in.place(p.d.InputOffset()) // the end of what was understood
		at.Msg = err.Error()
		return at
	case err != nil:
		return err
	case !p.any:
		at := p.in.place(0)
		at.Msg = `the object has neither "testResults" nor "numTotalTests"`
		return at
	case p.interrupted:
		return p.incomplete("", "the run was interrupted")
	case p.total < 0:
		return p.incomplete("", "the number of tests is missing")
	case p.total != p.listed:
		return p.incomplete("", fmt.Sprintf("the run says it has %d tests, and lists %d", p.total, p.listed))
	}
	return nil
}

// token is the next token; values before it no longer count for the limit.
func (p *jestParser) token() (json.Token, error) {
	p.in.next(p.d.InputOffset())
	return p.d.Token()
}

func (p *jestParser) value(to any) error {
	p.in.next(p.d.InputOffset())
	return p.d.Decode(to)
}

// object calls each for every key of the object that comes next.
func (p *jestParser) object(each func(key string) error) error {
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

// list calls each for every element of the list that comes next.
func (p *jestParser) list(each func() error) error {
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

func (p *jestParser) expect(want json.Delim) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	if t != want {
		at := p.in.place(p.d.InputOffset())
		at.Msg = fmt.Sprintf("%v where %v should be", t, want)
		return at
	}
	return nil
}

func (p *jestParser) top(key string) error {
	switch key {
	case "testResults":
		p.any = true
		return p.list(p.file)
	case "numTotalTests":
		p.any = true
		return p.value(&p.total)
	case "wasInterrupted":
		return p.value(&p.interrupted)
	}
	return p.skip()
}

// skip passes a value, whatever its size: with --coverage there is a huge one.
func (p *jestParser) skip() error {
	depth := 0
	for {
		t, err := p.token()
		if err != nil {
			return err
		}
		if d, ok := t.(json.Delim); ok {
			if d == '{' || d == '[' {
				depth++
			} else {
				depth--
			}
		}
		if depth == 0 {
			return nil
		}
		if depth > p.cfg.MaxDepth {
			return &LimitError{Limit: "max depth", Max: p.cfg.MaxDepth, Line: p.in.place(p.d.InputOffset()).Line}
		}
	}
}

func (p *jestParser) file() error {
	var f jestFile
	err := p.object(func(key string) error {
		switch key {
		case "name":
			return p.value(&f.name)
		case "status":
			return p.value(&f.status)
		case "message":
			var m string
			err := p.value(&m)
			f.message = clip(m, p.cfg.MaxMessage)
			return err
		case "assertionResults":
			return p.list(func() error { return p.test(&f) })
		}
		return p.skip()
	})
	if err != nil {
		if f.name == "" {
			return err // without it the identities would be wrong
		}
		return errors.Join(p.closeFile(&f), err)
	}
	return p.closeFile(&f)
}

func (p *jestParser) test(f *jestFile) error {
	var t jestTest
	if err := p.value(&t); err != nil {
		return err
	}
	if p.listed++; p.listed > p.cfg.MaxTests {
		return &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.in.place(p.d.InputOffset()).Line}
	}
	if len(t.FailureMessages) > 0 {
		t.FailureMessages = []string{clip(t.FailureMessages[0], p.cfg.MaxMessage)}
	}
	f.tests = append(f.tests, t)
	return nil
}

func (p *jestParser) closeFile(f *jestFile) error {
	line := p.in.place(p.d.InputOffset()).Line
	name := p.cfg.relative(f.name)
	if f.status == "failed" && len(f.tests) == 0 {
		return p.broken(name, Load, f.message)
	}
	for _, t := range f.tests {
		titles := join(" > ", append(append([]string{}, t.AncestorTitles...), t.Title)...)
		made := Test{ID: join("::", name, titles), Suite: name, Name: titles, File: name}
		switch t.Status {
		case "passed":
			// vitest keeps what failed before it tried again.
			made.Outcome, made.Flaky = Passed, len(t.RetryReasons) > 0 || len(t.FailureMessages) > 0
		case "failed":
			made.Outcome = Failed
			if len(t.FailureMessages) > 0 {
				made.Message = t.FailureMessages[0]
			}
		case "todo":
			made.Outcome = Todo
		default: // pending, skipped, disabled
			made.Outcome = Skipped
		}
		if t.Duration != nil && *t.Duration > 0 && *t.Duration < 1e12 {
			made.Duration = time.Duration(*t.Duration * float64(time.Millisecond))
		}
		if _, err := p.add(made, line); err != nil {
			return err
		}
	}
	return nil
}

// jsonReader limits the size of single values and knows where lines begin.
type jsonReader struct {
	r      io.Reader
	limit  int
	read   int64   // bytes read so far
	from   int64   // where the value begins that is being read
	starts []int64 // offsets of the lines that begin after from, and of its own
	line   int     // number of the line that starts[0] begins
}

// next tells that everything up to an offset is done with.
func (j *jsonReader) next(offset int64) {
	j.from = offset
	drop := 0
	for drop+1 < len(j.starts) && j.starts[drop+1] <= offset {
		drop++
	}
	j.line += drop
	j.starts = append(j.starts[:0], j.starts[drop:]...)
}

// Read reads on unless the value has become too large.
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

// place is the line and column of an offset that is not yet done with.
func (j *jsonReader) place(offset int64) *SyntaxError {
	at := &SyntaxError{Line: j.line, Column: int(offset-j.starts[0]) + 1}
	for i, start := range j.starts {
		if start <= offset {
			at.Line, at.Column = j.line+i, int(offset-start)+1
		}
	}
	return at
}
