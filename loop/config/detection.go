package config

import (
	"time"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
)

// Detection says which findings in changed files count as regressions.
type Detection string

// The modes of detection.
const (
	// DetectionOff reads no file.
	DetectionOff Detection = "off"
	// DetectionMinimal blocks on facts; signs warn.
	DetectionMinimal Detection = "minimal"
	// DetectionStandard blocks on facts and on signs of at least
	// [DetectionRules].ActConfidence; other signs warn.
	DetectionStandard Detection = "standard"
	// DetectionAggressive blocks on facts and all signs; hints warn.
	DetectionAggressive Detection = "aggressive"
)

// DetectionRules say which patterns are looked for and what their findings do. The
// keys are those of the file .perdure-check.yaml; `perdure check patterns` lists the
// names of patterns and types.
type DetectionRules struct {
	// Types, when not empty, are the only types of regressions that are looked for.
	Types []string `json:"patterns_enabled,omitempty"`
	// Off are patterns that are not looked for. Actions, by pattern, are what findings
	// of other patterns do: "act" (block), "warn" or "tell" (list).
	Off     []string          `json:"patterns_off,omitempty"`
	Actions map[string]string `json:"pattern_actions,omitempty"`
	// Patterns are the user's own.
	Patterns []DetectionPattern `json:"patterns,omitempty"`
	// ActConfidence is the confidence from which a sign blocks in standard mode, 0 to
	// 1. 0: the default.
	ActConfidence float64 `json:"act_confidence,omitempty"`
	// Protected are globs of files that checks depend on, in addition to the built-in ones;
	// changes of them are regressions.
	Protected []string `json:"protected_paths,omitempty"`
}

// DetectionPattern is a pattern of the user: a line that matches, in files of some
// languages or paths, is a finding. Either Match or Tokens is required.
type DetectionPattern struct {
	// ID is a name of lower-case letters, digits and hyphens that no built-in pattern
	// has. Type is the type of regression. Message says what a finding means.
	ID      string `json:"id"`
	Type    string `json:"type"`
	Message string `json:"message"`
	// Tier is 1 for a fact, 2 for a sign (the default), 3 for a hint. Severity is low,
	// medium (the default), high or critical.
	Tier     int    `json:"tier,omitempty"`
	Severity string `json:"severity,omitempty"`
	// Languages and Paths (globs, ** for folders) restrict the files. Both empty: all.
	Languages []string `json:"languages,omitempty"`
	Paths     []string `json:"paths,omitempty"`
	// Match is a regular expression in Go's syntax for a single line. Tokens, instead
	// of it, are tokens separated by blanks, with any blanks between them in the line.
	Match  string `json:"match,omitempty"`
	Tokens string `json:"tokens,omitempty"`
	// In is the part of a line that is compared: "code" (the default: comments and the
	// contents of strings are blank), "comments" or "text" (the whole line).
	In string `json:"in,omitempty"`
	// When is "added" (the default) or "removed".
	When string `json:"when,omitempty"`
	// Confidence is between 0 and 1. 0: 1.
	Confidence float64 `json:"confidence,omitempty"`
}

func (r *DetectionRules) check() error {
	s, err := rules.From(r)
	if err == nil {
		_, err = s.Rules()
	}
	return err
}

func (r *DetectionRules) equal(other *DetectionRules) bool {
	a, err := rules.From(r)
	b, otherErr := rules.From(other)
	return err == nil && otherErr == nil && a.Equal(&b)
}

// String describes the rules in a few words.
func (r DetectionRules) String() string {
	s, err := rules.From(&r)
	if err != nil {
		return err.Error()
	}
	return s.String()
}

// Waiver permits one finding, or the findings of a pattern in some files.
type Waiver struct {
	// Fingerprint is the one finding that it permits.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Pattern is the name of a pattern, or "*" for all. Required without a fingerprint.
	Pattern string `json:"pattern"`
	// Path is a glob with ** for folders. Required without a fingerprint.
	Path string `json:"path"`
	// Reason says why. Required.
	Reason string `json:"reason"`
	// Expires is when the waiver ends. The zero value: never.
	Expires time.Time `json:"expires,omitzero"`
	// By is the user who permits it; may be empty.
	By string `json:"by,omitempty"`
}

func (w *Waiver) check() error { return (*detect.Waiver)(w).Check() }
