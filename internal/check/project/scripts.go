package project

import (
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
)

func (m *measurer) jest(c *call) *site {
	i := 0
	if c.program() == "react-scripts" {
		if i = 1; c.at(1).text != "test" {
			return nil
		}
	}
	for _, f := range [...]string{"--watch", "--watchAll", "--listTests", "--showConfig", "--help", "--version"} {
		if v, ok := c.value(f); ok && v.text != "false" {
			return weakSite(Jest, "jest %s does not end after the tests", f)
		}
	}
	s := &site{kind: Jest, at: c.at(i).end, tail: c.index("--") < 0, results: []Result{{Format: FormatJest}}}
	if i == 1 {
		s.env = []string{"CI=true"} // otherwise it waits for changes
	}
	s.args = []string{"--json"}
	if file := m.resultFile(s, c, ".json", "--outputFile"); file != "" {
		s.args = append(s.args, "--outputFile="+file)
	}
	s.bail(c, "-b", "--bail")
	s.cover = m.coverJest(c)
	if !c.has("-t", "--testNamePattern") {
		s.filter = titleFilter("--testNamePattern")
	}
	return s
}

// bail records flags that end a run within a suite.
func (s *site) bail(c *call, flags ...string) {
	if c.has(flags...) {
		s.stops = StopsInside
	}
}

func (m *measurer) vitest(c *call) *site {
	i := 0
	switch c.at(1).text {
	case "run", "watch", "dev", "related":
		i = 1
	case "bench", "list", "init", "typecheck":
		return weakSite(Vitest, "vitest %s runs no tests", c.at(1).text)
	}
	if c.at(i).text == "watch" || c.at(i).text == "dev" || c.has("--watch", "-w", "--ui") {
		return weakSite(Vitest, "vitest does not end after the tests: use vitest run")
	}
	if slices.ContainsFunc(c.words, func(w word) bool { return strings.HasPrefix(w.text, "--outputFile") }) {
		return weakSite(Vitest, "vitest sets a result file itself: remove --outputFile")
	}
	file := m.file(".xml")
	s := &site{kind: Vitest, at: c.at(i).end, tail: c.index("--") < 0,
		results: []Result{{Format: FormatJUnit, Files: []string{file}}}}
	if !c.has("--reporter") {
		s.args = []string{"--reporter=default"}
	}
	s.args = append(s.args, "--reporter=junit", "--outputFile.junit="+file)
	s.bail(c, "--bail")
	if !c.has("-t", "--testNamePattern") {
		s.filter = titleFilter("--testNamePattern")
	}
	return s
}

func (m *measurer) mocha(c *call) *site {
	if c.has("-R", "--reporter", "-O", "--reporter-option", "--reporter-options") {
		return weakSite(Mocha, "mocha has a single reporter, and the command sets one: remove it")
	}
	if c.has("-w", "--watch", "--dry-run", "--list-files") {
		return weakSite(Mocha, "mocha does not end after the tests, or runs none")
	}
	file := m.file(".xml")
	s := &site{kind: Mocha, at: c.at(0).end, tail: c.index("--") < 0,
		args:    []string{"--reporter", "xunit", "--reporter-option", "output=" + file},
		results: []Result{{Format: FormatJUnit, Files: []string{file}}}}
	s.bail(c, "-b", "--bail")
	if !c.has("-g", "--grep", "-f", "--fgrep") {
		s.filter = titleFilter("--grep")
	}
	return s
}

// node parses node --test. Options of node precede the files.
func (m *measurer) node(c *call) *site {
	if c.index("--test") < 0 {
		for i, w := range c.words[1:] {
			if !strings.HasPrefix(w.text, "-") {
				return m.nodeScript(c.rest(i + 1))
			}
		}
		return nil
	}
	if c.has("--watch") {
		return weakSite(Node, "node --watch does not end after the tests")
	}
	s := &site{kind: Node, at: c.at(0).end, results: []Result{{}}}
	s.tail = !slices.ContainsFunc(c.words[1:], func(w word) bool { return !strings.HasPrefix(w.text, "-") })
	reporter, ok := c.value("--test-reporter")
	switch {
	case !ok:
		file := m.file(".xml")
		s.args = []string{"--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=junit",
			"--test-reporter-destination=" + file}
		s.results[0] = Result{Format: FormatJUnit, Files: []string{file}}
	case c.has("--test-reporter-destination"):
		return weakSite(Node, "node sets result files itself: remove --test-reporter-destination")
	case reporter.text == "tap":
		s.results[0] = Result{Format: FormatTAP, Stream: Stdout}
	case reporter.text == "junit":
		s.results[0] = Result{Format: FormatJUnit, Stream: Stdout}
	default:
		return weakSite(Node, "the reporter %q writes no machine-readable results: remove it", reporter.text)
	}
	return s
}

// nodeScript recognises runners as files: node_modules/jest/bin/jest.js.
func (m *measurer) nodeScript(c *call) *site {
	switch strings.TrimSuffix(strings.TrimSuffix(c.program(), path.Ext(c.program())), "-cli") {
	case "jest":
		return m.jest(c)
	case "vitest":
		return m.vitest(c)
	case "mocha", "_mocha":
		return m.mocha(c)
	}
	return nil
}

func (m *measurer) deno(c *call) *site {
	if c.at(1).text != "test" {
		return nil
	}
	if c.has("--junit-path", "--no-run", "--watch", "--doc") {
		return weakSite(Deno, "deno test has --junit-path, or does not run and end")
	}
	file := m.file(".xml")
	s := &site{kind: Deno, at: c.at(1).end, args: []string{"--junit-path=" + file},
		results: []Result{{Format: FormatJUnit, Files: []string{file}}}}
	s.bail(c, "--fail-fast")
	return s
}

// npx returns the program that npx and the like run.
func (m *measurer) npx(c *call) *site {
	for i := 1; i < len(c.words); i++ {
		switch w := c.words[i]; {
		case !w.literal:
			return nil
		case w.text == "-p" || w.text == "--package" || w.text == "-c" || w.text == "--call":
			i++
		case w.text == "--" || strings.HasPrefix(w.text, "-"):
		default:
			return m.packaged(c.rest(i))
		}
	}
	return nil
}

// packaged recognises the runners that JavaScript projects install.
func (m *measurer) packaged(c *call) *site {
	switch name, _, _ := strings.Cut(c.program(), "@"); name {
	case "jest", "react-scripts":
		return m.jest(c)
	case "vitest":
		return m.vitest(c)
	case "mocha":
		return m.mocha(c)
	case "tsx":
		return m.node(c)
	}
	return nil
}

// manager parses what npm, pnpm, yarn and bun run: scripts and programs of the project.
func (m *measurer) manager(c *call) *site {
	name := c.program()
	dir := c.dir
	i := 1
	for ; strings.HasPrefix(c.at(i).text, "-"); i++ {
		switch flag, value, joined := strings.Cut(c.at(i).text, "="); flag {
		case "--prefix", "-C", "--dir", "--cwd":
			if !joined {
				i++
				value = c.at(i).text
			}
			dir = path.Join(dir, value)
		case "-s", "--silent", "--quiet", "-q", "--loglevel":
		default: // workspaces, filters, recursion
			return weakSite(NPM, "the packages that %s %s runs are unknown", name, c.at(i).text)
		}
	}
	word := c.at(i)
	if !word.literal || word.text == "" {
		return nil
	}
	script := ""
	switch {
	case name == "bun" && word.text == "test":
		return m.bun(c, i)
	case word.text == "run" || word.text == "run-script":
		i++
		for slices.Contains([]string{"-s", "--silent", "-q", "--quiet", "--if-present"}, c.at(i).text) {
			i++ // npm reads its own flags here, too
		}
		script = c.at(i).text
	case word.text == "exec" || word.text == "x" || word.text == "dlx":
		return m.npx(c.rest(i))
	case word.text == "test" || (name == "npm" && (word.text == "t" || word.text == "tst")):
		script = "test"
	case name == "yarn" || name == "pnpm":
		if s := m.packaged(c.rest(i)); s != nil {
			return s
		}
		script = word.text
	default:
		return nil
	}
	if !c.at(i).literal || strings.HasPrefix(script, "-") {
		return weakSite(NPM, "the packages that %s %s runs are unknown", name, script)
	}
	return m.packageScript(c, i, script, dir)
}

func (m *measurer) bun(c *call, i int) *site {
	if c.has("--reporter", "--reporter-outfile", "--watch") {
		return weakSite(Bun, "bun test has a reporter, or does not end after the tests")
	}
	file := m.file(".xml")
	s := &site{kind: Bun, at: c.at(i).end, args: []string{"--reporter=junit", "--reporter-outfile=" + file},
		results: []Result{{Format: FormatJUnit, Files: []string{file}}}}
	s.bail(c, "--bail")
	return s
}

// packageScript analyses a script of package.json. Arguments added to the call are
// appended to the last command of the script, so that must be the runner.
func (m *measurer) packageScript(c *call, i int, name, dir string) *site {
	var manifest struct {
		Scripts map[string]string `json:"scripts"`
	}
	if why := m.readJSON(dir, "package.json", &manifest); why != "" {
		return weakSite(NPM, "script %q cannot be read: %s", name, why)
	}
	text, ok := manifest.Scripts[name]
	if !ok {
		if name == "test" || c.at(i-1).text == "run" {
			return weakSite(NPM, "package.json has no script %q", name)
		}
		return nil
	}
	if c.rest(i).has("-w", "--workspace", "--workspaces", "--filter", "-r", "--recursive") {
		return weakSite(NPM, "the packages that %s runs are unknown", c.program())
	}
	s := m.inner(text, dir)
	if s == nil {
		return weakSite(NPM, "script %q of package.json does not end with a known test runner", name)
	}
	if s.weak != "" {
		return weakSite(NPM, "script %q of package.json: %s", name, s.weak)
	}
	return s.moved(c, c.program() == "npm")
}

// inner returns the runner that a script ends with, if arguments may be appended to it.
func (m *measurer) inner(text, dir string) *site {
	if m.depth++; m.depth > 3 {
		return nil
	}
	defer func() { m.depth-- }()
	parsed, err := parseScript(text, dir)
	if err != nil || len(parsed.calls) == 0 {
		return nil
	}
	last := parsed.calls[len(parsed.calls)-1]
	if last.at(len(last.words)-1).end < len(strings.TrimRight(text, " \t\n;")) {
		return nil // another command follows
	}
	if last.program() == "npm" { // needs -- before arguments
		return weakSite(NPM, "it runs another script")
	}
	s := m.runner(last)
	if s == nil || s.weak != "" {
		return s
	}
	if !s.tail {
		return weakSite(s.kind, "no arguments can be added to it")
	}
	if s.filterAt != 0 || len(s.drop) > 0 {
		s.filter, s.filterAt, s.drop = nil, 0, nil
	}
	return s
}

// moved converts a site of the script to one of the call that runs the script; dashes is
// set if the call needs "--" before arguments of the script.
func (s *site) moved(c *call, dashes bool) *site {
	s.at = c.at(len(c.words) - 1).end
	s.tail = c.index("--") < 0
	if s.tail && dashes {
		s.args = append([]string{"--"}, s.args...)
	}
	return s
}

// maxManifest limits the size of a manifest.
const maxManifest = 4 << 20

// readJSON reads a manifest of the workspace; it returns why it cannot.
func (m *measurer) readJSON(dir, name string, to any) string {
	if m.cfg.Files == nil || dir == "?" {
		return "the workspace is unknown"
	}
	text, err := readSmall(m.cfg.Files, path.Join(dir, name))
	if err != nil {
		return name + " does not exist"
	}
	if err := json.Unmarshal(text, to); err != nil {
		return err.Error()
	}
	return ""
}

func readSmall(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxManifest || !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	return fs.ReadFile(files, name)
}

func (m *measurer) bundle(c *call) *site {
	if c.at(1).text == "exec" && c.rest(2).program() == "rspec" {
		return m.rspec(c.rest(2))
	}
	return nil
}

func (m *measurer) rspec(c *call) *site {
	if c.has("--dry-run", "--help", "--version") {
		return weakSite(RSpec, "rspec --dry-run runs no tests")
	}
	file := m.file(".json")
	s := &site{kind: RSpec, at: c.at(0).end, tail: c.index("--") < 0,
		results: []Result{{Format: FormatRSpec, Files: []string{file}}}}
	if !c.has("-f", "--format") {
		s.args = []string{"--format", "progress"}
	}
	s.args = append(s.args, "--format", "json", "--out", file)
	s.bail(c, "--fail-fast")
	if !c.has("-e", "--example", "-E") {
		s.filter = rspecFilter
	}
	return s
}

func (m *measurer) phpunit(c *call) *site {
	for _, f := range [...]string{"--list-tests", "--list-suites", "--list-groups", "--version", "--help"} {
		if c.has(f) {
			return weakSite(PHPUnit, "phpunit %s runs no tests", f)
		}
	}
	s := &site{kind: PHPUnit, at: c.at(0).end, tail: c.index("--") < 0, results: []Result{{Format: FormatJUnit}}}
	if file := m.resultFile(s, c, ".xml", "--log-junit"); file != "" {
		s.args = []string{"--log-junit", file}
	}
	s.bail(c, "--stop-on-defect", "--stop-on-error", "--stop-on-failure", "--bail")
	if !c.has("--filter") {
		s.filter = phpunitFilter
	}
	return s
}

func (m *measurer) php(c *call) *site {
	i := 1
	for ; strings.HasPrefix(c.at(i).text, "-"); i++ {
		if c.at(i).text == "-d" {
			i++
		}
	}
	switch sub := c.rest(i); {
	case sub.program() == "phpunit" || sub.program() == "pest":
		return m.phpunit(sub)
	case sub.program() == "artisan" && sub.at(1).text == "test":
		return m.phpunit(sub.rest(1))
	}
	return nil
}

func (m *measurer) composer(c *call) *site {
	i := 1
	if c.at(1).text == "run" || c.at(1).text == "run-script" {
		i = 2
	}
	name := c.at(i)
	if !name.literal || name.text == "" || strings.HasPrefix(name.text, "-") {
		return nil
	}
	var manifest struct {
		Scripts map[string]json.RawMessage `json:"scripts"`
	}
	if why := m.readJSON(c.dir, "composer.json", &manifest); why != "" {
		return weakSite(PHP, "script %q cannot be read: %s", name.text, why)
	}
	var text string
	if json.Unmarshal(manifest.Scripts[name.text], &text) != nil {
		var list []string
		if json.Unmarshal(manifest.Scripts[name.text], &list) != nil || len(list) != 1 {
			return weakSite(PHP, "script %q of composer.json is not a single command", name.text)
		}
		text = list[0]
	}
	s := m.inner(text, c.dir)
	if s == nil {
		return weakSite(PHP, "script %q of composer.json does not end with a known test runner", name.text)
	}
	if s.weak != "" {
		return s
	}
	return s.moved(c, true)
}
