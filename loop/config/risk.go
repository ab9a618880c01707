package config

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/toolguard/risk"
)

// RiskAnswer is what happens to a risky tool call.
type RiskAnswer string

// The answers, from the mildest.
const (
	// RiskAllow permits the call. RiskWarn does too, and warns the agent why the call
	// is risky.
	RiskAllow RiskAnswer = "allow"
	RiskWarn  RiskAnswer = "warn"
	// RiskGate refuses the call until a person permits it; RiskBlock refuses it.
	RiskGate  RiskAnswer = "gate"
	RiskBlock RiskAnswer = "block"
)

// SnapshotRisky says before which risky tool calls a snapshot is taken.
type SnapshotRisky string

// Before which calls.
const (
	SnapshotAll   SnapshotRisky = "all"
	SnapshotHigh  SnapshotRisky = "high" // and critical
	SnapshotNever SnapshotRisky = "none"
)

// checkRisks checks the settings of risky calls.
func (c *Config) checkRisks(p *problems) {
	for pattern, answer := range c.RiskAnswers {
		p.check(strings.HasPrefix(pattern, risk.CommandPrefix) ||
			slices.ContainsFunc(risk.Table(), func(r risk.Rule) bool { return string(r.Pattern) == pattern }),
			"risk_answers: there is no pattern %q", pattern)
		p.check(slices.Contains([]RiskAnswer{RiskAllow, RiskWarn, RiskGate, RiskBlock}, answer),
			"risk_answers.%s: %q must be one of allow, warn, gate, block", pattern, answer)
	}
	p.check(slices.Contains([]SnapshotRisky{"", SnapshotAll, SnapshotHigh, SnapshotNever}, c.SnapshotRisky),
		"snapshot_risky is %q, must be one of all, high, none", c.SnapshotRisky)
}
