package detect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
)

// Fingerprint returns an ID of the finding that stays the same in the next version of the
// files, also when other lines moved it.
func (f *Finding) Fingerprint() string {
	parts := []string{f.Pattern, f.File, f.Subject, clip.OneLine(f.Evidence)}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	const digits = 16
	return hex.EncodeToString(sum[:])[:digits]
}

// Summary returns the finding on one line: what happened, to what, and where, as in
// "test removed: TestX (x_test.go:12)".
func (f *Finding) Summary() string {
	text := f.Message
	if f.Subject != "" && f.Subject != f.File && !strings.Contains(text, f.Subject) {
		text += ": " + f.Subject
	}
	switch {
	case f.File == "":
		return text
	case f.Line == 0:
		return text + " (" + f.File + ")"
	}
	return fmt.Sprintf("%s (%s:%d)", text, f.File, f.Line)
}
