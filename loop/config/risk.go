package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/toolguard/risk"
)

// RiskAnswer is what happens to a risky tool call.
type RiskAnswer string

// The answers, from the mildest.
const (
	// RiskAllow permits the call. RiskWarn does too, and tells the agent why the call
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

// validateRisks checks the settings of risky calls.
func (c *Config) validateRisks() error {
	var errs []error
	for pattern, answer := range c.RiskAnswers {
		if !slices.ContainsFunc(risk.Table(), func(r risk.Rule) bool { return string(r.Pattern) == pattern }) {
			errs = append(errs, fmt.Errorf("risk_answers: there is no pattern %q", pattern))
		}
		if !slices.Contains([]RiskAnswer{RiskAllow, RiskWarn, RiskGate, RiskBlock}, answer) {
			errs = append(errs, fmt.Errorf("risk_answers.%s: %q is none of allow, warn, gate, block", pattern, answer))
		}
	}
	if !slices.Contains([]SnapshotRisky{"", SnapshotAll, SnapshotHigh, SnapshotNever}, c.SnapshotRisky) {
		errs = append(errs, fmt.Errorf("snapshot_risky %q is none of all, high, none", c.SnapshotRisky))
	}
	return errors.Join(errs...)
}
