// Package schematest validates documents against the published JSON Schemas in tests. It is
// stricter than the library: a schema must be valid under the meta-schema of draft 2020-12,
// and dates and times must have their format.
package schematest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	schemas "github.com/perdure/perdure/internal/schema"
)

// metaURL is the address of the meta-schema of draft 2020-12.
const metaURL = "https://json-schema.org/draft/2020-12/schema"

// draft holds the meta-schemas, as json-schema.org publishes them.
//
//go:embed draft2020-12
var draft embed.FS

var metaSchema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	load := func(address *url.URL) (*jsonschema.Schema, error) {
		_, name, _ := strings.Cut(address.Path, "/2020-12/")
		text, err := draft.ReadFile("draft2020-12/" + name + ".json")
		if err != nil {
			return nil, err
		}
		var s jsonschema.Schema
		return &s, json.Unmarshal(text, &s)
	}
	root := jsonschema.Schema{Ref: metaURL}
	return root.Resolve(&jsonschema.ResolveOptions{BaseURI: "schema:///meta", Loader: load})
})

// Patterns of dates and times (RFC 3339). The 29th of February is valid in every year.
const (
	date = `\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|[12]\d))`
	zone = `(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
	time = `(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?` + zone
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	// Doc is the schema as data.
	Doc      map[string]any
	resolved *jsonschema.Resolved
}

// Compile compiles a schema.
func Compile(text []byte) (*Schema, error) {
	meta, err := metaSchema()
	if err != nil {
		return nil, fmt.Errorf("read the meta-schema: %w", err)
	}
	var doc, strict map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc["$schema"] != metaURL {
		return nil, fmt.Errorf("$schema is %v, want %s", doc["$schema"], metaURL)
	}
	if err := meta.Validate(doc); err != nil {
		return nil, fmt.Errorf("not valid under the meta-schema: %w", err)
	}
	if err := json.Unmarshal(text, &strict); err != nil {
		return nil, err
	}
	if err := assertFormats(strict); err != nil {
		return nil, err
	}
	text, err = json.Marshal(strict)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, err
	}
	return &Schema{Doc: doc, resolved: resolved}, nil
}

// assertFormats adds a pattern to each schema with a format, which is otherwise only an
// annotation.
func assertFormats(node any) error {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			if err := assertFormats(child); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, child := range node {
			switch key {
			case "examples", "const", "enum", "default": // data, not schemas
				continue
			}
			if err := assertFormats(child); err != nil {
				return err
			}
		}
		format, ok := node["format"].(string)
		if !ok {
			return nil
		}
		pattern := map[string]string{"date": "^" + date + "$", "date-time": "^" + date + "[Tt]" + time + "$"}[format]
		if pattern == "" {
			return fmt.Errorf("format %q has no pattern in this package", format)
		}
		all, _ := node["allOf"].([]any)
		node["allOf"] = append(all, map[string]any{"pattern": pattern})
	}
	return nil
}

// published compiles the published schemas, by their names without the extension.
var published = sync.OnceValues(func() (map[string]*Schema, error) {
	files, err := schemas.FS.ReadDir(".")
	if err != nil {
		return nil, err
	}
	all := make(map[string]*Schema)
	for _, file := range files {
		text, err := schemas.FS.ReadFile(file.Name())
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(file.Name(), ".json")
		if all[name], err = Compile(text); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
	}
	return all, nil
})

// Published returns a published schema by its name without the extension.
func Published(t testing.TB, name string) *Schema {
	t.Helper()
	all, err := published()
	if err != nil {
		t.Fatal(err)
	}
	s := all[name]
	if s == nil {
		t.Fatalf("no published schema %s", name)
	}
	return s
}

// Validate returns why a value, as encoding/json decodes it, is not valid.
func (s *Schema) Validate(value any) error { return s.resolved.Validate(value) }

// ValidateJSON returns why a JSON document is not valid. A number that is too large for a
// float64 is valid JSON.
func (s *Schema) ValidateJSON(text []byte) error {
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return err
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return err
	}
	return s.Validate(floats(value))
}

// floats replaces each number by the nearest finite float64.
func floats(value any) any {
	switch value := value.(type) {
	case json.Number:
		f, _ := strconv.ParseFloat(string(value), 64)
		return max(-math.MaxFloat64, min(f, math.MaxFloat64))
	case []any:
		for i := range value {
			value[i] = floats(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = floats(value[key])
		}
	}
	return value
}
