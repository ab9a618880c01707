package project

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Part is a changed part of a manifest that configures checks.
type Part struct {
	// Name identifies it: a key (scripts.test), a section ([tool.pytest]), or "line" for a
	// line that looks like one.
	Name string `json:"name"`
	// Before and Now are its contents; empty where it did not exist.
	Before string `json:"before,omitempty"`
	Now    string `json:"now,omitempty"`
}

// checkingScript matches names of scripts that check, in addition to those that
// checkingWord matches.
var checkingScript = lazyregexp.New(`(?i)(^|[^a-z])(ci|verify|validate|specs?|units?|e2e|qa|prepublish[a-z]*)([^a-z]|$)`)

// checkingWord matches words about checking in lines and names of scripts.
var checkingWord = lazyregexp.New(`(?i)(^|[^a-z])(pre|post)?(tests?|testing|skip[a-z]*|cov|coverage|lint[a-z]*|check[a-z]*|` +
	`types?check|clippy|surefire|failsafe|jacoco|junit[a-z]*|jest|vitest|mocha|pytest|phpunit|rspec|rubocop|eslint|` +
	`nowarn|minBound|minimum[a-z]*|threshold[a-z]*|ignoreFailures?|failOnNo[a-z]*|excludeTests[a-z]*|excludeTags|` +
	`excludeCategories|excludedGroups|testFailureIgnore|failIfNo[a-z]*|fail_?on_?error|Compile\s+Remove|cover|` +
	`treatwarningsaserrors|warnaserror|nullable|isTestProject|` +
	`tests?_?(flags|args|opts|options|cmd|files|pkgs|packages|dirs)|nextest|MAKEFLAGS|SHELLFLAGS|IGNORE)([^a-z]|$)`)

// ChangedParts returns the changed parts of a manifest (Classify's class) that configure
// tests, linters, type checkers or coverage. Dependencies and versions do not count.
// Manifests without sections or keys (Makefile, pom.xml, Gradle's) are compared by their
// lines with words about checking, and by the lines of targets, tasks and plugins that
// have one, so that a line which only mentions such a word is reported as well. A text
// that cannot be parsed is compared by its lines, too. The parts are sorted by name.
func ChangedParts(name string, before, now []byte) []Part {
	var old, later map[string]string
	switch base := strings.ToLower(path.Base(name)); {
	case strings.HasSuffix(base, ".json"):
		old, later = jsonParts(before), jsonParts(now)
	case strings.HasSuffix(base, ".toml"), strings.HasSuffix(base, ".cfg"):
		old, later = sections(before), sections(now)
	}
	if (old == nil && len(before) > 0) || (later == nil && len(now) > 0) {
		return lineParts(name, before, now)
	}
	var parts []Part
	names := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(later))
	slices.Sort(names)
	for _, key := range slices.Compact(names) {
		if old[key] != later[key] {
			parts = append(parts, Part{Name: key, Before: old[key], Now: later[key]})
		}
	}
	return parts
}

// jsonParts returns the relevant keys of package.json, composer.json and deno.json; nil
// if the text cannot be parsed.
func jsonParts(text []byte) map[string]string {
	var top map[string]json.RawMessage
	if json.Unmarshal(text, &top) != nil {
		return nil
	}
	parts := make(map[string]string)
	for key, value := range top {
		switch key {
		case "scripts", "tasks":
			var scripts map[string]json.RawMessage
			if json.Unmarshal(value, &scripts) != nil {
				parts[key] = compact(value)
			}
			for name, script := range scripts {
				if checkingWord().MatchString(name) || checkingScript().MatchString(name) {
					parts[key+"."+name] = compact(script)
				}
			}
		case "jest", "vitest", "mocha", "ava", "nyc", "c8", "tap", "eslintConfig", "eslintIgnore", "stylelint", "lint",
			"test", "compilerOptions", "lint-staged", "husky", "bun", "babel", "coverage":
			parts[key] = compact(value)
		}
	}
	return parts
}

func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// sections returns the relevant sections of TOML and INI files, as text without comments
// and blank lines.
func sections(text []byte) map[string]string {
	parts := make(map[string]string)
	header := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		bare, _, _ := strings.Cut(line, "#")
		bare = strings.TrimSpace(bare)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[' && strings.HasSuffix(bare, "]") && !strings.Contains(line, "="):
			header = strings.Trim(bare, "[] ")
		case checkingSection(header) || builtForTests(line):
			parts["["+header+"]"] += line + "\n"
		}
	}
	return parts
}

// checkingSection reports whether a section of pyproject.toml, setup.cfg or Cargo.toml
// configures checks.
func checkingSection(header string) bool {
	header = strings.ReplaceAll(header, `"`, "")
	for _, prefix := range [...]string{
		"tool.pytest", "tool:pytest", "tool.coverage", "coverage:", "tool.ruff", "tool.mypy", "mypy", "tool.pyright",
		"tool.basedpyright", "tool.pylint", "pylint", "tool.flake8", "flake8", "pycodestyle", "tool.bandit", "tool.tox",
		"tox", "testenv", "tool.nox", "tool.hatch.envs", "tool.poe", "tool.pdm.scripts", "tool.pixi.tasks", "isort", "lints",
		"workspace.lints", "test", "bench", "profile.test",
		"alias", "workspace.metadata.nextest",
	} {
		rest, ok := strings.CutPrefix(header, prefix)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == ':' || rest[0] == '-' || strings.HasSuffix(prefix, ":")) {
			return true
		}
	}
	return false
}

// builtForTests reports whether a line of Cargo.toml selects the targets built and run as
// tests, or their runner.
func builtForTests(line string) bool {
	key, _, found := strings.Cut(line, "=")
	switch strings.TrimSpace(key) {
	case "test", "doctest", "autotests", "harness", "runner":
		return found
	}
	return false
}

// lineParts compares the lines about checking, in any order.
func lineParts(name string, before, now []byte) []Part {
	count := make(map[string]int)
	old, later := checkingLines(name, before), checkingLines(name, now)
	for _, l := range old {
		count[l.text]--
	}
	known := regionsOf(old)
	for _, l := range later {
		// a new region removes nothing
		if len(before) == 0 || l.region == "" || known[l.region] || count[l.text] < 0 {
			count[l.text]++
		}
	}
	var parts []Part
	for _, line := range slices.Sorted(maps.Keys(count)) {
		switch n := count[line]; {
		case n < 0:
			parts = append(parts, Part{Name: "line", Before: line})
		case n > 0 && !addsOnly(name, line):
			parts = append(parts, Part{Name: "line", Now: line})
		}
	}
	return parts
}
