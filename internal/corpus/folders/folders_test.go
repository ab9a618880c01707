package folders_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/corpus/folders"
	"github.com/perdure/perdure/internal/corpus/pack"
)

func files() []pack.File {
	var out []pack.File
	for _, name := range []string{"/src/go/net/http/server.go", "/src/go/net/http/client.go", "/src/go/net/dial.go",
		"/src/go/net/testdata/a.txt", "/src/go/fmt/print.go", "/src/go/Makefile"} {
		out = append(out, pack.File{Name: name, Length: 2048, Lines: 1})
	}
	return out
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	all := `"/src/go/", 6 files, 12 KiB (go 4, Makefile 1, txt 1)
"/src/go/fmt/", 1 file, 2.0 KiB (go 1)
"/src/go/net/", 4 files, 8.0 KiB (go 3, txt 1)
"/src/go/net/http/", 2 files, 4.0 KiB (go 2)
"/src/go/net/testdata/", 1 file, 2.0 KiB (txt 1)
`
	if diff := cmp.Diff(all, folders.Describe(files(), 1000)); diff != "" {
		t.Error(diff)
	}
	first := strings.SplitAfter(all, "\n")
	if diff := cmp.Diff(strings.Join(first[:3], ""), folders.Describe(files(), 160)); diff != "" {
		t.Error(diff)
	}
	var many []pack.File
	for i := range 10_000 {
		many = append(many, pack.File{Name: fmt.Sprintf("a/%d/%d/file-%d.c", i%7, i%13, i), Length: int64(i)})
	}
	if got := folders.Describe(many, 5000); len(got) > 5000 || strings.Count(got, "\n") < 50 {
		t.Errorf("%d bytes, %d lines", len(got), strings.Count(got, "\n"))
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"/src/go/net": {"\"/src/go/net/http/\", 2 files, 4.0 KiB (go 2)\n",
			"\"/src/go/net/testdata/\", 1 file, 2.0 KiB (txt 1)\n", "\"/src/go/net/dial.go\", 1 line, 2.0 KiB\n"},
		"/src/go/fmt/": {"\"/src/go/fmt/print.go\", 1 line, 2.0 KiB\n"},
		"/src/g":       nil,
		"nowhere":      nil,
		".":            {"\"/\", 6 files, 12 KiB (go 4, Makefile 1, txt 1)\n"},
		"":             {"\"/\", 6 files, 12 KiB (go 4, Makefile 1, txt 1)\n"},
	} {
		if diff := cmp.Diff(want, folders.List(files(), name)); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
}
