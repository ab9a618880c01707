package risk

import (
	"path"
	"path/filepath"
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
	if p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Param == nil {
		return unknown
	}
	value, known := a.vars[p.Param.Value]
	switch p.Param.Value {
	case "HOME":
		if !known && a.at.Home != "" {
			value, known = filepath.ToSlash(a.at.Home), true
		}
	case "PWD":
		value, known = filepath.ToSlash(a.at.Dir), true
	}
	switch {
	case p.Exp != nil && !known && (p.Exp.Op == syntax.DefaultUnset || p.Exp.Op == syntax.DefaultUnsetOrNull):
		return a.text(p.Exp.Word)
	case p.Exp != nil && p.Exp.Op != syntax.DefaultUnset && p.Exp.Op != syntax.DefaultUnsetOrNull, !known:
		return unknown
	}
	return value
}

// substituted returns the output of a command substitution.
func (a *assessment) substituted(stmts []*syntax.Stmt) string {
	if len(stmts) == 1 {
		if printed, ok := a.printed(stmts[0]); ok {
			return printed
		}
	}
	return unknown
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
