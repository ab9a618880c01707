package decider

import (
	"path"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/workspace"
)

var (
	// runsScripts matches files that run scripts.
	runsScripts = lazyregexp.New(`(?i)^((gnu|bsd)?makefile(\..*)?|\.?justfile|taskfile(\.dist)?\.ya?ml|package\.json|` +
		`composer\.json|tox\.(ini|toml)|noxfile\.py|pyproject\.toml|rakefile|deno\.jsonc?|(\.?mise)\.toml|.*\.(mk|sh|bash|zsh|bats))$`)
	// isScript matches files that can be run.
	isScript = lazyregexp.New(`(?i)(^[^.]+|\.(sh|bash|zsh|fish|ps1|bat|cmd|py|rb|pl|js|cjs|mjs|ts|awk|jq))$`)
)

// maxRunners is how many files are read to find out which one runs a script.
const maxRunners = 200

// script returns the decider of a changed script with the name of a check that a file of the version
// before runs: what the command itself runs is protected without it. nil for other changes.
func (v *Versions) script(c *workspace.Change) (*Decider, error) {
	if isFolder(c.Old) {
		return nil, nil
	}
	name, base := c.Old.Path, path.Base(c.Old.Path)
	if !isScript().MatchString(base) || !project.NamesCheck(base) || project.Classify(name).Class == project.TestFile ||
		isFixture(name) {
		return nil, nil
	}
	left := maxRunners
	for _, by := range v.Names() {
		if by == name || !runsScripts().MatchString(path.Base(by)) || libraryFolder(by) != "" {
			continue
		}
		if left--; left < 0 {
			return nil, nil
		}
		text, err := v.Old(by)
		if err != nil {
			return nil, err
		}
		if len(text) <= maxRead && mentions(string(text), base) {
			return &Decider{Path: c.Path, From: c.From, Change: c.Kind, Part: Build, Decides: "is run by " + by}, nil
		}
	}
	return nil, nil
}

// mentions reports whether a text contains a name as a word.
func mentions(text, name string) bool {
	ends := func(c byte) bool { return strings.IndexByte(" \t\r\n\"'`/;&|()<>=,:[]{}$", c) >= 0 }
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		end := i + len(name)
		if (i == 0 || ends(rest[i-1])) && (end == len(rest) || ends(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}
