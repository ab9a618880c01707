package jsonreply

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONIn(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, reply, want, fault string }{
		{"whole", " {\"a\": 1}\n", `{"a":1}`, ""},
		{"a number", "42", "42", ""},
		{"byte order mark", "\ufeff[1]", "[1]", ""},
		{"fence", "Here:\n```json\n{\"a\": [1, 2]}\n```\nDone.", `{"a":[1,2]}`, ""},
		{"second fence", "```sh\nls\n```\n~~~\n[]\n~~~", "[]", ""},
		{"open fence", "```json\n{\"a\":1}", `{"a":1}`, ""},
		{"among words", `The answer {for you} is {"a":{"b":"}"}}, I think.`, `{"a":{"b":"}"}}`, ""},
		{"a list among words", "So: [1, 2] and more", "[1,2]", ""},
		{"empty", " \n", "", "the reply is empty"},
		{"prose", "I cannot do that.", "", "contains no JSON"},
		{"cut", `{"tasks":[{"id":"a"`, "", "ends before it is complete"},
		{"comma", `{"a":1,}`, "", `broken after "{\"a\":1,"`},
		{"single quotes", `{'a':1}`, "", "invalid character '\\''"},
	}
	for _, tt := range tests {
		raw, err := JSONIn(tt.reply)
		if tt.fault == "" && (err != nil || string(raw) != tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, raw, err, tt.want)
		}
		if tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: error is %v, want %q", tt.name, err, tt.fault)
		}
	}
}

func FuzzJSONIn(f *testing.F) {
	for _, s := range []string{"", "{}", "```\n{}\n```", "a {\"b\": [1]} c", "{{{{[[[", "\"x\"", "~~~\n1", `{"a":`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		raw, err := JSONIn(reply)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q is not JSON", raw)
		}
		again, err := JSONIn(string(raw))
		if err != nil || string(again) != string(raw) {
			t.Errorf("%q becomes %q, %v", raw, again, err)
		}
	})
}

// BenchmarkShapeCheck measures what validation adds to a call.
func BenchmarkShapeCheck(b *testing.B) {
	s, err := Compile(json.RawMessage(`{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":
		{"type":"object","required":["id","name"],"properties":{"id":{"type":"integer"},"name":{"type":"string","minLength":1}}}}}}`))
	if err != nil {
		b.Fatal(err)
	}
	items := func(n int) string {
		return "```json\n{\"items\":[" + strings.Repeat(`{"id":1,"name":"somebody"},`, n-1) + `{"id":1,"name":"x"}]}` +
			"\n```"
	}
	for name, reply := range map[string]string{"3items": items(3), "50items": items(50)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, problems := s.Check(reply); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
