package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode parses JSON. A field of another type than expected stays empty:
// servers differ in fields that matter little.
func Decode(data []byte, into any) error {
	err := json.Unmarshal(bytes.TrimPrefix(data, []byte(byteOrderMark)), into)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Count is a number of tokens. Some servers write it as a fraction or as text. Anything else is 0.
type Count int64

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Count) UnmarshalJSON(data []byte) error {
	*c = 0
	n, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(data), `"`)), 64)
	if err == nil && !math.IsNaN(n) {
		*c = Count(math.Round(min(max(n, -maxReported-1), maxReported+1))) // beyond it is not believed
	}
	return nil
}

// Text is a JSON string, a part with a text, or a list of these.
// Anything else is an empty text. It keeps bytes that are not UTF-8, which
// encoding/json replaces: a server may split a character between two events.
type Text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = ""
	switch data[0] {
	case '[':
		var parts []Text
		err := Decode(data, &parts)
		for _, part := range parts {
			*t += part
		}
		return err
	case '{':
		var part struct {
			Text Text `json:"text"`
		}
		err := Decode(data, &part)
		*t = part.Text
		return err
	}
	if data[0] != '"' {
		return nil
	}
	var text strings.Builder
	for rest := data[1 : len(data)-1]; len(rest) > 0; {
		n := ValidPrefix(rest)
		var part string
		if err := json.Unmarshal(quote(rest[:n]), &part); err != nil {
			return err
		}
		text.WriteString(part)
		if n < len(rest) {
			text.WriteByte(rest[n])
			n++
		}
		rest = rest[n:]
	}
	*t = Text(text.String())
	return nil
}

func quote(text []byte) []byte { return append(append([]byte{'"'}, text...), '"') }

// ValidPrefix returns how many bytes at the beginning of data are valid UTF-8.
func ValidPrefix(data []byte) int {
	for n := 0; n < len(data); {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size == 1 {
			return n
		}
		n += size
	}
	return len(data)
}
