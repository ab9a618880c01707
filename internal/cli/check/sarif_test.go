package check

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

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
				Diff:   "@@ -1 +1 @@\n-```\n+x\n",
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
	valid(t, text)
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
				t.Errorf("%q has no line, which programs that show findings need", at.ArtifactLocation.URI)
			}
		}
	}
	if len(run.Results[2].Locations) != 0 || run.Results[1].Locations[0].PhysicalLocation.Region.Snippet != nil ||
		!strings.Contains(run.Results[1].Message.Text, "m (line 9 of the old version)") {
		t.Errorf("places: %s", text)
	}
	if s := run.Results[3].Suppressions; len(s) != 1 || s[0].Justification != "why (ann)" {
		t.Errorf("suppressions: %+v", s)
	}
}

// sarifSchema compiles the JSON schema of SARIF 2.1.0. It is one of draft 4, whose keywords
// in it have the same meaning in the draft that the library reads.
func sarifSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile("testdata/sarif-2.1.0-rtm.5.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	delete(doc, "$schema")
	delete(doc, "id")
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func valid(t *testing.T, text []byte) {
	t.Helper()
	var log any
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	if err := sarifSchema(t).Validate(log); err != nil {
		t.Errorf("not valid under the schema of SARIF: %v\n%s", err, text)
	}
}

// The schema refuses what is not SARIF.
func TestSARIFSchema(t *testing.T) {
	t.Parallel()
	schema := sarifSchema(t)
	for _, text := range []string{`{}`, `{"version":"2.1.0"}`, `{"version":"2.0.0","runs":[]}`,
		`{"version":"2.1.0","runs":[{}]}`, `{"version":"2.1.0","runs":[{"tool":{"driver":{}}}]}`,
		`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"a"}},"results":[{}]}]}`,
		`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"a","rules":[{"id":"b","help":{"markdown":"c"}}]}}}]}`,
		`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"a"}},"results":[{"message":{"text":"b"},"level":"bad"}]}]}`,
		`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"a"}},"nosuch":1}]}`} {
		var log any
		if err := json.Unmarshal([]byte(text), &log); err != nil {
			t.Fatal(err)
		}
		if schema.Validate(log) == nil {
			t.Errorf("valid: %s", text)
		}
	}
}

// An empty report is valid, and each rule has its descriptions.
func TestSARIFRules(t *testing.T) {
	t.Parallel()
	log := sarif(&Report{Verdict: detect.Allow, Mode: detect.Minimal, rules: detect.Catalog()}, "")
	text, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, text)
	seen := make(map[string]bool)
	for _, r := range log.Runs[0].Tool.Driver.Rules {
		if seen[r.ID] || len(r.ShortDescription.Text) < 10 ||
			!strings.HasPrefix(r.FullDescription.Text, r.ShortDescription.Text) ||
			len(r.FullDescription.Text) == len(r.ShortDescription.Text) || len(r.Help.Text) < 10 ||
			!strings.Contains(r.Help.Markdown, "{pattern: "+r.ID+",") ||
			!strings.Contains("error warning note", r.DefaultConfiguration.Level) {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
	}
	if len(seen) != len(detect.Catalog()) {
		t.Errorf("%d rules", len(seen))
	}
}

// A removed line is shown where it was.
func TestSARIFLine(t *testing.T) {
	t.Parallel()
	for want, f := range map[int]detect.Finding{
		7: {Line: 7}, 13: {Line: 14, Gone: true, Diff: "@@ -13,8 +13,2 @@\n"},
		5: {Line: 9, Gone: true, Diff: "@@ -9 +5 @@\n-x\n"},
		1: {Line: 3, Gone: true, Diff: "@@ -1,3 +0,0 @@\n"},
	} {
		f.File = "a"
		r := result(&Finding{Finding: f}, nil)
		if strings.Contains(r.Message.Markdown, "```diff\n"+f.Diff+"```") != (f.Diff != "") ||
			!strings.Contains(r.Message.Text, "Waive: - {fingerprint:") {
			t.Errorf("message %+v", r.Message)
		}
		if got := r.Locations[0].PhysicalLocation.Region.StartLine; got != want {
			t.Errorf("line %d, want %d: %+v", got, want, f)
		}
	}
}
