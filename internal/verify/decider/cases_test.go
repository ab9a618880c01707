package decider_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/text/yamltext"
	"github.com/perdure/perdure/internal/verify/decider"
	"github.com/perdure/perdure/internal/workspace"
)

// cases are those of testdata/cases.yaml.
type cases struct {
	Projects map[string]map[string]string `yaml:"projects"`
	Cases    []struct {
		Name    string            `yaml:"name"`
		Project string            `yaml:"project"`
		Fake    map[string]string `yaml:"fake"`
		Want    []string          `yaml:"want"`
		Honest  map[string]string `yaml:"honest"`
		Twin    string            `yaml:"twin"`
	} `yaml:"cases"`
}

func readCases(t *testing.T) *cases {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all cases
	if problem := yamltext.Decode(text, len(text), &all); problem != nil {
		t.Fatal(problem.In("cases.yaml"))
	}
	return &all
}

// changed applies a change to a project, and returns the changes as snapshots show them.
func changed(before, change map[string]string) (after map[string]string, changes []workspace.Change) {
	after = maps.Clone(before)
	file := func(name string, in map[string]string) *workspace.File {
		return &workspace.File{Path: name, Kind: workspace.KindFile, Size: int64(len(in[name]))}
	}
	moved := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(change)) {
		if from, ok := strings.CutPrefix(change[name], "<"); ok && before[from] != "" {
			after[name] = before[from]
			delete(after, from)
			moved[from] = true
			changes = append(changes, workspace.Change{Kind: workspace.Renamed, Path: name, From: from,
				Old: file(from, before), New: file(name, after)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		text, _ := strings.CutPrefix(change[name], "<")
		_, had := before[name]
		switch {
		case moved[text]:
		case change[name] == "-":
			delete(after, name)
			changes = append(changes, workspace.Change{Kind: workspace.Deleted, Path: name, Old: file(name, before)})
		case had:
			after[name] = change[name]
			changes = append(changes, workspace.Change{Kind: workspace.Changed, Path: name, Old: file(name, before),
				New: file(name, after)})
		default:
			after[name] = change[name]
			changes = append(changes, workspace.Change{Kind: workspace.Added, Path: name, New: file(name, after)})
		}
	}
	return after, changes
}

// find returns the deciding files of a change of a project.
func find(t *testing.T, before, change map[string]string) *decider.Found {
	t.Helper()
	after, changes := changed(before, change)
	has := func(files map[string]string) func(string) bool {
		return func(name string) bool { _, ok := files[name]; return ok }
	}
	read := func(files map[string]string) func(string) ([]byte, error) {
		return func(name string) ([]byte, error) { return []byte(files[name]), nil }
	}
	v := decider.Versions{Was: has(before), Is: has(after), Old: read(before), New: read(after),
		Names: func() []string { return slices.Sorted(maps.Keys(before)) }}
	found, err := v.Find(changes)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func pathsOf(f *decider.Found) []string {
	var list []string
	for i := range f.Deciders {
		list = append(list, f.Deciders[i].Path)
	}
	return list
}

// Each change that lets a check pass with the code as before is found, and would be undone; its honest
// twin is not, or is only named.
func TestEveryFakeIsFound(t *testing.T) {
	t.Parallel()
	all := readCases(t)
	ecosystems := make(map[string]int)
	for i := range all.Cases {
		c := &all.Cases[i]
		before := all.Projects[c.Project]
		if before == nil {
			t.Fatalf("%s: no project %q", c.Name, c.Project)
		}
		fake := find(t, before, c.Fake)
		if diff := cmp.Diff(c.Want, pathsOf(fake)); diff != "" {
			t.Errorf("%s: deciding files (-want +got):\n%s", c.Name, diff)
		}
		if len(fake.Put)+len(fake.Drop) == 0 {
			t.Errorf("%s: nothing would be undone", c.Name)
		}
		honest, twin := find(t, before, c.Honest), ""
		switch {
		case len(honest.Deciders) == 0:
			twin = "code"
		case len(honest.Put)+len(honest.Drop) == 0:
			twin = "adds"
		default:
			twin = "named"
		}
		if twin != c.Twin {
			t.Errorf("%s: the honest change is %s, want %s: %+v", c.Name, twin, c.Twin, honest)
		}
		ecosystems[c.Project]++
	}
	if len(all.Cases) < 60 || len(ecosystems) < 10 {
		t.Errorf("%d cases of %d kinds of projects", len(all.Cases), len(ecosystems))
	}
}
