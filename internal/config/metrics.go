package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	loopconfig "github.com/perdure/perdure/loop/config"
)

// LoopMetrics are the settings of the section loop on metrics other than the tests.
type LoopMetrics struct {
	// Coverage, Types and Lint are auto, off or a command.
	Coverage, Types, Lint string
	// CoverageThreshold and SensitiveThreshold are percentages; 0: no limit.
	CoverageThreshold, SensitiveThreshold float64
	// SensitivePaths are words and patterns, separated by commas.
	SensitivePaths string
	// Metrics are the user's own metrics. They exist in the file only.
	Metrics []loopconfig.Metric
}

// Measures returns the settings in the form of a loop's configuration.
func (l *LoopMetrics) Measures() loopconfig.Measures {
	m := loopconfig.Measures{Coverage: l.Coverage, Types: l.Types, Lint: l.Lint, Metrics: l.Metrics,
		CoverageThreshold: l.CoverageThreshold, SensitiveThreshold: l.SensitiveThreshold}
	for _, limit := range []*float64{&m.CoverageThreshold, &m.SensitiveThreshold} {
		if *limit == 0 {
			*limit = -1
		}
	}
	m.SensitivePaths = words(l.SensitivePaths)
	return m
}

// words returns the parts of text between commas that are not empty.
func words(text string) []string {
	var list []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			list = append(list, word)
		}
	}
	return list
}

func metricSettings(c *Config) []setting {
	return []setting{
		{key: "loop.coverage", at: &c.Loop.Coverage, value: "COMMAND", def: loopconfig.Auto, check: notEmpty,
			acts: metricEffect,
			help: "coverage by line: auto (measured by the check if the test runner can), off, or a command that " +
				"writes to $PERDURE_COVERAGE"},
		{key: "loop.types", at: &c.Loop.Types, value: "COMMAND", def: loopconfig.Auto, check: notEmpty,
			acts: metricEffect,
			help: "type errors: auto (the checkers that the project configures, for at most two minutes), off, or a command"},
		{key: "loop.lint", at: &c.Loop.Lint, value: "COMMAND", def: loopconfig.Auto, check: notEmpty,
			acts: metricEffect,
			help: "messages of linters: auto, off, or a command"},
		{key: "loop.coverage_threshold", at: &c.Loop.CoverageThreshold, value: "PERCENT", def: "2", none: true,
			check: atMost(100),
			acts:  func(text string) string { return weakensUnless(text, func(x float64) bool { return x <= 2 }) },
			help:  "share of the remaining covered lines that can lose their coverage, or none for all"},
		{key: "loop.sensitive_coverage_threshold", at: &c.Loop.SensitiveThreshold, value: "PERCENT",
			def: "0.5", none: true,
			check: atMost(100),
			acts:  func(text string) string { return weakensUnless(text, func(x float64) bool { return x <= 0.5 }) },
			help:  "the same share for sensitive paths"},
		{key: "loop.sensitive_paths", at: &c.Loop.SensitivePaths, value: "WORDS",
			def:  strings.Join(loopconfig.SensitiveWords(), ","),
			acts: acts("replaces the sensitive paths"),
			help: "sensitive paths: words and patterns, separated by commas"},
	}
}

// metricsKey is the setting of the user's metrics.
const metricsKey = "loop.metrics"

// metricMap parses the user's metrics: commands, with the better direction or not.
func (p *fileParser) metricMap(n ast.Node) {
	var entries yaml.MapSlice
	if err := yaml.NodeToValue(n, &entries); err != nil {
		p.add(n, "%s is not a section of commands; write size_kb: du -sk dist | cut -f1", metricsKey)
		return
	}
	for _, e := range entries {
		m := loopconfig.Metric{Name: fmt.Sprint(e.Key)}
		switch value := e.Value.(type) {
		case string:
			m.Command = value
		case map[string]any:
			for key, text := range value {
				switch key {
				case "command":
					m.Command = fmt.Sprint(text)
				case "better":
					m.Better = fmt.Sprint(text)
				default:
					p.add(n, "%s.%s: unknown key %q; the keys are command and better", metricsKey, m.Name, key)
				}
			}
		}
		for _, problem := range m.Validate() {
			p.add(n, "%s: %s", metricsKey, problem)
		}
		if slices.ContainsFunc(p.metrics, func(other loopconfig.Metric) bool { return other.Name == m.Name }) {
			p.add(n, "%s.%s: already set", metricsKey, m.Name)
		}
		p.metrics = append(p.metrics, m)
	}
	if len(p.metrics) > loopconfig.MaxMetrics {
		p.add(n, "%s has %d metrics, the limit is %d", metricsKey, len(p.metrics), loopconfig.MaxMetrics)
	}
}

// metricTemplate is the part of a new file on metrics.
const metricTemplate = `# Metrics of the workspace, by the commands that print them:
#   metrics:
#     size_kb: {command: du -sk dist | cut -f1, better: down}
`
