package chunk_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/corpus/chunk"
)

// TestRealSources: in this program's own sources no declaration that fits is
// cut, as Go's parser sees them, comments included.
func TestRealSources(t *testing.T) {
	t.Parallel()
	checked := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, tokens := range []int{150, 600} {
			checked += checkGo(t, path, content, tokens)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 1000 {
		t.Errorf("%d declarations checked", checked)
	}
}

func checkGo(t *testing.T, path string, content []byte, tokens int) (checked int) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return 0 // it is being written
	}
	r, _ := openPack(t, text{path, string(content)})
	chunks, err := chunk.Pack(r, chunk.Config{ChunkTokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		from, to := set.Position(begin(d)).Offset, set.Position(d.End()).Offset
		if i := bytes.IndexByte(content[to:], '\n'); i >= 0 {
			to += i + 1 // a comment may follow it
		}
		if to-from > 4*tokens {
			continue
		}
		checked++
		whole := false
		for _, c := range chunks {
			whole = whole || c.Offset <= int64(from) && int64(to) <= c.End()
		}
		if !whole {
			t.Errorf("%s, %d tokens: cut apart\n%s", path, tokens, content[from:to])
		}
	}
	return checked
}

// begin is where a declaration begins with its comment.
func begin(d ast.Decl) token.Pos {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc != nil {
			return d.Doc.Pos()
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return d.Doc.Pos()
		}
	}
	return d.Pos()
}
