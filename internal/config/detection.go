package config

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/text/clip"
)

// detectionFields returns the settings of the section loop on detection, which exist in
// the file only, by key.
func detectionFields(s *rules.Settings) map[string]any {
	return map[string]any{typesKey: &s.Types, offKey: &s.Off, actionsKey: &s.Actions, "loop.patterns": &s.Patterns,
		confidenceKey: &s.ActConfidence, "loop.protected_paths": &s.Protected}
}

// The settings on detection that can weaken it.
const (
	typesKey      = "loop.patterns_enabled"
	offKey        = "loop.patterns_off"
	actionsKey    = "loop.pattern_actions"
	confidenceKey = "loop.act_confidence"
)

// detection parses a setting on detection. It returns false for another key.
func (p *fileParser) detection(key string, n ast.Node) bool {
	field := detectionFields(&p.rules)[key]
	_, null := n.(*ast.NullNode)
	switch {
	case key == "loop.waivers":
		p.add(n, "%s: waivers are not allowed here, because an agent can write this file; put them into %s and commit "+
			"it, or into the file that %s names", key, rules.FileName, rules.WaiversVariable)
	case field == nil:
		return false
	case null:
		p.add(n, "%s: has no value; delete the line for the default", key)
	default:
		if err := yaml.NodeToValue(n, field, yaml.DisallowUnknownField()); err != nil {
			p.add(n, "%s: %s", key, clip.FirstLine(err.Error()))
		} else {
			p.rulesAt = n
		}
	}
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

// detectionTemplate is the part of a new file on detection.
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
