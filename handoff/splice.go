package handoff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// edit replaces a part of a text.
type edit struct {
	from, to int
	with     []byte
}

// With returns the document with another checkpoint at a place. If c is nil, the
// checkpoint is set to null if there is one. If the file has a lastHeartbeat and
// heartbeat is not zero, it is replaced, too. All other bytes are not changed. The
// checkpoint is formatted as the object that contains it: with the same indentation and
// line ends, or on one line.
func (d *Document) With(p Place, c *Checkpoint, heartbeat time.Time) (*Document, error) {
	owner, err := d.owner(p)
	if err != nil {
		return nil, err
	}
	text := []byte("null")
	if c != nil {
		if text, err = c.Compact(); err != nil {
			return nil, &Error{Kind: ErrInvalid, Op: "write checkpoint", File: d.name, Err: err}
		}
	}
	edits := d.heartbeat(heartbeat)
	old := owner.Get(checkpointKey)
	switch {
	case old != nil:
		edits = append(edits, edit{old.Start, old.End(), d.styleOf(owner).value(text)})
	case c != nil:
		edits = append(edits, d.insertion(owner, text))
	}
	data := apply(d.data, edits)
	return Parse(d.name, data)
}

// heartbeat returns the edit of lastHeartbeat, if there is one.
func (d *Document) heartbeat(at time.Time) []edit {
	n := d.root.Get("lastHeartbeat")
	if n == nil || at.IsZero() || !n.Is(jsontree.String) && !n.IsNull() {
		return nil
	}
	return []edit{{n.Start, n.End(), []byte(`"` + at.UTC().Format(time.RFC3339) + `"`)}}
}

// apply returns text with edits that do not overlap, at most two.
func apply(text []byte, edits []edit) []byte {
	if len(edits) == 2 && edits[0].from > edits[1].from {
		edits[0], edits[1] = edits[1], edits[0]
	}
	var b bytes.Buffer
	at := 0
	for _, e := range edits {
		b.Write(text[at:e.from])
		b.Write(e.with)
		at = e.to
	}
	b.Write(text[at:])
	return b.Bytes()
}

// style is the format of an object.
type style struct {
	lines   bool   // a member on each line
	newline string // a line end
	outer   string // the indentation of the object
	indent  string // the indentation of its members
	unit    string // one level of it
	colon   string // between name and value on one line
	comma   string // between members on one line
}

func (d *Document) styleOf(owner *jsontree.Value) style {
	s := style{newline: "\n", unit: d.unit(), colon: ": ", comma: ", "}
	if at := bytes.IndexByte(d.data, '\n'); at > 0 && d.data[at-1] == '\r' {
		s.newline = "\r\n"
	}
	s.outer = d.indentation(owner.Start)
	s.indent = s.outer + s.unit
	if len(owner.Members) == 0 {
		s.lines = bytes.IndexByte(d.root.Raw(), '\n') >= 0
		return s
	}
	first, last := owner.Members[0], owner.Members[len(owner.Members)-1]
	s.lines = bytes.IndexByte(d.data[owner.Start:first.Start], '\n') >= 0
	if own := d.indentation(last.Start); s.lines {
		if !d.leads(last.Start) {
			own = d.indentation(first.Start)
		}
		s.indent = own
		if unit, ok := strings.CutPrefix(own, s.outer); ok && unit != "" {
			s.unit = unit
		}
		return s
	}
	if d.data[last.Value.Start-1] == ':' {
		s.colon = ":"
	}
	s.comma = "," + s.colon[1:]
	return s
}

// unit returns one level of the file's indentation.
func (d *Document) unit() string {
	if len(d.root.Members) == 0 || !d.leads(d.root.Members[0].Start) {
		return "  "
	}
	return cmp.Or(d.indentation(d.root.Members[0].Start), "  ")
}

// lineStart returns the offset of the line of an offset.
func (d *Document) lineStart(at int) int { return bytes.LastIndexByte(d.data[:at], '\n') + 1 }

// indentation returns the indentation of the line of an offset.
func (d *Document) indentation(at int) string {
	line := d.data[d.lineStart(at):at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// leads reports whether only blanks are before an offset in its line.
func (d *Document) leads(at int) bool {
	return len(bytes.TrimLeft(d.data[d.lineStart(at):at], " \t")) == 0
}

// value formats a compact value in the style of its object.
func (s style) value(compact []byte) []byte {
	if !s.lines {
		return spaced(compact, s.colon, s.comma)
	}
	var b bytes.Buffer
	if json.Indent(&b, compact, s.indent, s.unit) != nil {
		return compact // nested deeper than the standard library reads
	}
	if s.newline == "\n" {
		return b.Bytes()
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(s.newline))
}

// spaced writes compact JSON with other colons and commas.
func spaced(compact []byte, colon, comma string) []byte {
	var b bytes.Buffer
	quoted := false
	for i := 0; i < len(compact); i++ {
		switch c := compact[i]; {
		case c == '\\' && quoted:
			b.Write(compact[i : i+2])
			i++
		case c == '"':
			quoted = !quoted
			b.WriteByte(c)
		case c == ':' && !quoted:
			b.WriteString(colon)
		case c == ',' && !quoted:
			b.WriteString(comma)
		default:
			b.WriteByte(c)
		}
	}
	return b.Bytes()
}

// insertion returns the edit that adds a checkpoint as the last member.
func (d *Document) insertion(owner *jsontree.Value, compact []byte) edit {
	s := d.styleOf(owner)
	var b strings.Builder
	at := owner.Start + 1
	if n := len(owner.Members); n > 0 {
		at = owner.Members[n-1].Value.End()
		if s.lines {
			b.WriteString(",")
		} else {
			b.WriteString(s.comma)
		}
	}
	if s.lines {
		b.WriteString(s.newline + s.indent + `"checkpoint": `)
	} else {
		b.WriteString(`"checkpoint"` + s.colon)
	}
	b.Write(s.value(compact))
	if inside := d.data[owner.Start+1 : owner.End()-1]; s.lines && len(owner.Members) == 0 &&
		bytes.IndexByte(inside, '\n') < 0 {
		b.WriteString(s.newline + s.outer)
	}
	return edit{at, at, []byte(b.String())}
}
