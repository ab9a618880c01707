package project

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Judges returns the files that judge in a check: the scripts that the command runs, and the
// files that it passes to test runners and other tools. They are sorted, relative to the
// workspace, as far as the text of the command says.
//
// Files that a command only reads as data (arguments of test, cat, grep, diff, of a script, and
// so on) are what is judged, and are not returned. The same holds for a script whose output is
// read by another command, and for one that the task names, unless its name is that of a check
// or a test. A file that the command names as the place of its output is none either.
func Judges(command, task string) []string {
	j := &judges{task: task, found: make(map[string]bool), written: make(map[string]bool)}
	j.read(command, 0)
	files := make([]string, 0, len(j.found))
	for name := range j.found {
		if !j.written[name] {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

type judges struct {
	task  string
	found map[string]bool
	// written are files that the command writes.
	written map[string]bool
}

// maxScripts limits the nesting of sh -c.
const maxScripts = 5

// read collects the files of a command line. All words of one that cannot be parsed count.
func (j *judges) read(text string, depth int) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || depth > maxScripts {
		ends := func(c rune) bool { return strings.ContainsRune(" \t\n;|&()<>\"'`$=", c) }
		for w := range strings.FieldsFuncSeq(text, ends) {
			j.add(w)
		}
		return
	}
	read := outputRead(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		stmt, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		if cmd, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(cmd.Args) > 0 {
			c := &call{}
			for _, w := range cmd.Args {
				c.words = append(c.words, newWord(text, w))
			}
			j.call(unwrapped(c), stdin(text, stmt), read[stmt], depth)
		}
		return true
	})
}

// outputRead returns the statements whose output another command reads: those inside of
// substitutions, and those before a pipe.
func outputRead(file *syntax.File) map[*syntax.Stmt]bool {
	read := make(map[*syntax.Stmt]bool)
	mark := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if s, ok := n.(*syntax.Stmt); ok {
				read[s] = true
			}
			return true
		})
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			mark(n)
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				mark(n.X)
			}
		}
		return true
	})
	return read
}

// stdin returns the file that a statement reads as standard input.
func stdin(text string, stmt *syntax.Stmt) string {
	for _, r := range stmt.Redirs {
		if r.Op == syntax.RdrIn && r.Word != nil {
			return newWord(text, r.Word).text
		}
	}
	return ""
}

// unwrapped returns the call without the programs that run it as it is.
func unwrapped(c *call) *call {
	for {
		next := 0
		switch c.program() {
		case "env", "exec", "command", "nohup", "nice", "time", "stdbuf", "setsid", "xvfb-run":
			next = 1
		case "timeout":
			next = 2 // after the time
		}
		for next > 0 && next < len(c.words) && (strings.HasPrefix(c.at(next).text, "-") ||
			strings.Contains(c.at(next).text, "=")) {
			next++
		}
		if next == 0 || next >= len(c.words) {
			return c
		}
		c = c.rest(next)
	}
}

// call collects the files of a simple command.
func (j *judges) call(c *call, input string, outputRead bool, depth int) {
	program, args := c.program(), c.words[1:]
	if strings.Contains(c.at(0).text, "/") {
		j.script(c.at(0).text, outputRead)
	}
	switch {
	case slices.Contains(dataReaders(), program):
		if w, ok := c.value("-f", "--file", "--from-file"); ok && program != "test" && program != "[" {
			j.add(w.text) // patterns, or a program
		}
	case program == "source" || program == ".":
		j.script(c.at(1).text, outputRead)
	case slices.Contains(shells(), program) && c.has("-c", "-ec", "-lc", "-euc"):
		if w, ok := c.value("-c", "-ec", "-lc", "-euc"); ok {
			j.read(w.text, depth+1)
		}
	case slices.Contains(shells(), program), slices.Contains(interpreters(), program):
		j.interpreter(c, input, outputRead)
	case strings.Contains(c.at(0).text, "/"): // a script's arguments are its data
	default:
		j.files(args)
	}
}

// files collects the files among the arguments of a runner. Those that it writes do not judge.
func (j *judges) files(args []word) {
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i].text, "=")
		switch {
		case !writes().MatchString(flag):
			j.add(args[i].text)
			j.add(value)
		case joined:
			j.output(value)
		case i+1 < len(args) && !strings.HasPrefix(args[i+1].text, "-"):
			i++
			j.output(args[i].text)
		}
	}
}

// output notes a file that the command writes. A format can be in front of its name (xml:cov.xml).
func (j *judges) output(name string) {
	j.written[path.Clean(name[strings.LastIndexAny(name, ":=")+1:])] = true
}

// writes matches flags that name a file or a folder that a runner writes.
var writes = lazyregexp.New(`^(-o|-trace|--out|-?-[\w.-]*(coverprofile|cpuprofile|memprofile|blockprofile|` +
	`mutexprofile|junit-?xml|log-junit|xunit-file|cov-report|report-?(file|path|dir|log)|result-?log|` +
	`coverage-(clover|cobertura|html|xml)|html|(?i:output-?(file|path|dir|directory)?)(\.\w+)?|coverageDirectory|` +
	`results-directory|log-file|outfile|out-?dir|reports-dir))$`)

// interpreter collects the script of an interpreter. With a module or a subcommand that runs
// tests (python -m pytest, node --test) all files count.
func (j *judges) interpreter(c *call, input string, outputRead bool) {
	if c.has("-m", "--test", "test", "run") {
		j.files(c.words[1:])
		return
	}
	if c.has("-c", "-e", "-r", "--eval", "-p", "--print") {
		return // the program is an argument, files are its data
	}
	for _, w := range c.words[1:] {
		if !strings.HasPrefix(w.text, "-") {
			j.script(w.text, outputRead)
			return
		}
	}
	if input != "" {
		j.script(input, outputRead)
	}
}

// script adds a script, unless it is what the check judges.
func (j *judges) script(name string, outputRead bool) {
	class := Classify(path.Clean(name)).Class
	if class == TestFile || class.Protected() || reCheck().MatchString(path.Base(name)) || !outputRead && !j.named(name) {
		j.add(name)
	}
}

// named reports whether the task names a file.
func (j *judges) named(name string) bool {
	base := path.Base(name)
	for rest := j.task; ; {
		i := strings.Index(rest, base)
		if i < 0 {
			return false
		}
		after := rest[i+len(base):]
		if (i == 0 || !wordRune(rest[i-1])) && (after == "" || !wordRune(after[0]) ||
			after[0] == '.' && (len(after) == 1 || !wordRune(after[1]))) {
			return true
		}
		rest = after
	}
}

// wordRune reports whether a byte continues a file name.
func wordRune(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c >= 0x80
}

func (j *judges) add(name string) {
	if name = strings.Trim(name, `"'`); name != "" && !strings.HasPrefix(name, "-") {
		j.found[path.Clean(name)] = true
	}
}

// NamesCheck reports whether a name is that of a script that checks.
func NamesCheck(base string) bool { return reCheck().MatchString(base) }

// reCheck matches names of scripts that judge.
var reCheck = lazyregexp.New(`(?i)(^|[^a-z])(checks?|tests?|spec|verify|validate|lint|assert|expect|judge|ci)([^a-z]|$)`)

// dataReaders are programs whose arguments are data.
func dataReaders() []string {
	return []string{"test", "[", "cat", "tac", "nl", "grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "comm",
		"wc", "jq", "yq", "head", "tail", "sort", "uniq", "cut", "tr", "paste", "join", "stat", "ls", "file", "strings",
		"od", "xxd",
		"hexdump", "md5sum", "sha1sum", "sha256sum", "cksum", "sum", "awk", "gawk", "mawk", "sed", "bc", "echo",
		"printf", "find", "tee", "column", "basename", "dirname", "realpath", "readlink"}
}

func shells() []string { return []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"} }

func interpreters() []string {
	return []string{"python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "ruby", "perl",
		"php", "lua", "Rscript", "tclsh", "osascript", "pwsh"}
}
