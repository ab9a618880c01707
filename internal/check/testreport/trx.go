package testreport

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// trxResult is a <UnitTestResult>; its class is in <TestDefinitions>, which follows.
type trxResult struct {
	id, name string
	outcome  Outcome
	duration time.Duration
	message  message
	line     int
}

type trxParser struct {
	*builder
	x       *xmlText
	results []trxResult
	classes map[string]string // by the test's ID
	id      string            // of the <UnitTest> that is open
	path    []string          // names of the open elements
	open    int               // depth of the open result, 0: none
	total   int
	ended   bool
}

// trx reads the document that dotnet test writes with --logger trx. The report is complete
// when the root element is closed, the summary was written, and its total is the number of
// results.
func (b *builder) trx(r io.Reader) error {
	p := &trxParser{builder: b, x: newXMLText(r, b.cfg), classes: make(map[string]string), total: -1}
	if err := walkXML(p.x, b, p); err != nil {
		return err
	}
	return p.finish()
}

func (p *trxParser) start(e xml.StartElement) error {
	p.path = append(p.path, e.Name.Local)
	a := attributes(e)
	switch e.Name.Local {
	case "UnitTestResult":
		if p.open > 0 {
			return nil // the rows of a data-driven test are inside its result
		}
		if len(p.results) >= p.cfg.MaxTests {
			return &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.x.line}
		}
		p.open = len(p.path)
		p.results = append(p.results, trxResult{
			id: a["testId"], name: a["testName"], outcome: trxOutcome(a["outcome"]),
			duration: clockTime(a["duration"]), line: p.x.line,
		})
	case "UnitTest":
		p.id = a["id"]
	case "TestMethod":
		if p.id != "" && len(p.classes) < p.cfg.MaxTests {
			class, _, _ := strings.Cut(a["className"], ",")
			p.classes[p.id] = class
		}
	case "Counters":
		p.total, p.ended = count(a["total"]), true
	default:
		if len(p.path) == 1 && e.Name.Local != "TestRun" {
			return p.x.wrong("root element is <%s>, not <TestRun>", printable(e.Name.Local))
		}
	}
	return nil
}

func trxOutcome(word string) Outcome {
	switch word {
	case "Passed", "PassedButRunAborted", "Warning":
		return Passed
	case "NotExecuted", "Pending", "Disconnected", "Inconclusive", "NotRunnable":
		return Skipped
	case "InProgress":
		return Unfinished
	}
	return Failed
}

// clockTime parses hh:mm:ss.fffffff; 0 if it is invalid.
func clockTime(s string) time.Duration {
	var h, m int
	var sec float64
	_, err := fmt.Sscanf(s, "%d:%d:%f", &h, &m, &sec)
	if err != nil || h < 0 || m < 0 || sec < 0 || h > 1e5 || m > 59 || sec > 60 {
		return 0
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec*float64(time.Second))
}

func (p *trxParser) end(string) error {
	if len(p.path) == p.open {
		p.open = 0
	}
	p.path = p.path[:len(p.path)-1]
	return nil
}

func (p *trxParser) chars(text []byte) {
	if p.open == 0 {
		return
	}
	switch p.path[len(p.path)-1] {
	case "Message", "StackTrace":
		p.results[len(p.results)-1].message.add(strings.TrimSpace(string(text))+"\n", p.cfg.MaxMessage)
	}
}

func (p *trxParser) finish() error {
	for i := range p.results {
		r := &p.results[i]
		class := p.classes[r.id]
		name := strings.TrimPrefix(r.name, class+".")
		t := Test{ID: join("::", class, name), Suite: class, Name: name, Outcome: r.outcome, Duration: r.duration}
		if r.outcome != Passed {
			t.Message = clipped(string(r.message.text), p.cfg.MaxMessage)
		}
		if _, err := p.add(t, r.line); err != nil {
			return err
		}
	}
	switch {
	case !p.report.Complete:
		return nil
	case !p.ended:
		return p.incomplete("", "the summary is missing")
	case p.total >= 0 && p.total != len(p.results):
		return p.incomplete("", fmt.Sprintf("the summary reports %d tests, the list has %d results", p.total, len(p.results)))
	}
	return nil
}
