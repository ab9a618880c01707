package pack_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/corpus/pack"
)

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	file := func(fields string) string {
		return `{"version":1,"files":[{"name":"a","offset":0,"length":4,"lines":1},` + fields + `],"bytes":8,"lines":2}`
	}
	tests := []struct{ name, data, want string }{
		{"nothing", ``, "unexpected end"},
		{"not an object", `[]`, "cannot unmarshal"},
		{"newer version", `{"version":2,"files":[]}`, "version 2, this program reads 1"},
		{"unknown field", `{"version":1,"files":[],"bytes":0,"lines":0,"extra":1}`, `unknown field "extra"`},
		{"data after it", `{"version":1,"files":[],"bytes":0,"lines":0} {}`, "invalid character"},
		{"cut", `{"version":1,"files":[`, "unexpected end"},
		{"negative size", `{"version":1,"files":[],"bytes":-1,"lines":0}`, "bytes: -1"},
		{"overlap", file(`{"name":"b","offset":3,"length":4,"lines":1}`), "before the end of the previous file"},
		{"outside", file(`{"name":"b","offset":4,"length":5,"lines":1}`), "outside the 8 bytes"},
		{"outside by overflow", file(`{"name":"b","offset":4,"length":9223372036854775807,"lines":1}`),
			"outside the 8 bytes"},
		{"negative length", file(`{"name":"b","offset":4,"length":-1,"lines":1}`), "outside the 8 bytes"},
		{"offset beyond", file(`{"name":"b","offset":9,"length":0,"lines":0}`), "outside the 8 bytes"},
		{"more lines than bytes", file(`{"name":"b","offset":4,"length":4,"lines":5}`), "5 lines in 4 bytes"},
		{"no lines", file(`{"name":"b","offset":4,"length":4,"lines":0}`), "0 lines in 4 bytes"},
		{"wrong sum", file(`{"name":"b","offset":4,"length":4,"lines":2}`), "lines: 2, but the files have 3"},
		{"name twice", file(`{"name":"a","offset":4,"length":4,"lines":1}`), "twice"},
		{"empty name", file(`{"name":"","offset":4,"length":4,"lines":1}`), "empty"},
		{"marks for nothing", `{"version":1,"files":[],"bytes":8,"lines":0,"marks":[1]}`, "marks: 1 for 8 bytes, want 0"},
		{"missing marks", `{"version":1,"files":[],"bytes":65536,"lines":0}`, "marks: 0"},
		{"sinking marks", `{"version":1,"files":[],"bytes":131072,"lines":0,"marks":[5,4]}`, "marks[1]"},
		{"steep marks", `{"version":1,"files":[],"bytes":131072,"lines":0,"marks":[5,65542]}`, "marks[1]"},
		{"negative skipped", `{"version":1,"files":[],"bytes":0,"lines":0,"more_skipped":-1}`, "skipped"},
		{"negative kind", `{"version":1,"files":[],"bytes":0,"lines":0,"skipped_kinds":{"x":-1}}`, "skipped_kinds"},
		{"long reason", `{"version":1,"files":[],"bytes":0,"lines":0,"skipped":[{"file":"a","why":"` +
			strings.Repeat("x", 2000) + `"}]}`, "skipped[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := pack.Decode([]byte(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzDecode: what decodes encodes to the same manifest, and reading a pack that
// does not fit it fails or not, but never panics.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"files":[{"name":"a","offset":0,"length":4,"lines":1}],"bytes":8,"lines":1}`),
		[]byte("abc\ndef\n"))
	f.Add([]byte(`{"version":1,"files":[],"bytes":65536,"lines":0,"marks":[7],"skipped":[{"file":"x","why":"y"}]}`),
		[]byte("\n"))
	f.Add([]byte(`{"version":1,"files":[{"name":"a","offset":2,"length":3,"lines":3},{"name":"b","offset":6,"length":0,`+
		`"lines":0}],"bytes":8,"lines":3}`), []byte("\n\n\n\n\n\n\n\n"))
	f.Fuzz(func(t *testing.T, encoded, data []byte) {
		m, err := pack.Decode(encoded)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		m2, err := pack.Decode(again)
		if err != nil {
			t.Fatalf("encoded manifest does not decode: %v", err)
		}
		third, err := m2.Encode()
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("manifest changed (%v):\n%s", err, cmp.Diff(string(again), string(third)))
		}
		readEverything(m, data)
	})
}

// readEverything uses each method of a reader; errors are fine.
func readEverything(m *pack.Manifest, data []byte) {
	if m.Bytes > 1<<20 {
		return // a manifest may claim more than this test may allocate
	}
	r, err := pack.NewReader(m, struct{ io.ReaderAt }{bytes.NewReader(data)})
	if err != nil {
		return
	}
	for _, err := range r.All() {
		_ = err
	}
	_, _ = r.Documents(0, m.Bytes)
	_, _ = r.Documents(m.Bytes/2, m.Bytes-m.Bytes/2)
	for _, f := range m.Files {
		_, _ = r.Lines(f.Name, 1, int(f.Lines))
		_, _ = r.Lines(f.Name, int(f.Lines), int(f.Lines))
	}
}
