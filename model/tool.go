package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
)

// Tool is a tool that a model may call in its reply, see [Request.Tools].
type Tool struct {
	// Name is at most 64 ASCII letters and digits.
	Name        string
	Description string
	// Parameters is a JSON Schema of the object with the arguments. Not every provider knows
	// more than types, properties, descriptions and required properties.
	Parameters json.RawMessage
}

// maxToolName bounds the name of a tool that a model calls, in bytes.
const maxToolName = 64

// ToolLine returns the call of a tool as a line of text: the name, a blank and the arguments.
// Arguments that are JSON are compact, no arguments are an empty object. Otherwise, as in a reply
// that was cut, line breaks become blanks.
func ToolLine(name, arguments string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, clip.Prefix(name, maxToolName))
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(arguments)); err == nil {
		return name + " " + compact.String()
	}
	lines := strings.FieldsFunc(arguments, func(r rune) bool { return r == '\n' || r == '\r' })
	return name + " " + strings.Join(lines, " ")
}
