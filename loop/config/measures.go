package config

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// How a metric of [Measures] is taken, if not by a command.
const (
	// Auto takes what costs little: see the fields.
	Auto = "auto"
	// Off leaves a metric out.
	Off = "off"
)

// Defaults and limits of [Measures].
const (
	DefaultCoverageThreshold  = 2.0
	DefaultSensitiveThreshold = 0.5
	MaxMetrics                = 20
	MaxSensitivePaths         = 100
)

// Measures says what is measured in the workspace in addition to the tests: at the
// baseline and after each iteration. Commands are for the shell, run in the
// workspace, and are stopped after [Config].CheckTimeout.
type Measures struct {
	// Coverage: empty or Auto takes coverage in the run of the completion
	// command, where its runner can do both in one (go test, pytest with
	// pytest-cov, jest); no test is run a second time for it. Off: none. A
	// command is run separately: it writes Go's coverprofile, LCOV, Clover's or Cobertura's
	// XML to the file, or into the folder, that $PERDURE_COVERAGE names.
	Coverage string `json:"coverage,omitempty"`
	// Types counts type errors and Lint what linters say. Empty or Auto
	// runs the tool that the project is configured for, where that takes at most
	// two minutes and writes nothing into the workspace. Off: not at all. A
	// command prints a finding a line, with its file and line.
	Types string `json:"types,omitempty"`
	Lint  string `json:"lint,omitempty"`
	// Metrics are the user's own.
	Metrics []Metric `json:"metrics,omitempty"`
	// CoverageThreshold is how much of the lines that the baseline's tests covered
	// and that are still there may lose their coverage, in percent of them;
	// SensitiveThreshold that of files in SensitivePaths. 0: the defaults;
	// negative: any.
	CoverageThreshold  float64 `json:"coverage_threshold,omitempty"`
	SensitiveThreshold float64 `json:"sensitive_coverage_threshold,omitempty"`
	// SensitivePaths are words that a path has (auth is in auth/login.go and in
	// basic_auth.go, not in author.go), or patterns with "/" or "*", where "**"
	// matches any folders. Nil: SensitiveWords.
	SensitivePaths []string `json:"sensitive_paths,omitempty"`
}

// Metric is a number that a command prints, in its last line.
type Metric struct {
	// Name has letters, digits, "_", "-" and ".", at most 64 bytes.
	Name    string `json:"name"`
	Command string `json:"command"`
	// Better is up or down when more or less is better; empty: unknown, and
	// the metric is shown and nothing more.
	Better string `json:"better,omitempty"`
}

// The directions of [Metric].
const (
	BetterUp   = "up"
	BetterDown = "down"
)

// SensitiveWords are the words of paths where little coverage may be lost.
func SensitiveWords() []string {
	return []string{"auth", "authn", "authz", "authentication", "authorization", "oauth", "security", "crypto",
		"cryptography", "encryption",
		"payment", "payments", "billing", "login", "password", "passwords", "permission", "permissions", "session",
		"sessions"}
}

// ParseMetric reads NAME=COMMAND, or NAME:up=COMMAND and NAME:down=COMMAND.
func ParseMetric(text string) (Metric, error) {
	name, command, ok := strings.Cut(text, "=")
	if !ok {
		return Metric{}, fmt.Errorf("metric %.80q is not NAME=COMMAND", text)
	}
	m := Metric{Command: strings.TrimSpace(command)}
	m.Name, m.Better, _ = strings.Cut(strings.TrimSpace(name), ":")
	return m, errors.Join(m.Validate()...)
}

var metricName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// Validate returns all that is wrong.
func (m *Metric) Validate() []error {
	var p problems
	p.check(metricName().MatchString(m.Name), "metric %.80q: a name has 1 to 64 letters, digits, \"_\", \"-\" and \".\"",
		m.Name)
	p.check(!slices.Contains([]string{"coverage", "types", "lint", "lines"}, m.Name), "metric %s: the name is taken",
		m.Name)
	p.check(slices.Contains([]string{"", BetterUp, BetterDown}, m.Better),
		"metric %s: better is %.80q, must be %s or %s", m.Name, m.Better, BetterUp, BetterDown)
	command := strings.TrimSpace(m.Command)
	p.check(command != "", "metric %s has no command", m.Name)
	p.check(len(command) <= MaxCommandBytes && !strings.ContainsRune(command, 0),
		"metric %s: the command contains a NUL byte or is longer than %d bytes", m.Name, MaxCommandBytes)
	return p
}

// SetDefaults fills in what is left open.
func (m *Measures) SetDefaults() {
	m.CoverageThreshold = cmp.Or(m.CoverageThreshold, DefaultCoverageThreshold)
	m.SensitiveThreshold = cmp.Or(m.SensitiveThreshold, DefaultSensitiveThreshold)
	for _, way := range []*string{&m.Coverage, &m.Types, &m.Lint} {
		if strings.TrimSpace(*way) == "" {
			*way = Auto
		}
	}
	if m.SensitivePaths == nil {
		m.SensitivePaths = SensitiveWords()
	}
}

// Validate returns all that is wrong, each error with its field.
func (m *Measures) Validate() []error {
	var p problems
	for _, c := range []struct{ name, text string }{{"coverage", m.Coverage}, {"types", m.Types}, {"lint", m.Lint}} {
		p.check(len(c.text) <= MaxCommandBytes && !strings.ContainsRune(c.text, 0),
			"%s contains a NUL byte or is longer than %d bytes", c.name, MaxCommandBytes)
	}
	p.check(len(m.Metrics) <= MaxMetrics, "there are %d metrics, the limit is %d", len(m.Metrics), MaxMetrics)
	seen := make(map[string]bool)
	for i := range m.Metrics {
		c := &m.Metrics[i]
		p = append(p, c.Validate()...)
		p.check(!seen[c.Name], "metric %s is a duplicate", c.Name)
		seen[c.Name] = true
	}
	for _, t := range []float64{m.CoverageThreshold, m.SensitiveThreshold} {
		p.check(t <= 100, "a coverage threshold is %v, must be at most 100 percent", t)
	}
	p.check(len(m.SensitivePaths) <= MaxSensitivePaths, "there are %d sensitive paths, the limit is %d",
		len(m.SensitivePaths), MaxSensitivePaths)
	for _, path := range m.SensitivePaths {
		p.check(strings.TrimSpace(path) != "" && doublestar.ValidatePattern(path),
			"sensitive path %.80q must be a word or a glob pattern", path)
	}
	return p
}

// camel is where a word begins inside of a name, as in loginForm.
var camel = lazyregexp.New(`([a-z0-9])([A-Z])`)

// Sensitive reports whether a file is in SensitivePaths. Case does not count.
func (m *Measures) Sensitive(name string) bool {
	words := make(map[string]bool)
	for _, w := range strings.FieldsFunc(camel().ReplaceAllString(name, "$1 $2"),
		func(r rune) bool { return strings.ContainsRune("/._- ", r) }) {
		words[strings.ToLower(w)] = true
	}
	name = strings.ToLower(name)
	for _, p := range m.SensitivePaths {
		p = strings.ToLower(p)
		if !strings.ContainsAny(p, "/*") {
			if words[p] {
				return true
			}
			continue
		}
		if ok, err := doublestar.Match(path.Clean(p), name); ok && err == nil {
			return true
		}
	}
	return false
}
