package trajectory

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Decode returns the lines of a log as UTF-8: what gzip compressed is decompressed, and UTF-16 with a
// byte order mark is converted. The content decides, not the name of a file.
func Decode(source io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(source, 64<<10)
	if head, _ := in.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReaderSize(unpacked, 64<<10)
	}
	head, _ := in.Peek(2)
	if string(head) != "\xff\xfe" && string(head) != "\xfe\xff" {
		return in, nil
	}
	return transform.NewReader(in, unicode.BOMOverride(transform.Nop)), nil
}

// open begins to read, and passes over a byte order mark.
func (r *Reader) open() error {
	if r.in != nil {
		return nil
	}
	source, err := Decode(r.source)
	r.in = bufio.NewReaderSize(source, 64<<10)
	if err != nil {
		r.line = 1
		return r.unreadable(err)
	}
	if head, _ := r.in.Peek(3); string(head) == "\ufeff" {
		_, err = r.in.Discard(3)
		r.next = 3
	}
	return err
}

// unreadable is the error of reading a line.
func (r *Reader) unreadable(err error) error {
	_, isCorrupt := errors.AsType[flate.CorruptInputError](err)
	if isCorrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return r.wrong("the data of gzip are damaged: %v", err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.wrong("the data of gzip are cut off before the first line")
	}
	return &readError{err}
}

// readError is an error of the file, not of its lines.
type readError struct{ err error }

func (e *readError) Error() string { return "read log: " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// withoutTail returns the last line of a log without zero bytes, which a file system leaves after a
// power failure, and without the beginning of a character at its end.
func withoutTail(line []byte) []byte {
	line = bytes.TrimRight(line, "\x00\r\n")
	for n := 1; n < utf8.UTFMax && n <= len(line); n++ {
		if rest := line[len(line)-n:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				line = line[:len(line)-n]
			}
			break
		}
	}
	return withoutNumber(line)
}

// isCutOff reports whether the end of a last line is missing, which is text as JSON.
func isCutOff(text, line []byte) bool {
	if len(text) == 0 {
		return bytes.IndexByte(line, 0) >= 0
	}
	if text[0] != '{' {
		return false
	}
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, new(json.RawMessage)))
	if !ok {
		return false
	}
	isAtEnd := wrong.Offset >= int64(len(text)) && strings.HasPrefix(wrong.Error(), "invalid character ' '")
	return isAtEnd || wrong.Error() == "unexpected end of JSON input"
}

// Begins reports whether a file begins with a line of a log, of which the rest may be missing.
func Begins(file io.Reader) bool {
	source, err := Decode(file)
	if err != nil {
		return false
	}
	head, _ := io.ReadAll(source) // the end of the file may be missing
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff")))
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return regexp.MustCompile(`^\{\s*"type":\s*"(metadata|iteration)"`).Match(line)
}
