package coverage

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// cobertura reads Cobertura XML, classes with their file name, whose lines have a number and
// hits; and Clover XML, files whose lines have a num and a count. It is complete when the root
// element is closed.
func (b *builder) cobertura(r io.Reader) error {
	in := &xmlBytes{r: bufio.NewReaderSize(r, 64<<10), limit: b.cfg.MaxLine, line: 1}
	d := xml.NewDecoder(in)
	d.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		switch strings.ToLower(charset) {
		case "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1": // the parts that are read are ASCII
			return input, nil
		}
		return nil, fmt.Errorf("unknown encoding %q", charset)
	}
	c := coberturaParser{builder: b}
	for {
		in.n = 0
		token, err := d.Token()
		b.line = in.line
		var syntax *xml.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			if !c.seen {
				b.incomplete("the document is empty")
			}
			return nil
		case errors.As(err, &syntax) && c.seen:
			b.incomplete(fmt.Sprintf("line %d, column %d: %s", in.line, in.col, syntax.Msg))
			return nil
		case errors.As(err, &syntax):
			return &SyntaxError{Line: in.line, Column: max(in.col, 1), Msg: syntax.Msg}
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			err = c.start(t)
		case xml.EndElement:
			c.end(t.Name.Local)
		case xml.CharData:
			if c.inSource && len(c.source) < 4096 {
				c.source += string(t)
			}
		}
		if err != nil {
			return err
		}
	}
}

type coberturaParser struct {
	*builder
	seen     bool
	depth    int
	sources  []string
	source   string
	inSource bool
	inClass  bool
	inFile   bool  // in a file of Clover
	class    *File // nil when it is foreign
}

// maxDepth limits the nesting of elements, which is normally six.
const maxDepth = 64

func (c *coberturaParser) start(e xml.StartElement) error {
	name := e.Name.Local
	if !c.seen && name != "coverage" {
		return c.wrong("root element is <%.40s>, not <coverage>", name)
	}
	c.seen = true
	if c.depth++; c.depth > maxDepth {
		return &LimitError{Limit: "max depth", Max: maxDepth, Line: c.line}
	}
	switch name {
	case "source":
		c.inSource, c.source = true, ""
	case "class":
		if c.inFile {
			return nil // Clover's, without lines
		}
		named := attribute(e, "filename")
		f, err := c.file(c.resolve(named), named)
		c.inClass, c.class = true, f
		return err
	case "file": // Clover: PHPUnit has the path as the name, istanbul as path
		named := cmp.Or(attribute(e, "path"), attribute(e, "name"))
		f, err := c.file(c.resolve(named), named)
		c.inClass, c.inFile, c.class = true, true, f
		return err
	case "line":
		return c.codeLine(cmp.Or(attribute(e, "number"), attribute(e, "num")), cmp.Or(attribute(e, "hits"),
			attribute(e, "count")))
	}
	return nil
}

func (c *coberturaParser) codeLine(number, hits string) error {
	if !c.inClass {
		return nil
	}
	n, err := c.number(number)
	if err != nil {
		return err
	}
	if hits == "" || strings.Trim(hits, "-0123456789.") != "" {
		return c.wrong("%.80q is not a number of hits", hits)
	}
	if c.class == nil || n == 0 {
		return nil
	}
	return c.add(c.class, n, n, !strings.HasPrefix(hits, "-") && strings.Trim(hits, "0.") != "")
}

func (c *coberturaParser) end(name string) {
	c.depth--
	switch name {
	case "source":
		if c.inSource = false; len(c.sources) < 1000 {
			c.sources = append(c.sources, strings.TrimSpace(c.source))
		}
	case "class":
		if !c.inFile {
			c.inClass, c.class = false, nil
		}
	case "file":
		c.inClass, c.inFile, c.class = false, false, nil
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// resolve finds a file below the source folders. Documents made elsewhere (in a
// container) name folders that do not exist here; the name is then relative to the
// workspace.
func (c *coberturaParser) resolve(name string) string {
	if name == "" || absolute(strings.ReplaceAll(name, `\`, "/")) {
		return c.cfg.place(name)
	}
	name = strings.ReplaceAll(name, `\`, "/")
	inside := ""
	for _, source := range append(c.sources, "") {
		source = strings.ReplaceAll(source, `\`, "/")
		at := c.cfg.place(path.Join(source, name))
		switch {
		case at == "":
		case c.cfg.Exists != nil && c.cfg.Exists(at):
			return at
		case inside == "":
			inside = at
		}
	}
	if c.cfg.Exists != nil {
		return "" // none of them exists
	}
	return inside
}

// xmlBytes passes single bytes to the decoder, so that the decoder's position is exact,
// and limits the size of a token.
type xmlBytes struct {
	r         *bufio.Reader
	n, limit  int
	line, col int
}

// ReadByte returns the next byte.
func (x *xmlBytes) ReadByte() (byte, error) {
	c, err := x.r.ReadByte()
	if err != nil {
		return 0, err
	}
	if x.n++; x.n > x.limit {
		return 0, &LimitError{Limit: "max line", Max: x.limit, Line: x.line}
	}
	x.col++
	if c == '\n' {
		x.line, x.col = x.line+1, 0
	}
	return c, nil
}

// Read serves decoders of other character sets.
func (x *xmlBytes) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := x.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}
