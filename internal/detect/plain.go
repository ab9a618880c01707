package detect

import (
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// plainModel builds the model of a file without a supported language: in scripts and
// configuration, the lines in which the failure of a command is ignored, and settings.
func plainModel(name, src string) *syntax.Model {
	m := &syntax.Model{Path: name}
	if document(name) {
		m.Rest = stems(src)
	}
	name = strings.ToLower(path.Base(name))
	script := scriptFile().MatchString(name)
	settings := settingsFile().MatchString(name) && name != "package-lock.json"
	if !script && !settings {
		return m
	}
	n, tests := 0, script && checks().MatchString(src)
	for line := range strings.Lines(src) {
		n++
		s := strings.TrimSpace(line)
		if s == "" || strings.HasPrefix(s, "#") || strings.HasPrefix(s, "//") {
			continue
		}
		mark := syntax.Mark{Line: n, S: strings.Clone(syntax.Clip(s)), Key: uint64(syntax.Hash(s))}
		if leftOut().MatchString(s) && checks().MatchString(s) && script {
			mark.Pattern, mark.Confidence = skipConditional, 0.85
			m.Marks = append(m.Marks, mark)
		}
		if ignoresFailure(s) || tests && path.Ext(name) != ".yml" && alwaysFine().MatchString(s) {
			mark.Pattern, mark.Confidence = syntax.ExitIgnored, 0.9
			m.Marks = append(m.Marks, mark)
		}
		if at := switchLine().FindStringSubmatch(s); settings && at != nil {
			on := slices.Contains([]string{"true", "on", "yes", "enabled"}, strings.ToLower(at[2]))
			m.Marks = append(m.Marks, syntax.Mark{Pattern: syntax.FlagOff, Line: n, S: mark.S,
				Key: uint64(syntax.Hash(at[1])), On: on})
		}
	}
	return m
}

var (
	scriptFile = lazyregexp.New(`\.(?:sh|bash|mk|yml|yaml|toml|cfg|ini|ps1|bat|gradle)$|` +
		`^(?:makefile|package\.json|justfile|dockerfile|gnumakefile|jenkinsfile|composer\.json|noxfile|pom\.xml)$`)
	settingsFile = lazyregexp.New(`\.(?:json|yml|yaml|toml|ini|properties|env|conf)$|^\.env`)
	ignored      = lazyregexp.New(
		`\|\|\s*(true\b|:(\s|$|;|")|exit 0)|;\s*true\s*("|'|,|$)|;\s*exit 0|continue-on-error:\s*true|` +
			`allow_failure:\s*true|--passWithNoTests|--exit-zero|--no-fail-on-error|-DskipTests|-Dmaven\.test\.skip=true|` +
			`testFailureIgnore>\s*true|ignoreFailures\s*=\s*true|--suppress-no-test-exit-code|\|\|\s*(echo|printf)\b[^|]*$|` +
			`maven\.test\.failure\.ignore\b|^if\s+!\s.*;\s*then\s+(echo|printf|true|:)[^;]*;\s*fi$`)
	checks = lazyregexp.New(
		`(?i)test|lint|check|jest|vet\b|mypy|tsc\b|cargo|verify|cover|spec\b|audit|ruff|phpstan|rubocop|clippy|mocha|` +
			`phpunit|pytest|gradle|mvn|continue-on-error|allow_failure|exit-zero`)
	// alwaysFine matches commands that make a script succeed whatever else fails.
	alwaysFine = lazyregexp.New(`^trap\s+(-\s+)?['"]?(exit 0|exit\s*$|true|:)|^set\s+\+e\s*$|^set\s+\+o\s+errexit`)
	// leftOut matches options that exclude tests from a run.
	leftOut = lazyregexp.New(
		`\s-k\s*['"]?not\b|--deselect\b|--ignore(-glob)?[= ]|\s-skip[= ]|\s--skip\b|--exclude-(group|tag|testsuite|task)|` +
			`--testPathIgnorePatterns|--filter[= ]\s*['"]?[\w.]+\s*!=|--tag\s+['"]?~|\s-x\s+test\b|--exclude-tests?\b|` +
			`-Dtest=['"]?!`)
	// switchLine matches a key with a boolean value.
	switchLine = lazyregexp.New(
		`^["']?([A-Za-z][\w.\-]*)["']?\s*[:=]\s*["']?(true|false|on|off|yes|no|enabled|disabled|True|False)["']?,` +
			`?\s*(#.*)?$`)
)

// ignoresFailure reports whether a line runs a check and ignores its failure.
func ignoresFailure(s string) bool { return ignored().MatchString(s) && checks().MatchString(s) }
