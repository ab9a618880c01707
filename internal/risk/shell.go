package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/project"
)

// maxNested bounds command lines within command lines (sh -c).
const maxNested = 5

// command reads a command line.
func (a *assessment) command(line string, depth int) {
	if len(line) > maxCommand || depth > maxNested {
		a.add(Unreadable, clip(line))
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		a.add(Unreadable, clip(line))
		return
	}
	dir := a.at.Dir
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			a.patches(n)
		case *syntax.Redirect:
			a.redirect(n)
		case *syntax.CallExpr:
			a.words(wordsOf(n.Args), depth)
		}
		return true
	})
	a.at.Dir = dir // what a cd changed ends with its line
}

// patches is for a patch that a command line applies, on standard input or as a word.
// Codex edits files so, and its hooks are told of a command.
func (a *assessment) patches(s *syntax.Stmt) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	words := unwrapped(wordsOf(call.Args))
	if len(words) == 0 || path.Base(words[0]) != "apply_patch" && path.Base(words[0]) != "applypatch" {
		return
	}
	for _, r := range s.Redirs {
		if r.Hdoc != nil {
			a.patch(text(r.Hdoc))
		}
	}
	for _, w := range words[1:] {
		a.patch(w)
	}
}

// patch judges a patch in the form of apply_patch.
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

// clip shortens what is shown of a command.
func clip(text string) string {
	const most = 120
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// redirect is for what a redirection writes.
func (a *assessment) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		if r.Word != nil {
			a.named(text(r.Word))
			a.writes(text(r.Word))
		}
	default:
	}
}

func wordsOf(args []*syntax.Word) []string {
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = text(w)
	}
	return words
}

// text is a word without its quotes; parts that only the shell knows are unknown.
func text(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		part(&b, p)
	}
	return b.String()
}

func part(b *strings.Builder, p syntax.WordPart) {
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
			part(b, inner)
		}
	default:
		b.WriteString(unknown)
	}
}

// words judges one command: its name and its arguments.
func (a *assessment) words(words []string, depth int) {
	words = unwrapped(words)
	if len(words) == 0 {
		return
	}
	name, args := path.Base(words[0]), words[1:]
	if name != "cd" {
		for _, word := range args {
			a.named(word)
		}
	}
	if strings.Contains(name, unknown) {
		a.add(Unreadable, clip(strings.ReplaceAll(strings.Join(words, " "), unknown, "…")))
		return
	}
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "eval":
		a.shell(name, args, depth)
	case "cd":
		if len(args) > 0 && !strings.Contains(args[0], unknown) {
			if rel, outside := a.place(args[0]); outside {
				a.at.Dir = rel
			} else {
				a.at.Dir = path.Join(a.at.Root, rel)
			}
		}
	case "rm", "unlink", "rmdir", "shred", "trash":
		a.rm(name, args)
	case "git":
		a.git(args)
	case "find":
		a.find(args, depth)
	case "xargs", "parallel":
		a.xargs(args, depth)
	default:
		a.writer(name, args)
	}
}

// unwrapped takes programs away that only run another one.
func unwrapped(words []string) []string {
	for len(words) > 0 {
		switch path.Base(words[0]) {
		case "sudo", "doas", "env", "nohup", "time", "command", "builtin", "exec", "nice", "ionice", "setsid", "stdbuf", "timeout", "busybox":
			words = words[1:]
			for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") || isNumber(words[0])) {
				words = words[1:]
			}
		default:
			return words
		}
	}
	return words
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.smhd") == "" && s[0] >= '0' && s[0] <= '9'
}

// shell is for a command line that is given to another shell.
func (a *assessment) shell(name string, args []string, depth int) {
	if name == "eval" {
		a.nested(strings.Join(args, " "), depth)
		return
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c") && i+1 < len(args) {
			a.nested(args[i+1], depth)
			return
		}
	}
}

func (a *assessment) nested(line string, depth int) {
	if strings.Contains(line, unknown) {
		a.add(Unreadable, clip(strings.ReplaceAll(line, unknown, "…")))
		return
	}
	a.command(line, depth+1)
}

// split sorts arguments into options and others; behind -- all are others.
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

// has tells whether an option was given: -r also in -rf.
func has(options []string, short byte, long string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		if strings.HasPrefix(o, "--") {
			return long != "" && (o == "--"+long || strings.HasPrefix(o, "--"+long+"="))
		}
		return short != 0 && strings.IndexByte(o, short) > 0
	})
}

func (a *assessment) rm(name string, args []string) {
	options, others := split(args)
	whole := name == "rm" && (has(options, 'r', "recursive") || has(options, 'R', ""))
	for _, target := range others {
		a.removes(target, whole)
	}
}

// find is for its -delete and -exec.
func (a *assessment) find(args []string, depth int) {
	starts := args
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") || arg == "(" || arg == "!" {
			starts = args[:i]
			break
		}
	}
	for i, arg := range args {
		switch arg {
		case "-delete":
			a.removesBelow(starts)
		case "-exec", "-execdir", "-ok", "-okdir":
			inner := unwrapped(args[i+1:])
			if len(inner) > 0 && path.Base(inner[0]) == "rm" {
				a.removesBelow(starts)
				continue
			}
			for j, w := range inner {
				if w == ";" || w == "+" {
					inner = inner[:j]
					break
				}
			}
			for j := range inner {
				inner[j] = strings.ReplaceAll(inner[j], "{}", unknown)
			}
			a.words(inner, depth)
		}
	}
}

// removesBelow is for files below folders that nobody named.
func (a *assessment) removesBelow(starts []string) {
	if len(starts) == 0 {
		starts = []string{"."}
	}
	for _, start := range starts {
		if rel, outside := a.place(start); !outside && rel == "." || strings.Contains(start, unknown) {
			a.add(DeleteTree, strings.ReplaceAll(start, unknown, "…"))
			continue
		}
		a.removes(start, true)
	}
}

// xargs runs a command with arguments that nobody knows.
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

// writer is for other programs that write the files they are given.
func (a *assessment) writer(name string, args []string) {
	options, others := split(args)
	switch name {
	case "tee", "truncate", "touch":
		for _, f := range others {
			if name != "touch" {
				a.writes(f)
			}
		}
	case "sed", "perl", "ruby":
		if slices.ContainsFunc(options, func(o string) bool {
			return !strings.HasPrefix(o, "--") && strings.Contains(o, "i") || strings.HasPrefix(o, "--in-place")
		}) {
			for _, f := range others {
				a.writes(f)
			}
		}
	case "mv":
		for i, f := range others {
			if i == len(others)-1 {
				a.writes(f)
			} else {
				a.moves(f)
			}
		}
	case "cp", "install", "ln", "rsync":
		if len(others) > 0 {
			a.writes(others[len(others)-1])
		}
	case "dd":
		for _, f := range others {
			if to, ok := strings.CutPrefix(f, "of="); ok {
				a.writes(to)
			}
		}
	}
}
