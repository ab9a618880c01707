package risk

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/check/project"
)

// Words of the shell are expanded as far as the command line itself determines them: its
// variables, braces, and its folder. The rest is unknown.

// maxWords limits the words of a command after brace expansion.
const maxWords = 1000

// wordsOf returns the words of a command.
func (a *assessment) wordsOf(args []*syntax.Word) []string {
	var words []string
	for _, w := range args {
		split := *w // the parsed tree stays unchanged
		syntax.SplitBraces(&split)
		for w, err := range expand.BracesSeq(nil, &split) {
			if err != nil || len(words) >= maxWords {
				return words
			}
			text := a.text(w)
			if fields := strings.Fields(text); bare(w) && len(fields) > 0 {
				words = append(words, fields...)
				continue
			}
			words = append(words, text)
		}
	}
	return words
}

// bare reports whether the shell splits a word: a variable or a command without quotes.
func bare(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	_, variable := w.Parts[0].(*syntax.ParamExp)
	_, command := w.Parts[0].(*syntax.CmdSubst)
	return variable || command
}

// text returns a word without its quotes; parts that only the shell knows are unknown.
func (a *assessment) text(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range w.Parts {
		a.part(&b, p)
	}
	return b.String()
}

func (a *assessment) part(b *strings.Builder, p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.WriteString(project.Unescape(p.Value))
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) { // $'\x72m' is rm
			b.WriteString(unknown)
			return
		}
		b.WriteString(p.Value)
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			a.part(b, inner)
		}
	case *syntax.ParamExp:
		b.WriteString(a.variable(p))
	case *syntax.CmdSubst:
		b.WriteString(a.substituted(p.Stmts))
	default:
		b.WriteString(unknown)
	}
}

// variable returns the value of a variable.
func (a *assessment) variable(p *syntax.ParamExp) string {
	if p.Param == nil {
		return unknown
	}
	name := p.Param.Value
	value, known := a.vars[name]
	if !known {
		value, known = a.environ(name)
	}
	unset := unknown
	if !known && a.mayBeEmpty(name) {
		unset = empty
	}
	if p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil {
		return unknown
	}
	if p.Exp == nil {
		if known {
			return value
		}
		return unset
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if !known {
			return a.text(p.Exp.Word)
		}
		return value
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !known {
			return unknown
		}
		return strings.ReplaceAll(value, empty, unknown)
	}
	return unset
}

// environ returns the value of a variable that the line does not set.
func (a *assessment) environ(name string) (value string, known bool) {
	switch name {
	case "HOME":
		return filepath.ToSlash(a.at.Home), a.at.Home != ""
	case "PWD":
		return filepath.ToSlash(a.at.Dir), true
	case "TMPDIR":
		return "/tmp", true
	}
	return "", false
}

// mayBeEmpty reports whether a variable of unknown value may be empty.
func (a *assessment) mayBeEmpty(name string) bool {
	return !a.nounset && !a.filled[name] && !slices.Contains([]string{unknownVariable, "HOME", "USER", "LOGNAME", "SHELL",
		"$", "?", "#", "!", "RANDOM", "UID", "HOSTNAME", "OLDPWD", "BASH_SOURCE", "0"}, name)
}

// guards records the variables that a test compares: a line that tests whether "$X" is empty,
// or exists, uses it only then.
func (a *assessment) guards(n syntax.Node) {
	if call, ok := n.(*syntax.CallExpr); ok {
		if name := call.Args[0].Lit(); name != "[" && name != "test" {
			return
		}
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil {
			a.filled[p.Param.Value] = true
		}
		return true
	})
}

// setsNounset reports whether the arguments of set make the shell end at unset variables.
func setsNounset(args []string) bool {
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") && strings.Contains(arg, "u") ||
			arg == "nounset" && i > 0 && strings.HasSuffix(args[i-1], "o") {
			return true
		}
	}
	return false
}

// substituted returns the output of a command substitution.
func (a *assessment) substituted(stmts []*syntax.Stmt) string {
	if len(stmts) == 1 {
		if printed, ok := a.printed(stmts[0]); ok {
			return printed
		}
	}
	return empty
}

// printed returns the output of a statement, if the statement determines it.
func (a *assessment) printed(s *syntax.Stmt) (string, bool) {
	words, _ := a.called(s)
	if len(words) == 0 {
		return "", false
	}
	switch path.Base(words[0]) {
	case "pwd":
		return filepath.ToSlash(a.at.Dir), true
	case "git":
		return a.gitFolder(words[1:])
	case "mktemp":
		return temporary(words[1:]), true
	case "realpath", "readlink", "dirname", "basename":
		return onPath(path.Base(words[0]), words[1:])
	case "echo", "printf":
		args := words[1:]
		for len(args) > 0 && strings.HasPrefix(args[0], "-") {
			args = args[1:]
		}
		if len(args) > 0 && words[0] == "printf" && strings.Contains(args[0], "%") {
			args = args[1:]
		}
		return strings.ReplaceAll(strings.Join(args, " "), `\n`, "\n"), true
	case "cat":
		for _, r := range s.Redirs {
			if in, ok := a.given(r); ok {
				return in, true
			}
		}
	}
	return "", false
}

// gitFolder returns the folder that git rev-parse prints.
func (a *assessment) gitFolder(args []string) (string, bool) {
	if len(args) < 2 || args[0] != "rev-parse" {
		return "", false
	}
	root := filepath.ToSlash(a.at.Root)
	switch args[len(args)-1] {
	case "--show-toplevel":
		return root, true
	case "--git-dir", "--absolute-git-dir", "--git-common-dir":
		return path.Join(root, ".git"), true
	}
	return "", false
}

// temporary returns the path that mktemp prints; unknown, but not empty, for a template.
func temporary(args []string) string {
	options, others := split(args)
	if len(others) > 0 && !has(options, 't', "") || has(options, 'p', "tmpdir") {
		return unknown
	}
	return "/tmp/tmp.mktemp"
}

// onPath returns the output of a program that prints a part of a path.
func onPath(name string, args []string) (string, bool) {
	_, others := split(args)
	if len(others) == 0 || strings.Contains(others[0], unknown) {
		return "", false
	}
	switch name {
	case "dirname":
		return path.Dir(others[0]), true
	case "basename":
		return path.Base(others[0]), true
	}
	return others[0], true
}

// given returns the input of a command from a redirection, if the line contains it.
func (a *assessment) given(r *syntax.Redirect) (string, bool) {
	switch {
	case r.Hdoc != nil:
		return a.text(r.Hdoc), true
	case r.Op == syntax.WordHdoc:
		return a.text(r.Word), true
	}
	return "", false
}

// assigned records the values of assigned variables.
func (a *assessment) assigned(list []*syntax.Assign) {
	for _, as := range list {
		switch {
		case as.Name == nil || as.Naked:
		case as.Array != nil || as.Index != nil:
			delete(a.vars, as.Name.Value)
		case as.Append:
			a.vars[as.Name.Value] += a.text(as.Value)
		default:
			a.vars[as.Name.Value] = a.text(as.Value)
		}
	}
}

// repeated records the value of a loop variable: of several words the first that is a
// test or a file of perdure, otherwise unknown.
func (a *assessment) repeated(f *syntax.ForClause) {
	over, ok := f.Loop.(*syntax.WordIter)
	if !ok {
		return
	}
	items := a.wordsOf(over.Items)
	delete(a.vars, over.Name.Value)
	a.filled[over.Name.Value] = true
	for _, item := range items {
		rel, outside := a.place(item)
		class := project.Classify(rel).Class
		if len(items) == 1 || !outside && (class == project.TestFile || class == project.OwnFile || own(rel) ||
			testFolder(rel)) {
			a.vars[over.Name.Value] = item
			return
		}
	}
}
