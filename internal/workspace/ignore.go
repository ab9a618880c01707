package workspace

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/git"
)

// rules decide which paths are ignored in a repository, or in the part of the workspace
// outside of repositories.
type rules struct {
	// byGit are the paths of the workspace that git ignores; nil if git was not run or
	// failed: then the patterns decide.
	byGit    map[string]bool
	patterns []Pattern
}

// gitTimeout limits the time of git for one repository.
const gitTimeout = time.Minute

// ignores reports whether a path is ignored. Its folder must not be ignored.
func (r *rules) ignores(p string, folder bool) bool {
	if r.byGit != nil {
		return r.byGit[p]
	}
	for _, rule := range slices.Backward(r.patterns) {
		if rule.Matches(p, folder) {
			return !rule.Negated
		}
	}
	return false
}

// askGit returns the paths that git ignores below the folder p of the workspace; nil without
// git, or a repository that it can read.
func (w *Workspace) askGit(ctx context.Context, p string) (map[string]bool, error) {
	limited, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	dir := filepath.Join(w.cfg.Root, filepath.FromSlash(p))
	cmd := git.Command(limited, git.Query{Program: w.cfg.Git, Dir: dir, Environ: os.Environ(), Own: true},
		"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	out, err := cmd.Output()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		w.cfg.Logger.Debug("git cannot list ignored files; .gitignore files are read", "folder", p, "error", err)
		return nil, nil
	}
	return ignoredPaths(p, out), nil
}

// ignoredPaths parses the output of git. A folder is listed, but not ignored itself, if all
// its entries are ignored; these are listed as well.
func ignoredPaths(below string, out []byte) map[string]bool {
	set := make(map[string]bool)
	for line := range bytes.SplitSeq(out, []byte{0}) {
		p := path.Join(below, string(line))
		if len(line) > 0 && p != below {
			set[p] = true
		}
	}
	for p := range set {
		for dir := path.Dir(p); dir != "." && dir != below; dir = path.Dir(dir) {
			delete(set, dir)
		}
	}
	return set
}

// Pattern is one line of a .gitignore file.
type Pattern struct {
	// Line is its number in the file, counted from 1.
	Line int
	// Negated is set if the paths that match are not ignored.
	Negated bool

	base     string   // the folder of the file; "." for the workspace
	parts    []string // between the slashes
	folders  bool     // matches only folders
	anchored bool     // matches from base only
}

// ParsePatterns parses a .gitignore file in the folder base of a workspace, "." for its
// top. Lines without a pattern are left out.
func ParsePatterns(base string, data []byte) []Pattern {
	var list []Pattern
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for i, line := range strings.Split(string(data), "\n") {
		line = trimBlanks(strings.TrimSuffix(line, "\r"))
		if strings.HasPrefix(line, "#") {
			continue
		}
		p := Pattern{Line: i + 1, base: base}
		line, p.Negated = strings.CutPrefix(line, "!")
		line, p.folders = strings.CutSuffix(line, "/")
		p.anchored = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if line == "" {
			continue
		}
		p.parts = strings.Split(line, "/")
		for i, part := range p.parts {
			if len(part) > 1 && strings.Trim(part, "*") == "" {
				p.parts[i] = "**"
			}
		}
		list = append(list, p)
	}
	return list
}

// trimBlanks removes the blanks at the end of a line, except one after a backslash.
func trimBlanks(line string) string {
	trimmed := strings.TrimRight(line, " ")
	backslashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if trimmed != line && backslashes%2 == 1 {
		trimmed += " "
	}
	return trimmed
}

// Matches reports whether a path of the workspace matches; its folder is not ignored.
func (p *Pattern) Matches(name string, folder bool) bool {
	if p.folders && !folder {
		return false
	}
	if p.base != "." {
		rest, below := strings.CutPrefix(name, p.base+"/")
		if !below {
			return false
		}
		name = rest
	}
	if !p.anchored {
		return matchName(p.parts[0], path.Base(name))
	}
	return matchParts(p.parts, strings.Split(name, "/"))
}

// matchParts matches the parts between slashes; "**" matches any number of folders, and at
// the end at least one name. The time is proportional to parts times names.
func matchParts(parts, names []string) bool {
	reached := make([]bool, len(names)+1) // by number of names: whether the parts so far match them
	reached[0] = true
	for i, part := range parts {
		next := make([]bool, len(names)+1)
		before := false
		for j, here := range reached {
			switch {
			case part != "**":
				if here && j < len(names) && matchName(part, names[j]) {
					next[j+1] = true
				}
				continue
			case i == len(parts)-1:
				next[j] = before
			default:
				next[j] = before || here
			}
			before = before || here
		}
		reached = next
	}
	return reached[len(names)]
}

// matchName matches one name against a pattern without slashes, in linear time for each star.
func matchName(pat, name string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		if i < len(pat) && pat[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		if n, ok := matchByte(pat[i:], name[j]); ok {
			i, j = i+n, j+1
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	return strings.Trim(pat[i:], "*") == ""
}

// matchByte matches the beginning of a pattern against a byte and returns the length of that
// beginning.
func matchByte(pat string, c byte) (int, bool) {
	if pat == "" {
		return 0, false
	}
	switch pat[0] {
	case '?':
		return 1, true
	case '\\':
		if len(pat) == 1 {
			return 0, false // as git: matches nothing
		}
		return 2, pat[1] == c
	case '[':
		return matchClass(pat, c)
	}
	return 1, pat[0] == c
}

// matchClass matches a set of bytes like "[a-z!_]"; one without an end matches nothing.
func matchClass(pat string, c byte) (int, bool) {
	i := 1
	negated := i < len(pat) && (pat[i] == '!' || pat[i] == '^')
	if negated {
		i++
	}
	found := false
	for first := true; i < len(pat) && (first || pat[i] != ']'); first = false {
		if name, ok := className(pat[i:]); ok {
			found = found || inClass(name, c)
			i += len(name) + len("[::]")
			continue
		}
		low, n := classByte(pat[i:])
		i += n
		high := low
		if i+1 < len(pat) && pat[i] == '-' && pat[i+1] != ']' {
			high, n = classByte(pat[i+1:])
			i += 1 + n
		}
		found = found || low <= c && c <= high
	}
	if i >= len(pat) {
		return 0, false
	}
	return i + 1, found != negated
}

func classByte(pat string) (byte, int) {
	if pat[0] == '\\' && len(pat) > 1 {
		return pat[1], 2
	}
	return pat[0], 1
}

func className(pat string) (string, bool) {
	rest, ok := strings.CutPrefix(pat, "[:")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, ":]")
	return name, ok && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == ""
}

func inClass(name string, c byte) bool {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	switch name {
	case "alpha":
		return lower || upper
	case "alnum":
		return lower || upper || digit
	case "digit":
		return digit
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	case "lower":
		return lower
	case "upper":
		return upper
	case "space":
		return strings.IndexByte(" \t\n\v\f\r", c) >= 0
	case "blank":
		return c == ' ' || c == '\t'
	case "cntrl":
		return c < 32 || c == 127
	case "punct":
		return c > 32 && c < 127 && !lower && !upper && !digit
	case "print":
		return c >= 32 && c < 127
	case "graph":
		return c > 32 && c < 127
	}
	return false
}
