package testreport

import (
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
	*jsonWalker
	total       int // numTotalTests; -1 when missing
	listed      int
	interrupted bool
	any         bool // a key of the format was seen
}

// jest reads the object that jest --json and vitest --reporter=json write. The report is
// complete when the object is closed, the run was not interrupted, and the number of tests
// is the stated one.
func (b *builder) jest(r io.Reader) error {
	p := &jestParser{jsonWalker: newJSONWalker(r, b), total: -1}
	return p.document(p.top, p.check)
}

// check compares the end record with the listed tests.
func (p *jestParser) check() error {
	switch {
	case !p.any:
		return p.wrong(0, `the object has neither "testResults" nor "numTotalTests"`)
	case p.interrupted:
		return p.incomplete("", "the run was interrupted")
	case p.total < 0:
		return p.incomplete("", "the number of tests is missing")
	case p.total != p.listed:
		return p.incomplete("", fmt.Sprintf("the run reports %d tests and lists %d", p.total, p.listed))
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
			f.message = clipped(m, p.cfg.MaxMessage)
			return err
		case "assertionResults":
			return p.list(func() error { return p.test(&f) })
		}
		return p.skip()
	})
	if err != nil && f.name == "" {
		return err // without it the identities would be wrong
	}
	return errors.Join(p.closeFile(&f), err)
}

func (p *jestParser) test(f *jestFile) error {
	var t jestTest
	if err := p.value(&t); err != nil {
		return err
	}
	if p.listed++; p.listed > p.cfg.MaxTests {
		return &LimitError{Limit: "max tests", Max: p.cfg.MaxTests, Line: p.line()}
	}
	if len(t.FailureMessages) > 0 {
		t.FailureMessages = []string{clipped(t.FailureMessages[0], p.cfg.MaxMessage)}
	}
	f.tests = append(f.tests, t)
	return nil
}

func (p *jestParser) closeFile(f *jestFile) error {
	line := p.line()
	name := p.cfg.relative(f.name)
	if f.status == "failed" && len(f.tests) == 0 {
		return p.broken(name, Load, f.message)
	}
	failed := false
	for _, t := range f.tests {
		failed = failed || t.Status == "failed"
		titles := join(" > ", append(t.AncestorTitles, t.Title)...)
		made := Test{ID: join("::", name, titles), Suite: name, Name: titles, File: name}
		switch t.Status {
		case "passed":
			// vitest keeps the failures of earlier tries.
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
	if f.status == "failed" && !failed { // the code after the tests failed
		return p.broken(name, Exit, f.message)
	}
	return nil
}
