// Package diff formats changes of files as unified diffs. Time, memory and output are limited;
// the output names the parts that are left out.
package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// File is a file before or after.
type File struct {
	Path string
	// Mode are its permissions. Link is set for a symbolic link, whose Text is its target.
	Mode uint32
	Link bool
	Size int64 // in bytes
	// Text is its content; Unread is why that is not known.
	Text   []byte
	Unread string
}

// Config limits a diff.
type Config struct {
	// Context is the number of unchanged lines around a change. Zero: 3.
	Context int
	// Lines limits the lines of all hunks, LineBytes the bytes of a line. Zero: 200 and 300.
	Lines, LineBytes int
}

func (c Config) withDefaults() Config {
	return Config{Context: cmp.Or(c.Context, 3), Lines: cmp.Or(c.Lines, 200), LineBytes: cmp.Or(c.LineBytes, 300)}
}

// Unified returns the diff of a file. before is nil for an added file, after for a deleted
// one. The text ends with a newline.
func Unified(before, after *File, cfg Config) string {
	w := &writer{cfg: cfg.withDefaults()}
	w.head(before, after)
	var a, b File
	if before != nil {
		a = *before
	}
	if after != nil {
		b = *after
	}
	switch {
	case a.Unread != "" || b.Unread != "":
		w.line("the content is not shown: " + cmp.Or(a.Unread, b.Unread) + sizes(before, after))
	case bytes.Equal(a.Text, b.Text):
	case bytes.IndexByte(a.Text, 0) >= 0 || bytes.IndexByte(b.Text, 0) >= 0:
		w.line("binary files differ" + sizes(before, after))
	case bytes.Count(a.Text, []byte("\n")) > maxLines || bytes.Count(b.Text, []byte("\n")) > maxLines:
		w.line(fmt.Sprintf("the content is not shown: it has more than %d lines", maxLines) + sizes(before, after))
	default:
		w.hunks(lines(a.Text), lines(b.Text))
	}
	return w.b.String()
}

func sizes(before, after *File) string {
	size := func(f *File) string {
		if f == nil {
			return "nothing"
		}
		return fmt.Sprintf("%d bytes", f.Size)
	}
	return " (" + size(before) + ", then " + size(after) + ")"
}

type writer struct {
	cfg Config
	b   strings.Builder
}

func (w *writer) line(text string) { w.b.WriteString(text + "\n") }

// head writes the names and modes of the file, as git does.
func (w *writer) head(before, after *File) {
	from, to := "/dev/null", "/dev/null"
	if before != nil {
		from = quoted("a/" + before.Path)
	}
	if after != nil {
		to = quoted("b/" + after.Path)
	}
	w.line("--- " + from)
	w.line("+++ " + to)
	if before == nil || after == nil {
		return
	}
	if before.Path != after.Path {
		w.line("rename from " + quoted(before.Path))
		w.line("rename to " + quoted(after.Path))
	}
	switch {
	case before.Link != after.Link && after.Link:
		w.line("it became a symbolic link")
	case before.Link != after.Link:
		w.line("it was a symbolic link")
	case before.Mode != after.Mode:
		w.line(fmt.Sprintf("old mode %o", before.Mode))
		w.line(fmt.Sprintf("new mode %o", after.Mode))
	}
}

// quoted returns a path on one line.
func quoted(path string) string {
	if strings.ContainsFunc(path,
		func(r rune) bool { return r == '"' || unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(path)
	}
	return path
}

// hunk is a group of edits with the lines around them.
type hunk struct {
	edits                     []edit
	fromA, fromB, inA, inB, n int
}

// hunks writes the changes.
func (w *writer) hunks(a, b [][]byte) {
	left := w.cfg.Lines
	more := 0
	for _, h := range group(edits(a, b), w.cfg.Context) {
		if left <= 0 {
			more += h.n
			continue
		}
		w.line(fmt.Sprintf("@@ -%s +%s @@", span(h.fromA, h.inA), span(h.fromB, h.inB)))
		for _, e := range h.edits {
			text := a[min(e.a, len(a)):]
			if e.kind == '+' {
				text = b[e.b:]
			}
			shown := min(e.n, left)
			for _, line := range text[:shown] {
				w.text(e.kind, line)
			}
			left, more = left-shown, more+e.n-shown
		}
	}
	if more > 0 {
		w.line(fmt.Sprintf("… and %d more lines", more))
	}
}

// text writes a line of a file, cut at the limit.
func (w *writer) text(kind byte, line []byte) {
	line, ended := bytes.CutSuffix(line, []byte("\n"))
	cut := ""
	if over := len(line) - w.cfg.LineBytes; over > 0 {
		line, cut = line[:w.cfg.LineBytes], fmt.Sprintf("… (%d more bytes)", over)
	}
	w.line(string(kind) + strings.ToValidUTF8(string(line), "\uFFFD") + cut)
	if !ended {
		w.line(`\ No newline at end of file`)
	}
}

// span returns the range of a hunk in a file, as git writes it.
func span(from, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", from)
	}
	if n == 1 {
		return strconv.Itoa(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, n)
}

// group groups edits into hunks.
func group(list []edit, context int) []hunk {
	var hunks []hunk
	var h *hunk
	for i, e := range list {
		if e.kind != ' ' {
			if h == nil {
				hunks = append(hunks, hunk{fromA: e.a, fromB: e.b})
				h = &hunks[len(hunks)-1]
			}
			h.add(e)
			continue
		}
		if h != nil { // the lines after a change
			n := min(e.n, context)
			if last := i == len(list)-1; !last && e.n <= 2*context {
				h.add(e)
				continue
			}
			h.add(edit{' ', e.a, e.b, n})
			h = nil
			e = edit{' ', e.a + n, e.b + n, e.n - n}
		}
		if i < len(list)-1 { // the lines before the next one
			n := min(e.n, context)
			from := edit{' ', e.a + e.n - n, e.b + e.n - n, n}
			hunks = append(hunks, hunk{fromA: from.a, fromB: from.b})
			h = &hunks[len(hunks)-1]
			h.add(from)
		}
	}
	return hunks
}

func (h *hunk) add(e edit) {
	if e.n == 0 {
		return
	}
	h.edits = append(h.edits, e)
	h.n += e.n
	if e.kind != '+' {
		h.inA += e.n
	}
	if e.kind != '-' {
		h.inB += e.n
	}
}
