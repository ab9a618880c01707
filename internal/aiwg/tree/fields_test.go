package tree_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/aiwg/loops"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/schematest"
)

// readNames are the names of members that the import reads, by its source.
func readNames(t *testing.T) map[string]bool {
	t.Helper()
	readers := []string{"get", "text", "cut", "time", "whole", "number", "flag", "sub", "list", "raw", "dollars"}
	names := make(map[string]bool)
	files := must[[]string](t)(filepath.Glob("*.go"))
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must[*ast.File](t)(parser.ParseFile(token.NewFileSet(), name, nil, 0))
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			method, isMethod := call.Fun.(*ast.SelectorExpr)
			lit, isText := call.Args[0].(*ast.BasicLit)
			if isMethod && isText && lit.Kind == token.STRING && slices.Contains(readers, method.Sel.Name) {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				names[text] = true
			}
			return true
		})
	}
	return names
}

// The table has each field that the import reads and that the export writes.
func TestFieldsAreComplete(t *testing.T) {
	t.Parallel()
	table := make(map[string]bool)
	seen := make(map[string]bool)
	for _, f := range aiwgtree.Fields() {
		table[f.Name] = true
		if key := f.Document + " " + f.Name; seen[key] || f.Place == "" {
			t.Errorf("%s is twice in the table or has no place", key)
		} else {
			seen[key] = true
		}
	}
	for name := range readNames(t) {
		if !table[name] {
			t.Errorf("the import reads %s, which is not in the table", name)
		}
	}
	for _, doc := range aiwgtree.Documents() {
		for i := range doc.NumField() {
			name, _, _ := strings.Cut(doc.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" && !table[name] {
				t.Errorf("the export writes %s of %s, which is not in the table", name, doc.Name())
			}
		}
	}
	for part, properties := range map[string]string{"rlm-task-tree": "properties", "rlm-state": "properties"} {
		members, _ := schematest.Published(t, part).Doc[properties].(map[string]any)
		for name := range members {
			if !table[name] {
				t.Errorf("the schema %s has %s, which is not in the table", part, name)
			}
		}
	}
}

// fieldTables are the tables of docs/compat-aiwg.md.
func fieldTables(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	document := ""
	for _, f := range aiwgtree.Fields() {
		if f.Document != document {
			document = f.Document
			fmt.Fprintf(&out, "\n**%s**\n\n| Field | In perdure |\n|---|---|\n", document)
		}
		fmt.Fprintf(&out, "| `%s` | %s |\n", f.Name, f.Place)
	}
	for _, name := range []string{"loop-state", "loop-checkpoint", "iteration-analytics"} {
		fmt.Fprintf(&out, "\n**%s**\n\n| Field | In perdure |\n|---|---|\n", name)
		members, _ := schematest.Published(t, name).Doc["properties"].(map[string]any)
		names := make([]string, 0, len(members))
		for member := range members {
			names = append(names, member)
		}
		slices.Sort(names)
		for _, member := range names {
			fmt.Fprintf(&out, "| `%s` | %s |\n", member, loops.PlaceOf(name, member))
		}
	}
	return out.String()
}

const (
	tablesBegin = "<!-- fields: go test ./internal/aiwg/tree -run TestFieldTables -update -->\n"
	tablesEnd   = "<!-- end of fields -->\n"
)

// The documentation has the table.
func TestFieldTables(t *testing.T) {
	t.Parallel()
	const name = "../../../docs/compat-aiwg.md"
	text := string(must[[]byte](t)(os.ReadFile(name)))
	before, rest, found := strings.Cut(text, tablesBegin)
	_, after, ends := strings.Cut(rest, tablesEnd)
	if !found || !ends {
		t.Fatal("docs/compat-aiwg.md has no place for the fields")
	}
	want := before + tablesBegin + fieldTables(t) + "\n" + tablesEnd + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Error("differs; go test ./internal/aiwg/tree -run TestFieldTables -update writes it")
	}
}
