package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxNested limits the nesting of command lines (sh -c).
const maxNested = 5

// command assesses a command line.
func (a *assessment) command(line string, depth int) {
	if len(line) > maxCommand || depth > maxNested {
		a.add(Unreadable, shown(line))
		return
	}
	if cmdletCall().MatchString(line) { // agents on Windows run PowerShell as their shell
		a.psLine(line, depth+1)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		a.add(Unreadable, shown(line))
		return
	}
	dir := a.at.Dir
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			a.patches(n)
			a.truncates(n)
			a.reads(n, depth)
		case *syntax.BinaryCmd:
			a.piped(n, depth)
		case *syntax.ForClause:
			a.repeated(n)
		case *syntax.TestClause:
			a.guards(n)
		case *syntax.DeclClause:
			a.assigned(n.Args)
		case *syntax.Redirect:
			a.redirect(n)
		case *syntax.CallExpr:
			a.call(n, depth)
		}
		return true
	})
	a.at.Dir = dir // a cd ends with its line
}

// call assesses a command with its variable assignments.
func (a *assessment) call(n *syntax.CallExpr, depth int) {
	words := a.wordsOf(n.Args)
	if len(n.Args) == 0 {
		a.assigned(n.Assigns)
		return
	}
	a.environment(n.Assigns, words)
	a.guards(n)
	if rest, done := a.envOptions(words, depth); !done {
		a.words(rest, depth)
	}
}

// environment assesses the variables that a command is given, by the shell or by env.
func (a *assessment) environment(assigns []*syntax.Assign, words []string) {
	at := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == "git" })
	if at < 0 || at+1 >= len(words) {
		return
	}
	variables := slices.Clone(words[:at])
	for _, as := range assigns {
		if as.Name != nil {
			variables = append(variables, as.Name.Value+"="+a.text(as.Value))
		}
	}
	for _, v := range variables {
		name, value, ok := strings.Cut(v, "=")
		switch {
		case !ok:
		case skipsHooks(name) && (words[at+1] == "commit" || words[at+1] == "push"):
			a.add(SkipChecks, name+" "+shown(strings.Join(words[at:at+2], " ")))
		case strings.HasPrefix(name, "GIT_CONFIG_KEY_"), name == "GIT_CONFIG_PARAMETERS":
			if strings.Contains(strings.ToLower(value), "core.hookspath") {
				a.add(SkipChecks, shown(v))
			}
		}
	}
}

// skipsHooks reports whether a variable makes hook managers of git skip hooks.
func skipsHooks(name string) bool {
	return slices.Contains([]string{"HUSKY", "HUSKY_SKIP_HOOKS", "LEFTHOOK", "SKIP", "PRE_COMMIT_ALLOW_NO_CONFIG",
		"OVERCOMMIT_DISABLE"}, name)
}

// reads assesses a shell or an interpreter that reads its code from a redirection.
func (a *assessment) reads(s *syntax.Stmt, depth int) {
	words, ok := a.called(s)
	if !ok || len(s.Redirs) == 0 {
		return
	}
	a.written(s)
	for _, r := range s.Redirs {
		if text, ok := a.given(r); ok {
			a.executed(words, text, depth)
		}
	}
}

// written records what a statement writes to a file, which the line may run later.
func (a *assessment) written(s *syntax.Stmt) {
	text, known := a.printed(s)
	for _, r := range s.Redirs {
		if known && r.Word != nil && (r.Op == syntax.RdrOut || r.Op == syntax.AppOut || r.Op == syntax.RdrClob) {
			rel, _ := a.place(a.text(r.Word))
			if r.Op == syntax.AppOut {
				text = a.scripts[rel] + text
			}
			a.scripts[rel] = text + "\n"
		}
	}
}

// runs assesses running a file that the command line wrote.
func (a *assessment) runs(name string, words []string, depth int) {
	file := words[0]
	if shells(name) || interpreter(name) || name == "source" || name == "." {
		_, others := split(words[1:])
		if len(others) == 0 {
			return
		}
		file = others[0]
	}
	rel, _ := a.place(file)
	switch text, ok := a.scripts[rel]; {
	case !ok:
	case interpreter(name):
		a.code(text, depth)
	case depth < maxNested:
		a.nested(text, depth)
	}
}

// piped assesses text that is piped to a shell or an interpreter.
func (a *assessment) piped(b *syntax.BinaryCmd, depth int) {
	if b.Op != syntax.Pipe && b.Op != syntax.PipeAll {
		return
	}
	if words, ok := a.called(b.Y); ok {
		a.pipedFiles(b.X, words, depth)
		text, known := a.printed(b.X)
		if !known {
			text = unknown
		}
		a.executed(words, text, depth)
	}
}

// called returns the words of a statement without wrappers; false if it is not a simple
// command.
func (a *assessment) called(s *syntax.Stmt) ([]string, bool) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil, false
	}
	return unwrapped(a.wordsOf(call.Args)), true
}

// executed assesses a text that a program reads and may run.
func (a *assessment) executed(words []string, text string, depth int) {
	if len(words) == 0 {
		return
	}
	name := path.Base(words[0])
	options, others := split(words[1:])
	switch {
	case name == "ed" || name == "ex":
	case databaseClient(name):
		if !slices.Contains(words, ":memory:") && destroysData(text) {
			a.add(DestroyExternal, shown(strings.Join(words, " ")+": "+text))
		}
	case name == "at" || name == "batch":
		a.nested(text, depth)
	case len(others) > 0 && !has(options, 's', "") && others[0] != "-":
	case shells(name) && !slices.ContainsFunc(options,
		func(o string) bool { return !strings.HasPrefix(o, "--") && strings.Contains(o, "c") }):
		a.nested(text, depth)
	case interpreter(name) && text != unknown:
		a.code(text, depth)
	}
}

func shells(name string) bool {
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh"}, name)
}

// patches assesses a patch that a command line applies, from standard input or as a word.
// Codex edits files in this way, and its hooks receive a command.
func (a *assessment) patches(s *syntax.Stmt) {
	words, _ := a.called(s)
	if len(words) == 0 || !slices.Contains([]string{"apply_patch", "applypatch"}, path.Base(words[0])) {
		return
	}
	for _, r := range s.Redirs {
		if r.Hdoc != nil {
			a.patch(a.text(r.Hdoc))
		}
	}
	for _, w := range words[1:] {
		a.patch(w)
	}
}

// patch assesses a patch in the format of apply_patch.
func (a *assessment) patch(text string) {
	for line := range strings.Lines(text) {
		verb, name, _ := strings.Cut(strings.TrimSpace(line), ": ")
		moved := false
		switch verb {
		case "*** Delete File":
			a.removes(name, false)
		case "*** Move to":
			moved = true
			fallthrough
		case "*** Add File", "*** Update File":
			a.writes(name)
		default:
			continue
		}
		if moved && a.patched != "" {
			a.moves(a.patched)
		}
		a.patched = name
		a.named(name)
	}
	a.patched = ""
}

// redirect assesses the target of a redirection.
func (a *assessment) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		if r.Word != nil {
			name := a.text(r.Word)
			a.named(name)
			a.writes(name)
			if rel, _ := a.place(name); len(a.outputs) < maxNames {
				a.outputs = append(a.outputs, rel)
			}
		}
	default:
	}
}

// words assesses one command: its name and its arguments.
func (a *assessment) words(words []string, depth int) {
	words = unwrapped(words)
	if len(words) == 0 {
		return
	}
	name, args := programName(words[0]), words[1:]
	if name != "cd" {
		for _, word := range without(args, programOf(name, args).scripts) {
			a.named(word)
		}
	}
	if strings.Contains(name, unknown) {
		a.add(Unreadable, shown(strings.Join(words, " ")))
		return
	}
	if len(a.scripts) > 0 {
		a.runs(name, words, depth)
	}
	if alias, ok := a.aliases[name]; ok && depth < maxNested {
		a.nested(alias+quoted(args), depth)
		return
	}
	a.external(name, args, depth)
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "eval", "su", "script", "trap", "alias", "watch":
		a.shell(name, args, depth)
	case "cd", "pushd":
		if len(args) > 0 {
			a.changeDir(args[0])
		}
	case "read", "unset", "mapfile", "readarray", "getopts":
		for _, variable := range args {
			delete(a.vars, variable)
		}
	case "set":
		a.nounset = a.nounset || setsNounset(args)
	case "rm", "unlink", "rmdir", "shred", "trash", "wipe", "srm", "rimraf", "del-cli", "trash-put":
		a.rm(name, args)
	case "git":
		a.git(args, depth)
	case "find":
		a.find(args, depth)
	case "powershell", "pwsh":
		a.psProgram(args, depth)
	case "cmd":
		a.cmdExe(args, depth)
	case "del", "erase", "rd":
		a.cmdCommand(append([]string{name}, args...), depth)
	case "fd", "fdfind":
		a.fd(args, depth)
	case "xargs", "parallel":
		a.xargs(args, depth)
	case "docker", "podman", "nerdctl":
		a.container(args, depth)
	case "perdure":
		a.steers(args)
	case "husky", "pre-commit", "lefthook", "overcommit":
		if slices.Contains(args, "uninstall") || slices.Contains(args, "--uninstall") {
			a.add(SkipChecks, shown(name+" "+strings.Join(args, " ")))
		}
	case "pkill", "killall":
		if slices.ContainsFunc(args, func(w string) bool { return strings.Contains(w, "perdure") }) {
			a.add(DecideForPerson, shown(name+" "+strings.Join(args, " ")))
		}
	default:
		if interpreter(name) {
			a.script(name, args, depth)
		}
		a.writer(name, args)
	}
}

// changeDir follows a cd.
func (a *assessment) changeDir(to string) {
	if strings.Contains(to, unknown) {
		return
	}
	if rel, outside := a.place(to); outside {
		a.at.Dir = rel
	} else {
		a.at.Dir = path.Join(a.at.Root, rel)
	}
}

// quoted joins words to a part of a command line, with a blank before each.
func quoted(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(" '" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	return b.String()
}

// shell assesses a command line that is passed to another shell.
func (a *assessment) shell(name string, args []string, depth int) {
	switch name {
	case "eval":
		a.nested(strings.Join(args, " "), depth)
	case "trap":
		if len(args) > 1 {
			a.nested(args[0], depth)
		}
	case "alias":
		for _, arg := range args {
			if short, long, ok := strings.Cut(arg, "="); ok {
				a.aliases[short] = long
			}
		}
	case "watch":
		_, others := split(args)
		a.nested(strings.Join(others, " "), depth)
	default:
		for i, arg := range args {
			if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c") && i+1 < len(args) {
				a.nested(args[i+1], depth)
				return
			}
		}
	}
}

// nested assesses a command line within a command line. Unknown parts stay unknown.
func (a *assessment) nested(line string, depth int) {
	line = strings.ReplaceAll(line, empty, "${"+emptyVariable+"}")
	a.command(strings.ReplaceAll(line, unknown, "${"+unknownVariable+"}"), depth+1)
}

// Variables that replace the unknown parts of a nested command line.
const (
	unknownVariable = "__"
	emptyVariable   = "__e"
)

// split separates options from other arguments; after -- all are others.
func split(args []string) (options, others []string) {
	for i, arg := range args {
		if arg == "--" {
			return options, append(others, args[i+1:]...)
		}
		if strings.HasPrefix(arg, "-") && arg != "-" {
			options = append(options, arg)
		} else {
			others = append(others, arg)
		}
	}
	return options, others
}

// has reports whether an option is set: -r also in -rf.
func has(options []string, short byte, long string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		if strings.HasPrefix(o, "--") {
			return long != "" && (o == "--"+long || strings.HasPrefix(o, "--"+long+"="))
		}
		return short != 0 && strings.IndexByte(o, short) > 0
	})
}

// xargs assesses a command with unknown arguments.
func (a *assessment) xargs(args []string, depth int) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		takes := len(args[0]) == 2 && strings.Contains("IndLPsE", args[0][1:])
		args = args[1:]
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) > 0 {
		a.words(append(slices.Clone(args), unknown), depth)
	}
}
