package handoff_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
)

func TestFindContract(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	state := file("builder-state.json",
		`{"activePrd": {"id": "p", "currentStory": "US-003"}, "verificationContract": {"type": "skip", "criteria": []},
		"adhocQueue": [{"id": 7, "verificationContract": {"criteria": ["it builds"]}}, {"id": "empty", "verificationContract": null}]}`)
	prd := file("prd.json", `{"userStories": [
		{"id": "US-003", "verificationContract": {"type": "verifiable", "generatedFrom": "prd", "criteria": [
			{"activity": "unit-test", "description": "works", "pattern": "Toggle", "command": "go test ./..."},
			{"activity": "e2e", "description": "switches", "timing": "deferred"},
			{"activity": "lint", "description": "clean", "command": ["npm", "run", "lint"], "owner": "x"},
			{"activity": "typecheck", "description": "clean", "command": ""}]}},
		{"id": "v1.2", "deep": {"verificationContract": {"type": "advisory", "criteria": []}}},
		{"id": "none", "verificationContract": {"type": "verifiable", "criteria": []}},
		{"id": "kind", "verificationContract": {"type": "maybe", "criteria": ["x"]}},
		{"id": "list", "verificationContract": {"criteria": "x"}},
		{"id": "text", "verificationContract": "passed"},
		{"id": "blank", "verificationContract": {"criteria": [{}]}},
		{"id": "time", "verificationContract": {"criteria": [{"activity": "x", "timing": "later"}]}},
		{"id": "command", "verificationContract": {"criteria": [{"activity": "x", "command": {"run": 1}}]}},
		{"id": "twice", "verificationContract": {"type": "skip"}}, {"id": "twice", "verificationContract": {"type": "advisory"}},
		{"id": "same", "verificationContract": {"type": "skip"}}, {"id": "same", "verificationContract": { "type":"skip" }}],
		"stories": {"US-009": {"verificationContract": {"type": "skip"}}}}`)
	broken := file("broken.json", "{\n")
	us3 := []handoff.Criterion{
		{Activity: "unit-test", Description: "works", Pattern: "Toggle", Timing: handoff.Immediate,
			Command: handoff.Command{"go test ./..."}},
		{Activity: "e2e", Description: "switches", Timing: handoff.Deferred},
		{Activity: "lint", Description: "clean", Timing: handoff.Immediate, Command: handoff.Command{"npm", "run", "lint"},
			Extra: handoff.Extra{"owner": []byte(`"x"`)}},
		{Activity: "typecheck", Description: "clean", Timing: handoff.Immediate},
	}
	found := []struct {
		ref  string
		want handoff.Contract
	}{
		{"US-003.verificationContract",
			handoff.Contract{Type: handoff.Verifiable, Criteria: us3, Extra: handoff.Extra{"generatedFrom": []byte(`"prd"`)},
				File: prd}},
		{"v1.2.deep.verificationContract", handoff.Contract{Type: handoff.Advisory, File: prd}},
		{"7.verificationContract", handoff.Contract{Type: handoff.Verifiable,
			Criteria: []handoff.Criterion{{Activity: "it builds", Timing: handoff.Immediate}}, File: state}},
		{"verificationContract", handoff.Contract{Type: handoff.Skip, File: state}},
		{"same.verificationContract", handoff.Contract{Type: handoff.Skip, File: prd}},
		{"US-009.verificationContract", handoff.Contract{Type: handoff.Skip, File: prd}},
	}
	for _, tt := range found {
		tt.want.Ref = tt.ref
		got, err := handoff.FindContract(tt.ref, state, prd)
		if err != nil {
			t.Errorf("%s: %v", tt.ref, err)
			continue
		}
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.ref, diff)
		}
	}
	missing := map[string]string{
		"US-004.verificationContract":  "it is in none of",
		"US-003.other":                 "it is in none of",
		"empty.verificationContract":   "it is in none of",
		"":                             "names no verification contract",
		"...":                          "names no verification contract",
		"none.verificationContract":    "has no criteria",
		"kind.verificationContract":    `the type "maybe"`,
		"list.verificationContract":    "criteria has the wrong type",
		"text.verificationContract":    "found a string",
		"blank.verificationContract":   "no activity and no description",
		"time.verificationContract":    `the timing "later"`,
		"command.verificationContract": "as the command",
		"twice.verificationContract":   "another contract of that name",
	}
	for ref, want := range missing {
		c, err := handoff.FindContract(ref, state, prd)
		if !errors.Is(err, handoff.ErrContract) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", ref, c, err, want)
		}
	}
	for _, files := range [][]string{{broken}, {filepath.Join(dir, "gone.json")}, nil} {
		if c, err := handoff.FindContract("US-003.verificationContract", files...); !errors.Is(err, handoff.ErrContract) {
			t.Errorf("in %v: %+v, %v", files, c, err)
		}
	}
	c, err := handoff.FindContract("US-003.verificationContract", prd)
	if err != nil {
		t.Fatal(err)
	}
	run := c.Runnable()
	if len(run) != 2 || !run[0].Command.Shell() || run[1].Command.Shell() {
		t.Errorf("runnable %+v, want the test by a shell and the linter", run)
	}
}

func TestContractFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, ".git/", "docs/builder-state.json", "docs/prds/p.json", "docs/prd.json", "docs/prds/other.json",
		"outside/x.json")
	loc, err := handoff.Find(filepath.Join(dir, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	files := func(text string) []string {
		var rel []string
		for _, file := range handoff.ContractFiles(parse(t, text), loc, handoff.PRD) {
			name, err := filepath.Rel(dir, file)
			if err != nil {
				t.Fatal(err)
			}
			rel = append(rel, filepath.ToSlash(name))
		}
		return rel
	}
	if diff := cmp.Diff([]string{"docs/builder-state.json", "docs/prds/other.json", "docs/prd.json", "docs/prds/p.json"},
		files(`{"activePrd": {"id": "p", "file": "docs/prds/other.md"}}`)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	loc.Root = filepath.Join(dir, "docs")
	if diff := cmp.Diff([]string{"docs/builder-state.json", "docs/prd.json"},
		files(`{"activePrd": {"id": "../../outside/x", "file": "../outside/x.md"}}`)); diff != "" {
		t.Errorf("files outside of the root (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"docs/builder-state.json"}, files(`{}`)); diff != "" {
		t.Errorf("without a PRD (-want +got):\n%s", diff)
	}
}
