package checkconfig

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// command is a program that is run, with its arguments.
type command struct {
	id      string // the program, and its subcommand or script
	text    string
	options []setting
	line    int
	// forgiven is how its failure is ignored.
	forgiven string
}

var (
	// expression matches what a CI system replaces in a script, makeVar a variable of make.
	expression = lazyregexp.New(`\$\{\{.*?\}\}|\{\{.*?\}\}|<<.*?>>|\{posargs[^}]*\}`)
	makeVar    = lazyregexp.New(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)
)

// commandsOf splits a script into its commands.
func commandsOf(script string, line int) []command {
	text := expression().ReplaceAllString(script, "EXPR")
	text = strings.ReplaceAll(makeVar().ReplaceAllString(text, "$${$1}"), "$$", "$")
	lead := text[:len(text)-len(strings.TrimLeft(text, "@-+ "))]
	text = text[len(lead):]
	r := &scriptReader{text: text, line: line}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		for l := range strings.Lines(text) {
			r.call(strings.Fields(l))
			r.line++
		}
	} else {
		r.statements(file.Stmts, "")
	}
	if strings.Contains(lead, "-") {
		r.forgive("- before the command")
	}
	return r.all
}

// scriptReader collects the commands of a script.
type scriptReader struct {
	text string
	line int
	all  []command
}

func (r *scriptReader) forgive(how string) {
	for i := range r.all {
		if r.all[i].forgiven == "" {
			r.all[i].forgiven = how
		}
	}
}

func (r *scriptReader) statements(list []*syntax.Stmt, forgiven string) {
	for i, s := range list {
		before := len(r.all)
		words := r.wordsOf(s)
		switch first := strings.Join(words, " "); {
		case first == "set +e":
			forgiven = "set +e"
		case first == "set -e":
			forgiven = ""
		case (first == "exit 0" || first == "exit") && i == len(list)-1 && i > 0:
			r.forgive("exit 0")
		default:
			r.statement(s)
		}
		for j := before; j < len(r.all); j++ {
			if forgiven != "" && r.all[j].forgiven == "" {
				r.all[j].forgiven = forgiven
			}
		}
	}
}

func (r *scriptReader) wordsOf(s *syntax.Stmt) []string {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	words := make([]string, 0, len(call.Args))
	for _, w := range call.Args {
		words = append(words, r.word(w))
	}
	return words
}

// word returns the value of a word, as far as it is literal.
func (r *scriptReader) word(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, "\\\n", ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		default:
			b.WriteString(strings.Trim(r.text[p.Pos().Offset():p.End().Offset()], `"`))
		}
	}
	return b.String()
}

func (r *scriptReader) statement(s *syntax.Stmt) {
	before := len(r.all)
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		at := r.line
		r.line += int(cmd.Pos().Line()) - 1 //nolint:gosec // a script is small
		r.call(r.wordsOf(s))
		r.line = at
	case *syntax.BinaryCmd:
		r.statement(cmd.X)
		after := len(r.all)
		r.statement(cmd.Y)
		if cmd.Op == syntax.OrStmt && len(r.all) == after && forgives(r.wordsOf(cmd.Y)) {
			r.all = r.all[:after]
			for i := before; i < after; i++ {
				r.all[i].forgiven = "|| " + strings.Join(r.wordsOf(cmd.Y), " ")
			}
		}
	case nil:
	default:
		syntax.Walk(cmd, func(n syntax.Node) bool {
			if inner, ok := n.(*syntax.Stmt); ok {
				r.statement(inner)
				return false
			}
			return true
		})
	}
	if s.Negated || s.Background {
		for i := before; i < len(r.all); i++ {
			r.all[i].forgiven = "its status is not used"
		}
	}
}

// forgives reports whether a command after || makes a failure a success.
func forgives(words []string) bool {
	return len(words) > 0 && (slices.Contains([]string{"true", ":", "echo", "printf"}, words[0]) ||
		strings.Join(words, " ") == "exit 0")
}

// trivial are commands that check nothing and do nothing for a check.
var trivial = lazyregexp.New(`^(|\$.*|echo|printf|true|:|exit|cd|pushd|popd|mkdir|rm|cp|mv|export|set|cat|git|curl|wget|apt-get|` +
	`apt|apk|brew|sudo|chmod|touch|ls|source|\.|eval|read|sleep|sed|awk|tee|head|tail|unset|tar|unzip|choco|corepack|rustup)$`)

// call adds a simple command. Targets of a program that takes several are a command each.
func (r *scriptReader) call(words []string) {
	words = unwrapped(words)
	if len(words) == 0 {
		return
	}
	program := programOf(words[0])
	if (program == "bash" || program == "sh") && len(words) > 2 && words[1] == "-c" && len(r.all) < maxSettings {
		r.all = append(r.all, commandsOf(words[2], r.line)...)
		return
	}
	if trivial().MatchString(program) && !(program == "awk" && strings.Contains(words[len(words)-1], "exit")) {
		return
	}
	ids, rest := identify(program, words[1:])
	for _, id := range ids {
		c := command{id: id, text: strings.Join(words, " "), line: r.line}
		c.options = optionsOf(nil, rest, r.line)
		r.all = append(r.all, c)
	}
}

func programOf(word string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(strings.TrimLeft(word, "@"), `\`, "/")))
	for _, suffix := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, suffix)
	}
	if strings.HasPrefix(name, "${") { // $(GO) of make
		name = strings.ToLower(strings.Trim(name, "${}"))
	}
	switch name {
	case "gmake":
		return "make"
	case "gradlew":
		return "gradle"
	case "mvnw":
		return "mvn"
	case "python3", "py":
		return "python"
	case "pnpm", "yarn", "bun":
		return "npm"
	}
	return name
}

// wrappers are programs that run another one: how many words belong to them.
var wrappers = sync.OnceValue(func() map[string]int {
	return map[string]int{"sudo": 1, "env": 1, "time": 1, "nice": 1, "exec": 1, "command": 1, "xvfb-run": 1,
		"cross-env": 1, "npx": 1, "bunx": 1, "pnpx": 1, "uvx": 1, "nohup": 1, "xargs": 1, "dotenv": 1, "timeout": 2,
		"uv run": 2, "poetry run": 2,
		"pipenv run": 2, "pdm run": 2, "rye run": 2, "hatch run": 2, "conda run": 2, "bundle exec": 2, "npm exec": 2,
		"npm dlx": 2, "npm x": 2, "pipx run": 2, "python -m": 2, "dotnet tool": 3, "mise exec": 2, "coverage run": 0}
})

// unwrapped returns the words from the program that does the work.
func unwrapped(words []string) []string {
	for range maxDepth {
		for len(words) > 0 && assigns(words[0]) {
			words = words[1:]
		}
		if len(words) == 0 {
			return nil
		}
		program := programOf(words[0])
		skip := wrappers()[program]
		if len(words) > 1 {
			skip = max(skip, wrappers()[program+" "+words[1]])
		}
		for skip > 0 && skip < len(words) && (strings.HasPrefix(words[skip], "-") || assigns(words[skip])) {
			skip++
		}
		if skip == 0 || skip >= len(words) {
			return words
		}
		words = words[skip:]
	}
	return words
}

var assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)

func assigns(word string) bool { return assignment().MatchString(word) }

// Programs by how their first arguments say what they do.
var (
	targetPrograms = lazyregexp.New(`^(make|just|task|rake|gradle|mvn|ant|invoke|mage|earthly|bazel)$`)
	verbPrograms   = lazyregexp.New(`^(go|cargo|dotnet|deno|ruff|golangci-lint|coverage|pre-commit|prek|hatch|swift|flutter|dart|` +
		`zig|mix|sbt|docker|docker-compose|biome|nx|turbo|lerna|poetry|pip|pip3|uv|gem|bundle|pdm|pipenv|hatch|php-cs-fixer|` +
		`phpstan|zizmor|rustup|npm)$`)
	interpreters = lazyregexp.New(`^(python|node|php|ruby|bash|sh|perl|tsx|ts-node|deno)[0-9.]*$`)
	targetForm   = lazyregexp.New(`^[A-Za-z:$][\w.:@/{}$-]*$`)
	installs     = lazyregexp.New(`^(install|i|ci|add|restore|update|publish|pack|require|sync|login|get|mod|tool|download|fetch|` +
		`clean|init|config|self-update|dump-autoload|xml|html|combine|json|lcov|erase|up|down|pull|push|tag|version|env|` +
		`cache|help|dedupe|link|create|upgrade|set|dist-upgrade|global)$`)
)

// identify returns what a program runs, one ID for each target, and the words that remain.
func identify(program string, args []string) (ids, rest []string) {
	first := slices.IndexFunc(args,
		func(a string) bool { return !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") })
	verb := ""
	if first >= 0 {
		verb = args[first]
	}
	without := func(i int) []string { return slices.Concat(args[:i], args[i+1:]) }
	switch {
	case program == "npm" || program == "composer":
		if verb == "run" || verb == "run-script" {
			if args = without(first); first < len(args) {
				return []string{"script " + args[first]}, slices.Concat(args[:first], args[first+1:])
			}
		}
		if verb == "" || installs().MatchString(verb) {
			return nil, nil
		}
		if verb == "t" {
			verb = "test"
		}
		return []string{"script " + verb}, without(first)
	case targetPrograms().MatchString(program):
		for _, a := range args {
			if !targetForm().MatchString(a) {
				rest = append(rest, a)
			} else if !installs().MatchString(a) {
				ids = append(ids, program+" "+a[strings.LastIndexByte(a, ':')+1:])
			}
		}
		if len(ids) == 0 && len(args) == len(rest) {
			ids = []string{program}
		}
		return ids, rest
	case verbPrograms().MatchString(program) && verb != "":
		if installs().MatchString(verb) {
			return nil, nil
		}
		return []string{program + " " + verb}, without(first)
	case interpreters().MatchString(program):
		if slices.Contains(args, "--test") {
			rest := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--test" })
			return []string{program + " --test"}, rest
		}
		if verb == "" {
			return nil, nil
		}
		return []string{programOf(verb)}, without(first)
	}
	return []string{program}, args
}

// optionsOf reads arguments as settings. An option takes the next word as its value if it is
// one of those that have values.
func optionsOf(at, words []string, line int) []setting {
	var all []setting
	for i := 0; i < len(words); i++ {
		w := words[i]
		key, value, has := strings.Cut(strings.TrimLeft(w, "-/"), "=")
		switch {
		case w == "--" || w == "-" || w == "":
			continue
		case !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "/p:") && !assigns(w):
			all = append(all, setting{path: joined(at, "args"), value: w, line: line})
			continue
		case property().MatchString(w):
			key = key[1:]
			key = strings.TrimPrefix(key, ":")
		}
		if !has {
			value = "true"
			if next := i + 1; next < len(words) && !strings.HasPrefix(words[next], "-") && valued(key) {
				value, i = words[next], next
			}
		}
		all = append(all, setting{path: joined(at, key), value: value, line: line})
	}
	return all
}

// property matches definitions as of Maven, Gradle and MSBuild.
var property = lazyregexp.New(`^(-[DP]|[-/]p:)[A-Za-z]`)

// valued reports whether an option has a value, as far as its name says.
func valued(key string) bool {
	switch w := wordsOf(key); matchKey(w) {
	case narrows:
		return !slices.Contains([]string{"short", "lib", "bins", "only", "invert", "last-failed", "lf", "f"}, w)
	case atLeast, atMost, platform:
		return true
	case selects:
		return w != "in"
	case checks:
		return w == "d" || w == "w" || w == "select" || w == "extend-select"
	case unknown:
		return excluding().MatchString(w) &&
			!slices.Contains([]string{"exit-zero", "no-verify", "no-cov", "if-present"}, w) &&
			!strings.HasPrefix(w, "pass-with") && !strings.HasPrefix(w, "skip") && !strings.HasPrefix(w, "allow")
	}
	return slices.Contains([]string{"o", "c", "configuration", "logger", "reporter", "format", "output", "j", "jobs",
		"seed"}, key)
}

// kinds of checks, by the words of their commands; the first match counts.
var checkKinds = sync.OnceValue(func() []checkKind {
	var all []checkKind
	for _, k := range [][2]string{
		{"coverage", `cov(er|erage)?|c8|nyc|tarpaulin|llvm-cov|kover[a-z]*|jacoco[a-z]*|mutat[a-z]*|infection|stryker|go-test-coverage`},
		{"types", `tsc|mypy|pyright|types?|type-?check|srb|steep|ty`},
		{"lint", `[a-z]*lint[a-z]*|ruff|flake8|pylint|rubocop|clippy|checkstyle[a-z]*|pmd[a-z]*|spotbugs[a-z]*|detekt[a-z]*|stan|phpstan|` +
			`psalm|phpcs|php-cs-fixer|cs|biome|vet|staticcheck|govulncheck|audit|codeql|bandit|semgrep|pre-commit|prek|actionlint|` +
			`typos|zizmor|fmt|format|prettier|black|isort|style|spotless[a-z]*|deny|shellcheck|spell[a-z]*|sonar[a-z]*|committed|` +
			`vulture|knip|publint|attw|revapi[a-z]*|japicmp|semver-checks|gofmt|rustfmt|scorecard[a-z-]*`},
		{"test", `[a-z]*tests?|testing|specs?|jest|vitest|mocha|ava|tap|karma|pytest|unittest|nose|tox|nox|phpunit|pest|paratest|` +
			`cucumber|behat|nextest|playwright|cypress|e2e|unit|check[a-z]*|verify|validate|ci|integration|ctest|gotestsum|` +
			`fuzz|rake|miri|qa|rspec|minitest|all`},
		{"build", `build|compile[a-z]*|assemble|package`},
	} {
		all = append(all, checkKind{k[0], regexp.MustCompile(`(?i)(^|[^a-z])(` + k[1] + `)($|[^a-z])`)})
	}
	return all
})

type checkKind struct {
	name  string
	words *regexp.Regexp
}

// checkOf returns the kind of check that a command is; empty if it is none.
func checkOf(id string) string {
	for _, k := range checkKinds() {
		if k.words.MatchString(strings.TrimPrefix(id, "script ")) {
			return k.name
		}
	}
	return ""
}
