package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Edit replaces Old by New at an offset of a document.
type Edit struct {
	At  int
	Old string
	New string
}

// Apply returns a document with edits, which must not overlap.
func Apply(text []byte, edits []Edit) []byte {
	sorted := slices.SortedStableFunc(slices.Values(edits), func(a, b Edit) int { return a.At - b.At })
	var b bytes.Buffer
	at := 0
	for _, e := range sorted {
		b.Write(text[at:e.At])
		b.WriteString(e.New)
		at = e.At + len(e.Old)
	}
	b.Write(text[at:])
	return b.Bytes()
}

// Append returns the edit that appends an item to the array at a path of members, which it
// creates if they are missing. The error is an [*Error] if another value is at the path.
func Append(text []byte, path []string, item any) (Edit, error) {
	root, err := Parse(text)
	if err != nil {
		return Edit{}, err
	}
	at := root
	for i, name := range path {
		if at.Kind != Object {
			return Edit{}, faultAt(text, at, "%s is not an object", where(path[:i]))
		}
		next := at.Member(name)
		if next == nil {
			return insertion(text, at, name, nested(path[i+1:], item))
		}
		at = next
	}
	if at.Kind != Array {
		return Edit{}, faultAt(text, at, "%s is not an array", where(path))
	}
	return insertion(text, at, "", item)
}

func where(path []string) string {
	if len(path) == 0 {
		return "the document"
	}
	return strings.Join(path, ".")
}

func faultAt(text []byte, v *Value, format string, args ...any) error {
	return &Error{Line: 1 + bytes.Count(text[:v.Start], []byte("\n")), Msg: fmt.Sprintf(format, args...)}
}

// nested returns an item in an array below members.
func nested(path []string, item any) any {
	v := any([]any{item})
	for _, name := range slices.Backward(path) {
		v = map[string]any{name: v}
	}
	return v
}

// insertion returns the edit that adds a member or an item at the end of a value, in the
// style of the document.
func insertion(text []byte, in *Value, name string, v any) (Edit, error) {
	newline, indent, unit := style(text, in)
	raw, err := encode(v, indent, unit, newline)
	if err != nil {
		return Edit{}, err
	}
	if name != "" {
		quotedName, err := json.Marshal(name)
		if err != nil {
			return Edit{}, err
		}
		raw = string(quotedName) + ": " + raw
	}
	if len(in.Values) == 0 {
		if newline == "" {
			return Edit{At: in.Start + 1, New: raw}, nil
		}
		closing := strings.TrimSuffix(indent, unit)
		if rest := text[in.Start+1 : in.End-1]; len(bytes.TrimSpace(rest)) == 0 && bytes.IndexByte(rest, '\n') >= 0 {
			return Edit{At: in.Start + 1, New: newline + indent + raw}, nil // the line of the bracket is there
		}
		return Edit{At: in.Start + 1, New: newline + indent + raw + newline + closing}, nil
	}
	last := in.Values[len(in.Values)-1]
	before, at := ",", last.End
	if in.Comma {
		before, at = "", last.End+bytes.IndexByte(blank(text[last.End:in.End]), ',')+1
		raw += ","
	}
	if newline == "" {
		return Edit{At: at, New: before + " " + raw}, nil
	}
	return Edit{At: at, New: before + newline + indent + raw}, nil
}

// blank replaces comments by blanks.
func blank(text []byte) []byte {
	out := bytes.Clone(text)
	p := &parser{text: text}
	for p.at < len(text) {
		from := p.at
		if p.space() != nil {
			break
		}
		for i := from; i < p.at; i++ {
			out[i] = ' '
		}
		p.at++
	}
	return out
}

// style returns the end of lines and the indentation of the members of a value, and the unit
// of indentation; newline is "" if they are on one line.
func style(text []byte, v *Value) (newline, indent, unit string) {
	newline = "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	unit = unitOf(text)
	for _, item := range slices.Backward(v.Values) {
		if own, first := lineOf(text, item.At); first {
			return newline, own, unit
		}
	}
	if len(v.Values) > 0 {
		return "", "", unit
	}
	own, _ := lineOf(text, v.At)
	return newline, own + unit, unit
}

// lineOf returns the white space at the beginning of the line of an offset, and whether
// nothing else is before the offset.
func lineOf(text []byte, at int) (space string, first bool) {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(rest) == 0 && bytes.IndexByte(text[:at], '\n') >= 0
}

// unitOf returns the unit of indentation of a document.
func unitOf(text []byte) string {
	for line := range bytes.Lines(text) {
		rest := bytes.TrimLeft(line, " \t")
		if n := len(line) - len(rest); n > 0 && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:n])
		}
	}
	return "  "
}

func encode(v any, indent, unit, newline string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if newline != "" {
		e.SetIndent(indent, unit)
	}
	if err := e.Encode(v); err != nil {
		return "", err
	}
	out := strings.TrimSuffix(b.String(), "\n")
	if newline == "\r\n" {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return out, nil
}

// Remove returns a document without the items of the array at a path that ours selects, and
// without the array and the objects of the path that this empties. removed is the number of
// items.
func Remove(text []byte, path []string, ours func(item json.RawMessage) bool) (out []byte, removed int, err error) {
	for {
		root, err := Parse(text)
		if err != nil {
			return nil, 0, err
		}
		chain := []*Value{root}
		for _, name := range path {
			next := chain[len(chain)-1].Member(name)
			if next == nil {
				return text, removed, nil
			}
			chain = append(chain, next)
		}
		list := chain[len(chain)-1]
		at := -1
		if list.Kind == Array {
			at = slices.IndexFunc(list.Values, func(item *Value) bool { return ours(item.plain(text)) })
		}
		if at < 0 {
			return text, removed, nil
		}
		removed++
		depth := len(chain) - 1
		for depth > 0 && len(chain[depth].Values) == 1 {
			depth--
			at = slices.Index(chain[depth].Values, chain[depth+1])
		}
		text = Apply(text, []Edit{cut(text, chain[depth], at)})
	}
}

// cut returns the edit that removes a member or an item, as [Append] added it.
func cut(text []byte, in *Value, i int) Edit {
	v := in.Values[i]
	from, to := v.At, v.End
	blanked := blank(text)
	switch {
	case i > 0 && i == len(in.Values)-1 && in.Comma: // the comma before it stays
		from = in.Values[i-1].End + bytes.IndexByte(blanked[in.Values[i-1].End:v.At], ',') + 1
		to += bytes.IndexByte(blanked[v.End:in.End], ',') + 1
	case i > 0:
		from = in.Values[i-1].End
	case len(in.Values) > 1:
		to = in.Values[1].At
	default:
		if in.Comma {
			to += bytes.IndexByte(blanked[v.End:in.End], ',') + 1
		}
		if len(bytes.TrimSpace(text[in.Start+1:from])) == 0 && len(bytes.TrimSpace(text[to:in.End-1])) == 0 {
			from, to = in.Start+1, in.End-1
		}
	}
	return Edit{At: from, Old: string(text[from:to])}
}
