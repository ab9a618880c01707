// Package jsontree reads JSON into a tree of values that keep their place in the
// text. It reads exactly what RFC 8259 allows and reports every error with line
// and column; numbers and strings stay as they are written.
//
// [Parse] returns the tree, if wanted also of a text that is cut off. [Decode]
// fills a struct strictly. [Lines] converts offsets into lines and columns.
package jsontree

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a JSON value.
type Kind byte

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind with its article: "a string".
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Name returns the kind as JSON Schema names it: "string".
func (k Kind) Name() string {
	name := k.String()
	return name[strings.IndexByte(name, ' ')+1:]
}

// Value is a JSON value. The zero value is null.
type Value struct {
	Kind Kind
	// Cut reports that the text ends or becomes invalid inside this object or
	// array. The members and items before that place are complete.
	Cut bool
	// Start is the offset of the value in the text.
	Start int
	// Members are those of an object in their order, repeated names included.
	Members []Member
	// Items are those of an array.
	Items []*Value

	raw []byte
}

// Member is a name and its value in an object.
type Member struct {
	Name string
	// Start is the offset of the quote before the name.
	Start int
	Value *Value
}

// NewString returns a string.
func NewString(text string) *Value { return &Value{Kind: String, raw: appendQuoted(nil, text)} }

// NewNumber returns a whole number.
func NewNumber(n int) *Value { return &Value{Kind: Number, raw: strconv.AppendInt(nil, int64(n), 10)} }

// NewScalar returns a number, boolean or null that is written as raw.
func NewScalar(kind Kind, raw string) *Value { return &Value{Kind: kind, raw: []byte(raw)} }

// End returns the offset behind the value.
func (v *Value) End() int { return v.Start + len(v.raw) }

// Raw returns the value as it is written. It is nil for objects and arrays that
// were not parsed.
func (v *Value) Raw() []byte { return v.raw }

// Is reports whether v is of the kind; a nil value is of none.
func (v *Value) Is(kind Kind) bool { return v != nil && v.Kind == kind }

// IsNull reports whether v is null or nil.
func (v *Value) IsNull() bool { return v == nil || v.Kind == Null }

// Get returns the member of an object with that name, the last of several; nil
// if there is none.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for i := len(v.Members) - 1; i >= 0; i-- {
		if v.Members[i].Name == name {
			return v.Members[i].Value
		}
	}
	return nil
}

// Add appends a member to an object.
func (v *Value) Add(name string, member *Value) {
	v.Members = append(v.Members, Member{Name: name, Value: member})
}

// List returns the items of an array, nil for any other value.
func (v *Value) List() []*Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// Text returns the content of a string, "" for any other value.
func (v *Value) Text() string {
	if !v.Is(String) {
		return ""
	}
	return unquote(v.raw)
}

// Scalar returns the content of a string, and a number, boolean or null as it is
// written; "" for nil, objects and arrays.
func (v *Value) Scalar() string {
	switch {
	case v == nil || v.Kind == Array || v.Kind == Object:
		return ""
	case v.Kind == String:
		return unquote(v.raw)
	}
	return string(v.raw)
}

// Append appends the value to out without blanks. Strings are written with as
// few escapes as JSON needs.
func (v *Value) Append(out []byte) []byte {
	switch v.Kind {
	case Object:
		out = append(out, '{')
		for i, m := range v.Members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendQuoted(out, m.Name), ':')
			out = m.Value.Append(out)
		}
		return append(out, '}')
	case Array:
		out = append(out, '[')
		for i, item := range v.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.Append(out)
		}
		return append(out, ']')
	case String:
		return appendQuoted(out, unquote(v.raw))
	case Null:
		return append(out, "null"...)
	}
	return append(out, v.raw...)
}

// Compact returns JSON without blanks; names, numbers and strings stay as they
// are written. What is not valid JSON is returned unchanged.
func Compact(raw []byte) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(raw))
	if err := json.Compact(&b, raw); err != nil {
		return slices.Clone(raw)
	}
	return b.Bytes()
}

// Marshal encodes v as the standard library does, but without the escapes that only
// HTML needs. If indent is not empty, the text is indented and ends with a newline.
func Marshal(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	if indent != "" {
		return buf.Bytes(), err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// MustMarshal returns the compact JSON of a value that can always be encoded.
func MustMarshal(v any) json.RawMessage {
	raw, err := Marshal(v, "")
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// appendQuoted writes a string without the escapes that only HTML needs.
func appendQuoted(out []byte, text string) []byte {
	plain := utf8.ValidString(text)
	for i := 0; plain && i < len(text); i++ {
		c := text[i]
		plain = c >= ' ' && c != '"' && c != '\\' && c != 0xe2 // U+2028 and U+2029 begin with 0xe2
	}
	if plain {
		return append(append(append(out, '"'), text...), '"')
	}
	return append(out, MustMarshal(text)...)
}

// unquote decodes a string that was parsed.
// LoneSurrogate reports whether a string, as it is in the document, has a \u escape that is half
// of a surrogate pair: Text has U+FFFD for it.
func LoneSurrogate(raw []byte) bool {
	high := false // the escape before is a first half
	for i := 0; i < len(raw); i++ {
		code := uint64(0)
		if raw[i] == '\\' && i+1 < len(raw) {
			if i++; raw[i] == 'u' && i+4 < len(raw) {
				code, _ = strconv.ParseUint(string(raw[i+1:i+5]), 16, 16) // 4 digits, as it was parsed
				i += 4
			}
		}
		second := code >= 0xDC00 && code <= 0xDFFF
		if high != second {
			return true
		}
		high = code >= 0xD800 && code <= 0xDBFF
	}
	return high
}

func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // it was parsed
	return text
}
