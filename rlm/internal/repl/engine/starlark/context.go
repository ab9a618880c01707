package starlark

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// partBytes is how much of a file of the context is read at once, if as much can be held.
const partBytes = 4 << 20

// load makes the variable context: a text, a dictionary, or what reads in parts if they are
// longer than what is held.
func (in *interpreter) load() error {
	one, many := in.contents.Text, in.contents.Files
	total := int64(0)
	if one != nil {
		total = one.Bytes
	}
	for _, f := range many {
		total += f.Bytes
	}
	text := func(name string, bytes int64) (starlark.Value, error) {
		long := &longValue{in, name, bytes}
		if total > in.lazy {
			return long, nil
		}
		whole, err := long.read(0, bytes)
		return starlark.String(whole), err
	}
	var v starlark.Value = starlark.String("")
	var err error
	if one != nil {
		v, err = text(one.Name, one.Bytes)
	} else if many != nil {
		files := starlark.NewDict(len(many))
		for _, f := range many {
			if v, err = text(f.Name, f.Bytes); err != nil {
				break
			}
			err = files.SetKey(starlark.String(f.Name), v)
		}
		v = files
	}
	if err != nil {
		return err
	}
	in.context, in.reserved["context"], in.globals["context"] = v, v, v
	return nil
}

// longValue is a text of the context that is too long to be held: it is read in parts.
type longValue struct {
	in    *interpreter
	name  string
	bytes int64
}

// read reads bytes of the text.
func (t *longValue) read(offset, length int64) (string, error) {
	var b strings.Builder
	most := min(partBytes, max(t.in.lazy, 1<<10))
	for length > 0 {
		raw, err := t.in.request("read", map[string]any{"file": t.name, "offset": offset, "length": min(length, most)})
		if err != nil {
			return "", err
		}
		var part struct{ Data []byte }
		if err := json.Unmarshal(raw, &part); err != nil {
			return "", err
		}
		if len(part.Data) == 0 {
			return "", errors.New("the context is shorter than it was")
		}
		b.Write(part.Data)
		offset += int64(len(part.Data))
		length -= int64(len(part.Data))
	}
	return b.String(), nil
}

func (t *longValue) refuse(what string) error {
	return fmt.Errorf("%s needs the whole text, and this one has %d bytes: use grep, search, lines, .lines() or slices",
		what, t.bytes)
}

// String, Type, Freeze, Truth and Hash make it a value.
func (t *longValue) String() string {
	return fmt.Sprintf("<text of %d bytes: use slices, .lines(), find, count, or grep, search, lines>", t.bytes)
}
func (t *longValue) Type() string          { return "long_text" }
func (t *longValue) Freeze()               {}
func (t *longValue) Truth() starlark.Bool  { return t.bytes > 0 }
func (t *longValue) Hash() (uint32, error) { return 0, errors.New("unhashable type: long_text") }

// Len, Index and Slice read bytes, as those of a string do.
func (t *longValue) Len() int { return int(t.bytes) }

// Index returns a byte.
func (t *longValue) Index(i int) starlark.Value { return t.Slice(i, i+1, 1) }

// Slice returns a part. An error of the host shows as an empty text; the session is lost then.
func (t *longValue) Slice(start, end, step int) starlark.Value {
	if step < 0 {
		start, end = end+1, start+1
	}
	text, err := t.read(int64(start), int64(end-start))
	if err != nil {
		return starlark.String("")
	}
	whole := starlark.String(text)
	if step == 1 {
		return whole
	}
	if step < 0 {
		return whole.Slice(len(whole)-1, -1, step)
	}
	return whole.Slice(0, len(whole), step)
}

// Attr returns a method.
func (t *longValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "lines", "splitlines":
		return starlark.NewBuiltin(name, t.lines), nil
	case "find", "count":
		return starlark.NewBuiltin(name, t.search), nil
	case "startswith":
		return starlark.NewBuiltin(name, t.startsWith), nil
	}
	if v, err := starlark.String("").Attr(name); err != nil || v == nil {
		return nil, err
	}
	return nil, t.refuse(name)
}

// AttrNames are the names of the methods.
func (t *longValue) AttrNames() []string {
	return []string{"count", "find", "lines", "splitlines", "startswith"}
}

// lines returns what iterates over the lines, without their ends.
func (t *longValue) lines(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	return &longLines{t}, nil
}

// search finds or counts a text between two bytes, as the methods of a string do.
func (t *longValue) search(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var sub string
	var start, end starlark.Value
	err := starlark.UnpackArgs(b.Name(), args, kwargs, "sub", &sub, "start?", &start, "end?", &end)
	if err != nil {
		return nil, err
	}
	if sub == "" {
		return nil, fmt.Errorf("%s of an empty text", b.Name())
	}
	offset, err := t.offset(start, 0)
	if err != nil {
		return nil, err
	}
	last, err := t.offset(end, t.bytes)
	if err != nil {
		return nil, err
	}
	n, rest := 0, ""
	for offset < last {
		part, err := t.read(offset, min(partBytes, last-offset))
		if err != nil {
			return nil, err
		}
		text := rest + part
		if at := strings.Index(text, sub); at >= 0 && b.Name() == "find" {
			return starlark.MakeInt64(offset - int64(len(rest)) + int64(at)), nil
		}
		for at := strings.Index(text, sub); at >= 0; at = strings.Index(text, sub) {
			n++
			text = text[at+len(sub):]
		}
		rest = text[len(text)-min(len(sub)-1, len(text)):] // an occurrence may go on in the next part
		offset += int64(len(part))
	}
	if b.Name() == "find" {
		n = -1
	}
	return starlark.MakeInt(n), nil
}

// offset returns the byte that an argument means: a negative one counts from the end.
func (t *longValue) offset(v starlark.Value, without int64) (int64, error) {
	if v == nil || v == starlark.None {
		return without, nil
	}
	var n int64
	if err := starlark.AsInt(v, &n); err != nil {
		return 0, err
	}
	if n < 0 {
		n += t.bytes
	}
	return min(max(n, 0), t.bytes), nil
}

func (t *longValue) startsWith(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var prefix string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "prefix", &prefix); err != nil {
		return nil, err
	}
	text, err := t.read(0, min(int64(len(prefix)), t.bytes))
	return starlark.Bool(text == prefix), err
}

// longLines iterates over the lines of a long text.
type longLines struct{ text *longValue }

// String, Type, Freeze, Truth and Hash make it a value.
func (l *longLines) String() string        { return "<lines of " + l.text.String() + ">" }
func (l *longLines) Type() string          { return "lines" }
func (l *longLines) Freeze()               {}
func (l *longLines) Truth() starlark.Bool  { return l.text.Truth() }
func (l *longLines) Hash() (uint32, error) { return 0, errors.New("unhashable type: lines") }

// Iterate begins with the first line.
func (l *longLines) Iterate() starlark.Iterator { return &lineIterator{text: l.text} }

type lineIterator struct {
	text   *longValue
	offset int64
	rest   string
}

// Next returns the next line.
func (i *lineIterator) Next(line *starlark.Value) bool {
	for {
		if found, after, ok := strings.Cut(i.rest, "\n"); ok {
			*line, i.rest = starlark.String(found), after
			return true
		}
		if i.offset >= i.text.bytes {
			break
		}
		part, err := i.text.read(i.offset, min(partBytes, i.text.bytes-i.offset))
		if err != nil {
			return false // the session is lost
		}
		i.offset += int64(len(part))
		i.rest += part
	}
	if i.rest == "" {
		return false
	}
	*line, i.rest = starlark.String(i.rest), ""
	return true
}

// Done ends the iteration.
func (i *lineIterator) Done() {}
