package risk

import (
	"encoding/base64"
	"encoding/binary"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// cmdletCall matches a cmdlet in a line that may be of another shell.
var cmdletCall = lazyregexp.New(`(?i)(?:^|[;|&{(\n]|=)\s*(?:remove|clear|set|move|rename|copy|new|add|out|invoke|` +
	`start|format|get|foreach|where)-(?:item|content|file|expression|process|childitem|object|volume|disk|partition)\b`)

// isPowerShell reports whether a tool or program runs code of PowerShell, by its name.
func isPowerShell(name string) bool {
	name = strings.ToLower(name)
	return name == "powershell" || name == "pwsh" || name == "powershell_ise" || strings.HasSuffix(name, "__powershell")
}

// powershell assesses code of PowerShell.
func (a *assessment) powershell(text string, depth int) {
	if len(text) > maxCommand || depth > maxNested {
		a.add(Unreadable, shown(text))
		return
	}
	if !a.psLine(text, depth) {
		a.add(Unreadable, shown(text))
	}
	if psStatic().MatchString(text) {
		a.code(strings.ReplaceAll(text, `\`, "/"), depth)
	}
}

// psLine assesses statements of PowerShell and reports whether it could parse them.
func (a *assessment) psLine(text string, depth int) bool {
	dir := a.at.Dir
	p := &psParser{a: a, text: text, depth: depth}
	p.statements(0)
	a.at.Dir = dir
	return !p.broken
}

// psStatic matches a static call of .NET that changes files or starts a program.
var psStatic = lazyregexp.New(`(?i)\]::(delete|writeall|appendall|create|move|copy|replace|start)`)

// psProgram assesses the arguments of powershell or pwsh.
func (a *assessment) psProgram(args []string, depth int) {
	for i, arg := range args {
		name, isOption := strings.CutPrefix(strings.ToLower(arg), "-")
		rest := args[i+1:]
		switch {
		case isOption && name != "" && len(name) < 3 && strings.HasPrefix("ec", name) && name[0] == 'e',
			isOption && len(name) > 1 && strings.HasPrefix("encodedcommand", name):
			a.psEncoded(strings.Join(rest[:min(1, len(rest))], ""), depth)
			return
		case isOption && name != "" && (strings.HasPrefix("command", name) || strings.HasPrefix("commandwithargs", name) ||
			name == "cwa"):
			if line := strings.Join(rest, " "); line == "-" || strings.TrimSpace(line) == unknown {
				a.add(Unreadable, "powershell "+shown(strings.Join(args, " ")))
			} else {
				a.powershell(line, depth+1)
			}
			return
		case isOption && name != "" && strings.HasPrefix("file", name):
			return
		case isOption && psTakes(name), i > 0 && psTakes(strings.ToLower(strings.TrimPrefix(args[i-1], "-"))):
		case !isOption && strings.HasSuffix(strings.ToLower(arg), ".ps1"):
			return
		case !isOption:
			a.powershell(strings.Join(args[i:], " "), depth+1)
			return
		}
	}
}

// psTakes reports whether an option of powershell, without its dash, takes a value.
func psTakes(name string) bool {
	return slices.ContainsFunc([]string{"executionpolicy", "ep", "version", "windowstyle", "inputformat", "outputformat",
		"configurationname", "workingdirectory", "wd", "psconsolefile", "settingsfile", "custompipename"},
		func(o string) bool { return len(name) > 1 && strings.HasPrefix(o, name) })
}

// psEncoded assesses code in Base64 of UTF-16.
func (a *assessment) psEncoded(text string, depth int) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw)%2 != 0 || len(raw) == 0 {
		a.add(Unreadable, "powershell -EncodedCommand "+shown(text))
		return
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	a.powershell(strings.ReplaceAll(string(utf16.Decode(units)), "\x00", ""), depth+1)
}

// psParser reads statements of PowerShell and assesses their commands. What it cannot determine
// is unknown.
type psParser struct {
	a     *assessment
	text  string
	depth int
	// before are the earlier commands of the pipeline.
	before [][]string
	// blocks are the script blocks of the command that is read.
	blocks []string
	// last is the command that was read last, invoked is set if the words of the current one
	// are a command by an operator.
	last            []string
	invoked, broken bool
}

// maxBlocks limits the nesting of blocks and parentheses.
const maxBlocks = 50

// statements reads statements up to the closing bracket of a block, or the end.
func (p *psParser) statements(nesting int) {
	outer, outerBlocks := p.before, p.blocks
	p.before, p.blocks = nil, nil
	defer func() { p.before, p.blocks = outer, outerBlocks }()
	if nesting > maxBlocks {
		p.broken, p.text = true, ""
		return
	}
	var words []string
	end := func(piped bool) {
		if len(words) == 1 && words[0] == empty { // a command in parentheses
			words = p.last
		} else if len(words) > 0 {
			p.a.psCommand(words, p)
		}
		p.last = words
		if piped {
			p.before = append(p.before, words)
		} else {
			p.before = nil
		}
		words, p.blocks, p.invoked = nil, nil, false
	}
	for p.text != "" {
		switch c := p.text[0]; {
		case c == '}' || c == ')':
			p.text = p.text[1:]
			end(false)
			if nesting > 0 {
				return
			}
		case strings.HasPrefix(p.text, "||"), strings.HasPrefix(p.text, "&&"):
			p.text = p.text[2:]
			end(false)
		case c == '|':
			p.text = p.text[1:]
			end(true)
		case c == ';' || c == '\n':
			p.text = p.text[1:]
			end(false)
		case c == '{':
			p.text = p.text[1:]
			inner := p.text
			p.statements(nesting + 1)
			p.blocks = append(p.blocks, inner[:len(inner)-len(p.text)])
		case c == ' ' || c == '\t' || c == '\r' || c == ',' || c == '&':
			p.invoked = p.invoked || c == '&' && len(words) == 0
			p.text = p.text[1:]
		case c == '`' && strings.HasPrefix(p.text[1:], "\n"):
			p.text = p.text[2:]
		case c == '$' && len(words) == 0 && p.assigns():
			words = append(words, p.readAssignment(nesting))
		case c == '#':
			_, p.text, _ = strings.Cut(p.text, "\n")
			end(false)
		case strings.HasPrefix(p.text, "<#"):
			_, p.text, _ = strings.Cut(p.text, "#>")
		case c == '>':
			p.text = strings.TrimLeft(p.text, "> \t")
			p.a.psWrites(p.word(nesting))
		default:
			words = append(words, p.word(nesting))
		}
	}
	end(false)
}

// psAssign matches the beginning of an assignment.
var psAssign = lazyregexp.New(`^\$((?:[A-Za-z]+:)?[A-Za-z0-9_]+)\s*=\s*[^=\s]`)

// assigns reports whether an assignment follows.
func (p *psParser) assigns() bool { return psAssign().MatchString(p.text) }

// readAssignment reads an assignment and returns the first word of its value, which can be the name
// of a command.
func (p *psParser) readAssignment(nesting int) string {
	m := psAssign().FindStringSubmatch(p.text)
	p.text = p.text[len(m[0])-1:]
	constant := p.text[0] == '\'' || p.text[0] == '"'
	word := p.word(nesting)
	value := empty
	if constant {
		value = word
	}
	p.a.vars["$"+strings.ToLower(m[1])] = value
	return word
}

// word reads a word, which may have several parts. Every call removes text.
func (p *psParser) word(nesting int) string {
	var b strings.Builder
	for first := true; p.text != ""; first = false {
		switch c := p.text[0]; {
		case strings.HasPrefix(p.text, "@'"), strings.HasPrefix(p.text, `@"`):
			mark := "\n" + p.text[1:2] + "@"
			body, rest, ok := strings.Cut(p.text[2:], mark)
			p.broken = p.broken || !ok
			p.text = rest
			b.WriteString(strings.TrimPrefix(body, "\n"))
		case c == '\'' || c == '"':
			p.readQuoted(&b, c, nesting)
		case c == '$':
			p.variable(&b, nesting)
		case c == '`' && len(p.text) > 1:
			b.WriteByte(p.text[1])
			p.text = p.text[2:]
		case c == '(' || c == '@' && strings.HasPrefix(p.text, "@("):
			p.text = strings.TrimPrefix(p.text, "@")[1:]
			p.statements(nesting + 1)
			b.WriteString(empty)
		case strings.IndexByte(" \t\r\n;|{}),", c) >= 0 || c == '>' && !first || c == '&' && !first:
			if first {
				p.text = p.text[1:]
			}
			return b.String()
		default:
			b.WriteByte(c)
			p.text = p.text[1:]
		}
	}
	return b.String()
}

// readQuoted reads a text in quotes.
func (p *psParser) readQuoted(b *strings.Builder, quote byte, nesting int) {
	for p.text = p.text[1:]; p.text != ""; {
		switch c := p.text[0]; {
		case c == quote && len(p.text) > 1 && p.text[1] == quote:
			b.WriteByte(quote)
			p.text = p.text[2:]
		case c == quote:
			p.text = p.text[1:]
			return
		case c == '$' && quote == '"':
			p.variable(b, nesting)
		case c == '`' && quote == '"' && len(p.text) > 1:
			b.WriteByte(p.text[1])
			p.text = p.text[2:]
		default:
			b.WriteByte(c)
			p.text = p.text[1:]
		}
	}
	p.broken = true
}

// psName matches the name of a variable.
var psName = lazyregexp.New(`^\$(?:\{([^}]*)\}|((?:[A-Za-z]+:)?[A-Za-z0-9_?^$]+))`)

// variable reads a variable or a subexpression.
func (p *psParser) variable(b *strings.Builder, nesting int) {
	if strings.HasPrefix(p.text, "$(") {
		p.text = p.text[2:]
		p.statements(nesting + 1)
		b.WriteString(empty)
		return
	}
	m := psName().FindStringSubmatch(p.text)
	if m == nil {
		b.WriteByte('$')
		p.text = p.text[1:]
		return
	}
	p.text = p.text[len(m[0]):]
	if rest, ok := strings.CutPrefix(p.text, "."); ok && !strings.EqualFold(m[2], "pwd") && rest != "" && letter(rest[0]) {
		p.text = strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")
		if member := rest[:len(rest)-len(p.text)]; strings.EqualFold(member, "delete") {
			p.a.add(DeleteFiles, shown(m[0]+"."+member))
		}
		b.WriteString(unknown)
		return
	}
	b.WriteString(p.a.psVariable(strings.ToLower(m[1] + m[2])))
}

// psVariable returns the value of a variable, by its name in lower case.
func (a *assessment) psVariable(name string) string {
	if value, ok := a.vars["$"+name]; ok {
		return value
	}
	switch name {
	case "home", "env:userprofile", "env:home":
		if a.at.Home != "" {
			return filepath.ToSlash(a.at.Home)
		}
	case "pwd":
		return filepath.ToSlash(a.at.Dir)
	case "env:temp", "env:tmp":
		return "/tmp"
	case "_", "psitem", "psscriptroot", "args":
		return unknown
	case "null":
		return ""
	case "true", "false":
		return "$" + name
	}
	return empty
}

// psWrites assesses the target of a redirection.
func (a *assessment) psWrites(name string) {
	if name = psPath(name); name != "" && !strings.HasPrefix(name, "&") && !strings.EqualFold(name, "$null") {
		a.named(name)
		a.writes(name)
	}
}

// psPath returns a path with slashes.
func psPath(word string) string { return strings.ReplaceAll(word, `\`, "/") }

// psCommand assesses a command of a pipeline.
func (a *assessment) psCommand(words []string, p *psParser) {
	invoked := p.invoked
	if words[0] == "." && len(words) > 1 {
		words, invoked = words[1:], true
	}
	if strings.HasPrefix(words[0], "[") || strings.Contains(words[0], unknown) && !invoked {
		return // an expression; powershell assesses calls of .NET
	}
	name := programName(words[0])
	if cmdlet := psCmdlet(name); cmdlet != "" {
		a.cmdlet(cmdlet, psArguments(words[1:]), p)
		return
	}
	plain := slices.Clone(words)
	for i := range plain {
		plain[i] = psPath(plain[i])
	}
	plain[0] = name
	if path.Base(name) == "rm" {
		a.cmdlet("remove-item", psArguments(plain[1:]), p)
		return
	}
	a.words(plain, p.depth)
}

// programName returns the name of a program without its folder and the ending of Windows.
func programName(word string) string {
	name := path.Base(psPath(word))
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		if len(name) > len(ending) && strings.EqualFold(name[len(name)-len(ending):], ending) {
			return strings.ToLower(name[:len(name)-len(ending)])
		}
	}
	if lower := strings.ToLower(name); lower == "powershell" || lower == "pwsh" {
		return lower
	}
	return name
}
