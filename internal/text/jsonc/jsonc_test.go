package jsonc_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/text/jsonc"
)

var item = map[string]string{"command": "ours"}

func ours(raw json.RawMessage) bool { return bytes.Contains(raw, []byte(`"ours"`)) }

// TestAppend: an item is added in the style of the document, and its removal restores it.
func TestAppend(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		`{}`:       "{\n  \"hooks\": {\n    \"A\": [\n      {\n        \"command\": \"ours\"\n      }\n    ]\n  }\n}",
		`{"x": 1}`: `{"x": 1, "hooks": {"A":[{"command":"ours"}]}}`,
		"{\n\t\"x\": 1 // one\n}\n": "{\n\t\"x\": 1,\n\t\"hooks\": {\n\t\t\"A\": [\n\t\t\t{\n" +
			"\t\t\t\t\"command\": \"ours\"\n\t\t\t}\n\t\t]\n\t} // one\n}\n",
		"{\n  \"hooks\": {\n    \"A\": [\n      1, /* , */\n    ]\n  }\n}": "{\n  \"hooks\": {\n    \"A\": [\n      1,\n" +
			"      {\n        \"command\": \"ours\"\n      }, /* , */\n    ]\n  }\n}",
		"{\r\n  \"hooks\": {\"A\": [1]}\r\n}": "{\r\n  \"hooks\": {\"A\": [1, {\"command\":\"ours\"}]}\r\n}",
	} {
		edit, err := jsonc.Append([]byte(before), []string{"hooks", "A"}, item)
		if err != nil {
			t.Errorf("%s: %v", before, err)
			continue
		}
		after := jsonc.Apply([]byte(before), []jsonc.Edit{edit})
		if string(after) != want {
			t.Errorf("%s\ngot  %s\nwant %s", before, after, want)
		}
		undone, n, err := jsonc.Remove(after, []string{"hooks", "A"}, ours)
		if err != nil || n != 1 || string(undone) != before {
			t.Errorf("%q is %q after removal, %d, %v", before, undone, n, err)
		}
	}
}

// TestRemoveBetween: items of others stay, wherever they are.
func TestRemoveBetween(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		`{"hooks":{"A":[{"c":"ours"},1]}}`:                  `{"hooks":{"A":[1]}}`,
		`{"hooks":{"A":[0,{"c":"ours"},1]}}`:                `{"hooks":{"A":[0,1]}}`,
		`{"hooks":{"A":[{"c":"ours"}],"B":[1]}}`:            `{"hooks":{"B":[1]}}`,
		`{"a":1,"hooks":{"A":[{"c":"ours"},{"c":"ours"}]}}`: `{"a":1}`,
		`{"hooks":{"A":[{"c":"theirs"}]}}`:                  `{"hooks":{"A":[{"c":"theirs"}]}}`,
		`{"hooks":7}`:                                       `{"hooks":7}`,
		"{\"hooks\":{\"A\":[/* mine */{\"c\":\"ours\"}]}}":  "{}",
	} {
		got, _, err := jsonc.Remove([]byte(before), []string{"hooks", "A"}, ours)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", before, got, err)
		}
	}
}

// TestFaults: a document that is not valid names the line and is not edited.
func TestFaults(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{"": 1, "{": 1, "{\n\n\"a\" 1}": 3, "{\"a\": tru}": 1, "[1\n2]": 2, "{}\n{}": 2,
		"{\"a\":\n\"x": 2, "/* \n": 1, "\xff": 1, strings.Repeat("[", 600): 1, "{'a':1}": 1, `{"hooks":[]}`: 1,
		"{\"hooks\":{\n\"A\":{}}}": 2, "[]": 1} {
		edit, err := jsonc.Append([]byte(text), []string{"hooks", "A"}, item)
		e, ok := err.(*jsonc.Error) //nolint:errorlint // it is not wrapped
		if !ok || e.Line != line {
			t.Errorf("%q: %+v, %v", text, edit, err)
		}
	}
}

// FuzzEdit: an edit keeps a document valid and its other content as it was; it can be undone.
func FuzzEdit(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":1}`, "{\n // c\n \"hooks\": {\"A\": [1,],},\n}", `{"hooks":{"A":[]}}`,
		"{\"hooks\" : {\n \"A\" : [ {\"command\": \"x\"} /* , */ , ]\n}}", `{"hooks":{},"hooks":{"A":[2]}}`,
		"\ufeff{ /* , */ }", "{\"a\":[\n]}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "ours") {
			return
		}
		root, err := jsonc.Parse([]byte(text))
		if err != nil {
			return
		}
		var before any
		if err := root.Decode([]byte(text), &before); err != nil {
			t.Fatalf("%q is valid and cannot be decoded: %v", text, err)
		}
		edit, err := jsonc.Append([]byte(text), []string{"hooks", "A"}, item)
		if err != nil {
			return
		}
		after := jsonc.Apply([]byte(text), []jsonc.Edit{edit})
		if root, err = jsonc.Parse(after); err != nil {
			t.Fatalf("%q is %q after the edit: %v", text, after, err)
		}
		list := root.Member("hooks").Member("A")
		if n := len(list.Values); n == 0 || !ours(after[list.Values[n-1].Start:list.Values[n-1].End]) {
			t.Errorf("%q: the item is not in %q", text, after)
		}
		undone, n, err := jsonc.Remove(after, []string{"hooks", "A"}, ours)
		if err != nil || n != 1 {
			t.Fatalf("%q: %d removed from %q: %v", text, n, after, err)
		}
		if _, err := jsonc.Parse(undone); err != nil {
			t.Errorf("%q is %q after the removal: %v", text, undone, err)
		}
	})
}
