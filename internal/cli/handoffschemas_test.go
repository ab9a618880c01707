package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
)

func jsonOf(t *testing.T, text string) any {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return doc
}

// The schema of the file contains that of the checkpoint, so that it can be used
// alone.
func TestBuilderStateHasTheCheckpoint(t *testing.T) {
	t.Parallel()
	file, _ := schemaDoc(t, "builder-state")
	checkpoint, _ := schemaDoc(t, "handoff-checkpoint")
	want := maps.Clone(checkpoint)
	delete(want, "examples")
	if diff := cmp.Diff(want, file["$defs"].(map[string]any)["checkpoint"]); diff != "" {
		t.Errorf("the checkpoint in builder-state differs (-handoff-checkpoint +builder-state):\n%s", diff)
	}
	seed, err := os.ReadFile(filepath.Join("..", "..", "handoff", "testdata", "builder-state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jsonOf(t, string(seed)), file["examples"].([]any)[0]); diff != "" {
		t.Errorf("the first example is not the original one (-original +example):\n%s", diff)
	}
}

func TestBuilderStateSchema(t *testing.T) {
	t.Parallel()
	doc, schema := schemaDoc(t, "builder-state")
	_, checkpoint := schemaDoc(t, "handoff-checkpoint")
	for _, text := range []string{
		`{"sessionId": "s", "lastHeartbeat": "2026-02-28T10:00:00Z"}`,
		`{"sessionId": "s", "lastHeartbeat": "2026-02-28T10:00:00Z", "currentTask": null, "activePrd": {"id": "p", ` +
			`"file": "f", "branch": "b", "storyAssessments": {}}, "adhocQueue": [], "uiTodos": {"flow": "prd"}}`,
		`{"activePrd": {"checkpoint": null}}`,
		`{"adhocQueue": [{"id": "a"}, {"id": 7, "checkpoint": {"metadata": {"createdBy": "x", "x-vendor": 1}, "error": ` +
			`{"code": 1}}}]}`,
	} {
		if err := schema.Validate(jsonOf(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	// A file that this program writes is valid under both schemas.
	at := time.Date(2026, 2, 28, 10, 0, 0, 0, time.UTC)
	l := handoff.Ledger{Ref: "perdure handoff log --task prd", Workspace: "w", Snapshot: "s"}
	l.TaskID, l.NextAction, l.Error = "p/US-1", strings.Repeat("long ", 300), "boom"
	l.Metadata = handoff.Metadata{CreatedBy: "a", LastUpdatedAt: at, Reason: handoff.ReasonFailure,
		PreviousAgents: []string{"b"}}
	l.CurrentStep = &handoff.CurrentStep{Description: "d", StartedAt: at, PartialWork: strings.Repeat("é", 500)}
	l.Verification = handoff.Verification{ContractRef: "US-1.verificationContract",
		Results: []handoff.Result{{Activity: "t", Status: handoff.StatusFailed, RunAt: at, RanBy: handoff.RanByEngine},
			{Activity: "u"}}}
	l.FailedApproaches = []handoff.FailedApproach{{What: "w", Outcome: "o", Why: "y"}}
	l.NotAllowed = []string{"n"}
	for range 40 {
		l.CompletedSteps = append(l.CompletedSteps,
			handoff.Step{Step: "s", FilesCreated: []string{"a.go"}, FilesModified: []string{"b.go"}, Timestamp: at,
				RunAgain: true})
		l.Decisions = append(l.Decisions, handoff.Decision{Decision: "d", Rationale: strings.Repeat("why ", 50),
			Timestamp: at})
	}
	l.Files = []handoff.FileEntry{{Path: "a.go", Exists: true, Hash: strings.Repeat("0a", 32)}, {Path: "b.go"},
		{Path: "c.go", Exists: true, Hash: strings.Repeat("0b", 32)}}
	for name, ledger := range map[string]handoff.Ledger{"full": l, "empty": {}} {
		for _, limit := range []int{0, handoff.MinLimit, 100_000} {
			c := handoff.Project(ledger, limit)
			text, err := c.Compact()
			if err != nil {
				t.Fatal(err)
			}
			if err := checkpoint.Validate(jsonOf(t, string(text))); err != nil {
				t.Errorf("%s, %d: %s: %v", name, limit, text, err)
			}
			if err := schema.Validate(jsonOf(t, `{"activePrd": {"checkpoint": `+string(text)+`}}`)); err != nil {
				t.Errorf("%s, %d: in the file: %v", name, limit, err)
			}
		}
	}
	example, err := json.Marshal(doc["examples"].([]any)[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(example, []byte("DarkModeToggle")) {
		t.Error("the first example is not the one of dark mode")
	}
}

func TestHandoffSchemasRefuse(t *testing.T) {
	t.Parallel()
	doc, schema := schemaDoc(t, "handoff-checkpoint")
	_, file := schemaDoc(t, "builder-state")
	ours := doc["examples"].([]any)[1]
	for _, patch := range []string{
		`{"phase": "testing"}`, `{"schemaVersion": 1}`, `{"schemaVersion": "2"}`, `{"taskId": 1}`, `{"nextAction": []}`,
		`{"currentStep": []}`, `{"currentStep": {"description": 1}}`,
		`{"currentStep": {"startedAt": "now"}}`, `{"currentStep": {"partialWork": "` + strings.Repeat("é", 201) + `"}}`,
		`{"pendingSteps": "x"}`, `{"pendingSteps": [1]}`,
		`{"completedSteps": [{}]}`, `{"completedSteps": ["x"]}`,
		`{"completedSteps": [{"step": "x", "timestamp": "2026-02-28"}]}`,
		`{"completedSteps": [{"step": "x", "filesCreated": "a"}]}`,
		`{"completedSteps": [` + strings.Repeat(`{"step": "x"},`, 10) + `{"step": "x"}]}`,
		`{"completedSteps": [{"step": "x", "runAgain": "yes"}]}`,
		`{"decisions": [{"rationale": "x"}]}`, `{"decisions": [{"decision": "x", "rationale": "` +
			strings.Repeat("x", 101) + `"}]}`, `{"failedApproaches": [{"why": "x"}]}`,
		`{"blockers": {}}`, `{"notAllowed": [null]}`, `{"verification": "x"}`,
		`{"verification": {"results": [{"status": "passed"}]}}`,
		`{"verification": {"results": [{"activity": "x", "status": "pass"}]}}`,
		`{"verification": {"results": [{"activity": "x", "ranBy": "me"}]}}`,
		`{"files": {"listed": {"a": "xyz"}}}`, `{"files": {"rest": -1}}`, `{"metadata": {"reason": "bored"}}`,
		`{"metadata": {"lastUpdatedAt": 1}}`, `{"metadata": {"createdBy": null}}`,
		`{"cut": {"decisions": 0}}`, `{"ledger": {}}`, `{"metadata": null}`, `{"phase": null}`, `{"blockers": null}`,
	} {
		changed := merge(ours, jsonOf(t, patch))
		if schema.Validate(changed) == nil {
			t.Errorf("%s passes", patch)
		}
		if file.Validate(map[string]any{"activePrd": map[string]any{"checkpoint": changed}}) == nil {
			t.Errorf("%s passes in activePrd", patch)
		}
		if file.Validate(map[string]any{"adhocQueue": []any{map[string]any{"checkpoint": changed}}}) == nil {
			t.Errorf("%s passes in adhocQueue", patch)
		}
	}
	for _, text := range []string{`[]`, `null`, `{}`, `{"other": 1}`, `{"sessionId": 1}`, `{"lastHeartbeat": "now"}`,
		`{"activePrd": []}`, `{"adhocQueue": {}}`, `{"adhocQueue": [1]}`, `{"activePrd": {"checkpoint": "x"}}`} {
		if file.Validate(jsonOf(t, text)) == nil {
			t.Errorf("the file %s passes", text)
		}
	}
}
