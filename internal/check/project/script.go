package project

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Config sets where a command runs and where it may write.
type Config struct {
	// Files is the workspace. Nil: nothing is read, and scripts of package managers are
	// weak.
	Files fs.FS
	// Dir is the working folder of the command, relative to the workspace, with slashes.
	// Zero: the workspace.
	Dir string
	// Scratch is the absolute path of a folder for results that the agent cannot write.
	// Required for runners that write files: without it their commands are weak.
	Scratch string
	// Installed reports whether a program is installed. Nil: only those that the projects
	// themselves provide.
	Installed func(name string) bool

	// WithCoverage makes Measure add arguments that let the runner write coverage while it
	// runs its tests, if that changes neither what is tested nor how it exits: for go test,
	// pytest with pytest-cov, and jest.
	WithCoverage bool
}

func (c Config) dir() string { return path.Join(".", c.Dir) }

// word is an argument of a command. Text is its value after shell expansion, known only
// if it is literal.
type word struct {
	text       string
	literal    bool
	start, end int // offsets in the script
}

// call is a simple command of a script.
type call struct {
	words []word
	dir   string // working folder; "?" if unknown
	// redirected is set if standard output, or in the second element standard error, is
	// redirected.
	redirected [2]bool
}

// at returns an argument; the zero word beyond the last.
func (c *call) at(i int) word {
	if i < 0 || i >= len(c.words) {
		return word{}
	}
	return c.words[i]
}

// rest returns the call that begins at an argument.
func (c *call) rest(i int) *call {
	sub := *c
	sub.words = c.words[min(i, len(c.words)):]
	return &sub
}

// has reports whether one of the flags is set, as -f, -f=x or --f x, before an argument
// "--".
func (c *call) has(flags ...string) bool {
	_, ok := c.value(flags...)
	return ok
}

// value returns the value of one of the flags, as its own argument or after "=".
func (c *call) value(flags ...string) (word, bool) {
	for i, w := range c.words {
		if w.text == "--" {
			break
		}
		name, value, joined := strings.Cut(w.text, "=")
		if !slices.Contains(flags, name) {
			continue
		}
		if joined {
			return word{text: value, literal: w.literal}, true
		}
		return c.at(i + 1), true
	}
	return word{}, false
}

// index returns the position of the first argument that is one of the words, or -1.
func (c *call) index(texts ...string) int {
	return slices.IndexFunc(c.words, func(w word) bool { return w.literal && slices.Contains(texts, w.text) })
}

// program returns the base name of the program.
func (c *call) program() string {
	name := path.Base(strings.ReplaceAll(c.at(0).text, `\`, "/"))
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".cmd"), ".bat")
}

// script is a parsed command line.
type script struct {
	calls []*call
	// skipped is why a part was not analysed; that part begins with the program named
	// there.
	skipped map[string]string
}

// parseScript parses a command line: simple commands joined by "&&", ";" or new lines.
// Pipes, conditions, loops, subshells and background commands are recorded and not
// analysed, because their output and exit status are not those of the command.
func parseScript(text, dir string) (*script, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("parse command: %w", err)
	}
	s := &script{skipped: make(map[string]string)}
	for _, stmt := range file.Stmts {
		dir = s.statement(text, stmt, dir)
	}
	return s, nil
}

// statement adds the calls of a statement and returns the working folder after it.
func (s *script) statement(text string, stmt *syntax.Stmt, dir string) string {
	if stmt.Background || stmt.Coprocess || stmt.Negated {
		s.skip(stmt, "it runs in the background or its exit code is inverted")
		return dir
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return s.call(text, stmt, cmd, dir)
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			return s.statement(text, cmd.Stmt, dir)
		}
	case *syntax.BinaryCmd:
		switch cmd.Op {
		case syntax.AndStmt:
			return s.statement(text, cmd.Y, s.statement(text, cmd.X, dir))
		case syntax.OrStmt:
			s.skip(stmt, `its exit code is changed by "||"`)
		default:
			s.skip(stmt, "its output is piped")
		}
	default:
		s.skip(stmt, "it is inside a compound command")
	}
	return dir
}

// skip records the programs called in a part that is not analysed.
func (s *script) skip(node syntax.Node, why string) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			if _, known := s.skipped[c.Args[0].Lit()]; !known {
				s.skipped[c.Args[0].Lit()] = why
			}
		}
		return true
	})
}

func (s *script) call(text string, stmt *syntax.Stmt, cmd *syntax.CallExpr, dir string) string {
	c := &call{dir: dir}
	for _, w := range cmd.Args {
		c.words = append(c.words, newWord(text, w))
	}
	for _, r := range stmt.Redirs {
		switch {
		case r.Op == syntax.RdrAll || r.Op == syntax.AppAll:
			c.redirected = [2]bool{true, true}
		case r.Op == syntax.RdrIn || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc:
		case r.N != nil && r.N.Value == "2":
			c.redirected[1] = true
		default:
			c.redirected[0] = true
		}
	}
	if len(c.words) == 0 {
		return dir
	}
	if c.at(0).text == "cd" {
		if to := c.at(1); len(c.words) == 2 && to.literal && !path.IsAbs(to.text) && dir != "?" {
			return path.Join(dir, to.text)
		}
		return "?"
	}
	s.calls = append(s.calls, c)
	return dir
}

// newWord parses a word; one with expansions or patterns is not literal.
func newWord(text string, w *syntax.Word) word {
	made := word{start: int(w.Pos().Offset()), end: int(w.End().Offset()), literal: true}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, `*?[~{`) {
				made.literal = false
			}
			b.WriteString(Unescape(p.Value))
		case *syntax.SglQuoted:
			made.literal = made.literal && !p.Dollar
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					made.literal = false
					continue
				}
				b.WriteString(Unescape(lit.Value))
			}
		default:
			made.literal = false
		}
	}
	if made.text = b.String(); !made.literal {
		made.text = text[made.start:made.end]
	}
	return made
}

// Unescape removes a shell's backslashes from a word without quotes.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// plain matches arguments that need no quotes.
var plain = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote formats a text as one word of a shell.
func quote(s string) string {
	if plain().MatchString(s) {
		return s
	}
	quoted, err := syntax.Quote(s, syntax.LangPOSIX)
	if err != nil { // a character that POSIX cannot quote in one form
		return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", `'\''`) + "'"
	}
	return quoted
}

// edit replaces the text between two offsets of a script.
type edit struct {
	start, end int
	text       string
}

// apply applies edits, which do not overlap.
func apply(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	last := 0
	for _, e := range edits {
		b.WriteString(text[last:e.start])
		b.WriteString(e.text)
		last = e.end
	}
	b.WriteString(text[last:])
	return b.String()
}
