package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// weaker reports whether a field of next lets something pass that old would have
// found, refused or asked about. An agent can write the file that settings come
// from, so such a change needs a person's word.
func weaker(field string, old, next *Config) bool {
	switch field {
	case "plain":
		return next.Plain && !old.Plain
	case "retry_critical":
		return next.RetryCritical && !old.RetryCritical
	case "require_verification":
		return old.RequireVerification && !next.RequireVerification
	case "quality_threshold":
		return next.QualityThreshold < old.QualityThreshold
	case "detection":
		return lower(next.Detection, old.Detection, DetectionOff, DetectionMinimal, DetectionStandard,
			DetectionAggressive)
	case "detection_rules":
		return weakerRules(&old.Rules, &next.Rules, detect.Mode(old.Detection))
	case "mutation_percent":
		return next.MutationPercent < old.MutationPercent
	case "held_out":
		return old.HeldOut != "" && next.HeldOut != old.HeldOut
	case "held_out_gap":
		return next.HeldOutGap > old.HeldOutGap
	case "sealed":
		return lower(next.Sealed, old.Sealed, SealOff, SealCompletion, SealAlways)
	case "sealed_setup":
		return next.SealedSetup != old.SealedSetup && next.SealedSetup != ""
	case "approver":
		return next.Approver != old.Approver && strictness(next.Approver) <= strictness(old.Approver)
	case "risk_answers":
		return weakerCommands(old, next) || slices.ContainsFunc(risk.Table(), func(r risk.Rule) bool {
			return lower(answerTo(&r, next), answerTo(&r, old), RiskAllow, RiskWarn, RiskGate, RiskBlock)
		})
	case "snapshot_risky":
		return lower(next.SnapshotRisky, old.SnapshotRisky, SnapshotNever, SnapshotHigh, SnapshotAll, "")
	case "coverage":
		return replaced(old.Coverage, next.Coverage)
	case "types":
		return replaced(old.Types, next.Types)
	case "lint":
		return replaced(old.Lint, next.Lint)
	case "coverage_threshold":
		return looser(old.CoverageThreshold, next.CoverageThreshold)
	case "sensitive_coverage_threshold":
		return looser(old.SensitiveThreshold, next.SensitiveThreshold)
	case "permission":
		return lower(cmp.Or(next.Permission, agent.PermissionEdits), cmp.Or(old.Permission, agent.PermissionEdits),
			agent.PermissionAll, agent.PermissionOwn, agent.PermissionEdits, agent.PermissionRead)
	case "allow":
		return lacks(old.Allow, next.Allow)
	case "env":
		return lacks(old.Env, next.Env)
	case "sensitive_paths":
		return lacks(next.SensitivePaths, old.SensitivePaths)
	}
	return false
}

// strictness orders approvers. Neither of another user and the token includes the other.
func strictness(a perdure.Approver) int {
	switch a {
	case perdure.ApproverAny:
		return 0
	case perdure.ApproverTerminal:
		return 1
	case perdure.ApproverToken, perdure.ApproverUser:
	}
	return 2
}

// lower reports whether a comes before b in an order.
func lower[T comparable](a, b T, order ...T) bool {
	return rank(a, order) < rank(b, order)
}

// rank returns the index of x in an order. The empty mode of detection is the
// standard one.
func rank[T comparable](x T, order []T) int {
	if any(x) == any(Detection("")) {
		x = any(DetectionStandard).(T) //nolint:forcetypeassert // x is a mode
	}
	return slices.Index(order, x)
}

func answerTo(r *risk.Rule, c *Config) RiskAnswer {
	if a, ok := c.RiskAnswers[string(r.Pattern)]; ok {
		return a
	}
	return RiskAnswer(r.Answer)
}

// weakerCommands reports whether a command has a weaker answer, or none any more. One that the
// user has not named before may need a person.
func weakerCommands(old, next *Config) bool {
	for key, answer := range next.RiskAnswers {
		was := cmp.Or(old.RiskAnswers[key], RiskGate)
		if strings.HasPrefix(key, risk.CommandPrefix) && lower(answer, was, RiskAllow, RiskWarn, RiskGate, RiskBlock) {
			return true
		}
	}
	for key := range old.RiskAnswers {
		if _, kept := next.RiskAnswers[key]; !kept && strings.HasPrefix(key, risk.CommandPrefix) {
			return true
		}
	}
	return false
}

// replaced reports whether something is not measured any more, or by a command that
// was not asked for before.
func replaced(old, next string) bool {
	return next != old && next != "" && next != Auto
}

// looser compares what may be lost; below zero it is anything.
func looser(old, next float64) bool {
	return old >= 0 && (next < 0 || next > old)
}

func lacks[T comparable](list, wanted []T) bool {
	return slices.ContainsFunc(wanted, func(w T) bool { return !slices.Contains(list, w) })
}

// weakerRules compares what is looked for.
func weakerRules(was, will *DetectionRules, mode detect.Mode) bool {
	old, err := rules.From(was)
	next, nextErr := rules.From(will)
	switch {
	case err != nil, nextErr != nil:
		return true
	case lacks(old.Off, next.Off), lacks(next.Protected, old.Protected):
		return true
	case len(next.Types) > 0 && (len(old.Types) == 0 || lacks(next.Types, old.Types)):
		return true
	case actsFrom(&next) > actsFrom(&old):
		return true
	case slices.ContainsFunc(old.Patterns, func(p rules.Pattern) bool {
		return !slices.ContainsFunc(next.Patterns, func(q rules.Pattern) bool { return reflect.DeepEqual(p, q) })
	}):
		return true
	}
	named := maps.Clone(old.Actions)
	if named == nil {
		named = make(map[string]detect.Action)
	}
	maps.Copy(named, next.Actions)
	for name := range named {
		if lower(actionOf(name, &next, mode), actionOf(name, &old, mode), detect.Tell, detect.Warn, detect.Act) {
			return true
		}
	}
	return false
}

func actsFrom(s *rules.Settings) float64 {
	if s.ActConfidence == 0 {
		return detect.ActConfidence
	}
	return s.ActConfidence
}

// actionOf is what a sure finding of a pattern does.
func actionOf(name string, s *rules.Settings, mode detect.Mode) detect.Action {
	if a, ok := s.Actions[name]; ok {
		return a
	}
	strongest := detect.Tell
	for _, p := range s.Catalog() {
		if p.ID != name && !slices.Contains(p.Aliases, name) {
			continue
		}
		switch {
		case p.Tier == detect.Fact, p.Tier == detect.Sign && mode != detect.Minimal:
			return detect.Act
		case p.Tier == detect.Sign, mode == detect.Aggressive:
			strongest = detect.Warn
		}
	}
	return strongest
}
