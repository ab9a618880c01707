package meter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// scanned returns the values of a document that is read in parts of n bytes.
func scanned(text []byte, n int) []string {
	var got []string
	s := scanner{wants: func(string) bool { return true }, visit: func(path, value string, size int64) {
		got = append(got, fmt.Sprintf("%s=%s", path, value))
		if size < 0 {
			panic("negative size")
		}
	}}
	for len(text) > 0 {
		k := min(n, len(text))
		s.scan(text[:k])
		text = text[k:]
	}
	s.end()
	return got
}

// flattened returns the same values by the standard library.
func flattened(dec *json.Decoder, path string) ([]string, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	var got []string
	switch token {
	case json.Delim('{'):
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			if name == "" || len(name) > maxKey || strings.ContainsAny(name, `.*\?`) {
				name = unknownKey
			}
			part, err := flattened(dec, strings.TrimPrefix(path+"."+name, "."))
			if err != nil {
				return nil, err
			}
			got = append(got, part...)
		}
		_, err = dec.Token()
	case json.Delim('['):
		below := strings.TrimPrefix(path+".*", ".")
		if path == "" || strings.Trim(path, ".*") == "" { // lists around the document
			below = ""
		}
		for dec.More() {
			part, err := flattened(dec, below)
			if err != nil {
				return nil, err
			}
			got = append(got, part...)
		}
		_, err = dec.Token()
	default:
		text := fmt.Sprint(token)
		if token == nil {
			text = "null"
		}
		got = append(got, path+"="+text)
	}
	return got, err
}

func TestScanner(t *testing.T) {
	t.Parallel()
	const text = ` [ {"a":1,"b":{"c":"x\"y\\","d":[true,null,[-1.5e3]],"":0,"e.f":0},"g":[]}, {"h":"\u00e9\n"} ] `
	want := []string{"a=1", `b.c=x"y\`, "b.d.*=true", "b.d.*=null", "b.d.*.*=-1.5e3", "b.?=0", "b.?=0", "h=é\n"}
	for n := 1; n <= len(text); n++ {
		if diff := cmp.Diff(want, scanned([]byte(text), n)); diff != "" {
			t.Fatalf("in parts of %d bytes, values differ (-want +got):\n%s", n, diff)
		}
	}
	long := scanned([]byte(`{"a":"`+strings.Repeat(`é\n`, 1000)+`","b":1}`), 7)
	if len(long) != 2 || len(long[0]) > maxValue || !utf8.ValidString(long[0]) || long[1] != "b=1" {
		t.Errorf("long string: %q", long)
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range scripts() {
		f.Add([]byte(s.body), 3)
	}
	f.Add([]byte(`[[{"a":[1,"\ud83d\ude00",{"b":{}}]}],null]`), 1)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		got := scanned(text, 1+max(n, 0)%100)
		if !json.Valid(text) || !utf8.Valid(text) || bytes.Contains(text, []byte(`\`)) {
			return // escapes in keys are unknown here; TestScanner has those in values
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		want, err := flattened(dec, "")
		if err != nil {
			return // deeper than the standard library reads
		}
		for i := range want {
			if path, value, _ := strings.Cut(want[i], "="); len(value) > maxValue {
				want[i], got[i] = path, strings.SplitN(got[i], "=", 2)[0]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("values of %q differ (-standard library +scanner):\n%s", text, diff)
		}
	})
}

// Any body is read without a panic, and in bounded time and memory.
func FuzzBodies(f *testing.F) {
	for _, s := range scripts() {
		f.Add([]byte(s.body), "", byte(0))
		f.Add(gzipped(f, s.body), "gzip", byte(1))
		f.Add([]byte(requestOf(s.api)), "deflate", byte(2))
	}
	f.Fuzz(func(t *testing.T, body []byte, encoding string, api byte) {
		all := []API{Chat, Responses, Messages, Generate, ""}
		a, _ := readAnswer(all[int(api)%len(all)], bytes.NewReader(body), encoding)
		if u, known := a.usage(); u.InputTokens < 0 || u.OutputTokens < 0 || !known && u.InputTokens+u.OutputTokens > 0 {
			t.Errorf("usage %+v, known %v", u, known)
		}
		_ = a.overflow(200) || a.limited(429)
		readRequest(bytes.NewReader(body), encoding)
	})
}
