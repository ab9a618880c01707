package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math"
	"strings"
)

// renderVersion is part of every request's hash, so that a journal written
// before the form of [Render] changed is not taken for today's.
const renderVersion = "perdure request 1"

// EndLine is the number of the last line of Text; StartLine for an empty text.
func (d Document) EndLine() int {
	lines := strings.Count(d.Text, "\n")
	if lines > 0 && strings.HasSuffix(d.Text, "\n") {
		lines--
	}
	return d.StartLine + lines
}

// Render returns the prompt and the documents as plain text, for models that
// read text. Each document is between two lines that name its file and its
// lines, so that an answer can cite them:
//
//	PROMPT
//
//	=== document 1 of 2: "src/a.go" lines 10-42 ===
//	…
//	=== end of document 1 ===
//
// With [DocumentsFirst] the prompt is behind the documents, and the heading of
// a repeated one says that it is. The system text is not part of it; see
// [RenderAll]. The form of each layout is stable.
func Render(req *Request) string {
	var b strings.Builder
	b.Grow(renderedSize(req))
	switch req.Layout {
	case PromptFirst:
		b.WriteString(req.Prompt)
		if len(req.Documents) > 0 && !strings.HasSuffix(req.Prompt, "\n") {
			b.WriteByte('\n')
		}
		for i := range req.Documents {
			b.WriteByte('\n')
			renderDocument(&b, req, i)
		}
	case DocumentsFirst:
		for i := range req.Documents {
			renderDocument(&b, req, i)
			b.WriteByte('\n')
		}
		b.WriteString(req.Prompt)
	case TextOnly:
		for _, d := range req.Documents {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

func renderDocument(b *strings.Builder, req *Request, i int) {
	d := &req.Documents[i]
	repeated := ""
	if d.Repeated && req.Layout != PromptFirst {
		repeated = " (repeated for context, already counted)"
	}
	fmt.Fprintf(b, "=== document %d of %d: %q lines %d-%d%s ===\n", i+1, len(req.Documents), d.File, d.StartLine,
		d.EndLine(), repeated)
	b.WriteString(d.Text)
	if !strings.HasSuffix(d.Text, "\n") {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "=== end of document %d ===\n", i+1)
}

// RenderAll returns the system text, a blank line, what [Render] returns, and
// [RenderMessages]: the whole request for a model that reads one text.
func RenderAll(req *Request) string {
	text := Render(req) + RenderMessages(req.Messages)
	if req.System == "" || req.Layout == TextOnly {
		return text
	}
	return req.System + "\n\n" + text
}

// RenderMessages returns messages as plain text, each below a line that says whose it is:
//
//	=== reply 1 ===
//	…
//
//	=== message 2 ===
//	…
//
// The form is stable.
func RenderMessages(list []Message) string {
	var b strings.Builder
	for i, m := range list {
		whose := "message"
		if m.Reply {
			whose = "reply"
		}
		fmt.Fprintf(&b, "\n\n=== %s %d ===\n%s", whose, i/2+1+i%2, m.Text)
	}
	return b.String()
}

func renderedSize(req *Request) int {
	n := len(req.Prompt) + 1
	for _, d := range req.Documents {
		n += len(d.Text) + len(d.File) + 150
	}
	return n
}

// Hash returns the hexadecimal sha-256 of everything that determines the
// answer of the model with this name to req: two requests with the same hash
// may share one answer. OnText has no part in it.
func Hash(name string, req *Request) string {
	w := fieldHash{sha256.New()}
	w.text(renderVersion)
	w.text(name)
	w.text(req.System)
	w.text(req.Prompt)
	w.number(uint64(len(req.Documents)))
	for _, d := range req.Documents {
		w.text(d.File)
		w.signed(d.StartLine)
		w.text(d.Text)
	}
	w.text("") // was a field of requests; hashes stay the same
	w.optional(req.Temperature != nil, func() uint64 { return math.Float64bits(*req.Temperature) })
	w.optional(req.Seed != nil, func() uint64 { return uint64(*req.Seed) }) //nolint:gosec // its bits
	w.signed(req.MaxOutputTokens)
	if req.Sample != 0 { // hashes from before there were samples stay what they are
		w.signed(req.Sample)
	}
	if req.Layout != PromptFirst { // the same for layouts
		w.text("layout")
		w.signed(int(req.Layout))
		for _, d := range req.Documents {
			w.optional(d.Repeated, func() uint64 { return 1 })
		}
	}
	if len(req.Messages) > 0 { // and for messages
		w.text("messages")
		w.number(uint64(len(req.Messages)))
	}
	for _, m := range req.Messages {
		w.optional(m.Reply, func() uint64 { return 1 })
		w.text(m.Text)
	}
	return hex.EncodeToString(w.h.Sum(nil))
}

// fieldHash hashes fields so that no two different lists of fields give the
// same bytes: each text goes in with its length before it.
type fieldHash struct{ h hash.Hash }

func (w fieldHash) number(n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	w.h.Write(b[:])
}

func (w fieldHash) signed(n int) { w.number(uint64(n)) } //nolint:gosec // its bits

func (w fieldHash) text(s string) {
	w.number(uint64(len(s)))
	_, _ = io.WriteString(w.h, s) // a hash never fails
}

func (w fieldHash) optional(set bool, value func() uint64) {
	if !set {
		w.number(0)
		return
	}
	w.number(1)
	w.number(value())
}
