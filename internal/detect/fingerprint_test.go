package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// A finding keeps its fingerprint when other lines moved it, and only then.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	first := find(t, &detect.Input{Changes: edited("tests/test_a.py", skipOld, skipNew)}).Findings
	moved := find(t, &detect.Input{
		Changes: edited("tests/test_a.py", "import os\n\n"+skipOld, "import os\n\n"+skipNew)}).Findings
	other := find(t, &detect.Input{Changes: edited("tests/test_b.py", skipOld, skipNew)}).Findings
	if len(first) == 0 || len(moved) == 0 || len(other) == 0 {
		t.Fatal("nothing was found")
	}
	if first[0].Line == moved[0].Line || first[0].Fingerprint() != moved[0].Fingerprint() {
		t.Errorf("moved from line %d to %d: %s and %s", first[0].Line, moved[0].Line, first[0].Fingerprint(),
			moved[0].Fingerprint())
	}
	if first[0].Fingerprint() == other[0].Fingerprint() {
		t.Error("the same in another file")
	}
}

// The user's actions override tier and mode.
func TestActions(t *testing.T) {
	t.Parallel()
	rules := func(c detect.Config) *detect.Rules {
		r, err := detect.NewRules(c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	set := rules(detect.Config{Actions: map[string]detect.Action{"T002": detect.Tell}})
	report := find(t, &detect.Input{Changes: edited("test_a.py", skipOld, skipNew), Rules: set})
	if report.Verdict != detect.Allow || len(report.Findings) == 0 || report.Findings[0].Action != detect.Tell {
		t.Errorf("%+v", report)
	}
	custom := detect.Custom{ID: "no-print", Type: detect.FeatureRemoval, Tier: detect.Sign, Severity: detect.Low,
		Message: "m", Match: `print\(`, Confidence: 0.6}
	for sure, want := range map[float64]detect.Verdict{0: detect.Warns, 0.5: detect.Block, 0.7: detect.Warns} {
		r := rules(detect.Config{Patterns: []detect.Custom{custom}, ActConfidence: sure})
		if report := find(t, &detect.Input{Changes: edited("a.py", "x = 1\n", "x = 1\nprint(x)\n"),
			Rules: r}); report.Verdict != want {
			t.Errorf("acts from %g: %s, want %s", sure, report.Verdict, want)
		}
	}
	_, err := detect.NewRules(detect.Config{Actions: map[string]detect.Action{"nosuch": "act", "T001": "explode"},
		ActConfidence: 2})
	for _, want := range []string{`unknown pattern "nosuch"`, `actions.T001: unknown action "explode"`,
		"act_confidence: 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
