// Package packtest makes packs in memory for tests.
package packtest

import (
	"bytes"
	"strings"

	"github.com/perdure/perdure/internal/corpus/pack"
)

// File is a file of a pack.
type File struct{ Name, Text string }

// T is the part of testing.TB that [Open] needs, which rapid.T has too.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Open returns a pack of files in their order, and its bytes.
func Open(t T, files ...File) (*pack.Reader, []byte) {
	t.Helper()
	var data bytes.Buffer
	b := pack.NewBuilder(&data, pack.Limits{})
	for _, f := range files {
		if err := b.Add(f.Name, strings.NewReader(f.Text)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	r, err := pack.NewReader(m, bytes.NewReader(data.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return r, data.Bytes()
}
