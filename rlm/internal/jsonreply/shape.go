// Package jsonreply checks the replies of models against JSON Schemas, and finds the
// JSON in them.
package jsonreply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure/internal/text/clip"
)

const (
	// maxSchemaBytes bounds a schema: it is stored in the tree's configuration and
	// in every request that asks for a structured result.
	maxSchemaBytes = 128 << 10
	// maxProblems bounds how many faults of a reply a model receives.
	maxProblems = 20
	// MaxProblemBytes bounds one of them.
	MaxProblemBytes = 300
)

// schemaURL names the schema within the library.
const schemaURL = "schema:///result"

// Shape is a JSON Schema, compiled. It is safe for concurrent use.
type Shape struct {
	schema *jsonschema.Resolved
	doc    *document
	// Text is the schema as it is shown to models: without needless blanks.
	Text string
}

// Compile compiles a schema of draft 2020-12, which is meant where $schema names
// none, or of draft 07. The error is one line that says what is wrong and where.
func Compile(raw json.RawMessage) (*Shape, error) {
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(raw), maxSchemaBytes)
	}
	var text bytes.Buffer
	if err := json.Compact(&text, raw); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", atLine(raw, err))
	}
	switch text.Bytes()[0] {
	case '{', 't', 'f': // an object, true or false
	default:
		return nil, errors.New("it is not a JSON object")
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	doc, err := readDocument(value)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	if schema.Schema, err = draft(schema.Schema); err != nil {
		return nil, err
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{BaseURI: schemaURL})
	if err != nil {
		return nil, errors.New("it is not a JSON Schema: " + tidy(err))
	}
	return &Shape{schema: resolved, doc: doc, Text: text.String()}, nil
}

// JSON returns the schema for a provider that holds answers to it.
func (s *Shape) JSON() json.RawMessage { return json.RawMessage(s.Text) }

// draft returns the name of a draft as the library spells it.
func draft(name string) (string, error) {
	const draft07, draft2020 = "http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema"
	switch strings.TrimSuffix(strings.Replace(name, "https://json-schema.org/draft-", "http://json-schema.org/draft-",
		1), "#") {
	case "", draft2020:
		return "", nil
	case draft07:
		return draft07 + "#", nil
	}
	return "", fmt.Errorf("it is of %q; draft 2020-12 (%s) and draft 07 are understood", name, draft2020)
}

// tidy is an error of the library in one line, in the words used here.
func tidy(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	return strings.ReplaceAll(strings.ReplaceAll(text, schemaURL, ""), "validating root: ", "")
}

// atLine names the line of a syntax error.
func atLine(raw []byte, err error) error {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return err
	}
	at := cmp.Or(min(int(syntax.Offset), len(raw)), len(raw)) // 0: it ends too early
	line := 1 + bytes.Count(raw[:at], []byte("\n"))
	return fmt.Errorf("line %d, column %d: %w", line, at-bytes.LastIndexByte(raw[:at], '\n'), err)
}

// Check finds the JSON value in a reply and validates it. The problems, when
// there are any, are sentences for the model and for people.
func (s *Shape) Check(reply string) (value json.RawMessage, problems []string) {
	raw, err := JSONIn(reply)
	if err != nil {
		return nil, []string{err.Error()}
	}
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, []string{"the JSON cannot be read: " + err.Error()}
	}
	if err := s.schema.Validate(doc); err != nil {
		return nil, s.problems(doc, err)
	}
	return raw, nil
}

// CheckWhole is [Shape.Check] for a text that has to be the value and nothing else, or one fenced
// block with it.
func (s *Shape) CheckWhole(text string) (value json.RawMessage, problems []string) {
	text = unfenced(text)
	if !json.Valid([]byte(text)) {
		return nil, []string{"the text is not one JSON value"}
	}
	return s.Check(text)
}

// problems lists the faults of a value that the library refused.
func (s *Shape) problems(doc any, err error) []string {
	out := (&explainer{doc: s.doc}).faults(s.doc.root, doc)
	if len(out) == 0 { // a keyword that is not explained here
		out = []string{clip.Bytes("the value: "+tidy(err), MaxProblemBytes)}
	}
	if more := len(out) - maxProblems; more > 0 {
		out = append(out[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return out
}
