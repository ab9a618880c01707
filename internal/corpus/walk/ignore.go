package walk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/workspace"
)

// ignoreRules are the rules of one .gitignore file and, linked, those of the folders above
// it. A nil value has no rules.
type ignoreRules struct {
	above *ignoreRules
	// folder is the folder that the patterns are relative to, with a slash at its end.
	folder string
	source string // for people
	rules  []workspace.Pattern
}

// maxIgnoreBytes is the size of the largest ignore file that is read.
const maxIgnoreBytes = 1 << 20

// rulesAbove returns the rules that apply to dir from the folders above it, up to the top
// of its git work tree; none outside of a work tree.
func rulesAbove(dir string) *ignoreRules {
	var chain []string
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		chain = append(chain, at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			break
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		return nil // it is the top of a work tree itself
	}
	var rules *ignoreRules
	for _, at := range slices.Backward(chain) {
		rules = rules.add(at, filepath.Join(at, ".git", "info", "exclude"), ".git/info/exclude")
		rules = rules.add(at, filepath.Join(at, ".gitignore"), ".gitignore")
	}
	return rules
}

// enter returns the rules inside of dir, which has the entries. A work tree in another one
// starts with no rules.
func (ir *ignoreRules) enter(dir string, entries []fs.DirEntry) *ignoreRules {
	rules := ir
	for _, e := range entries { // sorted: .git comes first
		switch e.Name() {
		case ".git":
			rules = (*ignoreRules)(nil).add(dir, filepath.Join(dir, ".git", "info", "exclude"), ".git/info/exclude")
		case ".gitignore":
			rules = rules.add(dir, filepath.Join(dir, ".gitignore"), ".gitignore")
		}
	}
	return rules
}

// add returns the rules with those of a file first. A file that cannot be read has none.
func (ir *ignoreRules) add(dir, file, source string) *ignoreRules {
	info, err := os.Lstat(file) // like git, a link is not followed
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreBytes {
		return ir
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return ir
	}
	rules := workspace.ParsePatterns(".", data)
	if len(rules) == 0 {
		return ir
	}
	folder := strings.TrimSuffix(filepath.ToSlash(dir), "/") + "/"
	return &ignoreRules{above: ir, folder: folder, source: source, rules: rules}
}

// match reports whether a file or folder is ignored, and by which rule. The folders above
// it must not be ignored.
func (ir *ignoreRules) match(name string, isFolder bool) (rule string, ignored bool) {
	name = filepath.ToSlash(name)
	for ; ir != nil; ir = ir.above {
		rel, below := strings.CutPrefix(name, ir.folder)
		if !below {
			continue
		}
		for _, r := range slices.Backward(ir.rules) {
			if r.Matches(rel, isFolder) {
				return fmt.Sprintf("ignored by line %d of %s%s", r.Line, ir.folder, ir.source), !r.Negated
			}
		}
	}
	return "", false
}
