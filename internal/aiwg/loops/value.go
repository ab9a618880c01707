package loops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxNesting bounds how deep objects and lists stand in each other.
const maxNesting = 1000

// value is JSON with its place in the text.
type value struct {
	// kind is { [ " 0 (a number) t (a boolean) or n (null).
	kind byte
	text string // of a text what it says, of a number or boolean how it is written
	off  int
	keys []string // of an object, in order; vals are beside them
	vals []*value // of an object or a list
	// cut tells that the text ended, or was wrong, inside of the value: what is
	// there of it is whole.
	cut bool
}

// get returns the member of an object, the last of several, nil when there is
// none.
func (v *value) get(key string) *value {
	if v == nil || v.kind != '{' {
		return nil
	}
	for i := len(v.keys) - 1; i >= 0; i-- {
		if v.keys[i] == key {
			return v.vals[i]
		}
	}
	return nil
}

func (v *value) add(key string, member *value) {
	v.keys, v.vals = append(v.keys, key), append(v.vals, member)
}

// says returns a text, "" for what is none.
func (v *value) says() string {
	if v == nil || v.kind != '"' {
		return ""
	}
	return v.text
}

// list returns the values of a list.
func (v *value) list() []*value {
	if v == nil || v.kind != '[' {
		return nil
	}
	return v.vals
}

// append writes the value in its shortest form.
func (v *value) append(out []byte) []byte {
	switch v.kind {
	case '{', '[':
		out = append(out, v.kind)
		for i, member := range v.vals {
			if i > 0 {
				out = append(out, ',')
			}
			if v.kind == '{' {
				out = append(appendText(out, v.keys[i]), ':')
			}
			out = member.append(out)
		}
		return append(out, v.kind+2) // } and ] are two behind { and [
	case '"':
		return appendText(out, v.text)
	}
	return append(out, v.text...)
}

func (v *value) raw() json.RawMessage { return v.append(nil) }

// appendText writes a text without escaping what only matters in HTML.
func appendText(out []byte, text string) []byte {
	buf := bytes.NewBuffer(out)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text can be encoded
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func textValue(text string) *value { return &value{kind: '"', text: text} }

func numberValue(n int) *value { return &value{kind: '0', text: fmt.Sprint(n)} }

// fault says where a text stops being JSON.
type fault struct {
	off  int
	what string
}

// parse reads a JSON text as far as it is one. With a fault it returns what was
// whole before; nil when there is nothing.
func parse(text []byte) (*value, *fault) {
	p := &treeReader{dec: json.NewDecoder(bytes.NewReader(text)), text: text}
	p.dec.UseNumber()
	root := p.value(0)
	if p.fault == nil {
		at := p.start()
		if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
			p.fault = &fault{at, "there is text behind the end"}
		}
	}
	return root, p.fault
}

// treeReader makes a tree of the tokens of the standard library's reader.
type treeReader struct {
	dec   *json.Decoder
	text  []byte
	fault *fault
}

// start is where the next token begins.
func (p *treeReader) start() int {
	at := int(p.dec.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n:,", p.text[at]) >= 0 {
		at++
	}
	return at
}

// token reads the next one; at its fault there is none.
func (p *treeReader) token() (json.Token, bool) {
	at := p.start()
	tok, err := p.dec.Token()
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return tok, true
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		p.fault = &fault{len(p.text), "the text ends in the midst"}
	case errors.As(err, &syntax):
		p.fault = &fault{at, syntax.Error()}
	default:
		p.fault = &fault{at, err.Error()}
	}
	return nil, false
}

// value reads one; nil when it is not whole and has no parts that are.
func (p *treeReader) value(depth int) *value {
	v := &value{off: p.start()}
	if depth > maxNesting {
		p.fault = &fault{v.off, fmt.Sprintf("values are nested deeper than %d", maxNesting)}
		return nil
	}
	tok, ok := p.token()
	if !ok {
		return nil
	}
	switch tok := tok.(type) {
	case json.Delim:
		v.kind = byte(tok) //nolint:gosec // one of []{}
		p.members(v, depth)
	case string:
		v.kind, v.text = '"', tok
	case json.Number:
		v.kind, v.text = '0', tok.String()
		if depth > 0 && v.off+len(v.text) >= len(p.text) {
			p.fault = &fault{len(p.text), "the text ends in the midst"} // more digits may have followed
			return nil
		}
	case bool:
		v.kind, v.text = 't', fmt.Sprint(tok)
	case nil:
		v.kind, v.text = 'n', "null"
	}
	return v
}

func (p *treeReader) members(v *value, depth int) {
	for p.dec.More() {
		key := ""
		if v.kind == '{' {
			tok, ok := p.token()
			if !ok {
				break
			}
			key, _ = tok.(string) // a name that is no text is a fault
		}
		member := p.value(depth + 1)
		if member != nil {
			v.vals = append(v.vals, member)
			if v.kind == '{' {
				v.keys = append(v.keys, key)
			}
		}
		if p.fault != nil {
			break
		}
	}
	if p.fault == nil {
		p.token()
	}
	v.cut = p.fault != nil
}
