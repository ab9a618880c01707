package perdure_test

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// floors lists the rooms of the module, highest first. A room is a folder of
// packages about one subject: the first folder of a path, the first two below
// internal/. A package imports packages of its own room and of lower floors;
// no arrow points up or sideways. A folder that is not here has no place yet.
var floors = [][]string{
	{"cmd/perdure"},
	{"internal/cli"},
	{"internal/daemon"},
	{"internal/api", "internal/config"},
	{"internal/view"},
	{"internal/aiwg"},
	{"client"},
	{"loop"}, // and internal/loop: its private parts
	{"worker", "rlm", "handoff", "internal/toolguard", "internal/verify"},
	{"agent", "internal/corpus", "internal/detect", "internal/meter", "internal/notify", "internal/testing"},
	{"model"},
	{"."},
	{"internal/workspace"},
	{"internal/storage", "internal/check", "internal/schema", "internal/agenthook"},
	{"internal/process", "internal/text", "internal/jsonrpc"},
}

// free are programs and test suites outside the floors: they may import
// everything and nothing may import them.
var free = []string{"bench", "e2e", "examples"}

// publicPackages are those that users import. Everything else is internal.
var publicPackages = []string{
	".", "worker", "model", "model/anthropic", "model/cache", "model/command", "model/extract", "model/mock",
	"model/openai", "model/price", "agent", "agent/acp", "agent/command", "rlm", "loop", "loop/config", "loop/hook",
	"loop/record", "handoff", "handoff/ledger", "client",
}

// maxPackagesInFolder is how many packages a folder holds directly; internal/
// itself is an exception.
const maxPackagesInFolder = 12

// testOnly are packages that only test files and the free folders may import.
var testOnly = []string{"internal/testing/testdb", "internal/testing/schematest", "internal/testing/statetest",
	"internal/testing/effort", "internal/testing/testenv", "internal/testing/modelserver",
	"internal/testing/doctest", "internal/testing/longtask", "internal/testing/replyserver",
	"internal/corpus/packtest"}

// forbiddenNames say nothing about what is inside, so everything ends up
// there.
var forbiddenNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "core"}

// layerExceptions: key "layer importer imported" to the reason.
var layerExceptions = map[string]string{}

// roomOf returns the room of a package: its folder, without what is below.
func roomOf(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	switch {
	case parts[0] == "internal" && len(parts) > 1 && parts[1] == "loop":
		return "loop"
	case len(parts) > 1 && (parts[0] == "internal" || parts[0] == "cmd"):
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// floorOf returns the floor of a room, counted from the top.
func floorOf(room string) (int, bool) {
	for i, floor := range floors {
		if slices.Contains(floor, room) {
			return i, true
		}
	}
	return 0, false
}

func TestLayers(t *testing.T) {
	t.Parallel()
	files := handWritten(t)
	report(t, checkLayers(files), layerExceptions)
	report(t, checkFloors(files), nil)
	report(t, checkFolderDocs(files), nil)
}

func checkLayers(files []*sourceFile) []finding {
	var found []finding
	dirs := byDir(files)
	folders := make(map[string]int)
	for dir, group := range dirs {
		room := roomOf(dir)
		_, known := floorOf(room)
		outside := slices.Contains(free, room)
		if !known && !outside {
			found = append(found, finding{
				key:  "place " + dir,
				text: fmt.Sprintf("package %s: the folder %s has no floor in layers_test.go", dir, room),
			})
		}
		folders[path.Dir(dir)]++
		found = append(found, checkPublic(dir, group)...)
		for _, f := range group {
			if known || outside {
				found = append(found, checkImports(f)...)
			}
			found = append(found, checkPackageName(f)...)
		}
	}
	for folder, n := range folders {
		if n > maxPackagesInFolder && folder != "." && folder != "internal" && !slices.Contains(free, folder) {
			found = append(found, finding{
				key:  "folder " + folder,
				text: fmt.Sprintf("%s holds %d packages, at most %d", folder, n, maxPackagesInFolder),
			})
		}
	}
	return found
}

// checkFloors requires a package for each room of floors and each public package.
func checkFloors(files []*sourceFile) []finding {
	rooms, dirs := make(map[string]bool), byDir(files)
	for dir := range dirs {
		rooms[roomOf(dir)] = true
	}
	var found []finding
	for _, floor := range floors {
		for _, room := range floor {
			if !rooms[room] {
				found = append(found, finding{key: "floor " + room, text: fmt.Sprintf("floors names %s, which holds no package",
					room)})
			}
		}
	}
	for _, dir := range publicPackages {
		if dirs[dir] == nil {
			found = append(found, finding{key: "public " + dir,
				text: fmt.Sprintf("publicPackages names %s, which is not a package", dir)})
		}
	}
	return found
}

// checkFolderDocs requires that a folder below internal/ with two or more packages has a
// doc.go whose package comment names the packages directly in it.
func checkFolderDocs(files []*sourceFile) []finding {
	dirs, docs := make(map[string]bool), make(map[string]string)
	for _, f := range files {
		if f.test || !strings.HasPrefix(f.path, "internal/") {
			continue
		}
		dirs[f.dir()] = true
		if path.Base(f.path) == "doc.go" {
			docs[f.dir()] = f.ast.Doc.Text()
		}
	}
	packages := make(map[string][]string)
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if folder := path.Dir(dir); folder != "internal" {
			packages[folder] = append(packages[folder], path.Base(dir))
		}
	}
	var found []finding
	for folder, names := range packages {
		doc, documented := docs[folder]
		if !documented {
			if len(names) > 1 || dirs[folder] {
				found = append(found, finding{key: "doc " + folder,
					text: fmt.Sprintf("the folder %s has several packages and no doc.go that names their order", folder)})
			}
			continue
		}
		for _, name := range names {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(doc) {
				found = append(found, finding{key: "doc " + folder + " " + name,
					text: fmt.Sprintf("%s/doc.go does not name the package %s", folder, name)})
			}
		}
	}
	return found
}

// checkPublic refuses a package that users could import and that is not in
// publicPackages. Folders with test files only and programs are no such packages.
func checkPublic(dir string, files []*sourceFile) []finding {
	if slices.Contains(free, roomOf(dir)) || slices.Contains(publicPackages, dir) ||
		slices.Contains(strings.Split(dir, "/"), "internal") {
		return nil
	}
	for _, f := range files {
		if !f.test && f.ast.Name.Name != "main" {
			return []finding{{
				key:  "public " + dir,
				text: fmt.Sprintf("package %s can be imported by users and is not in publicPackages of layers_test.go", dir),
			}}
		}
	}
	return nil
}

// checkImports holds the imports of a file against the floors. Test files are
// bound by the compiler only: they may use what stands above them.
func checkImports(f *sourceFile) []finding {
	room := roomOf(f.dir())
	floor, known := floorOf(room)
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
		targetRoom := roomOf(target)
		targetFloor, targetKnown := floorOf(targetRoom)
		outside := slices.Contains(free, targetRoom)
		why := ""
		switch {
		case room == targetRoom:
		case outside:
			why = "which nothing may import"
		case !targetKnown:
			why = "which has no floor"
		case f.test || !known:
		case slices.Contains(testOnly, target):
			why = "which is for tests only"
		case targetFloor <= floor:
			why = fmt.Sprintf("floor %d of %d; only lower floors than %d are allowed", targetFloor, len(floors), floor)
		}
		if why == "" {
			continue
		}
		found = append(found, finding{
			key:  "layer " + f.dir() + " " + target,
			text: fmt.Sprintf("%s: package %s imports %s, %s", f.at(spec.Pos()), f.dir(), target, why),
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

// crowded returns a folder with one package too many.
func crowded() map[string]string {
	files := make(map[string]string)
	for i := range maxPackagesInFolder + 1 {
		files[fmt.Sprintf("internal/text/p%d/p.go", i)] = "package p\n"
	}
	return files
}

func TestLayersRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"down", map[string]string{"worker/w.go": "package worker\nimport _ \"" + modulePath + "\"\n"}, nil},
		{"sideways", map[string]string{"worker/w.go": "package worker\nimport _ \"" + modulePath + "/rlm\"\n"},
			[]string{"layer worker rlm"}},
		{"up", map[string]string{"task.go": "package perdure\nimport _ \"" + modulePath + "/worker\"\n"},
			[]string{"layer . worker"}},
		{"up in a test", map[string]string{"task_test.go": "package perdure_test\nimport _ \"" + modulePath +
			"/internal/testing/testdb\"\n"}, nil},
		{"test package", map[string]string{"internal/cli/a.go": "package cli\nimport _ \"" + modulePath +
			"/internal/testing/testdb\"\n"}, []string{"layer internal/cli internal/testing/testdb"}},
		{"port and its adapter", map[string]string{"model/mock/m.go": "package mock\nimport _ \"" + modulePath +
			"/model\"\n"}, nil},
		{"private parts of the loop",
			map[string]string{"internal/loop/metric/m.go": "package metric\nimport _ \"" + modulePath + "/loop/hook\"\n"}, nil},
		{"up inside internal", map[string]string{"internal/storage/blob/b.go": "package blob\nimport _ \"" + modulePath +
			"/internal/workspace\"\n"}, []string{"layer internal/storage/blob internal/workspace"}},
		{"not public on purpose", map[string]string{"model/mock/deep/m.go": "package deep\n"},
			[]string{"public model/mock/deep"}},
		{"crowded folder", crowded(), []string{"folder internal/text"}},
		{"no place", map[string]string{"internal/new/n.go": "package new\n"}, []string{"place internal/new"}},
		{"import without a place", map[string]string{"worker/w.go": "package worker\nimport _ \"" + modulePath +
			"/new\"\n"}, []string{"layer worker new"}},
		{"free", map[string]string{"bench/main.go": "package main\nimport _ \"" + modulePath + "/internal/daemon\"\n"}, nil},
		{"import of a free one", map[string]string{"worker/w_test.go": "package worker\nimport _ \"" + modulePath +
			"/bench\"\n"}, []string{"layer worker bench"}},
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

func TestFolderDocsRule(t *testing.T) {
	t.Parallel()
	const doc = "// Package a has b, then c.\npackage a\n"
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"named", map[string]string{"internal/a/doc.go": doc, "internal/a/b/b.go": "package b\n",
			"internal/a/c/c.go": "package c\n"}, nil},
		{"not named", map[string]string{"internal/a/doc.go": doc, "internal/a/d/d.go": "package d\n"},
			[]string{"doc internal/a d"}},
		{"no doc.go", map[string]string{"internal/a/b/b.go": "package b\n", "internal/a/c/c.go": "package c\n"},
			[]string{"doc internal/a"}},
		{"comment elsewhere", map[string]string{"internal/a/a.go": doc, "internal/a/b/b.go": "package b\n"},
			[]string{"doc internal/a"}},
		{"one package", map[string]string{"internal/a/b/b.go": "package b\n"}, nil},
		{"tests only", map[string]string{"internal/a/doc.go": doc, "internal/a/d/d_test.go": "package d\n"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, keys(checkFolderDocs(sources(t, test.files)))); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}
