// Package shape checks the replies of models against JSON Schemas, and finds the
// JSON in them.
package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/perdure/perdure/rlm/internal/texts"
)

const (
	// maxSchemaBytes bounds a schema: it stands in the tree's configuration and
	// in every request that asks for a structured result.
	maxSchemaBytes = 128 << 10
	// maxProblems bounds how many faults of a reply are told to a model.
	maxProblems = 20
	// MaxProblemBytes bounds one of them.
	MaxProblemBytes = 300
)

// Shape is a JSON Schema, compiled. It is safe for concurrent use.
type Shape struct {
	schema *jsonschema.Schema
	// Text is the schema as it is shown to models: without needless blanks.
	Text string
}

// noLoading keeps a schema from reaching for files or the network.
type noLoading struct{}

func (noLoading) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is not loaded; put it into the schema itself, under $defs", url)
}

// schemaURL names the schema within the compiler.
const schemaURL = "schema:///result"

// Compile compiles a schema. Draft 2020-12 is meant where $schema names no
// other draft. The error is one line that says what is wrong and where.
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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoading{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, schemaFault(err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, schemaFault(err)
	}
	return &Shape{schema: compiled, Text: text.String()}, nil
}

// atLine names the line of a syntax error.
func atLine(raw []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at := min(int(syntax.Offset), len(raw))
	if at == 0 { // it ends too early
		at = len(raw)
	}
	line := 1 + bytes.Count(raw[:at], []byte("\n"))
	return fmt.Errorf("line %d, column %d: %w", line, at-bytes.LastIndexByte(raw[:at], '\n'), err)
}

// schemaFault tells in one line why a schema is none.
func schemaFault(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var faults *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &faults) {
		return fmt.Errorf("it is no schema: %s", strings.Join(problemsOf(faults, 3), "; "))
	}
	return errors.New(strings.ReplaceAll(strings.ReplaceAll(err.Error(), schemaURL+"#", "#"), schemaURL, "the schema"))
}

// Check finds the JSON value in a reply and validates it. The problems, when
// there are any, are sentences for the model and for people.
func (s *Shape) Check(reply string) (value json.RawMessage, problems []string) {
	raw, err := JSONIn(reply)
	if err != nil {
		return nil, []string{err.Error()}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, []string{"the JSON cannot be read: " + err.Error()}
	}
	err = s.schema.Validate(doc)
	var faults *jsonschema.ValidationError
	switch {
	case err == nil:
		return raw, nil
	case errors.As(err, &faults):
		return nil, problemsOf(faults, maxProblems)
	}
	return nil, []string{texts.Shorten(err.Error(), MaxProblemBytes)}
}

// problemsOf lists the innermost faults, each with its place.
func problemsOf(e *jsonschema.ValidationError, most int) []string {
	p := message.NewPrinter(language.English)
	var out []string
	more := 0
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			visit(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		if len(out) == most {
			more++
			return
		}
		out = append(out, texts.Shorten(pointer(e.InstanceLocation)+": "+e.ErrorKind.LocalizedString(p), MaxProblemBytes))
	}
	visit(e)
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

// pointer is a place in a JSON document (RFC 6901); the whole is told in words.
func pointer(path []string) string {
	if len(path) == 0 {
		return "the value"
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escape.Replace(p))
	}
	return b.String()
}
