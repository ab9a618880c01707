package testreport

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// rspecExample is an element of examples.
type rspecExample struct {
	Description     string  `json:"description"`
	FullDescription string  `json:"full_description"`
	Status          string  `json:"status"`
	FilePath        string  `json:"file_path"`
	RunTime         float64 `json:"run_time"` // seconds
	PendingMessage  string  `json:"pending_message"`
	Exception       struct {
		Class   string `json:"class"`
		Message string `json:"message"`
	} `json:"exception"`
}

// rspecSummary is the end record.
type rspecSummary struct {
	Examples int `json:"example_count"`
	Errors   int `json:"errors_outside_of_examples_count"`
}

type rspecParser struct {
	*jsonWalker
	summary *rspecSummary
	listed  int
	output  message // messages outside of examples
	any     bool
}

// rspec reads the object that rspec --format json writes. The report is complete when the
// object is closed and its summary agrees with the number of examples.
func (b *builder) rspec(r io.Reader) error {
	p := &rspecParser{jsonWalker: newJSONWalker(r, b)}
	return p.document(p.top, p.check)
}

func (p *rspecParser) top(key string) error {
	switch key {
	case "examples":
		p.any = true
		return p.list(p.example)
	case "summary":
		p.any = true
		p.summary = &rspecSummary{}
		return p.value(p.summary)
	case "messages":
		return p.list(func() error {
			var text string
			err := p.value(&text)
			p.output.add(text+"\n", p.cfg.MaxMessage)
			return err
		})
	}
	return p.skip()
}

func (p *rspecParser) example() error {
	var e rspecExample
	if err := p.value(&e); err != nil {
		return err
	}
	p.listed++
	file := p.cfg.relative(strings.TrimPrefix(e.FilePath, "./"))
	t := Test{ID: join("::", file, e.FullDescription), Suite: file, Name: e.FullDescription, File: file, Outcome: Failed}
	switch e.Status {
	case "passed":
		t.Outcome = Passed
	case "pending":
		// Pending examples ran and failed as expected; skipped ones did not run. Both are
		// written the same.
		t.Outcome, t.Message = Skipped, clipped(e.PendingMessage, p.cfg.MaxMessage)
	default:
		t.Message = clipped(join(": ", e.Exception.Class, strings.TrimSpace(e.Exception.Message)), p.cfg.MaxMessage)
	}
	if e.RunTime > 0 && e.RunTime < 1e9 {
		t.Duration = time.Duration(e.RunTime * float64(time.Second))
	}
	_, err := p.add(t, p.line())
	return err
}

func (p *rspecParser) check() error {
	switch {
	case !p.any:
		return p.wrong(0, `the object has neither "examples" nor "summary"`)
	case p.summary == nil:
		return p.incomplete("", "the summary is missing")
	case p.summary.Examples != p.listed:
		return p.incomplete("", fmt.Sprintf("the summary reports %d examples, the list has %d", p.summary.Examples, p.listed))
	case p.summary.Errors > 0: // RSpec runs nothing if a file cannot be loaded
		return p.broken("", Load, string(p.output.text))
	}
	return nil
}
