package tree_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/aiwg/loops"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/doctest"
	"github.com/perdure/perdure/internal/testing/schematest"
)

// The table has each field of the published schemas and of the documents that an export writes.
// An import reads no others.
func TestFieldsAreComplete(t *testing.T) {
	t.Parallel()
	if err := aiwgtree.CheckWritten(); err != nil {
		t.Error(err)
	}
	table := make(map[string]bool)
	seen := make(map[string]bool)
	for _, f := range aiwgtree.Fields() {
		table[f.Name] = true
		if key := string(f.Document) + " " + f.Name; seen[key] || f.Place == "" {
			t.Errorf("%s is twice in the table or has no place", key)
		} else {
			seen[key] = true
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
		if string(f.Document) != document {
			document = string(f.Document)
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

// The documentation has the table.
func TestFieldTables(t *testing.T) {
	t.Parallel()
	doctest.Part{File: "../../../docs/compat-aiwg.md", Name: "fields", Package: "internal/aiwg/tree",
		Test: "TestFieldTables"}.Check(t, fieldTables(t), *update)
}
