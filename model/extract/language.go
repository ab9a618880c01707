package extract

import (
	"path"
	"slices"
	"strings"
)

// language is what has to be known of a kind of file to cut it into passages.
type language struct {
	// source is set for program text: it has declarations and comments.
	source bool
	// The marks of comments; slash includes /* */, hash includes """.
	slash, hash, dash, semicolon bool
	// data is set for logs and tables, which have lines and nothing else.
	data bool
}

// languageOf returns the language for the name of a file.
func languageOf(file string) language {
	switch strings.ToLower(strings.TrimPrefix(path.Ext(baseName(file)), ".")) {
	case "go", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm", "rs", "java", "kt", "kts", "swift", "js", "jsx",
		"mjs", "cjs", "ts", "tsx", "cs", "scala", "dart", "proto", "zig", "groovy", "css", "scss", "less", "v", "vue",
		"svelte", "d", "y", "mod", "cue", "glsl", "cu", "sol":
		return language{source: true, slash: true}
	case "py", "pyi", "sh", "bash", "zsh", "rb", "pl", "pm", "ex", "exs", "r", "jl", "nim", "tcl", "ps1", "cmake", "mk",
		"tf", "hcl", "bzl", "star", "awk", "rc", "fish", "coffee", "cr", "yaml", "yml", "toml", "conf", "ini", "cfg":
		return language{source: true, hash: true}
	case "s", "asm":
		return language{source: true, slash: true, semicolon: true}
	case "php":
		return language{source: true, slash: true, hash: true}
	case "sql", "lua", "hs", "elm", "vhd", "vhdl", "ada":
		return language{source: true, dash: true, slash: true}
	case "lisp", "el", "clj", "cljs", "scm", "rkt":
		return language{source: true, semicolon: true}
	case "log", "csv", "tsv", "jsonl", "ndjson", "json", "lock", "sum":
		return language{data: true}
	case "":
		switch baseName(file) {
		case "Makefile", "Dockerfile", "Rakefile", "Gemfile", "Justfile", "BUILD", "WORKSPACE":
			return language{source: true, hash: true}
		}
	}
	return language{}
}

func baseName(file string) string {
	return file[strings.LastIndexAny(file, `/\`)+1:]
}

// fileFactor is what a file's name says about how likely it is the place that
// explains something.
func fileFactor(file string, tests bool) float64 {
	t := tuned()
	f := 1.0
	p := "/" + strings.ToLower(strings.ReplaceAll(file, `\`, "/"))
	name := baseName(p)
	if !tests && (containsAny(name, "_test.", ".test.", ".spec.", "_spec.") || strings.HasPrefix(name, "test_") ||
		containsAny(p, "/test/", "/tests/", "/testdata/", "/__tests__/", "/fixtures/")) {
		f *= t.tests
	}
	if containsAny(name, ".pb.", ".min.", "_generated.", ".gen.", "zz_generated", "zerrors_", "zsyscall_", "_string.go",
		".lock") {
		f *= t.generated
	}
	if containsAny(p, "/vendor/", "/node_modules/", "/third_party/", "/site-packages/") {
		f *= t.vendored
	}
	return f
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// declaration returns the range of the declared name when a line of program
// text, without its indentation, declares something.
func declaration(line string, l language, indent int) (from, to int, ok bool) {
	i := 0
	for {
		w, next := firstWord(line, i)
		if w == "" {
			break
		}
		if modifier(w) {
			i = next
			continue
		}
		if keyword(w, indent) {
			from, to = declaredName(line, next)
			return from, to, to > from
		}
		break
	}
	if !l.slash {
		return 0, 0, false
	}
	if indent > 0 {
		return methodHead(line, i)
	}
	return functionHead(line)
}

// firstWord returns the letters at or after i and where the next word starts.
func firstWord(line string, i int) (w string, next int) {
	start := i
	if i < len(line) && (line[i] == '#' || line[i] == '@') {
		i++
	}
	for i < len(line) && (line[i] >= 'a' && line[i] <= 'z' || line[i] >= 'A' && line[i] <= 'Z') {
		i++
	}
	end := i
	if i < len(line) && line[i] == '(' && line[start:end] == "pub" {
		i += strings.IndexByte(line[i:], ')') + 1
	}
	if i >= len(line) || line[i] != ' ' && line[i] != '\t' {
		return "", i
	}
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	return line[start:end], i
}

func modifier(w string) bool {
	switch w {
	case "export", "default", "async", "public", "private", "protected", "internal", "static", "final", "abstract",
		"pub", "unsafe", "extern", "inline", "virtual", "override", "partial", "sealed", "open", "suspend", "local",
		"declare", "data", "CREATE", "create":
		return true
	}
	return false
}

func keyword(w string, indent int) bool {
	switch w {
	case "func", "fn", "fun", "def", "class", "struct", "interface", "enum", "trait", "impl", "function", "module",
		"namespace", "macro", "record", "protocol", "service", "message", "rpc", "procedure", "sub", "union",
		"TEXT", "TABLE", "VIEW", "INDEX", "table", "view":
		return true
	case "type", "typedef", "const", "var", "let", "#define", "DATA", "GLOBL":
		return indent == 0
	}
	return false
}

// methodHead recognises methods of languages that write no keyword, inside a class: the
// name at i, behind the modifiers, parameters, and an open brace at the end of the line.
func methodHead(line string, i int) (from, to int, ok bool) {
	bracket := strings.IndexByte(line, '(')
	if bracket <= i || line[len(line)-1] != '{' || strings.ContainsAny(line[i:bracket], "=.:?\"'`") {
		return 0, 0, false
	}
	if c := line[i] | 0x20; c != '_' && c != '#' && (c < 'a' || c > 'z') {
		return 0, 0, false
	}
	// A call whose last argument is a function ends alike.
	if rest := line[bracket:]; !strings.Contains(rest, ")") || containsAny(rest, "=>", "func") {
		return 0, 0, false
	}
	switch w, _, _ := strings.Cut(line[i:bracket], " "); w {
	case "if", "for", "while", "switch", "catch", "foreach", "using", "lock", "synchronized", "with", "else", "do",
		"return", "go", "defer", "case", "new", "unless", "match", "select", "await", "try":
		return 0, 0, false
	}
	return i, bracket, true
}

// declaredName returns the range of the name that starts at i: up to the
// parameters, with the receiver of a method before it.
func declaredName(line string, i int) (from, to int) {
	from = i
	if i < len(line) && line[i] == '(' {
		end := strings.IndexByte(line[i:], ')')
		if end < 0 {
			return i, i
		}
		i += end + 1
		for i < len(line) && line[i] == ' ' {
			i++
		}
	}
	for i < len(line) && (line[i] == '_' || line[i] == '.' || line[i] == ':' || line[i] == '*' ||
		line[i] >= '0' && line[i] <= '9' || line[i]|0x20 >= 'a' && line[i]|0x20 <= 'z' || line[i] >= 0x80) {
		i++
	}
	return from, i
}

// functionHead recognises functions of languages that write no keyword:
// a name and a bracket at the start of a line, an open brace at its end.
func functionHead(line string) (from, to int, ok bool) {
	bracket := strings.IndexByte(line, '(')
	if bracket <= 0 || strings.IndexByte(line[:bracket], '=') >= 0 {
		return 0, 0, false
	}
	if c := line[0] | 0x20; c < 'a' || c > 'z' {
		return 0, 0, false
	}
	switch last := line[len(line)-1]; last {
	case '{', ')', ',':
	default:
		return 0, 0, false
	}
	switch w, _, _ := strings.Cut(line[:bracket], " "); w {
	case "if", "for", "while", "switch", "return", "else", "import":
		return 0, 0, false
	}
	return 0, bracket, true
}
