package testreport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// Format is a format of test results.
type Format string

// Supported formats.
const (
	GoTest Format = "go-test-json" // go test -json
	JUnit  Format = "junit-xml"    // JUnit XML, in any dialect
	Jest   Format = "jest-json"    // jest --json, vitest --reporter=json
	TAP    Format = "tap"          // Test Anything Protocol 12, 13 and 14
	Cargo  Format = "cargo-test"   // cargo test's output for people
	TRX    Format = "trx"          // dotnet test --logger trx
	RSpec  Format = "rspec-json"   // rspec --format json
)

// Parse reads a report in a format; an empty format is detected. Errors are a SyntaxError
// (not that format), a LimitError or those of the reader, and name the format; an input
// that ends too early is a report that is not complete.
func Parse(format Format, r io.Reader, cfg Config) (*Report, error) {
	if format == "" {
		buffered := bufio.NewReaderSize(r, detectBytes)
		first, err := buffered.Peek(detectBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read test results: %w", err)
		}
		if format = Detect("", first); format == "" {
			return nil, errors.New("read test results: unknown format: use go test -json, JUnit XML, " +
				"the JSON of jest or RSpec, TAP, cargo test or TRX")
		}
		r = buffered
	}
	b, err := newBuilder(format, cfg)
	if err == nil {
		switch format {
		case GoTest:
			err = b.goTest(r)
		case JUnit:
			err = b.junit(r)
		case Jest:
			err = b.jest(r)
		case TAP:
			err = b.tap(r)
		case Cargo:
			err = b.cargo(r)
		case TRX:
			err = b.trx(r)
		case RSpec:
			err = b.rspec(r)
		default:
			return nil, fmt.Errorf("read test results: unknown format %q", format)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", format, err)
	}
	return &b.report, nil
}

// ParseFiles reads the files of one run and merges them in the given order, which decides
// how equal identities are numbered: sort the names. Without any file the report is not
// complete.
func ParseFiles(format Format, names []string, cfg Config) (*Report, error) {
	reports := make([]*Report, 0, len(names))
	for _, name := range names {
		report, err := parseFile(format, name, cfg)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	merged, err := Merge(cfg, reports...)
	if err != nil {
		return nil, err
	}
	merged.Format = format
	return merged, nil
}

func parseFile(format Format, name string, cfg Config) (*Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read test results: %w", err)
	}
	defer f.Close()
	report, err := Parse(format, f, cfg)
	if err != nil {
		return nil, fmt.Errorf("file %q: %w", name, err)
	}
	if !report.Complete {
		report.Reason = fmt.Sprintf("file %q: %s", name, report.Reason)
	}
	return report, nil
}

// Merge merges reports, in order. Equal identities are numbered as within one report.
// Without any report the result is not complete. Only the limits of the configuration are
// used.
func Merge(cfg Config, reports ...*Report) (*Report, error) {
	b, err := newBuilder("", cfg)
	if err != nil {
		return nil, fmt.Errorf("merge test results: %w", err)
	}
	if len(reports) == 0 {
		err = b.incomplete("", "no results found")
	} else {
		b.report.Format = reports[0].Format
	}
	for _, r := range reports {
		err = errors.Join(err, b.join(r))
	}
	if err != nil {
		return nil, fmt.Errorf("merge test results: %w", err)
	}
	return &b.report, nil
}

func (b *builder) join(r *Report) error {
	if r.Format != b.report.Format {
		b.report.Format = ""
	}
	for _, t := range r.Tests {
		if _, err := b.add(t, 0); err != nil {
			return err
		}
	}
	for _, each := range r.Broken {
		if err := b.broken(each.Suite, each.Kind, each.Message); err != nil {
			return err
		}
	}
	b.report.Ignored += r.Ignored
	if !r.Complete && b.report.Complete {
		b.report.Complete, b.report.Reason = false, r.Reason
	}
	return nil
}
