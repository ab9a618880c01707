package testreport

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// junitSuite is an open <testsuite> or <testsuites>.
type junitSuite struct {
	name, file     string
	tests, failing int // stated by its attributes; -1 if they are missing
	direct, below  int // tests in it, and in suites in it
	failed         int // tests in it and below that fail
	repeated       int // tests that the runner reported twice
}

// junitCase is an open <testcase>.
type junitCase struct {
	class, name, file string
	duration          time.Duration
	outcome           Outcome
	failed            bool // also if it counts as another outcome
	todo, flaky       bool
	message           message
	line              int
}

type junitParser struct {
	*builder
	x      *xmlText
	suites []junitSuite
	tc     *junitCase
	inside string // the element of the test case whose text is its message
	depth  int
}

// junit reads JUnit XML in the dialects of pytest, jest-junit, vitest, mocha, node --test,
// Maven Surefire, Gradle, cargo-nextest, PHPUnit and similar tools. The report is complete
// when the root element is closed and no suite states more tests than it has.
func (b *builder) junit(r io.Reader) error {
	p := &junitParser{builder: b, x: newXMLText(r, b.cfg)}
	return walkXML(p.x, b, p)
}

// xmlHandler receives the elements and character data of a document in order.
type xmlHandler interface {
	start(e xml.StartElement) error
	end(name string) error
	chars(text []byte)
}

// walkXML passes a document to h. A document that ends too early, or is broken, is a
// report that is not complete.
func walkXML(x *xmlText, b *builder, h xmlHandler) error {
	d := newDecoder(x)
	d.Entity = map[string]string{}
	depth, seen := 0, false
	for {
		token, err := d.Token()
		var syntax *xml.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			if !seen {
				return b.incomplete("", "the document is empty")
			}
			return nil
		case errors.As(err, &syntax) && seen:
			return b.incomplete("", fmt.Sprintf("line %d, column %d: %s", x.line, x.col, syntax.Msg))
		case errors.As(err, &syntax):
			return x.wrong("%s", syntax.Msg)
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			seen = true
			if depth++; depth > b.cfg.MaxDepth {
				return &LimitError{Limit: "max depth", Max: b.cfg.MaxDepth, Line: x.line}
			}
			err = h.start(t)
		case xml.EndElement:
			depth--
			err = h.end(t.Name.Local)
		case xml.CharData:
			h.chars(t)
		}
		if err != nil {
			return err
		}
	}
}

// attributes maps the attributes of an element, without name spaces.
func attributes(e xml.StartElement) map[string]string {
	m := make(map[string]string, len(e.Attr))
	for _, a := range e.Attr {
		m[a.Name.Local] = a.Value
	}
	return m
}

func (p *junitParser) start(e xml.StartElement) error {
	name := e.Name.Local
	p.depth++
	switch {
	case name == "testsuite" || name == "testsuites":
		p.openSuite(attributes(e))
	case p.depth == 1:
		return p.x.wrong("root element is <%s>, not <testsuites> or <testsuite>", printable(name))
	case name == "testcase" && p.tc == nil:
		p.openCase(attributes(e))
	case p.tc != nil:
		p.detail(name, attributes(e))
	}
	return nil
}

func (p *junitParser) openSuite(a map[string]string) {
	s := junitSuite{name: a["name"], file: cmp.Or(a["file"], a["filepath"]), tests: count(a["tests"]), failing: -1}
	if f, e := count(a["failures"]), count(a["errors"]); f >= 0 || e >= 0 {
		s.failing = max(f, 0) + max(e, 0)
	}
	p.suites = append(p.suites, s)
}

// count parses a numeric attribute; -1 if it is not a number.
func count(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

func (p *junitParser) openCase(a map[string]string) {
	c := &junitCase{class: strings.TrimSpace(a["classname"]), name: strings.TrimSpace(a["name"]), file: a["file"],
		outcome: Passed, line: p.x.line}
	for _, s := range slices.Backward(p.suites) {
		c.file = cmp.Or(c.file, s.file)
	}
	c.file = p.cfg.relative(c.file)
	if s, err := strconv.ParseFloat(strings.ReplaceAll(a["time"], ",", ""), 64); err == nil && s > 0 && s < 1e9 {
		c.duration = time.Duration(s * float64(time.Second))
	}
	if status := a["status"]; status == "notrun" || status == "disabled" {
		c.outcome = Skipped
	}
	p.tc = c
}

// detail reads an element of a test case.
func (p *junitParser) detail(name string, a map[string]string) {
	c := p.tc
	switch name {
	case "failure", "error":
		c.outcome, c.failed = Failed, true
		c.message.add(a["message"]+"\n", p.cfg.MaxMessage)
		p.inside = name
	case "skipped":
		p.inside = name
		c.message.add(a["message"]+"\n", p.cfg.MaxMessage)
		switch {
		case a["type"] == "pytest.xfail":
			c.outcome = XFail
		case a["type"] == "todo":
			c.todo = true
		case a["message"] == "xfail-marked test passes unexpectedly":
			c.outcome = XPass
		case c.outcome != Failed:
			c.outcome = Skipped
		}
	case "rerunFailure", "rerunError", "flakyFailure", "flakyError":
		c.flaky = true
	}
}

func (p *junitParser) chars(text []byte) {
	if p.tc == nil || p.inside == "" {
		return
	}
	c := p.tc
	attribute := strings.TrimSpace(string(c.message.text))
	content := strings.TrimSpace(string(text))
	if attribute != "" && strings.HasPrefix(content, attribute) {
		c.message.text = c.message.text[:0] // the text begins with the attribute
	}
	c.message.add(content, p.cfg.MaxMessage)
}

func (p *junitParser) end(name string) error {
	p.depth--
	switch {
	case name == "testcase" && p.tc != nil:
		c := p.tc
		p.tc, p.inside = nil, ""
		return p.closeCase(c)
	case name == p.inside:
		p.inside = ""
	case (name == "testsuite" || name == "testsuites") && len(p.suites) > 0:
		return p.closeSuite()
	}
	return nil
}

func (p *junitParser) closeCase(c *junitCase) error {
	if c.todo {
		c.outcome = Todo
	}
	if n := len(p.suites); n > 0 {
		p.suites[n-1].direct++
		if c.failed {
			p.suites[n-1].failed++
		}
	}
	msg := ""
	if c.outcome != Passed {
		msg = clipped(string(c.message.text), p.cfg.MaxMessage)
	}
	place := identify(c, p.suites)
	if place.broken != "" && c.outcome == Failed {
		return p.broken(place.broken, Load, msg)
	}
	t := Test{
		ID: join("::", place.suite, place.name), Suite: place.suite, Name: place.name, File: place.file,
		Outcome: c.outcome, Duration: c.duration, Message: msg,
		Flaky: c.flaky && c.outcome == Passed,
	}
	if place.once {
		before := len(p.report.Tests)
		err := p.merge(t, c.line)
		if n := len(p.suites); n > 0 && len(p.report.Tests) == before {
			p.suites[n-1].repeated++
		}
		return err
	}
	_, err := p.add(t, c.line)
	return err
}

// closeSuite compares the numbers of a suite with its tests. Some writers count less than
// they list (jest-junit: no todo tests) and mix failures with errors, so only missing
// tests count.
func (p *junitParser) closeSuite() error {
	last := len(p.suites) - 1
	s := p.suites[last]
	p.suites = p.suites[:last]
	if last > 0 {
		outer := &p.suites[last-1]
		outer.below += s.direct + s.below
		outer.failed += s.failed
		outer.repeated += s.repeated
	}
	held := s.direct + s.below
	if s.tests > held {
		return p.incomplete(s.name, fmt.Sprintf("suite %q reports %d tests and has %d", s.name, s.tests, held))
	}
	if s.failing > 0 && s.failed == 0 {
		return p.incomplete(s.name, fmt.Sprintf("suite %q reports %d failed tests and has none", s.name, s.failing))
	}
	return nil
}
