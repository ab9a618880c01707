package loop_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop"
)

// A loop is found by its ID, by that of its tree, or without an ID if only one is open.
func TestFind(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(1))
	p.refuses(perdure.CodeNotFound, "perdure loop run", "status")
	p.ok("list")
	p.ok("run", "First one", "--until", check, "--detach")
	first, _ := p.last()
	p.write("other/file", "x")
	p.refuses(perdure.CodeConflict, "has not ended", "run", "Second one", "--until", check, "--detach")
	tree, err := p.client.Tree(t.Context(), first.Tree)
	if err != nil {
		t.Fatal(err)
	}
	p.out.take()
	for _, args := range [][]string{{"status"}, {"status", loop.ID(&tree)}, {"status", string(first.Tree)},
		{"status", string(first.Tree)[5:]}} {
		p.ok(args...)
		if got := p.out.take(); !strings.Contains(got, loop.ID(&tree)) {
			t.Errorf("%v says %s", args, got)
		}
	}
	p.refuses(perdure.CodeNotFound, "tree-00000000", "status", "other-00000000")
	p.refuses(perdure.CodeInvalid, `"first-one"`, "status", "first-one")
	p.refuses("", "takes at most one loop, got 2", "status", "a", "b")
	p.Cwd = t.TempDir()
	p.ok("run", "Second one", "--until", check, "--detach")
	p.refuses(perdure.CodeInvalid, "2 loops have not ended", "status")
}

// Each view can be printed as JSON, and a report in several formats.
func TestViews(t *testing.T) {
	t.Parallel()
	p := newProgram(t, fixes(1))
	p.ok("run", "Fix it", "--until", check)
	p.out.take()
	for want, args := range map[string][]string{
		`"status":"completed"`:    {"status", "--json"},
		`"best_quality":100`:      {"list", "--json"},
		"Persistence Metrics of ": {"status", "--persistence"},
		"Quality Trajectory":      {"status", "--quality"},
		"Regression":              {"status", "--regressions"},
		"✓ completed":             {"status"},
		"fix-it-":                 {"status", "--all"},
		"# Report of fix-it-":     {"report"},
		"<!doctype html>":         {"report", "--format", "html"},
		`"iterations"`:            {"report", "--json"},
	} {
		p.ok(args...)
		got := p.out.take()
		if !strings.Contains(strings.ToLower(got), strings.ToLower(want)) {
			t.Errorf("%v does not say %q:\n%.500s", args, want, got)
		}
		if strings.HasPrefix(want, `"`) && !json.Valid([]byte(got)) {
			t.Errorf("%v is no JSON", args)
		}
	}
	p.ok("run", "Another", "--until", check, "--detach")
	for title, view := range map[string]string{"Persistence Metrics of ": "--persistence",
		"Quality Trajectory": "--quality", "Regression Events": "--regressions"} {
		p.out.take()
		p.ok("status", "--all", view)
		if got := p.out.take(); strings.Count(got, title) != 2 {
			t.Errorf("%s of two loops:\n%s", view, got)
		}
		p.ok("status", "--all", view, "--json")
		docs := strings.Split(strings.TrimSpace(p.out.take()), "\n")
		if len(docs) != 2 || !strings.Contains(docs[0], `"detection_enabled":`) || !json.Valid([]byte(docs[1])) {
			t.Errorf("%s as JSON has %d lines: %.300s", view, len(docs), docs)
		}
	}
	p.refuses("", "none of the others", "status", "--all", "--persistence", "--quality")
	p.ok("report", "-o", "x.html")
	if page, err := os.ReadFile(filepath.Join(p.dir, "x.html")); err != nil || !strings.HasPrefix(string(page), "<!") {
		t.Errorf("the page begins with %.20s, %v", page, err)
	}
	p.refuses(perdure.CodeInvalid, "md, html", "report", "--format", "pdf")
	p.refuses("", "none of the others can be", "status", "--quality", "--regressions")
}
