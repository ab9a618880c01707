package syntax

import "slices"

// The patterns of marks.
const (
	CoverageExcluded = "coverage-excluded"
	RunnerAsked      = "test-runner-asked"
	ChecksOff        = "checks-off"
	ExitTrick        = "exit-trick"
	HookForged       = "runner-hook-forged"
	ExitIgnored      = "exit-ignored"
	ErrorSwallowed   = "error-swallowed"
	ComplaintOff     = "complaint-silenced"
	LooseType        = "type-loosened"
	FlagOff          = "flag-off"
	OpenEnds         = "open-ends"
	GuardVoid        = "guard-removed" // its condition never holds, or always
)

// markPlace is the code in which a mark counts.
type markPlace uint8

// The places.
const (
	anywhere markPlace = iota
	inCode
	inTests
)

// markRule matches sequences of tokens, which blanks separate. A quoted word is a string, or a prefix
// of one if it ends in a star; * is any token.
type markRule struct {
	Pattern    string
	Where      markPlace
	Confidence float64
	Sequences  []string
}

// commentRule is a part of a comment.
type commentRule struct {
	Pattern, S string
	Confidence float64
	// Named are the characters before the names of the rules that the comment suppresses; empty
	// when it cannot name one.
	Named string
	// Off is set when it counts only with a 0 or an off after the name of a rule.
	Off bool
}

// The tables of marks. A confidence of 0.6 warns in standard mode; marks about a line of the
// baseline are raised to certainty when findings are made.

// sharedNotes returns the rules of a language and those of all languages.
func sharedNotes(more ...[]commentRule) []commentRule {
	return slices.Concat(append(more,
		comments(CoverageExcluded, 0.6, "", "LCOV_EXCL"),
		comments(ComplaintOff, 0.6, "", "NOSONAR"),
		comments(ComplaintOff, 0.6, ":", "nosemgrep"),
		comments(ComplaintOff, 0.6, "[", "codeql[", "lgtm["),
		comments(ComplaintOff, 0.6, " ", "DevSkim: ignore"))...)
}

// comments returns a rule for each text.
func comments(pattern string, confidence float64, named string, texts ...string) []commentRule {
	var all []commentRule
	for _, s := range texts {
		all = append(all, commentRule{Pattern: pattern, S: s, Confidence: confidence, Named: named})
	}
	return all
}
