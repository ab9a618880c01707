package project

import (
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
	// Kind is the tool that runs its tests.
	Kind Kind
	// Dir is its folder relative to the workspace; "." is the workspace.
	Dir string
	// Module is the path of the Go module, which maps the import paths of coverage.
	Module string
	// Types finds type errors, Lint linter findings. Their results have the format
	// FormatLines or FormatESLint.
	Types, Lint Command
}

// Limits of Detect.
const (
	maxDepth   = 5      // folders below the workspace
	maxFolders = 20_000 // folders searched
)

// Detect lists the projects of the workspace cfg.Files, those nearest to its root first;
// in one folder in the order of the kinds. It searches five folders deep, not in hidden
// folders and those for dependencies and products. Unreadable folders are skipped.
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
		deep := strings.Count(name, "/")-strings.Count(cfg.dir(), "/") >= maxDepth
		if name != cfg.dir() && (deep || skipped(entry.Name())) {
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
		return cmp.Or(depth(a.Dir)-depth(b.Dir), strings.Compare(a.Dir, b.Dir))
	})
	return d.found, nil
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
		"__pycache__", "bin", "obj", "bower_components", "third_party", "site-packages":
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
			d.found = append(d.found, *p)
		}
	}
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

// ending reports whether a name has one of the suffixes.
func (f *folder) ending(suffixes ...string) bool {
	for n := range f.names {
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(n, s) }) {
			return true
		}
	}
	return false
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
	p := &Project{Kind: Go, Types: f.checks(Go, "go build -o /dev/null ./..."), Lint: f.checks(Go, "go vet ./...")}
	for line := range strings.Lines(f.text("go.mod")) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			p.Module = strings.Trim(fields[1], `"`)
			break
		}
	}
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
	kind, workspace := Cargo, ""
	if f.installed("cargo-nextest") {
		kind = Nextest
	}
	if strings.Contains(f.text("Cargo.toml"), "[workspace") {
		workspace = " --workspace"
	}
	return &Project{Kind: kind, Types: f.builds(kind, "cargo check --all-targets --message-format short"+workspace),
		Lint: f.builds(kind, "cargo clippy --all-targets --message-format short"+workspace)}
}

func (f *folder) maven() *Project {
	if !f.names["pom.xml"] {
		return nil
	}
	mvn := "mvn"
	if f.names["mvnw"] {
		mvn = "./mvnw"
	}
	return &Project{Kind: Maven, Types: f.builds(Maven, mvn+" -B -q -DskipTests test-compile")}
}

func (f *folder) gradle() *Project {
	if f.first("build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle") == "" {
		return nil
	}
	gradle := "gradle"
	if f.names["gradlew"] {
		gradle = "./gradlew"
	}
	return &Project{Kind: Gradle, Types: f.builds(Gradle, gradle+" -q testClasses")}
}

func (f *folder) dotnet() *Project {
	if !f.ending(".sln", ".slnx", ".csproj", ".fsproj", ".vbproj") {
		return nil
	}
	return &Project{Kind: DotNet, Types: f.builds(DotNet, "dotnet build -v q --nologo")}
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
	kind := f.javascriptRunner(&manifest)
	if kind == "" {
		return nil
	}
	p := &Project{Kind: kind}
	if f.names["tsconfig.json"] && manifest.has("typescript") {
		p.Types = f.typescript(p.Kind)
	}
	eslint := f.first("eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc",
		".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml")
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

// javascriptRunner returns the test runner: that of the test script, or one that the
// project depends on or configures; empty if there is none.
func (f *folder) javascriptRunner(manifest *packageJSON) Kind {
	script := manifest.Scripts["test"]
	if script != "" && !strings.Contains(script, "no test specified") {
		if c := Measure("npm test", f.cfg); c.Weak == "" {
			return c.Kind
		}
		return NPM
	}
	switch {
	case manifest.has("vitest"):
		return Vitest
	case manifest.has("jest") || manifest.Jest != nil || f.first("jest.config.js", "jest.config.ts", "jest.config.mjs",
		"jest.config.cjs", "jest.config.json") != "":
		return Jest
	case manifest.has("mocha") || f.ending(".mocharc.json", ".mocharc.yml", ".mocharc.yaml", ".mocharc.js",
		".mocharc.cjs"):
		return Mocha
	}
	return ""
}

func (f *folder) deno() *Project {
	if f.first("deno.json", "deno.jsonc") == "" {
		return nil
	}
	return &Project{Kind: Deno, Types: f.checks(Deno, "deno check ."), Lint: f.checks(Deno, "deno lint --compact")}
}

func (f *folder) python() *Project {
	// A conftest.py in another folder is among the tests of a parent project.
	if f.first("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "setup.py", "requirements.txt") == "" &&
		(f.dir != "." || !f.names["conftest.py"]) {
		return nil
	}
	text := f.text("pyproject.toml") + f.text("setup.cfg") + f.text("tox.ini") + f.text("setup.py") + f.text("Pipfile") +
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
	if !strings.Contains(text, "pytest") && f.first("pytest.ini", "conftest.py") == "" &&
		!f.below("tests", "conftest.py") {
		if !f.names["tests"] && !f.names["test"] {
			return nil
		}
		return &Project{Kind: Python}
	}
	p := &Project{Kind: Pytest}
	if strings.Contains(text, "[tool.mypy") || strings.Contains(text, "[mypy") || f.names["mypy.ini"] {
		p.Types = f.checks(Pytest, run+"python -m mypy --no-error-summary --cache-dir="+
			quote(cmp.Or(f.scratch("mypy"), "/dev/null"))+" .")
	} else if f.names["pyrightconfig.json"] || strings.Contains(text, "[tool.pyright") {
		p.Types = f.checks(Pytest, run+"pyright")
	}
	if strings.Contains(text, "[tool.ruff") || f.first("ruff.toml", ".ruff.toml") != "" {
		p.Lint = f.checks(Pytest, run+"ruff check --no-cache --output-format concise .")
	} else if f.names[".flake8"] || strings.Contains(text, "[flake8]") {
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
	p := &Project{Kind: Ruby}
	if f.names[".rspec"] || gemNamed(gems, "rspec") || gemNamed(gems, "rspec-rails") {
		p.Kind = RSpec
	}
	if gemNamed(gems, "rubocop") {
		p.Lint = f.checks(p.Kind, "bundle exec rubocop --cache false --format emacs")
	}
	return p
}

// gemNamed reports whether a Gemfile or its lock names a gem.
func gemNamed(text, name string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
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
	p := &Project{Kind: PHP}
	if text := f.text("composer.json"); strings.Contains(text, `"pestphp/pest"`) ||
		strings.Contains(text, `"phpunit/phpunit"`) ||
		f.first("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml") != "" {
		p.Kind = PHPUnit
	}
	if f.first("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon") != "" {
		p.Types = f.checks(p.Kind, "vendor/bin/phpstan analyse --no-progress --error-format=raw")
	}
	if f.first("phpcs.xml", "phpcs.xml.dist", ".phpcs.xml") != "" {
		p.Lint = f.checks(p.Kind, "vendor/bin/phpcs --report=emacs")
	}
	return p
}
