// Package platform decides whether the condition of a skipped test depends on the
// platform: the operating system, a version, or an installed tool.
package platform

import (
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Condition is one under which a test is skipped or runs.
type Condition struct {
	// Language is the language of the test.
	Language string
	// Text has the tokens of the condition without messages, and the values of its names.
	Text string
	// RunsWhen is set when the test runs if it holds, and is skipped otherwise.
	RunsWhen bool
	// Used is set when the file uses the required variable, module or tool elsewhere.
	Used bool
	// Tried is set when the test is skipped because an attempt failed.
	Tried bool
	// Own is the text with the names in it, and Given has their values.
	Own   string
	Given map[string]string
	// Test is the name of the test.
	Test string
}

// Explains reports whether the condition is a valid reason for a skip: the system, or something
// that the tests use. A condition that always holds, or holds on usual machines, is none.
func (c *Condition) Explains() bool {
	switch {
	case c.Always(), checked().MatchString(c.Text):
		return false
	case c.Tried:
		return true
	case c.Off():
		return otherSystem().MatchString(c.Test)
	case c.usually() == no: // only elsewhere
		return true
	case ofSystem().MatchString(c.plain()), c.version() != nil, build().MatchString(c.Text):
		return true
	}
	return c.Used && ofInstalled().MatchString(c.Text)
}

// Always reports whether the condition skips the test on every machine in use.
func (c *Condition) Always() bool {
	if rare().MatchString(c.Text) || c.Language == "go" && (strings.Contains(c.Text, "!testing.Short()") || c.RunsWhen &&
		strings.HasPrefix(c.Text, "testing.Short()")) {
		return true
	}
	if !c.RunsWhen && orTrue().MatchString(c.Text) || c.RunsWhen && andFalse().MatchString(c.Text) {
		return true
	}
	if m := build().FindStringSubmatch(c.Text); m != nil && c.Language == "go" {
		n, _ := strconv.Atoi(m[2])
		return m[1] == "!" && n <= inUse()["go"][0]%100 || m[1] == "" && n > inUse()["go"][1]%100
	}
	v := c.version()
	return v != nil && (c.RunsWhen && v.never() || !c.RunsWhen && v.ever())
}

// plain returns the text without strings if it reads the environment, as names of variables mean
// nothing.
func (c *Condition) plain() string {
	if ofEnvironment().MatchString(c.Text) {
		return named().ReplaceAllString(c.Text, "")
	}
	return c.Text
}

var (
	checked = lazyregexp.New(`\bCI\b|_CI\b|CICondition|skipOnCi|CIRCLECI|(?i)github_|in_?ci\b|\bis_?ci\b|travis|` +
		`jenkins|buildkite|teamcity|tf_build|continuous_?integration|build_number`)
	ofSystem = lazyregexp.New(`(?i)windows|win32|win_|darwin|mac_?os|\bmac\?|linux|unix|bsd\b|goos|goarch|` +
		`platform|\bos\.name|\bos\.type|operatingsystem|java_?os|\barch|arm64|amd64|aarch|x86|short\(\)|\b(is_?)?root\b|` +
		`\bget[re]?uid\b|geteuid|locale|cgo|\b(is)?race|wasm|endian|rbconfig|sizeof|pointer_?width|msys|\bfork\b|symlink|` +
		`ipv6|fips|posix|\bnt\b|tty|numcpu|cpu_count`)
	ofEnvironment = lazyregexp.New(`(?i)getenv|lookupenv|environ\b|\benv\b|\$_env|\$_server|environmentvariable|` +
		`systemproperty|env::var|option_env|extension|importorskip|feature`)
	named = lazyregexp.New("\"[^\"]*\"|'[^']*'|`[^`]*`|\\benv\\.\\w+")
	// ofInstalled matches words for software that may be missing.
	ofInstalled = lazyregexp.New(`(?i)version|jre|jdk|\bphp|which|lookpath|lookupenv|getenv|environ|\benv\b|` +
		`env::var|exist|stat\(|access|isfile|found|install|availab|support|capab|import|module|hasattr|has_|have_|` +
		`extension|requires|docker|loaded|defined|feature|\btypeof[ (]*[\w.$]+[ )]*[=!]|\bping\b|\bdial|probe|reachable`)
	// rare matches conditions for systems that are hardly used.
	rare = lazyregexp.New(`(?i)(!=|!==|!equals\(|isnot)["'(]*(aix|plan9|solaris|sunos|illumos|haiku|amiga|zos|` +
		`hp-?ux)|EnabledOnOs\((value=)?\{?(OS\.)?(AIX|SOLARIS|OTHER)|RequiresOperatingSystem\w*\(["']/?(solaris|aix|` +
		`sunos|hp-?ux|haiku)|^(aix|plan9|solaris|illumos|zos)$`)
	build    = lazyregexp.New(`^(!?)go1\.(\d+)$`)
	orTrue   = lazyregexp.New(`(?i)(\|\||\bor )\(?true\b|\btrue(\|\|| or\b)`)
	andFalse = lazyregexp.New(`(?i)(&&|\band )\(?false\b|\bfalse(&&| and\b)`)
)
