package coverage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Format is a coverage format.
type Format string

// Supported formats.
const (
	Go        Format = "go-coverprofile" // go test -coverprofile
	LCOV      Format = "lcov"            // LCOV tracefile
	Cobertura Format = "cobertura-xml"   // Cobertura XML
	Clover    Format = "clover-xml"      // Clover XML, as PHPUnit, jest and istanbul write it
)

// detectBytes is the number of bytes from which Parse detects the format.
const detectBytes = 4 << 10

// Detect returns the format of coverage from the first bytes of the input (4 KiB are
// enough); empty if it is unknown.
func Detect(first []byte) Format {
	text := bytes.TrimLeft(bytes.TrimPrefix(first, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("mode: ")):
		return Go
	case bytes.HasPrefix(text, []byte("<")) && bytes.Contains(text, []byte("<coverage")) &&
		(bytes.Contains(text, []byte("clover=")) || bytes.Contains(text, []byte("<project"))):
		return Clover
	case bytes.HasPrefix(text, []byte("<")) && bytes.Contains(text, []byte("<coverage")):
		return Cobertura
	case bytes.HasPrefix(text, []byte("TN:")), bytes.HasPrefix(text, []byte("SF:")):
		return LCOV
	}
	return ""
}

// Parse reads coverage in a format; an empty format is detected. Errors are a
// SyntaxError, a LimitError or those of the reader, and name the format.
func Parse(format Format, r io.Reader, cfg Config) (*Profile, error) {
	if format == "" {
		buffered := bufio.NewReaderSize(r, detectBytes)
		first, err := buffered.Peek(detectBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read coverage: %w", err)
		}
		if format = Detect(first); format == "" {
			return nil, errors.New("read coverage: unknown format: use Go's coverprofile, LCOV, Cobertura or Clover XML")
		}
		r = buffered
	}
	b, err := newBuilder(cfg)
	if err == nil {
		switch format {
		case Go:
			err = b.golang(r)
		case LCOV:
			err = b.lcov(r)
		case Cobertura, Clover:
			err = b.cobertura(r)
		default:
			return nil, fmt.Errorf("read coverage: unknown format %q", format)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", format, err)
	}
	return &b.profile, nil
}

// ParseFiles reads the files of one run and merges them. Without any file the profile is
// not complete.
func ParseFiles(format Format, names []string, cfg Config) (*Profile, error) {
	profiles := make([]*Profile, 0, len(names))
	for _, name := range names {
		p, err := parseFile(format, name, cfg)
		if err != nil {
			return nil, err
		}
		profiles = append(profiles, p)
	}
	return Merge(profiles...), nil
}

func parseFile(format Format, name string, cfg Config) (*Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read coverage: %w", err)
	}
	defer f.Close()
	p, err := Parse(format, f, cfg)
	if err != nil {
		return nil, fmt.Errorf("file %q: %w", name, err)
	}
	if !p.Complete {
		p.Reason = fmt.Sprintf("file %q: %s", name, p.Reason)
	}
	return p, nil
}

// lines calls each for every line without its end.
func (b *builder) lines(r io.Reader, each func(line string) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(long)+len(part) > b.cfg.MaxLine {
			return &LimitError{Limit: "max line", Max: b.cfg.MaxLine, Line: b.line + 1}
		}
		long = append(long, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return err
		}
		if len(long) > 0 {
			b.line++
			if err := each(string(bytes.TrimRight(long, "\r\n"))); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		long = long[:0]
	}
}

func (b *builder) wrong(format string, args ...any) error {
	return &SyntaxError{Line: b.line, Msg: fmt.Sprintf(format, args...)}
}

// number parses a number of a line.
func (b *builder) number(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, b.wrong("%q is not a number", text)
	}
	return n, nil
}
