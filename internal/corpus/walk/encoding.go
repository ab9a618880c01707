package walk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"

	"github.com/perdure/perdure/internal/corpus/charset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// encodingError asks for a file to be read again in another encoding.
type encodingError struct{ encoding charset.Charset }

// Error names the encoding.
func (e *encodingError) Error() string { return "the text is " + e.encoding.Name() }

// encodingOf returns the encoding of a text that begins with head, or why it is not read.
func (c *collector) encodingOf(at candidate, head []byte, whole bool) (charset.Charset, *fault) {
	if at.encoding != nil {
		return *at.encoding, nil
	}
	if isPDF(head) {
		return charset.UTF8(), &fault{kind: KindBinary, why: "it is a PDF document", hint: commandHint(at.name, "pdf")}
	}
	encoding, err := charset.Detect(head, whole)
	if chosen := c.cfg.Encoding; chosen != nil && !charset.HasMark(head) && (err != nil || !encoding.IsUTF8() ||
		!chosen.IsUTF8() && !chosen.ExtendsASCII()) {
		return *chosen, nil
	}
	switch {
	case errors.Is(err, charset.ErrBinary):
		return encoding, &fault{kind: KindBinary, why: err.Error(), hint: commandHint(at.name, kindOf(at.name, head))}
	case errors.Is(err, charset.ErrMixed):
		return encoding, &fault{kind: KindEncoding, why: err.Error() + ": " + invalidLine(head), hint: mixedHint(at)}
	case err != nil:
		return encoding, &fault{kind: KindEncoding, why: err.Error(), hint: hintEncoding}
	}
	return encoding, nil
}

const hintEncoding = "name its encoding, such as --encoding windows-1252, or convert it to UTF-8 with iconv"

// mixedHint is the hint for a text that is UTF-8 in some places only.
func mixedHint(at candidate) string {
	return fmt.Sprintf("`iconv -c -f UTF-8 -t UTF-8 %s` leaves the other bytes out, --encoding reads all of it in "+
		"another encoding", at.name)
}

// invalidLine names the first line that is not UTF-8.
func invalidLine(head []byte) string {
	_, err := io.Copy(io.Discard, charset.NewReader(bytes.NewReader(head), charset.UTF8()))
	if err == nil {
		return "at its end"
	}
	return err.Error()
}

// invalidError returns the error of a text with bytes that its encoding does not have, or asks for it
// to be read again if these bytes show its encoding.
func (c *collector) invalidError(at candidate, e *charset.InvalidError, again io.ReaderAt) error {
	if again != nil && at.encoding == nil && e.Charset.IsUTF8() && e.ASCII {
		if chosen := c.cfg.Encoding; chosen != nil {
			return &encodingError{*chosen}
		}
		window := make([]byte, headBytes)
		n, err := again.ReadAt(window, e.Offset)
		if encoding, unknown := charset.Detect(window[:n], errors.Is(err, io.EOF)); unknown == nil && !encoding.IsUTF8() {
			return &encodingError{encoding}
		}
	}
	hint := hintEncoding
	if e.Charset.IsUTF8() && !e.ASCII {
		hint = mixedHint(at)
	}
	return c.refuse(at, fault{kind: KindEncoding, why: e.Error(), hint: hint})
}

var rePDF = lazyregexp.New(`^%PDF-\d\.\d\s*[\r\n]`)

// isPDF reports whether a file is a PDF document and no text about one.
func isPDF(head []byte) bool {
	return rePDF().Match(head) &&
		(bytes.Contains(head, []byte(" obj")) || bytes.Contains(head, []byte("%%EOF")) || bytes.IndexByte(head, 0) >= 0)
}

// kindOf returns the kind of a binary file by its first bytes, or its name's extension.
func kindOf(name string, head []byte) string {
	for _, magic := range []struct{ first, kind string }{
		{"\x1f\x8b", "gz"}, {"BZh", "bz2"}, {"\xfd7zXZ\x00", "xz"}, {"\x28\xb5\x2f\xfd", "zst"},
	} {
		if bytes.HasPrefix(head, []byte(magic.first)) {
			return magic.kind
		}
	}
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// commandHint names a command that turns a kind of file into text, and the package that has it
// if it is not installed.
func commandHint(name, kind string) string {
	command, from := "", ""
	switch kind {
	case "pdf":
		command, from = "pdftotext - -", "poppler-utils (poppler on macOS)"
	case "docx", "odt", "epub", "rtf", "html":
		command, from = "pandoc -f "+kind+" -t plain", "pandoc"
	case "gz", "bz2", "xz", "zst":
		command = map[string]string{"gz": "gzip -dc", "bz2": "bzip2 -dc", "xz": "xz -dc", "zst": "zstd -dc"}[kind]
		from = strings.Fields(command)[0]
	default:
		return "turn it into text with a command: --pre 'PATTERN=COMMAND'"
	}
	pattern := "*" + path.Ext(name)
	if pattern == "*" {
		pattern = path.Base(name)
	}
	hint := fmt.Sprintf("--pre '%s=%s' turns it into text", pattern, command)
	if _, err := exec.LookPath(strings.Fields(command)[0]); err != nil {
		hint += fmt.Sprintf(", if the package %s is installed", from)
	}
	return hint
}
