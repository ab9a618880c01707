package meter

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
)

// maxUnpacked bounds what is read of a compressed body.
const maxUnpacked = 1 << 30

// unpacked returns a body without its content encoding. The error names an encoding that
// the meter cannot read.
func unpacked(body io.Reader, encoding string) (io.Reader, error) {
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		body, err = gzip.NewReader(body)
	case "deflate":
		body, err = inflated(body)
	default:
		return nil, fmt.Errorf("content encoding %.20q cannot be read", encoding)
	}
	if err != nil {
		return nil, err
	}
	return io.LimitReader(body, maxUnpacked), nil
}

// inflated reads deflate with the header of zlib, and without it as some servers send it.
func inflated(body io.Reader) (io.Reader, error) {
	var head [2]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return nil, err
	}
	body = io.MultiReader(bytes.NewReader(head[:]), body)
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(body)
	}
	return flate.NewReader(body), nil
}

// document reads a body that is JSON or a stream of events with JSON, whichever it looks
// like, and passes its parts to the scanner.
type document struct {
	scan scanner
	form form
	// Of a stream of events: the beginning of the field's name in the current line, and
	// whether the line's value is read.
	name  []byte
	value lineValue
}

type form byte

const (
	formUnknown form = iota
	formJSON
	formEvents
)

// lineValue is the position in a line of a stream of events.
type lineValue byte

const (
	inName    lineValue = iota
	afterName           // a space may follow
	inData
	inOther
)

// read reads the whole body. The error is that of the reader, nil at its end.
func (d *document) read(body io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		d.add(buf[:n])
		if errors.Is(err, io.EOF) {
			err = nil
			d.scan.end()
			return err
		}
		if err != nil {
			return err
		}
	}
}

func (d *document) add(p []byte) {
	if d.form == formUnknown {
		p = bytes.TrimLeft(p, " \r\n\t\ufeff")
		if len(p) == 0 {
			return
		}
		d.form = formEvents
		if p[0] == '{' || p[0] == '[' {
			d.form = formJSON
		}
	}
	if d.form == formJSON {
		d.scan.scan(p)
		return
	}
	for len(p) > 0 {
		p = d.line(p)
	}
}

// longestName is longer than the names of fields of events.
const longestName = 8

// line reads the rest of a line of a stream of events and returns what follows.
func (d *document) line(p []byte) []byte {
	switch d.value {
	case inName:
		return d.fieldName(p)
	case afterName:
		d.value = inData
		return bytes.TrimPrefix(p, []byte(" "))
	case inData, inOther:
	}
	end := bytes.IndexByte(p, '\n')
	part := p
	if end >= 0 {
		part = p[:end]
	}
	if d.value == inData {
		d.scan.scan(part)
	}
	if end < 0 {
		return nil
	}
	if d.value == inData {
		d.scan.scan([]byte("\n"))
	}
	d.newLine()
	return p[end+1:]
}

func (d *document) newLine() { d.name, d.value = d.name[:0], inName }

// fieldName reads one character of a field's name. An empty line ends an event.
func (d *document) fieldName(p []byte) []byte {
	switch c := p[0]; {
	case c == '\n':
		if len(d.name) == 0 {
			d.scan.end()
			d.scan.reset()
		}
		d.newLine()
	case c == '\r':
	case c == ':' && string(d.name) == "data":
		d.value = afterName
	case c == ':' || len(d.name) == longestName:
		d.value = inOther
	default:
		d.name = append(d.name, c)
	}
	return p[1:]
}

// readAnswer reads the body of an answer.
func readAnswer(api API, body io.Reader, encoding string) (answer, error) {
	a := answer{api: api}
	plain, err := unpacked(body, encoding)
	if err != nil {
		return a, err
	}
	d := document{scan: scanner{
		wants: func(path string) bool { return answerField(api, path) != fieldNone }, visit: a.set,
	}}
	err = d.read(plain)
	return a, err
}

// request is what the meter reads of a request.
type request struct {
	model string
	// conversation identifies requests that continue each other, as far as their model, their
	// instructions and their first message are the same.
	conversation uint64
	// tools is set if the request offers tools.
	tools bool
}

// readRequest reads the body of a request. A body that cannot be read is an empty request.
func readRequest(body io.Reader, encoding string) request {
	var r request
	sum := fnv.New64a()
	seen := make(map[field]bool)
	d := document{scan: scanner{wants: func(path string) bool {
		f := requestField(path)
		return f != fieldNone && !seen[f]
	}}}
	d.scan.visit = func(path, value string, _ int64) {
		f := requestField(path)
		seen[f] = true
		switch f {
		case fieldModel:
			r.model = value
			fallthrough
		case fieldSystem, fieldFirst:
			_, _ = fmt.Fprintf(sum, "%d\x00%s\x00", f, value)
		case fieldTool:
			r.tools = true
		default:
		}
	}
	plain, err := unpacked(body, encoding)
	if err == nil {
		_ = d.read(plain) // what was read counts
	}
	r.conversation = sum.Sum64()
	return r
}
