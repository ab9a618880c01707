package check

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// The log has the members that SARIF 2.1.0 requires.
func TestSARIF(t *testing.T) {
	t.Parallel()
	name := "a b%/ü#?:x.py"
	found := func(f detect.Finding) Finding { return reported(&f) }
	r := &Report{Verdict: detect.Block, Mode: detect.Standard, Compared: "a with b", rules: detect.Catalog(),
		Findings: []Finding{
			found(detect.Finding{Pattern: "skip-added", File: name, Line: 3, Message: "m", Subject: "s", Evidence: "e",
				Action: detect.Act}),
			found(detect.Finding{Pattern: "test-removed", File: "c:d", Line: 9, Gone: true, Message: "m", Action: detect.Warn}),
			found(detect.Finding{Pattern: "run-unfinished", Message: "m", Action: detect.Tell}),
		},
		Waived: []Waived{{found(detect.Finding{Pattern: "stub-body", File: "x", Line: 1, Message: "m"}),
			detect.Waiver{Reason: "why", By: "ann"}}},
		Skipped: []detect.Skipped{{File: "big", Why: "too large"}, {Why: "more"}}, Notes: []string{"n"},
	}
	text, err := json.Marshal(sarif(r, "v1"))
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Rules []struct{ ID string }
				}
			}
			OriginalURIBaseIDs map[string]any `json:"originalUriBaseIds"`
			Invocations        []struct{ ToolExecutionNotifications []any }
			Results            []sarifResult
		}
	}
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(log.Runs) != 1 || len(run.Results) != 4 ||
		len(run.Invocations[0].ToolExecutionNotifications) != 3 {
		t.Fatalf("%s", text)
	}
	levels := []string{"error", "warning", "note", "note"}
	for i := range run.Results {
		res := &run.Results[i]
		if res.Level != levels[i] || run.Tool.Driver.Rules[res.RuleIndex].ID != res.RuleID ||
			len(res.PartialFingerprints) != 1 || res.Suppressions == nil {
			t.Errorf("%+v", res)
		}
		for _, l := range res.Locations {
			at := l.PhysicalLocation
			if u, err := url.Parse(at.ArtifactLocation.URI); err != nil || u.IsAbs() || u.RawQuery != "" || u.Fragment != "" ||
				run.OriginalURIBaseIDs[at.ArtifactLocation.URIBaseID] == nil {
				t.Errorf("%q is not a relative reference: %v", at.ArtifactLocation.URI, err)
			} else if u.Path != r.Findings[min(i, 2)].File && i < 3 {
				t.Errorf("%q stands for %q", at.ArtifactLocation.URI, u.Path)
			}
			if at.Region == nil || at.Region.StartLine < 1 {
				t.Errorf("%q has no line, which who shows findings beside the code wants", at.ArtifactLocation.URI)
			}
		}
	}
	if len(run.Results[2].Locations) != 0 || run.Results[1].Locations[0].PhysicalLocation.Region.Snippet != nil ||
		!strings.Contains(run.Results[1].Message.Text, "line 9 of the version before") {
		t.Errorf("places: %s", text)
	}
	if s := run.Results[3].Suppressions; len(s) != 1 || s[0].Justification != "why (ann)" {
		t.Errorf("suppressions: %+v", s)
	}
}
