package project

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Project is a project in a workspace, with its commands. A command with an empty script
// does not exist.
type Project struct {
	Kind Kind `json:"kind"`
	// Dir is its folder relative to the workspace; "." is the workspace.
	Dir string `json:"dir"`
	// File is the file by which it was recognised, relative to the workspace.
	File string `json:"file"`
	// Module is the path of the Go module, which maps the import paths of coverage.
	Module string `json:"module,omitempty"`
	// Inside is set if the commands of a project in a parent folder run its tests, too
	// (modules of Maven and Gradle, members of a Cargo workspace).
	Inside bool `json:"inside,omitempty"`
	// Test writes test results; Coverage coverage, and mostly the results of its tests,
	// too; Types finds type errors, Lint linter findings. The formats of their results are
	// those of package testreport, of package coverage, and FormatLines or FormatESLint.
	Test     Command `json:"test"`
	Coverage Command `json:"coverage"`
	Types    Command `json:"types"`
	Lint     Command `json:"lint"`
}

// Limits of Detect.
const (
	maxDepth   = 5      // folders below the workspace
	maxFolders = 20_000 // folders searched
)

// Detect lists the projects of the workspace cfg.Files, those nearest to its root first;
// in one folder in the order of the kinds. It searches five folders deep, not in hidden
// folders and those for dependencies and products. The commands in cfg replace those of
// the first project; if there is none, they form one without a kind. Scratch is the place
// for results; see Config. Unreadable folders are skipped.
func Detect(cfg Config) ([]Project, error) {
	if cfg.Files == nil {
		return nil, errors.New("detect projects: no workspace")
	}
	d := &detector{cfg: cfg}
	err := fs.WalkDir(cfg.Files, cfg.dir(), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			if name == cfg.dir() {
				return err
			}
			return fs.SkipDir
		}
		if !entry.IsDir() {
			return nil
		}
		if name != cfg.dir() && (skipped(entry.Name()) || strings.Count(name, "/")-strings.Count(cfg.dir(),
			"/") >= maxDepth) {
			return fs.SkipDir
		}
		if d.folders++; d.folders > maxFolders {
			return fs.SkipAll
		}
		d.folder(name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("detect projects: %w", err)
	}
	slices.SortStableFunc(d.found, func(a, b Project) int {
		if a.Dir == b.Dir {
			return 0
		}
		if x, y := depth(a.Dir), depth(b.Dir); x != y {
			return x - y
		}
		return strings.Compare(a.Dir, b.Dir)
	})
	d.inside()
	return d.replaced(), nil
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return strings.Count(dir, "/") + 1
}

// skipped reports whether a folder holds no projects of the user.
func skipped(name string) bool {
	switch name {
	case "node_modules", "vendor", "target", "build", "dist", "out", "testdata", "fixtures", "venv", "env",
		"__pycache__", "bin", "obj",
		"bower_components", "third_party", "site-packages":
		return true
	}
	return strings.HasPrefix(name, ".")
}

type detector struct {
	cfg     Config
	folders int
	found   []Project
}

// folder adds the projects of one folder.
func (d *detector) folder(dir string) {
	entries, err := fs.ReadDir(d.cfg.Files, dir)
	if err != nil {
		return
	}
	f := &folder{cfg: d.cfg, dir: dir, names: make(map[string]bool, len(entries))}
	f.cfg.Dir = dir
	for _, e := range entries {
		f.names[e.Name()] = true
	}
	for _, find := range [...]func() *Project{f.golang, f.cargo, f.maven, f.gradle, f.dotnet, f.javascript, f.deno,
		f.python, f.ruby, f.php} {
		if p := find(); p != nil {
			p.Dir = dir
			p.File = path.Join(dir, p.File)
			d.found = append(d.found, *p)
		}
	}
}

// inside marks the projects that the commands of an outer one run.
func (d *detector) inside() {
	for i := range d.found {
		p := &d.found[i]
		for j := range i {
			outer := &d.found[j]
			below := outer.Dir == "." || strings.HasPrefix(p.Dir, outer.Dir+"/")
			if slices.Contains([]Kind{Maven, Gradle, Cargo, Nextest, DotNet}, p.Kind) {
				p.Inside = p.Inside || (below && outer.Kind == p.Kind && outer.Dir != p.Dir)
			}
		}
	}
}

// replaced applies the commands of the configuration to the first project.
func (d *detector) replaced() []Project {
	c := d.cfg
	if c.Test+c.Coverage+c.Types+c.Lint == "" {
		return d.found
	}
	if len(d.found) == 0 {
		d.found = []Project{{Dir: c.dir()}}
	}
	p := &d.found[0]
	c.Dir = p.Dir
	if c.Test == "-" {
		p.Test = Command{}
	} else if c.Test != "" {
		p.Test = Measure(c.Test, c)
	}
	replace := func(to *Command, script string, result Result) {
		if script == "-" {
			*to = Command{}
		} else if script != "" {
			*to = Command{Kind: p.Kind, Script: script, Dir: p.Dir, Results: []Result{result}}
		}
	}
	replace(&p.Coverage, c.Coverage, Result{Format: c.CoverageFormat, Files: c.CoverageFiles})
	replace(&p.Types, c.Types, Result{Format: FormatLines, Stream: Both})
	replace(&p.Lint, c.Lint, Result{Format: FormatLines, Stream: Both})
	return d.found
}

// folder is a folder being searched.
type folder struct {
	cfg   Config
	dir   string
	names map[string]bool
}

// first returns the first of the names that exists in the folder; empty if none does.
func (f *folder) first(names ...string) string {
	for _, n := range names {
		if f.names[n] {
			return n
		}
	}
	return ""
}

// ending returns the first name, in order, with one of the suffixes.
func (f *folder) ending(suffixes ...string) string {
	var all []string
	for n := range f.names {
		for _, s := range suffixes {
			if strings.HasSuffix(n, s) {
				all = append(all, n)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

// text returns the content of a file of the folder; empty if it cannot be read.
func (f *folder) text(name string) string {
	if !f.names[name] {
		return ""
	}
	text, err := readSmall(f.cfg.Files, path.Join(f.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (f *folder) installed(name string) bool { return f.cfg.Installed != nil && f.cfg.Installed(name) }

// scratch returns the path of a file or folder for results; empty without a place for
// them.
func (f *folder) scratch(name string) string {
	if f.cfg.Scratch == "" {
		return ""
	}
	return path.Join(f.cfg.Scratch, name)
}

// measured returns a project with a test command.
func (f *folder) measured(kind Kind, file, command string) *Project {
	p := &Project{Kind: kind, File: file, Test: Measure(command, f.cfg)}
	p.Test.Kind = kind
	return p
}

// coverage returns a command that writes coverage to a file and, where possible, the
// results of its tests: one run is enough for both.
func (f *folder) coverage(kind Kind, format, script, file string) Command {
	if f.cfg.Scratch == "" {
		return Command{}
	}
	c := Measure(script, f.cfg)
	c.Kind, c.Weak = kind, ""
	c.Results = append(c.Results, Result{Format: format, Files: []string{file}})
	return c
}

// builds returns a command whose output has one finding per line.
func (f *folder) builds(kind Kind, script string) Command {
	return Command{Kind: kind, Script: script, Dir: f.dir, Results: []Result{{Format: FormatLines, Stream: Both}}}
}

// checks is builds for a command that does not build the project.
func (f *folder) checks(kind Kind, script string) Command {
	c := f.builds(kind, script)
	c.Quiet = true
	return c
}

func (f *folder) golang() *Project {
	if !f.names["go.mod"] {
		return nil
	}
	p := f.measured(Go, "go.mod", "go test ./...")
	for line := range strings.Lines(f.text("go.mod")) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			p.Module = strings.Trim(fields[1], `"`)
			break
		}
	}
	file := f.scratch("coverage.out")
	p.Coverage = f.coverage(Go, FormatCoverGo, "go test -coverprofile="+quote(file)+" ./...", file)
	p.Types = f.checks(Go, "go build -o /dev/null ./...")
	p.Lint = f.checks(Go, "go vet ./...")
	if f.first(".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json") != "" &&
		f.installed("golangci-lint") {
		p.Lint = f.checks(Go, "golangci-lint run ./...")
	}
	return p
}

func (f *folder) cargo() *Project {
	if !f.names["Cargo.toml"] {
		return nil
	}
	workspace := ""
	if strings.Contains(f.text("Cargo.toml"), "[workspace") {
		workspace = " --workspace"
	}
	var p *Project
	if f.installed("cargo-nextest") {
		p = f.measured(Nextest, "Cargo.toml", "cargo nextest run"+workspace)
	} else {
		p = f.measured(Cargo, "Cargo.toml", "cargo test"+workspace)
	}
	if f.installed("cargo-llvm-cov") {
		file := f.scratch("lcov.info")
		p.Coverage = f.coverage(p.Kind, FormatLCOV, "cargo llvm-cov"+workspace+" --lcov --output-path "+quote(file), file)
	}
	p.Types = f.builds(p.Kind, "cargo check --all-targets --message-format short"+workspace)
	p.Lint = f.builds(p.Kind, "cargo clippy --all-targets --message-format short"+workspace)
	return p
}

func (f *folder) maven() *Project {
	if !f.names["pom.xml"] {
		return nil
	}
	mvn := "mvn"
	if f.names["mvnw"] {
		mvn = "./mvnw"
	}
	p := f.measured(Maven, "pom.xml", mvn+" -B test")
	p.Types = f.builds(Maven, mvn+" -B -q -DskipTests test-compile")
	return p
}

func (f *folder) gradle() *Project {
	file := f.first("build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle")
	if file == "" {
		return nil
	}
	gradle := "gradle"
	if f.names["gradlew"] {
		gradle = "./gradlew"
	}
	p := f.measured(Gradle, file, gradle+" test")
	p.Types = f.builds(Gradle, gradle+" -q testClasses")
	return p
}

func (f *folder) dotnet() *Project {
	file := f.ending(".sln", ".slnx")
	if file == "" {
		file = f.ending(".csproj", ".fsproj", ".vbproj")
	}
	if file == "" {
		return nil
	}
	p := f.measured(DotNet, file, "dotnet test")
	folder := f.scratch("coverage")
	p.Coverage = f.coverage(DotNet, FormatCobertura, "dotnet test --collect "+quote("XPlat Code Coverage")+
		" --results-directory "+quote(folder),
		folder+"/**/coverage.cobertura.xml")
	p.Types = f.builds(DotNet, "dotnet build -v q --nologo")
	return p
}

// packageJSON holds the relevant fields of package.json.
type packageJSON struct {
	Scripts         map[string]string          `json:"scripts"`
	Dependencies    map[string]json.RawMessage `json:"dependencies"`
	DevDependencies map[string]json.RawMessage `json:"devDependencies"`
	Jest            json.RawMessage            `json:"jest"`
}

func (p *packageJSON) has(name string) bool {
	return p.Dependencies[name] != nil || p.DevDependencies[name] != nil
}

func (f *folder) javascript() *Project {
	if !f.names["package.json"] {
		return nil
	}
	var manifest packageJSON
	if json.Unmarshal([]byte(f.text("package.json")), &manifest) != nil {
		return nil
	}
	p, run := f.javascriptTests(&manifest)
	if p == nil {
		return nil
	}
	lcov := f.scratch("coverage") + "/lcov.info"
	dir := quote(f.scratch("coverage"))
	switch {
	case p.Kind == Jest:
		p.Coverage = f.coverage(Jest, FormatLCOV, run+" --coverage --coverageReporters=lcovonly --coverageDirectory="+dir,
			lcov)
	case p.Kind == Vitest && (manifest.has("@vitest/coverage-v8") || manifest.has("@vitest/coverage-istanbul")):
		p.Coverage = f.coverage(Vitest, FormatLCOV, run+" --coverage.enabled --coverage.reporter=lcovonly "+
			"--coverage.reportsDirectory="+dir, lcov)
	case p.Kind != Vitest && manifest.has("c8"):
		p.Coverage = f.coverage(p.Kind, FormatLCOV, "npx --no-install c8 --reporter=lcovonly --report-dir="+dir+" npm test",
			lcov)
	case p.Kind != Vitest && manifest.has("nyc"):
		p.Coverage = f.coverage(p.Kind, FormatLCOV, "npx --no-install nyc --reporter=lcovonly --report-dir="+dir+
			" npm test", lcov)
	}
	if f.names["tsconfig.json"] && manifest.has("typescript") {
		p.Types = f.typescript(p.Kind)
	}
	eslint := f.first("eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc",
		".eslintrc.js", ".eslintrc.cjs",
		".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml")
	if eslint != "" && manifest.has("eslint") {
		p.Lint = f.checks(p.Kind, "npx --no-install eslint --format json .")
		p.Lint.Results[0] = Result{Format: FormatESLint, Stream: Stdout}
	} else if f.first("biome.json", "biome.jsonc") != "" {
		p.Lint = f.checks(p.Kind, "npx --no-install biome lint --reporter=github .")
	}
	return p
}

// typescript keeps tsc's cache out of the sources. A project of several configurations is
// checked by building it.
func (f *folder) typescript(kind Kind) Command {
	if strings.Contains(f.text("tsconfig.json"), `"references"`) {
		return f.builds(kind, "npx --no-install tsc --build --pretty false")
	}
	script := "npx --no-install tsc --noEmit --pretty false"
	if f.cfg.Scratch == "" {
		return f.builds(kind, script)
	}
	return f.checks(kind, script+" --incremental --tsBuildInfoFile "+quote(f.scratch("tsc.tsbuildinfo")))
}

// javascriptTests prefers the test script, because it may prepare what the tests need.
// Run is the command that arguments for the runner can be appended to.
func (f *folder) javascriptTests(manifest *packageJSON) (p *Project, run string) {
	manager := "npm"
	switch f.first("pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb") {
	case "pnpm-lock.yaml":
		manager = "pnpm"
	case "yarn.lock":
		manager = "yarn"
	case "bun.lock", "bun.lockb":
		manager = "bun run"
	}
	script := manifest.Scripts["test"]
	if script != "" && !strings.Contains(script, "no test specified") {
		p := f.measured(NPM, "package.json", manager+" test")
		if p.Test.Weak == "" {
			p.Kind, p.Test.Kind = p.Test.sites[0].kind, p.Test.sites[0].kind
		}
		if manager == "npm" {
			return p, "npm test --"
		}
		return p, manager + " test"
	}
	switch {
	case manifest.has("vitest"):
		run = "npx --no-install vitest run"
		return f.measured(Vitest, "package.json", run), run
	case manifest.has("jest") || manifest.Jest != nil || f.first("jest.config.js", "jest.config.ts", "jest.config.mjs",
		"jest.config.cjs", "jest.config.json") != "":
		run = "npx --no-install jest"
		return f.measured(Jest, "package.json", run), run
	case manifest.has("mocha") || f.ending(".mocharc.json", ".mocharc.yml", ".mocharc.yaml", ".mocharc.js",
		".mocharc.cjs") != "":
		run = "npx --no-install mocha"
		return f.measured(Mocha, "package.json", run), run
	}
	return nil, ""
}

func (f *folder) deno() *Project {
	file := f.first("deno.json", "deno.jsonc")
	if file == "" {
		return nil
	}
	p := f.measured(Deno, file, "deno test")
	p.Types, p.Lint = f.checks(Deno, "deno check ."), f.checks(Deno, "deno lint --compact")
	return p
}

func (f *folder) python() *Project {
	file := f.first("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "setup.py", "requirements.txt")
	if file == "" && f.dir == "." { // otherwise it is among the tests of a parent project
		file = f.first("conftest.py")
	}
	if file == "" {
		return nil
	}
	texts := f.text("pyproject.toml") + f.text("setup.cfg") + f.text("tox.ini") + f.text("setup.py") + f.text("Pipfile") +
		f.text("requirements.txt") + f.text("requirements-dev.txt") + f.text("dev-requirements.txt")
	run := ""
	switch f.first("uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock") {
	case "uv.lock":
		run = "uv run "
	case "poetry.lock":
		run = "poetry run "
	case "Pipfile.lock":
		run = "pipenv run "
	case "pdm.lock":
		run = "pdm run "
	}
	if !strings.Contains(texts, "pytest") && f.first("pytest.ini", "conftest.py") == "" &&
		!f.below("tests", "conftest.py") {
		if !f.names["tests"] && !f.names["test"] {
			return nil
		}
		return f.measured(Python, file, run+"python -m unittest discover")
	}
	p := f.measured(Pytest, file, run+"python -m pytest")
	if strings.Contains(texts, "pytest-cov") {
		out := f.scratch("coverage.xml")
		p.Coverage = f.coverage(Pytest, FormatCobertura, run+"python -m pytest --cov --cov-report="+quote("xml:"+out), out)
	}
	if strings.Contains(texts, "[tool.mypy") || strings.Contains(texts, "[mypy") || f.names["mypy.ini"] {
		p.Types = f.checks(Pytest, run+"python -m mypy --no-error-summary --cache-dir="+
			quote(cmp.Or(f.scratch("mypy"), "/dev/null"))+" .")
	} else if f.names["pyrightconfig.json"] || strings.Contains(texts, "[tool.pyright") {
		p.Types = f.checks(Pytest, run+"pyright")
	}
	if strings.Contains(texts, "[tool.ruff") || f.first("ruff.toml", ".ruff.toml") != "" {
		p.Lint = f.checks(Pytest, run+"ruff check --no-cache --output-format concise .")
	} else if f.names[".flake8"] || strings.Contains(texts, "[flake8]") {
		p.Lint = f.checks(Pytest, run+"python -m flake8")
	}
	return p
}

// below reports whether a subfolder has a file.
func (f *folder) below(dir, name string) bool {
	if !f.names[dir] {
		return false
	}
	_, err := fs.Stat(f.cfg.Files, path.Join(f.dir, dir, name))
	return err == nil
}

func (f *folder) ruby() *Project {
	if !f.names["Gemfile"] {
		return nil
	}
	gems := f.text("Gemfile") + f.text("Gemfile.lock")
	p := f.measured(Ruby, "Gemfile", "bundle exec rake test")
	if f.names[".rspec"] || gemNamed(gems, "rspec") || gemNamed(gems, "rspec-rails") {
		p = f.measured(RSpec, "Gemfile", "bundle exec rspec")
	}
	if gemNamed(gems, "rubocop") {
		p.Lint = f.checks(p.Kind, "bundle exec rubocop --cache false --format emacs")
	}
	return p
}

// gemNamed reports whether a Gemfile or its lock names a gem.
func gemNamed(text, name string) bool {
	in := bufio.NewScanner(bytes.NewReader([]byte(text)))
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if strings.HasPrefix(line, name+" (") || strings.HasPrefix(line, `gem "`+name+`"`) ||
			strings.HasPrefix(line, `gem '`+name+`'`) {
			return true
		}
	}
	return false
}

func (f *folder) php() *Project {
	if !f.names["composer.json"] {
		return nil
	}
	text := f.text("composer.json")
	var p *Project
	switch {
	case strings.Contains(text, `"pestphp/pest"`):
		p = f.measured(PHPUnit, "composer.json", "vendor/bin/pest")
	case strings.Contains(text, `"phpunit/phpunit"`) ||
		f.first("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml") != "":
		p = f.measured(PHPUnit, "composer.json", "vendor/bin/phpunit")
		out := f.scratch("cobertura.xml")
		p.Coverage = f.coverage(PHPUnit, FormatCobertura, "vendor/bin/phpunit --coverage-cobertura "+quote(out), out)
	default:
		p = f.measured(PHP, "composer.json", "composer test")
	}
	if f.first("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon") != "" {
		p.Types = f.checks(p.Kind, "vendor/bin/phpstan analyse --no-progress --error-format=raw")
	}
	if f.first("phpcs.xml", "phpcs.xml.dist", ".phpcs.xml") != "" {
		p.Lint = f.checks(p.Kind, "vendor/bin/phpcs --report=emacs")
	}
	return p
}
