package client

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readAll(r io.Reader) (data []string, err error) {
	s := newStream(r)
	for {
		m, err := s.next()
		if err != nil {
			return data, err
		}
		if m.data != nil {
			data = append(data, m.id+"="+string(m.data))
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000) // more than the reader's buffer
	tests := []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"one", "id: 1\nevent: k\ndata: a\n\n", []string{"1=a"}},
		{"no space", "id:1\ndata:a\n\n", []string{"1=a"}},
		{"crlf", "id: 1\r\ndata: a\r\n\r\n", []string{"1=a"}},
		{"comments", ": x\n\nid: 1\n: y\ndata: a\n\n: z\n", []string{"1=a"}},
		{"several lines", "data: a\ndata: b\n\n", []string{"=a\nb"}},
		{"unknown fields", "retry: 5\nfoo\nbar: x\nid: 2\ndata: a\n\n", []string{"2=a"}},
		{"cut", "data: a\n\ndata: b\n", []string{"=a"}},
		{"cut in the line", "data: a\n\ndata: b", []string{"=a"}},
		{"no data", "id: 1\n\ndata: a\n\n", []string{"=a"}},
		{"long", "data: " + long + "\n\ndata: a\n\n", []string{"=" + long, "=a"}},
		{"empty lines", "\n\n\ndata: a\n\n\n\n", []string{"=a"}},
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

func TestStreamLongLine(t *testing.T) {
	t.Parallel()
	endless := io.LimitReader(repeat('x'), 2*maxLine)
	if _, err := newStream(endless).next(); !errors.Is(err, errLongLine) {
		t.Errorf("next = %v", err)
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// FuzzStream: reading never panics, and does not depend on how the bytes
// arrive.
func FuzzStream(f *testing.F) {
	f.Add([]byte("id: 1\nevent: k\ndata: {\"seq\":1}\n\n: alive\n\n"))
	f.Add([]byte("data\ndata:\r\n\r\nid"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := readAll(bytes.NewReader(in))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		split, err := readAll(iotest.HalfReader(bytes.NewReader(in)))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, split); diff != "" {
			t.Fatal(diff)
		}
	})
}
