package walk

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRules are the rules of one .gitignore file and, behind them, those of
// the folders above. A nil value has no rules.
type ignoreRules struct {
	above *ignoreRules
	// folder is what the patterns are relative to, with a slash at its end.
	folder string
	source string // for people
	rules  []ignoreRule
}

// ignoreRule is one line.
type ignoreRule struct {
	pattern string // of the doublestar library
	line    int
	// literal and suffix answer the most frequent kinds of patterns without the
	// library; "" when the pattern is not of that kind.
	literal, suffix string
	negate          bool
	folderOnly      bool
	anchored        bool // matches the path, not the last name
}

// maxIgnoreBytes is the size of the largest ignore file that is read.
const maxIgnoreBytes = 1 << 20

// rulesAbove are the rules that folders above dir, up to the top of the git work
// tree it lies in, hold for it. Outside of a work tree there are none.
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

// enter returns the rules inside of dir, whose entries are given. A work tree in
// another starts with no rules.
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

// add puts the rules of a file in front. A file that cannot be read has none.
func (ir *ignoreRules) add(dir, file, source string) *ignoreRules {
	info, err := os.Lstat(file) // like git, a link is not followed
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreBytes {
		return ir
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return ir
	}
	rules := parseIgnore(data)
	if len(rules) == 0 {
		return ir
	}
	folder := strings.TrimSuffix(filepath.ToSlash(dir), "/") + "/"
	return &ignoreRules{above: ir, folder: folder, source: source, rules: rules}
}

// match reports whether a file or folder is ignored, and by which rule. The
// folders above it are taken not to be.
func (ir *ignoreRules) match(name string, isFolder bool) (rule string, ignored bool) {
	name = filepath.ToSlash(name)
	for ; ir != nil; ir = ir.above {
		rel, below := strings.CutPrefix(name, ir.folder)
		if !below {
			continue
		}
		for _, r := range slices.Backward(ir.rules) {
			if r.match(rel, isFolder) {
				return fmt.Sprintf("ignored by line %d of %s%s", r.line, ir.folder, ir.source), !r.negate
			}
		}
	}
	return "", false
}

func (r ignoreRule) match(rel string, isFolder bool) bool {
	if r.folderOnly && !isFolder {
		return false
	}
	if !r.anchored {
		rel = path.Base(rel)
	}
	switch {
	case r.literal != "":
		return rel == r.literal
	case r.suffix != "":
		return strings.HasSuffix(rel, r.suffix)
	default:
		return doublestar.MatchUnvalidated(r.pattern, rel)
	}
}

// parseIgnore reads the lines of an ignore file. Lines that match nothing are
// left out.
func parseIgnore(data []byte) []ignoreRule {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var rules []ignoreRule
	for i, line := range strings.Split(string(data), "\n") {
		if rule, ok := parseIgnoreLine(strings.TrimSuffix(line, "\r")); ok {
			rule.line = i + 1
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseIgnoreLine(line string) (ignoreRule, bool) {
	var r ignoreRule
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimSpaces(line)
	line, r.negate = strings.CutPrefix(line, "!")
	line, r.folderOnly = strings.CutSuffix(line, "/")
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	if line == "**" || strings.HasSuffix(line, "/**") {
		line += "/*" // what is inside, not the folder itself
	}
	r.pattern = toDoublestar(line)
	if !doublestar.ValidatePattern(r.pattern) {
		return r, false
	}
	if !strings.ContainsAny(line, `*?[\`) {
		r.literal = line
	}
	if rest, ok := strings.CutPrefix(line, "*"); ok && !r.anchored && !strings.ContainsAny(rest, `*?[\`) {
		r.suffix = rest
	}
	return r, true
}

// trimSpaces drops the spaces at the end of a line, but for one that is escaped.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	backslashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if trimmed != line && backslashes%2 == 1 {
		trimmed += " "
	}
	return trimmed
}

// toDoublestar turns a pattern of git into one of the library: braces are plain
// characters for git, and classes are written otherwise.
func toDoublestar(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '\\':
			b.WriteByte(c)
			if i++; i < len(pattern) {
				b.WriteByte(pattern[i])
			}
		case '{', '}':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '[':
			length := writeClass(&b, pattern[i+1:])
			if length < 0 {
				return "[" // malformed: it matches nothing
			}
			i += length
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// writeClass writes the class whose text after the bracket begins rest, and
// returns how long that text is; -1 when it has no end.
func writeClass(b *strings.Builder, rest string) int {
	b.WriteByte('[')
	start := 0
	if strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^") {
		start = 1
		b.WriteString("^/") // for git, no class matches a slash
	}
	for i := start; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == ']' && i > start:
			b.WriteByte(']')
			return i + 1
		case c == '/':
		case c == '[' && strings.HasPrefix(rest[i:], "[:") && strings.Contains(rest[i:], ":]"):
			name, _, _ := strings.Cut(rest[i+2:], ":]")
			b.WriteString(namedClass(name))
			i += len(name) + len("[:") + len(":]") - 1
		case c == '\\' && i+1 < len(rest):
			i++
			b.WriteByte('\\')
			b.WriteByte(rest[i])
		case c == '-' && i > start && i+1 < len(rest) && rest[i+1] != ']':
			b.WriteByte(c) // a range
		case strings.IndexByte(`[]{}^!-\`, c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return -1
}

// namedClass spells out a named class; "" for an unknown one.
func namedClass(name string) string {
	switch name {
	case "alnum":
		return "a-zA-Z0-9"
	case "alpha":
		return "a-zA-Z"
	case "blank":
		return " \t"
	case "digit":
		return "0-9"
	case "lower":
		return "a-z"
	case "space":
		return " \t\n\r\f\v"
	case "upper":
		return "A-Z"
	case "xdigit":
		return "0-9a-fA-F"
	default:
		return ""
	}
}
