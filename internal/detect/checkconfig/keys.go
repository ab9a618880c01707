package checkconfig

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/check/project"
)

// kind says which change of a value makes a check weaker.
type kind uint8

const (
	unknown  kind = iota
	neutral       // no change does
	excludes      // a new value, or true: something is no longer checked
	narrows       // any value: only what it matches is checked
	selects       // a lost value, or a first one: what is checked
	checks        // a lost value: rules, linters, hooks
	strict        // false, or a lost true
	atLeast       // a lower number
	atMost        // a higher number
	exits         // zero
	platform      // a lost value, but only in part: versions and systems
)

// keyTable says by a key's words what the key is. The first match counts, the innermost key
// first; excludes are looked for in all keys around a value before.
var keyTable = sync.OnceValue(func() []keyRule {
	var rules []keyRule
	for _, r := range []struct {
		kind  kind
		words string
	}{
		{exits, `failure-exit-code|exit!?|exit-code|os-exit|exit-status`},
		{neutral, `\$schema|name|alias|title|description|reporters?|report|report-(?:dir|on-failure)|.*outputs?|output-.*|` +
			`junitxml|junit-xml|formatters?|formats?|out|out-(?:dir|file)|colou?rs?|verbose|verbosity|v|vv|quiet|q|cache.*|` +
			`.*-cache|log.*|.*timeouts?|timeout.*|jobs|j|.*workers?|parallel.*|.*parallel.*|concurrency|version|minimum-version|` +
			`rev|repo|.*language-version|language|python|node|default-language-version|additional-dependencies|` +
			`show.*|display.*|progress|fail-fast|no-fail-fast|bail|stop-on-.*|random.*|seed|order|indent.*|tab-width|charset|` +
			`end-of-line|insert-final-newline|trim-trailing-whitespace|module|module-resolution|lib|jsx.*|base-url|types|` +
			`root-dir|go|.*-version|.*-versions|edition|msrv|max-line-length|max-len|line-length|ini|declaration.*|source-map|incremental|composite|.*interop|resolve-json-module|isolated-.*|globals|` +
			`env|environment|parser.*|settings|autofix.*|autoupdate.*|require-pull-request|tb|durations|p-no|target-version|` +
			`target-ruby-version|line-length|watch|cov-report|with-coverage-report|bootstrap|test-environment|clear-mocks|` +
			`restore-mocks|reset-mocks|setup-files.*|transform.*|preset|snapshot.*|ansi|no-interaction|no-progress|console.*|` +
			`comment|layout|after-n-builds|wait-for-ci|required-plugins|minversion|isolated-build|skip-missing-interpreters|` +
			`locked|rerun-tasks|warning-mode|stacktrace|info|no-daemon|batch-mode|b|logger|configuration|c|ci|no-build|` +
			`no-restore|all-files|fix|xmlns.*|.*schema-location|use-ignore-file|allow-(?:js|importing-ts-extensions|` +
			`arbitrary-extensions|synthetic-default-imports)|ignore-deprecations|new-cops|suggest-extensions|plugins?-path|` +
			`pass-env|passenv|set-env|setenv|deps|dependency-groups|extras|package|wheel-build-env|basepython|force-exclude|` +
			`allow-failures|allowlist-externals|image|cache-directory|tmp-dir|editor-url|print-.*|html|xml|lcov|cobertura|` +
			`lint-timeout`},
		{platform, `matrix|env-?list|strategy|node-js|rvm|php`},
		{atMost, `max.*|.*-max|retr(?:y|ies)|reruns?|error-level|tolerance|limit|allowed-.*|count|occurrences`},
		{atLeast, `(?:cov-)?fail-under.*|.*-fail-under|min(?:imum)?(?:-.*)?|.*-min(?:imum)?|threshold|thresholds|.*-threshold|` +
			`bound|lines?|branches|functions|statements|level|.*cover(?:age)?-(?:lines|branches|functions)|minimum-coverage.*|` +
			`total|msi|score|rule-level|.*-?ratio|target`},
		{narrows, `only-.*|k|m|t|f|p|g|only|short|lib|bins?|invert|f?grep|tags?|run|filter|test|tests|example|examples|groups?|` +
			`include-groups?|pattern|.*test-name-pattern|test-case-filter|last-failed|lf|only-changed|changed-since|stages|` +
			`include-tags?|test-suite|testsuite|runner`},
		{selects, `include[sd]?|includes?-.*|files|file-types?|paths?|src|sources?|source-.*|roots?|test-?match|test-?paths?|` +
			`test-regex|specs?|test-files|test-globs|suites?|test-?suites?|director(?:y|ies)|projects?|project-files|packages|` +
			`class(?:es)?|args|collect-coverage-from|python-(?:files|classes|functions)|finder|in|types-or`},
		{checks, `(?:extend-)?select|enable|enabled-rules|extends?|plugins?|rules?|linters|hooks?|presets?|rule-?sets?|ref|` +
			`depends-on|finalized-by|default|modules?|imports?|d|w|lints?|strict-rules|id|sniff|bundled|analyzers|` +
			`xlint|cops|cov|solution|package-references|refuse-.*|tseslint-config|define-config|config`},
		{strict, `strict.*|.*-strict|fail.*|.*-fail.*|forbid.*|.*-errors?|errors?|check.*|.*-check|warn.*|den(?:y|ied)|require.*|verif.*|` +
			`enable.*|enabled|active|no-.*|treat-warnings-as-errors|werror|nullable|collect-coverage|cover|coverage|branch|be-strict.*|` +
			`convert-.*|exact-.*|disallow-.*|raise.*|auto-?tests|doctest|harness|enforce-.*|find-unused.*|report-unused.*|` +
			`analysis-level|is-test-project|all-targets|all-features|all|workspace|race|shuffle|use-unknown.*|warnings?|` +
			`isfail.*|is-fail.*|a|xfail-strict|recursive|abort-on-error|doctest-modules|report`},
	} {
		rules = append(rules, keyRule{r.kind, regexp.MustCompile(`^(?:` + r.words + `)$`)})
	}
	return rules
})

type keyRule struct {
	kind  kind
	words *regexp.Regexp
}

// excluding matches the words of keys whose values are not checked, or failures of which do
// not count; softer are those of which additions are common in honest work.
var (
	excluding = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|-)(?:excluded?s?|excluding|exclusions?|ignored?s?|ignoring|omit|skip(?:ped|s)?|no-?warn|` +
			`suppress(?:ions?|ed)?|deselect|disabled?s?|allow(?:ed|s|list)?|whitelist|norecursedirs|add-filter|baseline|` +
			`exit-zero|pass-with-no-tests|no-verify|if-present|no-cov|dangerously|continue-on-error|soft-fail|success-codes|x|` +
			`xfail|todo|remove)(?:-|$)`)
	})
	softer = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:skip-lib-check|ignore-missing-imports|ignore-deprecations|skip-covered|skip-empty|` +
			`allow-js|.*-allow-.*|.*risky-allowed|skip-string-normalization|ignore-init.*|x)$`)
	})
)

// wordsOf splits a key into lower-case words, joined by dashes.
func wordsOf(key string) string {
	var b strings.Builder
	small := false
	for _, c := range key {
		switch {
		case c >= 'A' && c <= 'Z':
			if small {
				b.WriteByte('-')
			}
			b.WriteRune(c + 'a' - 'A')
			small = false
			continue
		case c == '_' || c == ' ' || c == '-':
			c = '-'
		}
		small = c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		b.WriteRune(c)
	}
	return strings.Trim(strings.ReplaceAll(b.String(), "--", "-"), "-@?")
}

// names returns the words of the keys around a value, the innermost first.
func names(path []string) []string {
	var all []string
	for i := len(path) - 1; i >= 0; i-- {
		if strings.HasPrefix(path[i], "#") {
			continue
		}
		parts := strings.FieldsFunc(path[i], func(c rune) bool { return strings.ContainsRune(".:/>", c) })
		for j := len(parts) - 1; j >= 0; j-- {
			if w := wordsOf(parts[j]); w != "" && w != "set" && w != "new" && w != "add" && w != "value" {
				all = append(all, w)
			}
		}
	}
	return all
}

// innermost returns the words of the innermost key; empty if there are none.
func innermost(path []string) string {
	all := names(path)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// kindOf returns what a setting is.
func kindOf(path []string) kind {
	all := names(path)
	for i, w := range all {
		if k := matchKey(w); i == 0 && (k == neutral || k == exits || w == "enabled" || w == "active") {
			return k
		}
		if excluding().MatchString(w) {
			return excludes
		}
	}
	found := unknown
	for i, w := range all {
		if found = matchKey(w); found != unknown && (found != narrows || i == 0) {
			break
		}
	}
	if found != strict && slices.Contains(all, "compiler-options") || slices.Contains(all, "bench") {
		return neutral
	}
	return found
}

func matchKey(w string) kind {
	for _, r := range keyTable() {
		if r.words.MatchString(w) {
			return r.kind
		}
	}
	return unknown
}

// severities are words for the weight of a rule, from none.
func severity(v string) (int, bool) {
	switch strings.ToLower(strings.Trim(v, `"' `)) {
	case "off", "none", "silent", "allow", "ignore", "disabled", "disable", "default":
		return 0, true
	case "info", "suggestion", "hint", "refactoring", "on", "notice":
		return 1, true
	case "warn", "warning", "enabled", "enable", "lax":
		return 2, true
	case "error", "deny", "fatal":
		return 3, true
	case "forbid":
		return 4, true
	}
	return 0, false
}

func truth(v string) (is, ok bool) {
	switch strings.ToLower(v) {
	case "true", "yes":
		return true, true
	case "false", "no":
		return false, true
	}
	return false, false
}

func number(v string) (float64, bool) {
	if v == "max" { // the highest level of phpstan
		return 1000, true
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), "%"), 64)
	return f, err == nil
}

// limitOf returns whether a number is a lower or an upper limit: atLeast, atMost or unknown.
func limitOf(path []string, class project.Class) kind {
	all := names(path)
	covers := class == project.CoverageConfig || slices.ContainsFunc(all, func(w string) bool {
		return strings.Contains(w, "cover") || strings.Contains(w, "kover") || strings.Contains(w, "jacoco")
	})
	for _, w := range all {
		switch k := matchKey(w); {
		case w == "threshold" && (class == project.LintConfig || slices.Contains(all, "status")): // of codecov: a loss
			return atMost
		case k == neutral:
			return neutral
		case k == atLeast && (covers || class != project.LintConfig || w == "level" || strings.HasPrefix(w, "min")),
			k == atMost:
			return k
		}
	}
	if slices.ContainsFunc(all, func(w string) bool { return strings.HasSuffix(w, "rules") }) {
		return atMost // an option
	}
	return unknown
}
