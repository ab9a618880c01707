package loop

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/hook"
)

// TestDiagnoses: each cause is found from what an iteration shows, and what helps against it is
// in the next prompt.
func TestDiagnoses(t *testing.T) {
	t.Parallel()
	regressed := func(types ...hook.RegressionType) *state.Outcome {
		o := &state.Outcome{}
		for _, name := range types {
			o.Regressions = append(o.Regressions, regression.Regression{Type: string(name), Text: "worse"})
		}
		return o
	}
	full := regressed(hook.CoverageRegression)
	full.AgentError = "context_overflow: the prompt is too long"
	asks := regressed(hook.CoverageRegression)
	asks.AgentText = "Which of the two formats do you want?"
	honest := regressed(hook.TestFailure)
	honest.AgentText = "HONEST EXIT: the test wants 2+2 to be 5"
	for name, test := range map[string]struct {
		outcome *state.Outcome
		want    state.Diagnosis
		advice  string
	}{
		"full context":     {full, state.CognitiveLoad, "one small part"},
		"a question":       {asks, state.Ambiguity, ""},
		"deleted tests":    {regressed(hook.TestDeletion), state.RewardHacking, ""},
		"skipped tests":    {regressed(hook.TestSkipping), state.RewardHacking, ""},
		"a failing test":   {regressed(hook.TestFailure), state.TaskComplexity, "simpler way"},
		"an unended run":   {regressed(hook.RunIncomplete), state.TaskComplexity, "simpler way"},
		"several":          {regressed(hook.TestFailure, hook.FeatureRemoval), state.TaskComplexity, "simpler way"},
		"the tests' fault": {honest, state.GenuineFix, ""},
	} {
		got, confidence, why := diagnosisOf(test.outcome)
		if got != test.want || confidence < minConfidence || confidence > confidenceFacts || why == "" {
			t.Errorf("%s: %s (%d %%, %q), want %s", name, got, confidence, why, test.want)
		}
		if text := advice(got); !strings.Contains(text, test.advice) || (text == "") != (test.advice == "") {
			t.Errorf("%s: advice %q, want %q", name, text, test.advice)
		}
	}
}
