package permit

import (
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// prefix returns how many of the first words of a command name what it does: the program and
// its subcommand. It is 0 if the program could do anything else with other arguments.
func prefix(words []string) int {
	if len(words) == 0 || !plain(words[0]) {
		return 0
	}
	n, name := 0, path.Base(words[0])
	switch {
	case anything(name):
		n = script(name, words)
	case slices.Contains(runners(), name):
		n = 1
	case len(verbs()[name]) > 0:
		n = verb(words, verbs()[name])
	case slices.Contains(targets(), name):
		n = target(words)
	case len(launchers()[name]) > 0:
		n = launched(words, launchers()[name])
	case strings.Contains(words[0], "/") && !path.IsAbs(words[0]) && !strings.HasPrefix(path.Clean(words[0]), "../"):
		n = 1 // a script of the workspace
	}
	if n == 0 || slices.ContainsFunc(words[:n], func(w string) bool { return !plain(w) }) {
		return 0
	}
	return n
}

// reShell matches programs that run code which is an argument, or commands.
var reShell = lazyregexp.New(`^(sh|bash|dash|zsh|ksh|fish|busybox|python|python2|python3|python3\.[0-9]+|pypy3?|` +
	`node|nodejs|ruby|perl|php|lua|java|tclsh|Rscript|pwsh|powershell|osascript|awk|gawk|mawk|sed|xargs|parallel|find|` +
	`env|sudo|su|doas|ssh|docker|podman|kubectl|git|curl|wget|rm|mv|cp|dd|ln|chmod|chown|tee|install|rsync|eval|source|` +
	`watch|script|setsid|nice|strace|gdb|expect)$`)

// anything reports whether a program can do anything with the right arguments.
func anything(name string) bool { return reShell().MatchString(name) }

// script is prefix for an interpreter that runs a test runner.
func script(name string, words []string) int {
	if len(words) < 2 {
		return 0
	}
	switch {
	case (strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy")) && words[1] == "-m" && len(words) > 2 &&
		slices.Contains([]string{"pytest", "unittest", "tox", "nox", "mypy", "ruff", "flake8", "pylint", "coverage", "nose2",
			"behave", "doctest"}, words[2]):
		return 3
	case strings.HasPrefix(name, "node") && words[1] == "--test",
		name == "php" && slices.Contains([]string{"phpunit", "pest"}, path.Base(words[1])):
		return 2
	}
	return 0
}

// runners are programs that test or examine code.
func runners() []string {
	return []string{"pytest", "py.test", "tox", "nox", "jest", "vitest", "mocha", "ava", "tap", "tsc", "eslint", "mypy",
		"pyright", "ruff", "flake8", "pylint", "phpunit", "pest", "phpstan", "psalm", "rspec", "cucumber", "rubocop", "ctest",
		"prove", "golangci-lint", "staticcheck", "gotestsum", "ginkgo", "shellcheck", "bats", "ktlint", "swiftlint", "biome",
		"karma", "cypress", "playwright", "behave"}
}

// verbs are the subcommands that count of programs that have others, too.
func verbs() map[string][]string {
	return map[string][]string{
		"go":      {"test", "vet", "build", "list", "fmt"},
		"cargo":   {"test", "check", "clippy", "build", "nextest", "fmt", "bench"},
		"dotnet":  {"test", "build"},
		"swift":   {"test", "build"},
		"deno":    {"test", "check", "lint"},
		"zig":     {"test", "build"},
		"flutter": {"test", "analyze"},
		"dart":    {"test", "analyze"},
		"mix":     {"test", "compile"},
		"stack":   {"test", "build"},
		"cabal":   {"test", "build"},
		"bazel":   {"test", "build"}, "bazelisk": {"test", "build"},
	}
}

// verb is prefix for a program with these subcommands.
func verb(words, known []string) int {
	if len(words) > 1 && slices.Contains(known, words[1]) {
		return 2
	}
	return 0
}

// targets are programs whose subcommands are the targets of a project.
func targets() []string {
	return []string{"make", "gmake", "ninja", "just", "task", "rake", "gradle", "gradlew", "mvn", "mvnw", "sbt", "lein",
		"ant", "meson", "invoke", "inv", "composer"}
}

// target is prefix for a program with targets.
func target(words []string) int {
	at := 1
	if len(words) > 3 && words[1] == "-C" {
		at = 3
	}
	if len(words) > at && !strings.HasPrefix(words[at], "-") && !strings.Contains(words[at], "=") {
		return at + 1
	}
	return 0
}

// launchers are programs that run the script or the program that their subcommand names; one
// without subcommands is given as "".
func launchers() map[string][]string {
	return map[string][]string{
		"npm": {"test", "t", "run", "run-script"}, "pnpm": {"test", "run", "exec"},
		"yarn": {"test", "run"}, "bun": {"test", "run"},
		"npx": {""}, "bunx": {""},
		"bundle": {"exec"}, "poetry": {"run"}, "uv": {"run"}, "pipenv": {"run"}, "hatch": {"run"}, "rye": {"run"},
		"pdm": {"run"},
	}
}

// launched is prefix for a launcher.
func launched(words, known []string) int {
	at := 1
	if !slices.Contains(known, "") {
		if len(words) < 2 || !slices.Contains(known, words[1]) {
			return 0
		}
		if words[1] == "test" || words[1] == "t" {
			return 2
		}
		at = 2
	}
	if len(words) <= at || strings.HasPrefix(words[at], "-") {
		return 0
	}
	if n := prefix(words[at:]); n > 0 {
		return at + n
	}
	name := path.Base(words[at])
	if anything(name) || len(verbs()[name]) > 0 || len(launchers()[name]) > 0 || slices.Contains(targets(), name) ||
		strings.Contains(words[at], "/") {
		return 0
	}
	return at + 1 // a script or a program of the project
}
