// Package permit makes the rules by which an agent may run commands without asking: from the
// check of a loop, whose parts the agent has to run, and for perdure's own commands. It decides
// by rules about a command line, for agents that ask.
//
// A rule with further arguments names a program and its subcommand, such as "go test". What
// the agent can do with it is not less than what it can do anyway: the check runs the files
// that the agent edits.
package permit

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

const (
	// maxRules limits the rules of a check, maxLine the command lines that are parsed, in
	// bytes.
	maxRules = 50
	maxLine  = 64 << 10
)

// Rules returns the rules for a check: the check as it is written, its simple commands as
// they are written, and with further arguments those that name a known test runner or build
// tool, or a script of the workspace. A shell or an interpreter passes only as it is written.
func Rules(check string) []agent.CommandRule {
	var rules []agent.CommandRule
	add := func(line string, more bool) {
		r := agent.CommandRule{Line: line, More: more}
		if oneLine(line) && !slices.Contains(rules, r) && len(rules) < maxRules {
			rules = append(rules, r)
		}
	}
	add(strings.TrimSpace(check), false)
	file, err := parse(check)
	if err != nil {
		return rules
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		words, known := literals(call.Args)
		if own := unwrapped(words); known > 0 {
			known -= len(words) - len(own)
			if n := prefix(own); n > 0 && n <= known {
				add(strings.Join(own[:n], " "), true)
				return true
			}
		}
		if known == len(call.Args) {
			add(strings.TrimSpace(check[call.Pos().Offset():call.End().Offset()]), false)
		}
		return true
	})
	return rules
}

// Handoff returns the rules for the commands by which an agent records its work. The program
// is perdure's path; empty if it has none.
func Handoff(program string) []agent.CommandRule {
	rules := []agent.CommandRule{{Line: "perdure handoff", More: true}}
	if named := filepath.ToSlash(program); plain(named) && named != "perdure" {
		rules = append(rules, agent.CommandRule{Line: named + " handoff", More: true})
	}
	return rules
}

// Reading returns the rules for commands that only read or print, which agents combine with
// others: "go test ./... | tail".
func Reading() []agent.CommandRule {
	var rules []agent.CommandRule
	for _, name := range readers() {
		rules = append(rules, agent.CommandRule{Line: name, More: true, Reads: true})
	}
	return rules
}

// readers are programs that write to their standard output only, whatever their arguments.
func readers() []string {
	return []string{"cat", "cd", "cut", "echo", "false", "grep", "head", "ls", "pwd", "tail", "test", "tr", "true", "wc"}
}

// parse parses a command line.
func parse(line string) (*syntax.File, error) {
	if len(line) > maxLine {
		return nil, errLong
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
}

var rePlain = lazyregexp.New(`^[A-Za-z0-9._/:@%+=-]+$`)

// plain reports whether a word is the same for every shell.
func plain(word string) bool { return rePlain().MatchString(word) }

// oneLine reports whether a text can be a rule's line.
func oneLine(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// literals returns the words of a command without quotes, and how many of them, from the
// first on, the shell does not expand.
func literals(args []*syntax.Word) (words []string, known int) {
	counting := true
	for _, arg := range args {
		text, ok := literal(arg)
		counting = counting && ok
		if words = append(words, text); counting {
			known++
		}
	}
	return words, known
}

// literal returns a word without quotes; false if the shell expands it.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	var add func(parts []syntax.WordPart, quoted bool) bool
	add = func(parts []syntax.WordPart, quoted bool) bool {
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				if !quoted && strings.ContainsAny(p.Value, "*?[{~\\") || quoted && strings.Contains(p.Value, `\`) {
					return false
				}
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				if p.Dollar {
					return false
				}
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				if p.Dollar || !add(p.Parts, true) {
					return false
				}
			default:
				return false
			}
		}
		return true
	}
	ok := add(w.Parts, false)
	return b.String(), ok
}

// unwrapped returns a command without programs that only run another one.
func unwrapped(words []string) []string {
	for len(words) > 1 {
		rest := words[1:]
		switch path.Base(words[0]) {
		case "nohup", "command", "exec", "time":
		case "env":
			for len(rest) > 0 && strings.Contains(rest[0], "=") {
				rest = rest[1:]
			}
		case "timeout":
			rest = rest[1:]
		default:
			return words
		}
		if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
			return words
		}
		words = rest
	}
	return words
}
