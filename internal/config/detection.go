package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure/internal/detect/rules"
)

// detectionKeys returns the settings of the section loop on detection. They exist in
// the file only.
func detectionKeys() []string {
	return []string{"loop.patterns_enabled", "loop.patterns_off", "loop.pattern_actions", "loop.patterns",
		"loop.act_confidence", "loop.protected_paths"}
}

// detection parses a setting on detection. It returns false for another key.
func (p *fileParser) detection(key string, n ast.Node) bool {
	if key == "loop.waivers" {
		p.add(n, "%s: waivers are not allowed here, because an agent can write this file; put them into %s and commit "+
			"it, or into the file that %s names", key, rules.FileName, rules.WaiversVariable)
		return true
	}
	if !slices.Contains(detectionKeys(), key) {
		return false
	}
	if _, null := n.(*ast.NullNode); null {
		p.add(n, "%s: has no value; delete the line for the default", key)
		return true
	}
	name := strings.TrimPrefix(key, "loop.")
	fields := map[string]any{"patterns_enabled": &p.rules.Types, "patterns_off": &p.rules.Off,
		"pattern_actions": &p.rules.Actions, "patterns": &p.rules.Patterns,
		"act_confidence": &p.rules.ActConfidence, "protected_paths": &p.rules.Protected}
	if err := yaml.NodeToValue(n, fields[name], yaml.DisallowUnknownField()); err != nil {
		problem, _, _ := strings.Cut(err.Error(), "\n")
		p.add(n, "%s: %s", key, problem)
		return true
	}
	p.rulesAt = n
	return true
}

// checkRules validates the settings on detection together.
func (p *fileParser) checkRules() {
	if p.rulesAt == nil {
		return
	}
	if _, err := p.rules.Rules(); err != nil {
		p.add(p.rulesAt, "loop: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// detectionTemplate is the part of a new file about detection.
const detectionTemplate = `# Patterns of regressions; "perdure check patterns" lists their names. The file
# .perdure-check.yaml, which is committed, has the same keys:
#   patterns_enabled: [test_deletion, test_skipping, coverage_regression]
#   patterns_off: [open-ends]
#   pattern_actions: {symbol-removed: tell}
#   act_confidence: 0.8
#   protected_paths: [deploy/**]
#   patterns:
#     - {id: no-sleep, type: test_skipping, message: a test waits, tokens: time . Sleep (, paths: ["**/*_test.go"]}
`
