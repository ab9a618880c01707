package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const limit = 1 << 20

// readAll returns the events that have data, each as ID/name=data.
func readAll(r io.Reader) (events []string, err error) {
	s := NewReader(r, limit)
	for {
		e, err := s.Next()
		if err != nil {
			return events, err
		}
		if e.Data != nil {
			events = append(events, e.ID+"/"+e.Name+"="+string(e.Data))
		}
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000) // more than the reader's buffer
	tests := []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one", "id: 1\nevent: k\ndata: a\n\n", []string{"1/k=a"}},
		{"no space", "id:1\ndata:a\n\n", []string{"1/=a"}},
		{"two spaces", "data:  a\n\n", []string{"/= a"}},
		{"crlf", "id: 1\r\ndata: a\r\n\r\n", []string{"1/=a"}},
		{"comments", ": x\n\nid: 1\n: y\ndata: a\n\n: z\n", []string{"1/=a"}},
		{"several lines", "data: a\ndata: b\n\n", []string{"/=a\nb"}},
		{"empty data", "data\n\ndata:\ndata: a\n\n", []string{"/=", "/=\na"}},
		{"unknown fields", "retry: 5\nfoo\nbar: x\nid: 2\ndata: a\n\n", []string{"2/=a"}},
		{"cut", "data: a\n\ndata: b\n", []string{"/=a"}},
		{"cut in the line", "data: a\n\ndata: b", []string{"/=a"}},
		{"no data", "id: 1\nevent: k\n\ndata: a\n\n", []string{"/=a"}},
		{"long", "data: " + long + "\r\n\ndata: a\n\n", []string{"/=" + long, "/=a"}},
		{"empty lines", "\n\n\ndata: a\n\n\n\n", []string{"/=a"}},
	}
	for _, test := range tests {
		for _, in := range []io.Reader{strings.NewReader(test.in), iotest.OneByteReader(strings.NewReader(test.in))} {
			got, err := readAll(in)
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", test.name, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
		}
	}
}

// A comment between two events is returned, because it shows that the server is
// alive; one within an event is not.
func TestComments(t *testing.T) {
	t.Parallel()
	s := NewReader(strings.NewReader(": alive\ndata: a\n: alive\n\n: alive\n"), limit)
	for i, want := range []string{"", "a", ""} {
		e, err := s.Next()
		if err != nil || string(e.Data) != want || (e.Data == nil) != (want == "") {
			t.Errorf("event %d: %+v, %v, want data %q", i, e, err, want)
		}
	}
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("error = %v, want EOF", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := []struct {
		name string
		in   io.Reader
		want error
	}{
		{"endless line", repeat("x"), ErrTooLong},
		{"endless event", repeat("data: x\n"), ErrTooLong},
		{"endless unknown fields", repeat("x: y\n"), ErrTooLong},
		{"longest line", strings.NewReader("data: " + strings.Repeat("x", limit-len("data: ")) + "\r\n\r\n"), nil},
		{"line over the limit", strings.NewReader("data: " + strings.Repeat("x", limit-len("data: ")+1) + "\n\n"),
			ErrTooLong},
		{"reader fails", io.MultiReader(strings.NewReader("data: x\n"), iotest.ErrReader(broken)), broken},
	}
	for _, test := range tests {
		if _, err := NewReader(test.in, limit).Next(); !errors.Is(err, test.want) {
			t.Errorf("%s: error = %v, want %v", test.name, err, test.want)
		}
	}
}

// repeat is a stream of the same text again and again, twice as long as the
// limit.
func repeat(text string) io.Reader {
	return strings.NewReader(strings.Repeat(text, 2*limit/len(text)))
}

// parse reads events in the plainest way: it splits the whole text at empty
// lines.
func parse(text string) (events []string) {
	var id, name string
	var data []string
	end := strings.LastIndexByte(text, '\n') + 1
	for line := range strings.Lines(text[:end]) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				events = append(events, id+"/"+name+"="+strings.Join(data, "\n"))
			}
			id, name, data = "", "", nil
		case field == "data":
			data = append(data, value)
		case field == "id":
			id = value
		case field == "event":
			name = value
		}
	}
	return events
}

// FuzzReader checks that the events are those of [parse], however the bytes
// arrive.
func FuzzReader(f *testing.F) {
	f.Add([]byte("id: 1\nevent: k\ndata: {\"seq\":1}\n\n: alive\n\n"))
	f.Add([]byte("data\ndata:\r\n\r\nid"))
	f.Add([]byte("data: a\n: b\r\n\r\ndata: c\ndata\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > limit {
			return
		}
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.HalfReader(bytes.NewReader(in)),
			iotest.OneByteReader(bytes.NewReader(in))} {
			got, err := readAll(r)
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(string(in)), got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
