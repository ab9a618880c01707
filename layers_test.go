package perdure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// free marks programs and test suites outside the rows: they may import
// everything and nothing may import them.
const free = 100

// leaf marks packages below all rows: they import nothing of the module and
// every package may import them, those of row 0 included.
const leaf = -1

// rows says how high each package stands. A package imports only packages of
// lower rows: no arrow points up or sideways. A name that ends in "/*" stands
// for the packages directly below it, "/..." for a whole subtree. A package
// that is not here has no place yet; give it one before writing it.
var rows = map[string]int{
	"cmd/perdure": 10,

	"internal/cli": 9,

	"internal/daemon": 7,

	"internal/view/report":     6, // above client
	"internal/view/watch":      6, // above client
	"internal/aiwg/rpc":    6, // above aiwg
	"internal/view/loop":   6, // above loop
	"internal/aiwg/loopimport": 6, // the same
	"internal/view/export":     6, // above loop
	"internal/cli/loop":    7, // above loopview; kept from cli for the size of that package
	"internal/cli/gate":    6, // above client; what loopcmd and cli share
	"internal/cli/check":   8, // above loopcmd; kept from cli for the size of that package
	"internal/cli/schema":  6, // kept from cli for the size of that package
	"internal/cli/hook":    7, // above config; kept from cli for the size of that package
	"internal/cli/cache":   6, // kept from cli for the size of that package
	"internal/cli/state":   6, // above client; kept from cli for the size of that package
	"internal/cli/handoff": 6, // the same
	"internal/cli/transfer":    7, // above export and statecmd; the same

	"loop":               5,
	"internal/loop/turnguard":         4, // kept from loop for the size of that package
	"loop/config":        4, // above internal/loop/metric, whose measures it names; kept from loop for the size of that package
	"internal/loop/regression":    4, // above loop/record; kept from loop for the size of that package
	"internal/loop/reinforce":     2, // above loop/hook, whose levels it chooses
	"client":             5, // above loop/record, whose records it returns
	"internal/mcpserver": 6,
	"internal/config":    5,
	"internal/api/server":    5, // above survey
	"internal/aiwg/tree":      5, // above aiwgloop

	"worker":             3,
	"rlm":                3,
	"loop/record":        3,
	"internal/loop/metric":        3, // kept from loop for the size of that package
	"relay":              3,
	"internal/view/outline":    3, // queries of their own on a tree, for the server
	"internal/text/human":     3, // numbers of the store in words
	"internal/cli/env":   3, // what the packages of commands share, below all of them
	"internal/view/graph":     3, // trees for programs that draw
	"internal/aiwg/loops":  3, // kept from aiwg for the size of that package
	"internal/testing/testdb":    3,
	"internal/testing/statetest": 3,

	".":                 2,
	"rlm/internal/plan": 2, // as are shape and plan
	"internal/corpus/chunk":    2, // reads packs; kept from rlm for the size of that package

	"rlm/internal/jsonreply":  1,
	"rlm/internal/pieces": 1, // the same
	"internal/storage/blob":       1,
	"internal/storage/dbblob":     1,
	"internal/storage/invariant":  1,
	"internal/corpus/pack":       1,
	"internal/storage/gc":      1,
	"internal/corpus/walk":     1,
	"internal/workspace":  1,
	"internal/verify/evidence":    2, // above detect and workspace
	"internal/detect/gitdiff":   3, // what git says, for detect
	"internal/verify/cleancheck":     4, // above inspect and human
	"internal/detect/rules":    2, // what people set of detect
	"internal/toolguard/policy":   3, // above risk and detect
	"internal/toolguard/risk":       2, // reads the paths of internal/check/project
	"internal/detect":     1,
	"internal/check/testreport": 1,
	"internal/check/coverage":   1,
	"internal/toolguard/vendorhook":  1,
	"handoff":             1,
	"internal/notify":     1,
	"internal/check/project":    1, // what kind of project a workspace holds, and its commands
	"agent/*":             1,
	"loop/hook":           1,
	"model/*":             1,

	"agent":               0,
	"model":               0,
	"rlm/internal/repl":   0,
	"rlm/internal/score":  0, // kept from rlm for the size of that package, as are texts
	"rlm/internal/dedupe":  0,
	"rlm/internal/fanout":   0,
	"rlm/internal/parallel": 0,
	"rlm/internal/refcache": 0,
	"internal/process/guard":      0,
	"internal/storage/sqldb":      0,
	"internal/storage/atomicfile": 0,
	"internal/api/inproc":     0,
	"internal/dashboard":  0,

	"internal/workspace/diff":         2, // above workspace, whose snapshots it shows
	"internal/storage/eta":           0,
	"internal/text/yamltext":         0,    // what may be given to the YAML parser
	"internal/detect/syntax":    0,    // what is in a file of code; kept from detect for the size of that package
	"internal/detect/syntax/bag":       leaf, // pieces of code compared by their tokens
	"internal/detect/syntax/lex":       leaf, // comments, strings and code apart, for source
	"internal/detect/syntax/dropped":   leaf, // kept from source for the size of that package
	"internal/detect/syntax/marktable": leaf, // data of source, kept from it for its size
	"internal/detect/syntax/strength":  leaf, // data of source, too
	"internal/detect/syntax/machine":   leaf, // which conditions are those of the machine
	"internal/detect/planted":   0,    // what the tests and the benchmark of detect plant

	"internal/schema": 0, // the published schemas, and nothing else
	"internal/corpus/boundary":   0, // where texts are cut: the executor and nobody else knows languages

	"internal/process/failpoint": leaf,
	"internal/storage/filelock":  leaf,
	"internal/text/nearest":   leaf,

	"bench/...":    free,
	"e2e/...":      free,
	"examples/...": free,
}

// testOnly are packages that only test files and the free rows may import.
var testOnly = []string{"internal/testing/testdb", "internal/testing/statetest"}

// forbiddenNames say nothing about what is inside, so everything ends up
// there.
var forbiddenNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "core"}

// layerExceptions: key "layer importer imported" to the reason.
var layerExceptions = map[string]string{}

// rowOf looks dir up in rows.
func rowOf(dir string) (int, bool) {
	if row, ok := rows[dir]; ok {
		return row, true
	}
	for pattern, row := range rows {
		if prefix, ok := strings.CutSuffix(pattern, "/*"); ok {
			rest, below := strings.CutPrefix(dir, prefix+"/")
			if below && !strings.Contains(rest, "/") {
				return row, true
			}
		}
		if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
			if dir == prefix || strings.HasPrefix(dir, prefix+"/") {
				return row, true
			}
		}
	}
	return 0, false
}

func TestLayers(t *testing.T) {
	t.Parallel()
	report(t, checkLayers(handWritten(t)), layerExceptions)
}

func checkLayers(files []*sourceFile) []finding {
	var found []finding
	for dir, group := range byDir(files) {
		row, known := rowOf(dir)
		if !known {
			found = append(found, finding{
				key:  "place " + dir,
				text: fmt.Sprintf("package %s has no row in layers_test.go", dir),
			})
		}
		for _, f := range group {
			if known {
				found = append(found, checkImports(f, row)...)
			}
			found = append(found, checkPackageName(f)...)
		}
	}
	return found
}

// checkImports holds the imports of a file against the rows. Test files are
// bound by the compiler only: they may use what stands above them.
func checkImports(f *sourceFile, row int) []finding {
	var found []finding
	for _, spec := range f.ast.Imports {
		importPath := strings.Trim(spec.Path.Value, `"`)
		target, ours := strings.CutPrefix(importPath+"/", modulePath+"/")
		if !ours {
			continue
		}
		target = strings.TrimSuffix(target, "/")
		if target == "" {
			target = "."
		}
		targetRow, known := rowOf(target)
		why := ""
		switch {
		case !known:
			why = "which has no row"
		case targetRow == free && row != free:
			why = "which nothing may import"
		case f.test || row == free:
		case slices.Contains(testOnly, target):
			why = "which is for tests only"
		case targetRow >= row:
			why = fmt.Sprintf("row %d; only rows below %d are allowed", targetRow, row)
		}
		if why == "" {
			continue
		}
		found = append(found, finding{
			key:  "layer " + f.dir() + " " + target,
			text: fmt.Sprintf("%s: package %s (row %d) imports %s, %s", f.at(spec.Pos()), f.dir(), row, target, why),
		})
	}
	return found
}

func checkPackageName(f *sourceFile) []finding {
	names := append(strings.Split(f.dir(), "/"), strings.TrimSuffix(f.ast.Name.Name, "_test"))
	for _, name := range names {
		if slices.Contains(forbiddenNames, name) {
			return []finding{{
				key:  "name " + f.dir(),
				text: fmt.Sprintf("%s: %q says nothing about what is inside; name the package for what it provides", f.path, name),
			}}
		}
	}
	return nil
}

// The same import in several files is one breach.
func distinct(all []string) []string { return slices.Compact(all) }

func TestLayersRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"down", map[string]string{"worker/w.go": "package worker\nimport _ \"" + modulePath + "\"\n"}, nil},
		{"sideways", map[string]string{"worker/w.go": "package worker\nimport _ \"" + modulePath + "/rlm\"\n"}, []string{"layer worker rlm"}},
		{"up", map[string]string{"task.go": "package perdure\nimport _ \"" + modulePath + "/worker\"\n"}, []string{"layer . worker"}},
		{"up in a test", map[string]string{"task_test.go": "package perdure_test\nimport _ \"" + modulePath + "/internal/testdb\"\n"}, nil},
		{"test package", map[string]string{"internal/cli/a.go": "package cli\nimport _ \"" + modulePath + "/internal/testdb\"\n"}, []string{"layer internal/cli internal/testing/testdb"}},
		{"port and its adapter", map[string]string{"model/mock/m.go": "package mock\nimport _ \"" + modulePath + "/model\"\n"}, nil},
		{"adapter of an adapter", map[string]string{"model/mock/deep/m.go": "package deep\n"}, []string{"place model/mock/deep"}},
		{"no place", map[string]string{"internal/new/n.go": "package new\n"}, []string{"place internal/new"}},
		{"import without a place", map[string]string{"worker/w.go": "package worker\nimport _ \"" + modulePath + "/new\"\n"}, []string{"layer worker new"}},
		{"free", map[string]string{"bench/main.go": "package main\nimport _ \"" + modulePath + "/internal/daemon\"\n"}, nil},
		{"import of a free one", map[string]string{"worker/w_test.go": "package worker\nimport _ \"" + modulePath + "/bench\"\n"}, []string{"layer worker bench"}},
		{"forbidden name", map[string]string{"examples/util/u.go": "package util\n"}, []string{"name examples/util"}},
		{"forbidden package clause", map[string]string{"examples/u/u.go": "package helpers\n"}, []string{"name examples/u"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := distinct(keys(checkLayers(sources(t, test.files))))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}
