package jsontree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/text/jsontree"
)

func parse(t *testing.T, text string) *jsontree.Value {
	t.Helper()
	v, err := jsontree.Parse([]byte(text), jsontree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParse(t *testing.T) {
	t.Parallel()
	text := "\ufeff{\"n\": -12345678901234567890.50e+3,\n \"s\": \"\\u00e9\\n\\ud800\", \"a\": [1, {}, [], true, " +
		"null], \"s\": \"é\"}"
	v := parse(t, text)
	if got := v.Get("n").Scalar(); got != "-12345678901234567890.50e+3" {
		t.Errorf("number %s", got)
	}
	if first := v.Members[1].Value; first.Text() != "é\n\ufffd" || v.Get("s").Text() != "é" {
		t.Errorf("strings %q, %q", first.Text(), v.Get("s").Text())
	}
	for _, m := range v.Members {
		if !strings.HasPrefix(text[m.Start:], `"`+m.Name+`"`) || text[m.Value.Start:m.Value.End()] != string(m.Value.Raw()) {
			t.Errorf("member %s stands at %d, its value %q at %d", m.Name, m.Start, m.Value.Raw(), m.Value.Start)
		}
	}
	if a := v.Get("a").List(); len(a) != 5 || !a[1].Is(jsontree.Object) || a[3].Scalar() != "true" || !a[4].IsNull() {
		t.Errorf("array %+v", a)
	}
	if v.Get("missing") != nil || !v.Get("missing").Get("x").IsNull() || v.Get("n").Text() != "" {
		t.Error("a missing member is one")
	}
	const want = `{"n":-12345678901234567890.50e+3,"s":"é\n�","a":[1,{},[],true,null],"s":"é"}`
	if got := string(v.Append(nil)); got != want {
		t.Errorf("written %s, want %s", got, want)
	}
	if got := string(jsontree.Compact(v.Get("a").Raw())); got != `[1,{},[],true,null]` {
		t.Errorf("compact %s", got)
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	v := &jsontree.Value{Kind: jsontree.Object}
	v.Add("s", jsontree.NewString("<\"\\\u2028\x00é>"))
	v.Add("list", &jsontree.Value{Kind: jsontree.Array, Items: []*jsontree.Value{jsontree.NewNumber(-3), {}}})
	const want = `{"s":"<\"\\\u2028\u0000é>","list":[-3,null]}`
	if got := string(v.Append(nil)); got != want || v.Get("s").Text() != "<\"\\\u2028\x00é>" {
		t.Errorf("%s, want %s", got, want)
	}
}

// Every error has its place, and the place is in the text.
func TestErrors(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5)
	tests := []struct {
		text         string
		kind         error
		line, column int
		field, want  string
	}{
		{"", jsontree.ErrSyntax, 1, 1, "", "empty"},
		{" \n ", jsontree.ErrSyntax, 2, 2, "", "empty"},
		{"{\n \"é\": }", jsontree.ErrSyntax, 2, 7, "", "want a value, found '}'"},
		{"{\"a\": 1,\n}", jsontree.ErrSyntax, 2, 1, "", "missing after the comma"},
		{`{"a": 1 "b"}`, jsontree.ErrSyntax, 1, 9, "", `want ',' or '}', found '"'`},
		{`{a: 1}`, jsontree.ErrSyntax, 1, 2, "", "want a name in quotes, found 'a'"},
		{`{"a" 1}`, jsontree.ErrSyntax, 1, 6, "", "want ':'"},
		{`{"a": "x`, jsontree.ErrSyntax, 1, 7, "", "not closed"},
		{"\"x\ny\"", jsontree.ErrSyntax, 1, 3, "", "U+000A"},
		{`"\x"`, jsontree.ErrSyntax, 1, 2, "", "escape"},
		{`"\u12g4"`, jsontree.ErrSyntax, 1, 2, "", "four"},
		{`[01]`, jsontree.ErrSyntax, 1, 2, "", "invalid number"},
		{`[1.]`, jsontree.ErrSyntax, 1, 2, "", "invalid number"},
		{`[-]`, jsontree.ErrSyntax, 1, 2, "", "invalid number"},
		{`[12`, jsontree.ErrSyntax, 1, 4, "", "end of the text"},
		{`[nul]`, jsontree.ErrSyntax, 1, 2, "", "want a value, found 'n'"},
		{`{} x`, jsontree.ErrSyntax, 1, 4, "", "unexpected 'x'"},
		{"{\"a\": \"\xff\"}", jsontree.ErrSyntax, 1, 8, "", "0xff"},
		{"\xff\xfe{", jsontree.ErrSyntax, 1, 1, "", "UTF-16"},
		{`{"a": [{"b": 1}, {"c": 2, "c": 3}]}`, jsontree.ErrName, 1, 27, "a[1].c", "appears twice"},
		{deep, jsontree.ErrLimit, 1, 5, "", "deeper than 4"},
		{`"` + strings.Repeat("x", 100) + `"`, jsontree.ErrLimit, 1, 1, "", "the limit is 100"},
	}
	for _, tt := range tests {
		_, err := jsontree.Parse([]byte(tt.text), jsontree.Options{File: "f.json", MaxDepth: 4, MaxBytes: 100,
			UniqueNames: true})
		var e *jsontree.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if !errors.Is(err, tt.kind) || e.Line != tt.line || e.Column != tt.column || e.Field != tt.field ||
			!strings.Contains(e.Msg, tt.want) {
			t.Errorf("%q: %+v, want %+v", tt.text, e, tt)
		}
		prefix := fmt.Sprintf("f.json:%d:%d: ", tt.line, tt.column)
		if tt.field != "" {
			prefix += "field " + tt.field + ": "
		}
		if err.Error() != prefix+e.Msg {
			t.Errorf("%v", err)
		}
	}
}

// A text that is cut off returns the members and items that are complete.
func TestPartial(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``: "", `nul`: "", `"abc`: "", `{`: `{}`, `{"a`: `{}`, `{"a":`: `{}`, `{"a":1`: `{}`, `{"a":1,`: `{"a":1}`,
		`{"a":[1,2`: `{"a":[1]}`, `{"a":{"b":"c"},"d":"e`: `{"a":{"b":"c"}}`, `[[1],[2`: `[[1],[]]`, `{} {`: `{}`,
		`[1,}`: `[1]`, `{"a":tru`: `{}`, `12 x`: `12`,
	} {
		v, err := jsontree.Parse([]byte(text), jsontree.Options{Partial: true})
		if err == nil {
			t.Errorf("%q: no error", text)
		}
		got := ""
		if v != nil {
			got = string(v.Append(nil))
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if v, err := jsontree.Parse([]byte(text), jsontree.Options{}); v != nil || err == nil {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	v, _ := jsontree.Parse([]byte(`{"a":{},"b":{"c":`), jsontree.Options{Partial: true})
	if !v.Cut || v.Get("a").Cut || !v.Get("b").Cut {
		t.Errorf("cut: %v, %v, %v", v.Cut, v.Get("a").Cut, v.Get("b").Cut)
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	text := []byte(`{"a": {"b": {"c": [1]}}, "d": {"e": 1}, "f": [[2]]}`)
	v, err := jsontree.Parse(text, jsontree.Options{KeepDepth: 2, KeepNames: []string{"a", "f"}})
	if err != nil {
		t.Fatal(err)
	}
	if b := v.Get("a").Get("b"); string(b.Raw()) != `{"c": [1]}` || b.Members != nil {
		t.Errorf("b is %s with %v", b.Raw(), b.Members)
	}
	if d := v.Get("d"); string(d.Raw()) != `{"e": 1}` || d.Members != nil || len(v.Get("f").Items) != 1 {
		t.Errorf("d is %s with %v, f has %v", d.Raw(), d.Members, v.Get("f").Items)
	}
	if _, err := jsontree.Parse([]byte(`{"d": {"e": tru}}`), jsontree.Options{KeepDepth: 1}); err == nil {
		t.Error("what is not kept is not checked")
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é{}, ", 5000)
	for _, text := range []string{"", "a", "\n", "a\né\n\nb", "\ufeff{}\n\ufeff", long + "\n" + long, "\xff\xfe\n\xff"} {
		lines := jsontree.NewLines([]byte(text))
		for off := 0; off <= len(text); off += 1 + len(text)/977 {
			line, column := lines.Position(off)
			wantLine, wantColumn := jsontree.Position([]byte(text), off)
			if line != wantLine || column != wantColumn && boundary(text, off) {
				t.Fatalf("%.20q at %d: %d:%d, want %d:%d", text, off, line, column, wantLine, wantColumn)
			}
			if start := lines.Start(line); start > off || strings.Contains(text[start:off], "\n") {
				t.Fatalf("%.20q: line %d begins at %d", text, line, start)
			}
		}
		if got, want := lines.Len(), 1+strings.Count(text, "\n"); got != want {
			t.Errorf("%.20q has %d lines, want %d", text, got, want)
		}
	}
}

// boundary reports whether a character begins at an offset.
func boundary(text string, off int) bool {
	return off == len(text) || text[off]&0xc0 != 0x80
}

type embedded struct {
	Common string `json:"common"`
}

type settings struct {
	embedded
	Name   string            `json:"name"`
	Count  int               `json:"count"`
	Small  int8              `json:"small"`
	Share  float64           `json:"share"`
	On     *bool             `json:"on"`
	List   []inner           `json:"list"`
	Map    map[string]int    `json:"map"`
	Any    any               `json:"any"`
	Raw    json.RawMessage   `json:"raw"`
	When   time.Time         `json:"when"`
	Bytes  []byte            `json:"bytes"`
	Plain  string            // no tag
	hidden string            //nolint:unused // not a field of JSON
	Not    string            `json:"-"`
	Labels map[string]string `json:"labels"`
}

type inner struct {
	Prompt string `json:"prompt"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got, want settings
	text := `{"common":"c","name":"n","count":3,"small":-1,"share":0.5,"on":true,"list":[{"prompt":"p"},null],
		"map":{"a":1},"any":[1,"x",{}],"raw":{"x": 1},"when":"2026-02-09T10:00:00Z","bytes":"AAE=","Plain":"x","labels":null}`
	if err := jsontree.Decode([]byte(text), &got, jsontree.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{}, embedded{})); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		text         string
		kind         error
		column       int
		field, want  string
		hintContains string
	}{
		{`{"nmae": "x"}`, jsontree.ErrName, 2, "nmae", "unknown field", `did you mean "name"?`},
		{`{"Name": "x"}`, jsontree.ErrName, 2, "Name", "unknown field", `did you mean "name"?`},
		{`{"zzzzzzzz": 1}`, jsontree.ErrName, 2, "zzzzzzzz", "unknown field", "the fields are common, name, count"},
		{`{"list": [{}, {"promt": "x"}]}`, jsontree.ErrName, 16, "list[1].promt", "unknown field", "prompt"},
		{`{"name": "x", "name": "y"}`, jsontree.ErrName, 15, "name", "appears twice", ""},
		{`{"name": 1}`, jsontree.ErrType, 10, "name", "want a string, found a number", ""},
		{`{"count": "1"}`, jsontree.ErrType, 11, "count", "want a whole number, found a string", ""},
		{`{"count": 1.5}`, jsontree.ErrType, 11, "count", "want a whole number, found number 1.5", ""},
		{`{"small": 300}`, jsontree.ErrType, 11, "small", "want a whole number, found number 300", ""},
		{`{"on": {}}`, jsontree.ErrType, 8, "on", "want a boolean, found an object", ""},
		{`{"list": {}}`, jsontree.ErrType, 10, "list", "want an array, found an object", ""},
		{`{"map": {"a": []}}`, jsontree.ErrType, 15, "map.a", "want a whole number, found an array", ""},
		{`null`, jsontree.ErrType, 1, "", "want an object, found null", ""},
		{`[]`, jsontree.ErrType, 1, "", "want an object, found an array", ""},
		{`{} {}`, jsontree.ErrSyntax, 4, "", "after the end of the value", ""},
	} {
		var s settings
		err := jsontree.Decode([]byte(tt.text), &s, jsontree.Options{})
		var e *jsontree.Error
		if !errors.As(err, &e) || !errors.Is(err, tt.kind) || e.Line != 1 || e.Column != tt.column || e.Field != tt.field ||
			!strings.Contains(e.Msg, tt.want) || !strings.Contains(e.Hint, tt.hintContains) {
			t.Errorf("%s: %#v, want %+v", tt.text, err, tt)
		}
	}
	if err := jsontree.Decode([]byte(`{"when": "yesterday"}`), new(settings), jsontree.Options{}); err == nil {
		t.Error("a time of any form is read")
	}
}

// FuzzParse reads exactly what the standard library takes for JSON, and what it
// read is written so that it reads the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5e3,true,false,null,"x\u0041\n<"],"a":{}}`, `[`, `{"a":`, `{"a":1,}`,
		`[1 2]`, `"\x"`, "\"\x01\"", `01`, `1`, `nul`, `{}x`, ``, `{1:2}`, `[,1]`, `"\ud800"`, "\ufeff{}", "\xff",
		"[1\n,\n2"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		bare := bytes.TrimPrefix(text, []byte("\ufeff"))
		valid := json.Valid(bare) && jsontree.InvalidUTF8(text) < 0
		for i, o := range []jsontree.Options{{}, {Partial: true}, {UniqueNames: true},
			{KeepDepth: 1, KeepNames: []string{"a"}}} {
			v, err := jsontree.Parse(text, o)
			var e *jsontree.Error
			if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > len(text) || e.Line < 1 || e.Column < 1) {
				t.Fatalf("%q: the place of %#v is not in the text", text, err)
			}
			if syntax := errors.Is(err, jsontree.ErrSyntax); syntax && valid || err == nil && !valid || err == nil && v == nil {
				t.Fatalf("%q: valid %v, error %v", text, valid, err)
			}
			if v == nil || o.KeepDepth > 0 {
				continue
			}
			inside(t, text, v, 0, len(text))
			written := v.Append(nil)
			again, err := jsontree.Parse(written, jsontree.Options{})
			if err != nil || !bytes.Equal(again.Append(nil), written) {
				t.Fatalf("%q became %q, then %v", text, written, err)
			}
			if i == 0 {
				sameMeaning(t, bare, written)
			}
		}
	})
}

// inside requires the places of values to lie in their parents, in order.
func inside(t *testing.T, text []byte, v *jsontree.Value, from, to int) {
	t.Helper()
	if v.Start < from || v.End() > to || !bytes.Equal(text[v.Start:v.End()], v.Raw()) {
		t.Fatalf("%q: %q is not at %d", text, v.Raw(), v.Start)
	}
	at := v.Start
	for _, m := range v.Members {
		inside(t, text, m.Value, m.Start, v.End())
		if m.Start < at {
			t.Fatalf("%q: the name %q is at %d, before %d", text, m.Name, m.Start, at)
		}
		at = m.Value.End()
	}
	for _, item := range v.Items {
		inside(t, text, item, at, v.End())
		at = item.End()
	}
}

// sameMeaning requires the two JSON values to be the same for the standard library.
func sameMeaning(t *testing.T, a, b []byte) {
	t.Helper()
	var first, second any
	for text, to := range map[*any][]byte{&first: a, &second: b} {
		d := json.NewDecoder(bytes.NewReader(to))
		d.UseNumber()
		if err := d.Decode(text); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Fatalf("%q was written with another meaning:\n%s", a, diff)
	}
}

// FuzzDecode reads nothing that the standard library refuses, and the same.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"name":"x","count":1}`, `{"list":[{"prompt":1}]}`, `{"map":{"a":1e400}}`,
		`{"small":300}`,
		`{"when":1}`, `{"bytes":"!"}`, `{"any":{"a":{"a":1}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, want settings
		if jsontree.Decode(text, &got, jsontree.Options{}) != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{}, embedded{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := []byte(`{"log": [` + strings.Repeat(`{"n": 123456789012345678901234567890, "t": "é\u00e9"}, `, 20_000) + `0]}`)
	for name, o := range map[string]jsontree.Options{"all": {}, "unique": {UniqueNames: true}, "root": {KeepDepth: 1}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsontree.Parse(text, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("standard library", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if err := json.Unmarshal(text, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
