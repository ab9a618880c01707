package checkconfig

import (
	"path"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// telling matches words about checking in the keys of a manifest.
func telling(group string) bool { return checkingWord().MatchString(group) }

var checkingWord = lazyregexp.New(`(?i)(^|[^a-z])(tests?|testing|skip[a-z]*|cov|coverage|lint[a-z]*|check[a-z]*|clippy|surefire|` +
	`failsafe|jacoco[a-z]*|kover[a-z]*|junit[a-z]*|jest|vitest|mocha|ava|nyc|c8|pytest|phpunit|rspec|rubocop|eslint[a-z]*|` +
	`detekt[a-z]*|ktlint[a-z]*|pmd[a-z]*|spotbugs[a-z]*|nowarn|minimum|threshold|verif[a-z]*|enforcer|pitest|tap|spec)([^a-z]|$)`)

var (
	sectionName = lazyregexp.New(`^(tool\.(pytest|coverage|ruff|mypy|pyright|basedpyright|pylint|flake8|bandit|tox|nox|hatch\.envs|` +
		`poe|pdm\.scripts|pixi\.tasks)|(tool:)?pytest|coverage:|mypy|pylint|flake8|pycodestyle|isort|tox|testenv|lints|` +
		`workspace\.lints|test|bench|profile\.test|alias|package\.autotests|target\..*\.runner|lib\.(test|doctest|harness))([.:-]|$)`)
	jsonName = lazyregexp.New(`^(jest|vitest|mocha|ava|nyc|c8|tap|eslintconfig|eslintignore|stylelint|lint|test|compileroptions|` +
		`lint-staged|husky|coverage|scripts|tasks)(\.|$)`)
	codeName = lazyregexp.New(`(?i)warnings?-?as-?errors|compiler-?args|ignore-?failures|nullable|nowarn|analysis-?level|` +
		`enforce-?code|test|jacoco|kover|detekt|ktlint|checkstyle|pmd|spotbugs|lint|cover|verif|check|threshold|rake|minitest|rspec|` +
		`compile\.remove|fail|pitest|surefire|enforcer|^task\.default`)
	unconcerned = lazyregexp.New(`(?i)(^|\.)(dependencies|dependency|dependencymanagement|packagereference|projectreference|` +
		`version|group|groupid|artifactid|xmlns|schemalocation|argline|jvmarg[a-z]*|testlogging|event|events|(test)?(implementation|runtimeonly|` +
		`compileonly)|plugins\.(id|kotlin|alias)|repositories)(\.|$)`)
)

// concerns reports whether a setting of a manifest is one of checks.
func concerns(name string, s *setting) bool {
	group := s.group()
	switch base := strings.ToLower(path.Base(name)); {
	case strings.HasSuffix(base, ".json"), strings.HasSuffix(base, ".jsonc"):
		if script, ok := strings.CutPrefix(group, "scripts."); ok {
			return checkName().MatchString(script)
		}
		return jsonName().MatchString(group)
	case strings.HasSuffix(base, ".toml"), strings.HasSuffix(base, ".cfg"):
		return sectionName().MatchString(group)
	case makeName().MatchString(base):
		return s.path[0] == "variables" || s.path[1] == "needs" || checkName().MatchString(s.path[0]) ||
			checkOf(s.path[0]) != "" ||
			checkingWord().MatchString(s.value)
	}
	if key := s.key(); key == "plugins" || key == "solution" || key == "PackageReferences" {
		return codeName().MatchString(s.value)
	}
	return !unconcerned().MatchString(group) && codeName().MatchString(group+" "+strings.Join(names(s.path), " "))
}

var acceptedName = lazyregexp.New(`(?i)baseline|[-_.]exclu|suppress|[-_]todo\b`)

// baseline reports whether a file lists accepted errors.
func baseline(f *File) bool {
	return f.Class == project.LintConfig && acceptedName().MatchString(path.Base(f.Path()))
}
