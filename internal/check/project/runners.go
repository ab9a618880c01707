package project

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// runner returns the test runner of a call; nil if there is none or it is unknown.
func (m *measurer) runner(c *call) *site {
	c = unwrap(c)
	if c == nil || !c.at(0).literal {
		return nil
	}
	recognise := m.recogniser(c.program())
	if recognise == nil {
		return nil
	}
	s := recognise(c)
	if s == nil || s.weak != "" {
		return s
	}
	if m.cfg.Scratch == "" && slices.ContainsFunc(s.results, func(r Result) bool { return r.Stream == "" }) {
		return weakSite(s.kind, "no folder for its results")
	}
	for _, r := range s.results {
		if (r.Stream != "" && c.redirected[0]) || (r.Stream == Both && c.redirected[1]) {
			return weakSite(s.kind, "the output of %q, which has the results, is redirected", c.at(0).text)
		}
	}
	return s
}

// known reports whether a program may run tests.
func (m *measurer) known(name string) bool { return m.recogniser(path.Base(name)) != nil }

// recogniser returns the function that parses a program's arguments.
func (m *measurer) recogniser(program string) func(*call) *site {
	if strings.HasPrefix(program, "python") || strings.HasPrefix(program, "pypy") {
		return m.python
	}
	return map[string]func(*call) *site{
		"go": m.golang, "gotestsum": m.gotestsum,
		"pytest": m.pytest, "py.test": m.pytest, "py": m.python, "coverage": m.pythonCoverage,
		"uv": m.pythonTool, "poetry": m.pythonTool, "pipenv": m.pythonTool, "hatch": m.pythonTool,
		"rye": m.pythonTool, "pdm": m.pythonTool, "pixi": m.pythonTool,
		"jest": m.jest, "react-scripts": m.jest, "vitest": m.vitest, "mocha": m.mocha, "node": m.node, "tsx": m.node,
		"npm": m.manager, "pnpm": m.manager, "yarn": m.manager, "bun": m.manager,
		"npx": m.npx, "bunx": m.npx, "pnpx": m.npx, "deno": m.deno,
		"cargo": m.cargo, "mvn": m.maven, "mvnw": m.maven, "mvnd": m.maven, "gradle": m.gradle, "gradlew": m.gradle,
		"bundle": m.bundle, "rspec": m.rspec, "phpunit": m.phpunit, "pest": m.phpunit,
		"php": m.php, "@php": m.php, "composer": m.composer, "dotnet": m.dotnet,
	}[program]
}

// unwrap returns the call without programs that only run another one; nil if that one
// cannot be found.
func unwrap(c *call) *call {
	for range 5 {
		skip := 0
		switch c.program() {
		case "env", "cross-env":
			skip = 1
			for strings.Contains(c.at(skip).text, "=") {
				skip++ // NAME=value
			}
		case "command", "exec", "time", "nohup", "xvfb-run", "winpty":
			skip = 1
		case "timeout", "gtimeout", "nice", "ionice", "stdbuf":
			for skip = 1; strings.HasPrefix(c.at(skip).text, "-"); skip++ {
				if f := c.at(skip).text; f == "-n" || f == "-k" || f == "-s" || f == "-c" || f == "-o" {
					skip++
				}
			}
			if strings.HasSuffix(c.program(), "timeout") {
				skip++ // the time
			}
		default:
			return c
		}
		if skip >= len(c.words) || strings.HasPrefix(c.at(skip).text, "-") {
			return nil
		}
		c = c.rest(skip)
	}
	return nil
}

func (m *measurer) golang(c *call) *site {
	i := 1
	if c.at(1).text == "-C" {
		i = 3
	}
	test := c.at(i)
	if !test.literal || test.text != "test" {
		return nil
	}
	flags := c.rest(i + 1)
	if end := flags.index("-args", "--args"); end >= 0 {
		flags.words = flags.words[:end]
	}
	for _, f := range [...]string{"c", "list", "n"} {
		if flags.has("-"+f, "--"+f) {
			return weakSite(Go, "go test -%s runs no tests", f)
		}
	}
	s := &site{kind: Go, at: test.end, tail: c.index("-args", "--args") < 0,
		results: []Result{{Format: FormatGo, Stream: Stdout}}}
	if !flags.has("-json", "--json") {
		s.args = []string{"-json"}
	}
	s.bail(flags, "-failfast", "--failfast")
	s.filter = goFilter
	s.cover = m.coverGo(c, flags)
	return s
}

func (m *measurer) gotestsum(c *call) *site {
	s := &site{kind: Go, at: c.at(0).end, results: []Result{{Format: FormatGo}}}
	if file := m.resultFile(s, c, ".json", "--jsonfile"); file != "" {
		s.args = []string{"--jsonfile=" + file}
	}
	return s
}

// resultFile sets the only result file of a site: the one that the command names with a
// flag, or a new one, which it returns.
func (m *measurer) resultFile(s *site, c *call, suffix string, flags ...string) (added string) {
	if file, ok := c.value(flags...); ok {
		name, why := m.named(c, file)
		s.results[0].Files, s.weak = []string{name}, why
		return ""
	}
	added = m.file(suffix)
	s.results[0].Files = []string{added}
	return added
}

// relativeTo converts a file name of a command to a path relative to the folder of the
// whole script.
func relativeTo(c *call, cfg Config, name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(cfg.dir()), filepath.FromSlash(path.Join(c.dir, name)))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// ours reports whether a name is below the folder for results.
func (m *measurer) ours(w word) bool {
	return w.literal && m.cfg.Scratch != "" && strings.HasPrefix(w.text, filepath.ToSlash(m.cfg.Scratch)+"/")
}

// named returns the result file or folder that a command names, relative to the folder of
// the whole script; why is why it cannot be used. Absolute names cannot: the agent can
// change scripts, and old results are removed.
func (m *measurer) named(c *call, w word) (name, why string) {
	switch {
	case !w.literal || w.text == "" || c.dir == "?":
		return "", "the result file is known only to the shell"
	case path.IsAbs(w.text) || filepath.IsAbs(w.text):
		return "", "the result file has an absolute path: use one relative to the workspace"
	}
	name = relativeTo(c, m.cfg, w.text)
	if joined := path.Join(m.cfg.dir(), name); joined == ".." || strings.HasPrefix(joined, "../") {
		return "", "the result file is outside of the workspace"
	}
	return name, ""
}

func (m *measurer) python(c *call) *site {
	i := 1
	for strings.HasPrefix(c.at(i).text, "-") && c.at(i).text != "-m" {
		if f := c.at(i).text; f == "-W" || f == "-X" {
			i++
		}
		i++
	}
	switch {
	case c.at(i).text != "-m":
		return nil
	case c.at(i+1).text == "pytest":
		return m.pytest(c.rest(i + 1))
	case c.at(i+1).text == "coverage":
		return m.pythonCoverage(c.rest(i + 1))
	case c.at(i+1).text == "unittest":
		return weakSite(Python, "unittest writes no result file; pytest runs the same tests and writes one")
	}
	return nil
}

// pythonCoverage parses "coverage run -m pytest".
func (m *measurer) pythonCoverage(c *call) *site {
	if i := c.index("-m"); i > 0 && c.at(1).text == "run" {
		return m.python(&call{words: append([]word{{text: "python", literal: true}}, c.words[i:]...), dir: c.dir,
			redirected: c.redirected})
	}
	return nil
}

// pythonTool parses "uv run pytest" and the like.
func (m *measurer) pythonTool(c *call) *site {
	if c.at(1).text != "run" {
		return nil
	}
	for i := 2; i < len(c.words); i++ {
		w := c.words[i]
		if !w.literal || strings.HasPrefix(w.text, "-") {
			continue
		}
		switch sub := c.rest(i); sub.program() {
		case "pytest", "py.test":
			return m.pytest(sub)
		case "python", "python3":
			return m.python(sub)
		}
	}
	return nil
}

// shortX matches pytest's -x, also among other short flags.
var shortX = lazyregexp.New(`^-[a-zA-Z]*x[a-zA-Z]*$`)

func (m *measurer) pytest(c *call) *site {
	for _, f := range [...]string{"--collect-only", "--co", "--fixtures", "--version", "--help", "-h"} {
		if c.has(f) {
			return weakSite(Pytest, "pytest %s runs no tests", f)
		}
	}
	s := &site{kind: Pytest, at: c.at(0).end, tail: c.index("--") < 0, results: []Result{{Format: FormatJUnit}}}
	if file := m.resultFile(s, c, ".xml", "--junitxml", "--junit-xml"); file != "" {
		s.args = []string{"--junitxml=" + file}
	}
	// This family contains the file, which node IDs need.
	s.args = append(s.args, "-o", "junit_family=xunit1")
	if c.has("--exitfirst", "--maxfail", "--stepwise", "--sw") ||
		slices.ContainsFunc(c.words, func(w word) bool { return shortX().MatchString(w.text) }) {
		s.stops = StopsInside
	}
	s.cover = m.coverPytest(c)
	s.drop = pytestPositional(c)
	s.filter = pytestFilter
	return s
}

func (m *measurer) cargo(c *call) *site {
	i := 1
	if strings.HasPrefix(c.at(i).text, "+") {
		i++
	}
	for strings.HasPrefix(c.at(i).text, "-") {
		i++
	}
	switch word := c.at(i); word.text {
	case "test", "t":
		return cargoTest(c, i)
	case "nextest":
		if run := c.at(i + 1); run.text == "run" || run.text == "r" {
			return m.nextest(c, i+1)
		}
	}
	return nil
}

func cargoTest(c *call, i int) *site {
	flags := c.rest(i + 1)
	libtest := &call{}
	dashes := flags.index("--")
	if dashes >= 0 {
		libtest = flags.rest(dashes + 1)
		flags.words = flags.words[:dashes]
	}
	switch {
	case flags.has("--no-run"):
		return weakSite(Cargo, "cargo test --no-run runs no tests")
	case libtest.has("--list"):
		return weakSite(Cargo, "--list runs no tests")
	case flags.has("-q", "--quiet") || libtest.has("-q", "--quiet") || libtest.has("--format"):
		return weakSite(Cargo, "cargo test does not name the tests with -q or --format: leave it out")
	}
	s := &site{kind: Cargo, at: c.at(i).end, results: []Result{{Format: FormatCargo, Stream: Both}},
		env: []string{"CARGO_TERM_COLOR=never"}}
	if !flags.has("--no-fail-fast") {
		s.args = []string{"--no-fail-fast"}
	}
	s.filter = func(tests []testreport.Test) []string { return cargoFilter(dashes < 0, tests) }
	s.filterAt = c.at(len(c.words) - 1).end
	if dashes >= 0 {
		s.filterAt = c.at(i + 1 + dashes).end
	}
	return s
}

// nextest has no argument for its result file, but reads an additional configuration.
func (m *measurer) nextest(c *call, i int) *site {
	if c.has("--no-run") {
		return weakSite(Nextest, "cargo nextest run --no-run runs no tests")
	}
	profile := "default"
	if p, ok := c.value("-P", "--profile"); ok {
		if !p.literal {
			return weakSite(Nextest, "the profile is known only to the shell")
		}
		profile = p.text
	}
	config, file := m.file(".toml"), m.file(".xml")
	s := &site{kind: Nextest, at: c.at(i).end, results: []Result{{Format: FormatJUnit, Files: []string{file}}}}
	s.files = map[string]string{config: "[profile." + profile + ".junit]\npath = \"" +
		strings.ReplaceAll(strings.ReplaceAll(file, `\`, `\\`), `"`, `\"`) + "\"\n"}
	s.args = []string{"--tool-config-file", "perdure:" + config}
	if !c.has("--no-fail-fast", "--fail-fast", "--max-fail") {
		s.args = append(s.args, "--no-fail-fast")
	} else if !c.has("--no-fail-fast") {
		s.stops = StopsInside
	}
	if !c.has("-E", "--filter-expr", "--filterset") {
		s.filter = nextestFilter
	}
	return s
}

func (m *measurer) maven(c *call) *site {
	phases := []string{"test", "verify", "package", "install", "deploy", "integration-test", "surefire:test",
		"failsafe:verify"}
	if c.index(phases...) < 0 {
		return nil
	}
	for _, w := range c.words {
		name, value, _ := strings.Cut(strings.TrimPrefix(w.text, "-D"), "=")
		if (name == "skipTests" || name == "maven.test.skip" || name == "skipITs") && value != "false" {
			return weakSite(Maven, "-D%s skips the tests", name)
		}
	}
	base, why := projectFolder(c, "-f", "--file")
	if why != "" {
		return weakSite(Maven, "%s", why)
	}
	if strings.HasSuffix(base, ".xml") {
		base = path.Dir(base)
	}
	s := &site{kind: Maven, at: c.at(0).end, stops: StopsBetween, results: []Result{{Format: FormatJUnit, Files: []string{
		relativeTo(c, m.cfg, path.Join(base, "**/target/surefire-reports/TEST-*.xml")),
		relativeTo(c, m.cfg, path.Join(base, "**/target/failsafe-reports/TEST-*.xml")),
	}}}}
	if !c.has("-fae", "--fail-at-end", "-ff", "--fail-fast", "-fn", "--fail-never") {
		s.args = []string{"-fae"}
	}
	if !slices.ContainsFunc(c.words, func(w word) bool { return strings.HasPrefix(w.text, "-Dtest=") }) {
		s.filter = mavenFilter
	}
	return s
}

// projectFolder returns the folder of the project that a command names with a flag, empty
// for none; why is why it is not known.
func projectFolder(c *call, flags ...string) (folder, why string) {
	switch f, ok := c.value(flags...); {
	case ok && (!f.literal || path.IsAbs(f.text)):
		return "", "the folder of the project is known only to the shell"
	case c.dir == "?":
		return "", "the working folder is known only to the shell"
	default:
		return f.text, ""
	}
}

func (m *measurer) gradle(c *call) *site {
	task := slices.IndexFunc(c.words, func(w word) bool {
		name := w.text[strings.LastIndexByte(w.text, ':')+1:]
		return w.literal && (name == "test" || name == "check" || name == "build" || name == "allTests" ||
			(strings.HasSuffix(name, "Test") && !strings.HasPrefix(name, "-")))
	})
	if task < 1 {
		return nil
	}
	if x, ok := c.value("-x", "--exclude-task"); ok && strings.Contains(x.text, "est") {
		return weakSite(Gradle, "-x %s skips tests", x.text)
	}
	if c.has("-m", "--dry-run") {
		return weakSite(Gradle, "gradle --dry-run runs no tests")
	}
	base, why := projectFolder(c, "-p", "--project-dir")
	if why != "" {
		return weakSite(Gradle, "%s", why)
	}
	s := &site{kind: Gradle, at: c.at(0).end, stops: StopsBetween, results: []Result{{Format: FormatJUnit, Files: []string{
		relativeTo(c, m.cfg, path.Join(base, "**/build/test-results/**/TEST-*.xml")),
	}}}}
	if !c.has("--continue") {
		s.args = []string{"--continue"}
	}
	s.bail(c, "--fail-fast")
	if name := c.at(task).text; (name == "test" || strings.HasSuffix(name, ":test")) && !c.has("--tests") {
		s.filter, s.filterAt = gradleFilter, c.at(task).end
	}
	return s
}

func (m *measurer) dotnet(c *call) *site {
	test := c.at(1)
	if test.text != "test" {
		return nil
	}
	if c.has("-t", "--list-tests") {
		return weakSite(DotNet, "dotnet test --list-tests runs no tests")
	}
	s := &site{kind: DotNet, at: test.end}
	s.args = []string{"--logger", "trx"}
	dir, ok := c.value("--results-directory", "-r")
	folder := dir.text
	switch {
	case ok && m.ours(dir):
	case ok:
		folder, s.weak = m.named(c, dir)
	default:
		folder = m.file("")
		s.args = append(s.args, "--results-directory", folder)
	}
	s.results = []Result{{Format: FormatTRX, Files: []string{path.Join(folder, "*.trx")}}}
	if !c.has("--filter") {
		s.filter = dotnetFilter
	}
	return s
}
