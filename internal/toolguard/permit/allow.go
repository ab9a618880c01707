package permit

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/agent"
)

var errLong = fmt.Errorf("the command line is longer than %d bytes", maxLine)

// Allows reports whether rules allow a command line: the line as it is, or each of its
// commands. A line that writes files by redirections, that sets variables or defines
// functions is allowed only as it is.
func Allows(rules []agent.CommandRule, line string) bool {
	line = strings.TrimSpace(line)
	if line == "" {
		return false
	}
	if slices.ContainsFunc(rules, func(r agent.CommandRule) bool { return !r.More && r.Line == line }) {
		return true
	}
	file, err := parse(line)
	if err != nil {
		return false
	}
	allowed, commands := true, 0
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.Stmt, *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block, *syntax.IfClause,
			*syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.CmdSubst, *syntax.Comment,
			*syntax.TimeClause:
		case *syntax.ParamExp: // of a variable that the environment has
			allowed = allowed && n.Exp == nil && n.Repl == nil && n.Slice == nil && n.Index == nil && !n.Excl
		case *syntax.Redirect:
			allowed = allowed && harmless(n)
		case *syntax.CallExpr:
			commands++
			text := line[n.Pos().Offset():n.End().Offset()]
			allowed = allowed && len(n.Assigns) == 0 && len(n.Args) > 0 && allowedCall(rules, n, text)
		default:
			allowed = false
		}
		return allowed
	})
	return allowed && commands > 0
}

// allowedCall reports whether rules allow one command.
func allowedCall(rules []agent.CommandRule, n *syntax.CallExpr, text string) bool {
	words, known := literals(n.Args)
	words = words[:known]
	if len(words) > 0 && slices.Contains(readers(), words[0]) {
		return true
	}
	return slices.ContainsFunc(rules, func(r agent.CommandRule) bool {
		if !r.More {
			return r.Line == text
		}
		want := strings.Split(r.Line, " ")
		return len(words) >= len(want) && slices.Equal(words[:len(want)], want)
	})
}

// harmless reports whether a redirection writes no file.
func harmless(r *syntax.Redirect) bool {
	to, known := "", false
	if r.Word != nil {
		to, known = literal(r.Word)
	}
	switch r.Op {
	case syntax.RdrIn, syntax.WordHdoc, syntax.Hdoc, syntax.DashHdoc:
		return true
	case syntax.DplOut, syntax.DplIn:
		return known && strings.Trim(to, "0123456789-") == ""
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.RdrClob:
		return known && to == "/dev/null"
	default:
		return false
	}
}
