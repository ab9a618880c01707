package detect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
)

// Fingerprint returns an ID of the finding that stays the same in the next version of the
// files, also when other lines moved it.
func (f *Finding) Fingerprint() string {
	parts := []string{f.Pattern, f.File, f.Subject, clip.OneLine(f.Evidence)}
	if f.Change != "" {
		parts = append(parts, f.Change)
	}
	if f.Repeat > 0 {
		parts = append(parts, "#"+strconv.Itoa(f.Repeat))
	}
	return short(strings.Join(parts, "\x00"))
}

// number numbers findings with the same fingerprint, in the order of their lines.
func number(all []Finding) {
	seen := make(map[string]int)
	for i := range all {
		all[i].Repeat = 0
		id := all[i].Fingerprint()
		all[i].Repeat = seen[id]
		seen[id]++
	}
}

// Summary returns the finding on one line: what happened, to what, and where, as in
// "test removed: TestX (x_test.go:12 in the old version)".
func (f *Finding) Summary() string {
	text := f.Message
	if f.Subject != "" && f.Subject != f.File && !strings.Contains(text, f.Subject) {
		text += ": " + f.Subject
	}
	if f.File == "" {
		return text
	}
	return text + " (" + f.Place() + ")"
}

// Place returns the file and the line of the finding, and says so if it is a line of the old
// version.
func (f *Finding) Place() string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Gone:
		return fmt.Sprintf("%s:%d in the old version", f.File, f.Line)
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}
