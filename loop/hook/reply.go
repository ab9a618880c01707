package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
)

// Verdict says whether the loop may continue.
type Verdict string

// The verdicts, from mild to strict.
const (
	Allow Verdict = "ALLOW"
	Warn  Verdict = "WARN"
	Block Verdict = "BLOCK"
)

// rank is 0 for what is not a verdict.
func (v Verdict) rank() int { return slices.Index([]Verdict{Allow, Warn, Block}, v) + 1 }

// Stricter returns the stricter of two verdicts. What is not a verdict is milder
// than all.
func Stricter(a, b Verdict) Verdict {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// RegressionType says what got worse.
type RegressionType string

// The types of regressions.
const (
	TestDeletion       RegressionType = "test_deletion"
	TestSkipping       RegressionType = "test_skipping"
	AssertionWeakening RegressionType = "assertion_weakening"
	CoverageRegression RegressionType = "coverage_regression"
	ValidationBypass   RegressionType = "validation_bypass"
	ErrorSuppression   RegressionType = "error_suppression"
	FeatureRemoval     RegressionType = "feature_removal"
	TestFailure        RegressionType = "test_failure"
	RunIncomplete      RegressionType = "run_incomplete"
	ProtectedChange    RegressionType = "protected_change"
)

// Severity says how bad a regression is.
type Severity string

// The severities, from bad to mild.
const (
	Critical Severity = "critical"
	High     Severity = "high"
	Medium   Severity = "medium"
	Low      Severity = "low"
)

// Level is how firmly the agent is reminded of the rules.
type Level string

// The levels of reinforcement. Adaptive follows the risk.
const (
	LevelOff        Level = "OFF"
	LevelMinimal    Level = "MINIMAL"
	LevelStandard   Level = "STANDARD"
	LevelAggressive Level = "AGGRESSIVE"
	LevelAdaptive   Level = "ADAPTIVE"
)

func verdictWords() []string { return []string{string(Allow), string(Warn), string(Block)} }

func regressionWords() []string {
	return []string{
		string(TestDeletion), string(TestSkipping), string(AssertionWeakening), string(CoverageRegression),
		string(ValidationBypass),
		string(ErrorSuppression), string(FeatureRemoval), string(TestFailure), string(RunIncomplete), string(ProtectedChange),
	}
}

func severityWords() []string {
	return []string{string(Critical), string(High), string(Medium), string(Low)}
}

func levelWords() []string {
	return []string{string(LevelOff), string(LevelMinimal), string(LevelStandard), string(LevelAggressive),
		string(LevelAdaptive)}
}

// Reply is the reply of a handler.
type Reply struct {
	// Role is RoleAssistant; empty means the same.
	Role Role `json:"role"`
	// Content says in words what the handler found; at most [MaxContentBytes].
	Content string `json:"content"`
	// Metadata says it to the loop.
	Metadata ReplyMetadata `json:"metadata"`
	// Timestamp is when it was given, in UTC; may be zero.
	Timestamp time.Time `json:"timestamp,omitzero"`
	// Sender is the name of the sender; may be empty.
	Sender string `json:"sender,omitempty"`
}

// ReplyMetadata is the part of a [Reply] that the loop acts upon.
type ReplyMetadata struct {
	// Verdict is required.
	Verdict Verdict `json:"verdict"`
	// Recommendations are shown to people; at most [MaxRecommendations], each of
	// at most [MaxRecommendationBytes].
	Recommendations []string `json:"recommendations,omitempty"`
	// Inject is text for the agent's prompt; at most [MaxInjectBytes].
	Inject string `json:"inject,omitempty"`
	// Level is the level of reinforcement the handler asks for; may be empty.
	Level Level `json:"reinforcement_level,omitempty"`
	// RegressionType, when set, reports a regression; then Severity is set too.
	// Details may contain baseline_value, current_value and diff; at most
	// [MaxDetailsBytes] as JSON.
	RegressionType RegressionType `json:"regression_type,omitempty"`
	Severity       Severity       `json:"severity,omitempty"`
	Details        map[string]any `json:"details,omitempty"`
	// StateChanges are what the handler changed in the loop's state, for the
	// [Record]. Only handlers in this process change anything: it is not part of
	// the JSON.
	StateChanges map[string]any `json:"-"`
	// Extra are members of the JSON that this version does not know.
	Extra map[string]json.RawMessage `json:"-"`
}

// NewReply returns a reply with a verdict and a message for people.
func NewReply(v Verdict, content string) Reply {
	return Reply{Role: RoleAssistant, Content: content, Metadata: ReplyMetadata{Verdict: v}}
}

// MarshalJSON writes the known members and those of Extra.
func (m ReplyMetadata) MarshalJSON() ([]byte, error) {
	type plain ReplyMetadata
	doc, err := marshal(plain(m))
	if err != nil {
		return nil, err
	}
	extra := maps.Clone(m.Extra)
	for _, name := range []string{"verdict", "recommendations", "inject", "reinforcement_level", "regression_type",
		"severity", "details"} {
		delete(extra, name)
	}
	return withMembers(doc, extra)
}

// validate returns all errors of the reply, each with its field. The rules are the
// same for replies of handlers in this process and for decoded ones.
func (r Reply) validate() error {
	m := r.Metadata
	var errs []error
	if m.Verdict == "" {
		errs = append(errs, errors.New("metadata.verdict: is missing; want ALLOW, WARN or BLOCK"))
	}
	if r.Role != RoleAssistant && r.Role != "" {
		errs = append(errs, fmt.Errorf("role: want %q, found %q", RoleAssistant, clip.Bytes(string(r.Role), MaxNameBytes)))
	}
	errs = append(errs,
		oneOf("metadata.verdict", string(m.Verdict), verdictWords()),
		oneOf("metadata.reinforcement_level", string(m.Level), levelWords()),
		oneOf("metadata.regression_type", string(m.RegressionType), regressionWords()),
		oneOf("metadata.severity", string(m.Severity), severityWords()),
		within("content", MaxContentBytes, len(r.Content)),
		within("sender", MaxNameBytes, len(r.Sender)),
		within("metadata.inject", MaxInjectBytes, len(m.Inject)),
		within("metadata.recommendations", MaxRecommendations, len(m.Recommendations)))
	for i, text := range m.Recommendations {
		errs = append(errs, within(fmt.Sprintf("metadata.recommendations[%d]", i), MaxRecommendationBytes, len(text)))
	}
	if m.RegressionType != "" && m.Severity == "" {
		errs = append(errs, errors.New("metadata.severity: is missing; regression_type needs it"))
	}
	return errors.Join(errs...)
}

// Encode returns the reply as one JSON object without line breaks, valid under
// the schema hook-reply. Its errors are those of [DecodeReply].
func (r Reply) Encode() ([]byte, error) {
	r.Role = cmp.Or(r.Role, RoleAssistant)
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("write reply: %w", err)
	}
	doc, err := marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write reply as JSON: %w", err)
	}
	details, err := marshal(r.Metadata.Details)
	if err != nil {
		return nil, fmt.Errorf("write reply as JSON: %w", err)
	}
	err = errors.Join(within("metadata.details", MaxDetailsBytes, len(details)), within("reply", MaxReplyBytes, len(doc)))
	if err != nil {
		return nil, fmt.Errorf("write reply: %w", err)
	}
	return doc, nil
}

// DecodeReply reads a reply. Only the member metadata.verdict is
// required. Unknown members of metadata are kept in Extra, other unknown members
// are ignored. The error lists all problems; the reply then contains the members
// that could be read, so that a BLOCK next to a fault is not lost.
func DecodeReply(text []byte) (Reply, error) {
	if err := within("reply", MaxReplyBytes, len(text)); err != nil {
		return Reply{}, fmt.Errorf("read reply: %w", err)
	}
	o, err := parseObject(text)
	if err != nil {
		return Reply{}, fmt.Errorf("read reply: %w", err)
	}
	r := Reply{
		Role: Role(o.string("role", MaxNameBytes)), Content: o.string("content", MaxContentBytes),
		Timestamp: o.time("timestamp").UTC(), Sender: o.string("sender", MaxNameBytes),
	}
	r.Role = cmp.Or(r.Role, RoleAssistant)
	if m, ok := o.child("metadata"); ok {
		r.Metadata = decodeMetadata(m)
	}
	// The members were checked while they were read; validate finds the missing ones.
	if err := cmp.Or(errors.Join(*o.errs...), r.validate()); err != nil {
		return r, fmt.Errorf("read reply: %w", err)
	}
	return r, nil
}

func decodeMetadata(m object) ReplyMetadata {
	meta := ReplyMetadata{
		Verdict:         Verdict(m.word("verdict", verdictWords())),
		Recommendations: m.strings("recommendations", MaxRecommendations, MaxRecommendationBytes),
		Inject:          m.string("inject", MaxInjectBytes),
		Level:           Level(m.word("reinforcement_level", levelWords())),
		RegressionType:  RegressionType(m.word("regression_type", regressionWords())),
		Severity:        Severity(m.word("severity", severityWords())),
		Details:         m.free("details", MaxDetailsBytes),
	}
	meta.Extra = m.rest()
	return meta
}
