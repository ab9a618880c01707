package jsonreply

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFaultsAreAllTold: every fault with its place, in a fixed order.
func TestFaultsAreAllTold(t *testing.T) {
	t.Parallel()
	const person = `{"type":"object","required":["name","age"],"additionalProperties":false,"properties":{
		"name":{"type":"string","minLength":2,"pattern":"^[A-Z]"},"age":{"type":"integer","minimum":0,"maximum":150},
		"tags":{"type":"array","maxItems":2,"uniqueItems":true,"items":{"enum":["a","b",null]}},"boss":{"$ref":"#"}}}`
	tests := []struct {
		name, schema, value string
		want                []string
	}{
		{"missing", person, `{}`, []string{"the value: missing properties 'name', 'age'"}},
		{"several", person, `{"name":"x","age":-1.5,"tags":["a","a","c"],"z/y":1,"boss":{"name":"Ann"}}`, []string{
			"/age: got number, want integer",
			"/boss: missing property 'age'",
			"/name: minLength: got 1 characters, want at least 2",
			`/name: "x" does not match pattern '^[A-Z]'`,
			"/tags: maxItems: got 3 items, want at most 2",
			"/tags: items 0 and 1 are equal",
			"/tags/2: value must be one of 'a', 'b', null",
			"the value: additional properties 'z/y' not allowed",
		}},
		{"deep", person, `{"name":"Ann","age":1,"boss":{"name":"Bob","age":200,"boss":7}}`, []string{
			"/boss/age: maximum: got 200, want at most 150", "/boss/boss: got number, want object"}},
		{"forms", `{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"string"},"minItems":3}]}`, `[1]`, []string{
			"the value: matches none of the 2 schemas of anyOf; the problem with the nearest one follows",
			"the value: got array, want null"}},
		{"two forms", `{"oneOf":[{"minimum":1},{"maximum":9}]}`, `5`,
			[]string{"the value: matches 2 of the schemas of oneOf, but only one is allowed"}},
		{"escaped name", `{"properties":{"a/b~c":{"const":1}}}`, `{"a/b~c":2}`, []string{"/a~1b~0c: value must be 1"}},
		{"condition", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":false}`, `{"a":1}`,
			[]string{"the value: missing property 'b'"}},
		{"keyword that is not explained", `{"unevaluatedProperties":false}`, `{"a":1}`, []string{"the value: "}},
		{"draft 07", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"},{"type":"null"}],` +
			`"additionalItems":false}`,
			`[1,null,true]`, []string{"/0: got number, want string", "/2: nothing is allowed here"}},
	}
	for _, tt := range tests {
		s, err := Compile(json.RawMessage(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		_, got := s.Check(tt.value)
		if tt.name == "keyword that is not explained" && len(got) == 1 && strings.HasPrefix(got[0], tt.want[0]) {
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestFaultsHaveABound(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, got := s.Check("[" + strings.Repeat("1,", 99) + "1]")
	if len(got) != maxProblems+1 || got[maxProblems] != "and 80 more" {
		t.Errorf("%d faults are told, in the end %q", len(got), got[len(got)-1])
	}
}

// TestSchemasWithoutEnd: validating against them would not end.
func TestSchemasWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`,
		`{"$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"if":{"$ref":"#/$defs/a"}}}}`,
		`{"$anchor":"x","anyOf":[{"type":"null"},{"$ref":"#x"}]}`, `{"$dynamicAnchor":"x","oneOf":[{"$dynamicRef":"#x"}]}`,
		`{"dependentSchemas":{"a":{"$ref":"#"}}}`, `{"$id":"http://a/b","$ref":"http://a/b#"}`,
		`{"properties":{"a~b/c":{"allOf":[{"$ref":"#/properties/a~0b~1c"}]}}}`,
		`{"properties":{"a b":{"$ref":"#/properties/a%20b"}}}`,
	} {
		if _, err := Compile(json.RawMessage(schema)); err == nil || !strings.Contains(err.Error(), "without end") {
			t.Errorf("%s: %v", schema, err)
		}
	}
	for _, schema := range []string{`{"properties":{"a":{"$ref":"#"}}}`, `{"items":{"$ref":"#"}}`,
		`{"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`} {
		if _, err := Compile(json.RawMessage(schema)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestDrafts(t *testing.T) {
	t.Parallel()
	for draft, fine := range map[string]bool{
		"https://json-schema.org/draft/2020-12/schema": true, "https://json-schema.org/draft/2020-12/schema#": true,
		"http://json-schema.org/draft-07/schema#": true, "http://json-schema.org/draft-07/schema": true,
		"http://json-schema.org/draft-04/schema#": false, "https://example.com/own": false,
	} {
		_, err := Compile(json.RawMessage(`{"$schema":"` + draft + `","type":"object"}`))
		if fine != (err == nil) || err != nil && !strings.Contains(err.Error(), "2020-12") {
			t.Errorf("%s: %v", draft, err)
		}
	}
}

// TestVerdicts holds the library that validates against the verdicts of another
// implementation (santhosh-tekuri/jsonschema v6.0.3) on generated schemas and
// values of draft 2020-12.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "verdicts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[bool]int{}
	for line := range bytes.Lines(text) {
		var c struct {
			Schema, Value json.RawMessage
			Valid         bool
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s, err := Compile(c.Schema)
		if err != nil {
			t.Errorf("%s: %v", c.Schema, err)
			continue
		}
		_, problems := s.Check(string(c.Value))
		if (len(problems) == 0) != c.Valid {
			t.Errorf("%s against %s: %q, want valid %v", c.Value, c.Schema, problems, c.Valid)
		}
		count[c.Valid]++
	}
	if count[true] < 140 || count[false] < 140 {
		t.Errorf("%v verdicts, want 140 of each kind", count)
	}
}

// FuzzCheck checks that every value that is not valid is explained, and that
// the verdict does not depend on how the value is written.
func FuzzCheck(f *testing.F) {
	for _, c := range [][2]string{
		{`{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":1}}}`, `{"a":0}`},
		{`{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#"}}]}`, `[["x"],1]`},
		{`{"type":["number","null"],"multipleOf":0.5}`, `1.25`},
		{`{"patternProperties":{"^x":{"type":"boolean"}},"additionalProperties":{"type":"string"}}`, `{"x1":true,"y":"z"}`},
		{`{"prefixItems":[{"const":1}],"items":{"const":2},"contains":{"const":2}}`, `[1,2,2]`},
		{`{"not":{"required":["b"]},"propertyNames":{"maxLength":1}}`, `{"ab":1}`},
		{`{"if":{"type":"string"},"then":{"minLength":2},"else":{"type":"null"}}`, `"é"`},
		{`{"enum":[1,"1",null,[1],{"a":1.0}]}`, `{"a":1}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}],"additionalItems":false,` +
			`"dependencies":{"a":["b"]}}`, `[null]`},
		{`{"oneOf":[true,false]}`, `{}`},
		{`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"maxProperties":1}},"unevaluatedProperties":false}`,
			`{"a":1,"b":2}`},
	} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		if len(schema) > 2000 || !json.Valid([]byte(value)) {
			return
		}
		s, err := Compile(json.RawMessage(schema))
		if err != nil {
			return
		}
		var doc any
		if json.Unmarshal([]byte(value), &doc) != nil {
			return
		}
		valid := s.schema.Validate(doc)
		if valid != nil && len(s.problems(doc, valid)) == 0 {
			t.Errorf("%s against %s: nothing is explained", value, schema)
		}
		written, err := json.MarshalIndent(doc, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := s.Check(string(written)); (len(problems) == 0) != (valid == nil) {
			t.Errorf("%s against %s: %v, written otherwise %q", value, schema, valid, problems)
		}
	})
}

// FuzzCompile: no schema makes the program fall over.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{`{}`, `true`, `{"$ref":"#/$defs/a","$defs":{"a":{}}}`, `{"type":["x"]}`, `{"$ref":"#"}`,
		`{"$dynamicRef":"#a"}`, `{"items":{"$ref":"#"}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		s, err := Compile(json.RawMessage(schema))
		if err != nil {
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), schemaURL) {
				t.Errorf("%q: not for people: %v", schema, err)
			}
			return
		}
		for _, reply := range []string{"{}", "[[1]]", "null", `{"a":{"a":1}}`} {
			s.Check(reply)
		}
	})
}
