package schematest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/schematest"
)

const head = `{"$schema":"https://json-schema.org/draft/2020-12/schema",`

func TestCompile(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{head + `"type":"object","properties":{"format":{"type":"string"},"type":{"const":"x"}}}`, ""},
		{head + `"$defs":{"a":{"$ref":"#/$defs/b"},"b":true},"examples":[{"format":"of the data"}]}`, ""},
		{`{"type":"object"}`, "$schema"},
		{`{`, "JSON"},
		{head + `"type":"text"}`, "meta-schema"},
		{head + `"minLength":-1}`, "meta-schema"},
		{head + `"required":"a"}`, "meta-schema"},
		{head + `"properties":{"a":{"items":{"enum":7}}}}`, "meta-schema"},
		{head + `"properties":{"a":{"pattern":"("}}}`, "pattern"},
		{head + `"$ref":"#/$defs/gone"}`, "gone"},
		{head + `"items":{"format":"color"}}`, "color"},
	}
	for _, test := range tests {
		_, err := schematest.Compile([]byte(test.text))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	s, err := schematest.Compile([]byte(head + `"properties":{"d":{"format":"date"},"t":{"format":"date-time",` +
		`"allOf":[{"maxLength":30}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{
		`{"t":"2026-02-28T10:00:00Z","d":"2026-12-31"}`:          true,
		`{"t":"2026-02-28t23:59:60.123+05:30","d":"2024-02-29"}`: true,
		`{"t":7,"d":null}`:   true, // a format says nothing about other types
		`{"t":"2026-02-28"}`: false, `{"t":"yesterday"}`: false, `{"t":"2026-02-28T10:00:00"}`: false,
		`{"t":"2026-02-28T24:00:00Z"}`: false, `{"t":"2026-04-31T10:00:00Z"}`: false, `{"t":"2026-13-01T10:00:00Z"}`: false,
		`{"t":"2026-02-28T10:00:00.123456789012345Z"}`: false,
		`{"d":"2026-02-30"}`:                           false, `{"d":"2026-1-1"}`: false, `{"d":""}`: false, `{`: false,
	} {
		if err := s.ValidateJSON([]byte(text)); (err == nil) != valid {
			t.Errorf("%s: %v, want valid %v", text, err, valid)
		}
	}
}

func TestPublished(t *testing.T) {
	t.Parallel()
	s := schematest.Published(t, "loop-state")
	if err := s.Validate(map[string]any{}); err == nil {
		t.Error("an empty object is a state of a loop")
	}
	if err := s.Validate(s.Doc["examples"].([]any)[0]); err != nil {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	s, err := schematest.Compile([]byte(head + `"items":{"type":"integer","minimum":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{
		`[2,1e999,3.0,99999999999999999999]`: true, `[2.5]`: false, `[1]`: false, `[-1e999]`: false, `["2"]`: false,
		`[2] 3`: false,
	} {
		if err := s.ValidateJSON([]byte(text)); (err == nil) != valid {
			t.Errorf("%s: %v, want valid %v", text, err, valid)
		}
	}
}
