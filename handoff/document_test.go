package handoff_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
)

// example is the file that the format was first described with.
func example(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "builder-state.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t testing.TB, text string) *handoff.Document {
	t.Helper()
	d, err := handoff.Parse("builder-state.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestReadTheExample(t *testing.T) {
	t.Parallel()
	d := parse(t, string(example(t)))
	task, err := d.Task(handoff.PRD)
	if err != nil {
		t.Fatal(err)
	}
	want := handoff.Task{Place: handoff.PRD, ID: "prd-dark-mode/US-003", PRD: "prd-dark-mode", Story: "US-003",
		File: "docs/prds/prd-dark-mode.md", Branch: "main"}
	if diff := cmp.Diff(want, task); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
	c, err := d.Checkpoint(handoff.PRD)
	if err != nil {
		t.Fatal(err)
	}
	wanted := &handoff.Checkpoint{Work: handoff.Work{
		Phase: handoff.PhaseImplementation,
		CompletedSteps: []handoff.Step{
			{Step: "Created DarkModeToggle component", FilesCreated: []string{"src/components/DarkModeToggle.tsx"},
				Timestamp: at("2026-02-28T10:00:00Z")},
			{Step: "Added ThemeContext for state management", FilesCreated: []string{"src/contexts/ThemeContext.tsx"},
				FilesModified: []string{"src/App.tsx"}, Timestamp: at("2026-02-28T10:05:00Z")},
		},
		PendingSteps: []string{"Wire toggle to ThemeContext", "Add CSS custom properties for dark theme",
			"Write unit tests for toggle", "Write E2E test for theme switch"},
		CurrentStep: &handoff.CurrentStep{Description: "Wire toggle to ThemeContext",
			StartedAt: at("2026-02-28T10:10:00Z"), PartialWork: "Added useTheme import, started onClick handler"},
		Decisions: []handoff.Decision{
			{Decision: "Use CSS custom properties for theming",
				Rationale: "Avoids runtime style calculation, better performance", Timestamp: at("2026-02-28T10:02:00Z")},
			{Decision: "Store theme preference in localStorage",
				Rationale: "Persists across sessions without auth requirement", Timestamp: at("2026-02-28T10:03:00Z")},
		},
		Verification: handoff.Verification{ContractRef: "US-003.verificationContract"},
		Metadata: handoff.Metadata{CreatedBy: "react-dev", LastUpdatedAt: at("2026-02-28T10:10:00Z"),
			Reason: handoff.ReasonPeriodic},
	}}
	if diff := cmp.Diff(wanted, c); diff != "" {
		t.Errorf("checkpoint (-want +got):\n%s", diff)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"activePrd": {"id": "p", "currentStory": null}, "adhocQueue": [{"id": "a-1", "description": "Fix `+
		`it"}, {"id": 7}, {}, 3, {"id": "a-1"}]}`)
	if diff := cmp.Diff([]handoff.Place{"prd", "adhoc:a-1", "adhoc:7"}, d.Places()); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	for place, want := range map[handoff.Place]string{"prd": "p", "adhoc:7": "adhoc:7"} {
		if task, err := d.Task(place); err != nil || task.ID != want {
			t.Errorf("task at %s: %+v, %v, want %q", place, task, err, want)
		}
	}
	if _, err := d.Task("adhoc:a-1"); !errors.Is(err, handoff.ErrInvalid) || !strings.Contains(err.Error(), `"a-1"`) {
		t.Errorf("an id that stands twice: %v", err)
	}
	for _, text := range []string{"", "adhoc:", "PRD", "activePrd", "adhoc"} {
		if _, err := handoff.ParsePlace(text); !errors.Is(err, handoff.ErrNoTask) {
			t.Errorf("place %q: %v", text, err)
		}
		if _, err := d.Checkpoint(handoff.Place(text)); !errors.Is(err, handoff.ErrNoTask) {
			t.Errorf("checkpoint at %q: %v", text, err)
		}
	}
	if p, err := handoff.ParsePlace("adhoc:a:b"); err != nil || p != handoff.Adhoc("a:b") {
		t.Errorf("place %q, %v", p, err)
	}
}

func TestNoTask(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, place string
		kind        error
		want, hint  string
	}{
		{`{}`, "prd", handoff.ErrNoTask, "there is no activePrd", "add an activePrd"},
		{`{"activePrd": null, "adhocQueue": [{"id": "x"}]}`, "prd", handoff.ErrNoTask,
			":1:15: there is no activePrd", "the file has adhoc:x; name it with --task"},
		{`{"activePrd": []}`, "prd", handoff.ErrInvalid, ":1:15: field activePrd: want an object, found an array", ""},
		{"{\n \"adhocQueue\": {}}", "adhoc:x", handoff.ErrInvalid, ":2:16: field adhocQueue: want an array, found an object",
			""},
		{`{"adhocQueue": []}`, "adhoc:x", handoff.ErrNoTask, `no item with the id "x"`, "add an activePrd"},
		{`{"adhocQueue": null}`, "adhoc:x", handoff.ErrNoTask, `no item with the id "x"`, "add an activePrd"},
		{`{"activePrd": {"checkpoint": "é"}}`, "prd", handoff.ErrInvalid, ":1:30: field checkpoint: ", ""},
		{`{"activePrd": {"checkpoint": []}}`, "prd", handoff.ErrInvalid, "field checkpoint: ", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, tt.text).Checkpoint(handoff.Place(tt.place))
			var e *handoff.Error
			if !errors.As(err, &e) || !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(e.Hint, tt.hint) {
				t.Errorf("error %v, want %v: %s", err, tt.kind, tt.want)
			}
		})
	}
}

// Every error has its line and column, in characters.
func TestParseFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text   string
		kind         error
		line, column int
		want         string
	}{
		{"empty", "", handoff.ErrSyntax, 1, 1, "empty"},
		{"blank", " \n ", handoff.ErrSyntax, 2, 2, "empty"},
		{"only a mark", "\ufeff", handoff.ErrSyntax, 1, 1, "empty"},
		{"cut", "{\n  \"a\": 1,\n", handoff.ErrSyntax, 3, 1, "want a name in quotes"},
		{"cut in a text", "{\"a\": \"b", handoff.ErrSyntax, 1, 7, "not closed"},
		{"comma at the end", "{\r\n  \"é\": 1,\r\n}", handoff.ErrSyntax, 3, 1, "missing after the comma"},
		{"column in characters", "{\"é漢\": tru}", handoff.ErrSyntax, 1, 8, "want a value"},
		{"column behind a mark", "\ufeff{x}", handoff.ErrSyntax, 1, 2, "name in quotes"},
		{"comment", "{} // done", handoff.ErrSyntax, 1, 4, "after the end"},
		{"two values", "{}{}", handoff.ErrSyntax, 1, 3, "after the end"},
		{"single quotes", "{'a': 1}", handoff.ErrSyntax, 1, 2, "name in quotes"},
		{"NUL", "{\"a\": 1}\x00", handoff.ErrSyntax, 1, 9, `'\x00' after the end`},
		{"NUL in a text", "{\"a\": \"\x00\"}", handoff.ErrSyntax, 1, 8, "U+0000"},
		{"line end in a text", "{\"a\": \"x\ny\"}", handoff.ErrSyntax, 1, 9, "U+000A"},
		{"escape", `{"a": "\x41"}`, handoff.ErrSyntax, 1, 8, "unknown escape"},
		{"escape \\u", `{"a": "\u00g0"}`, handoff.ErrSyntax, 1, 8, "four hexadecimal"},
		{"number", `{"a": 01}`, handoff.ErrSyntax, 1, 7, "number"},
		{"number cut", `{"a": -}`, handoff.ErrSyntax, 1, 7, "number"},
		{"not UTF-8", "{\n\"a\": \"\xff\"}", handoff.ErrSyntax, 2, 7, "0xff is not UTF-8"},
		{"UTF-16", "\xff\xfe{\x00}\x00", handoff.ErrSyntax, 1, 1, "UTF-16"},
		{"a list", "\n []", handoff.ErrInvalid, 2, 2, "found an array"},
		{"deep", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), handoff.ErrLimit, 1, 1001, "deeper than 1000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := handoff.Parse("b.json", []byte(tt.text))
			var e *handoff.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if !errors.Is(err, tt.kind) || e.Line != tt.line || e.Column != tt.column || !strings.Contains(e.Msg, tt.want) {
				t.Errorf("error %v (line %d, column %d), want %v at %d:%d: %s", err, e.Line, e.Column, tt.kind, tt.line,
					tt.column, tt.want)
			}
			if !strings.HasPrefix(err.Error(), fmt.Sprintf("read b.json:%d:%d: ", tt.line, tt.column)) {
				t.Errorf("text %q", err)
			}
		})
	}
	if _, err := handoff.Parse("b.json", make([]byte, handoff.MaxSize+1)); !errors.Is(err, handoff.ErrLimit) {
		t.Errorf("a file of more than the limit: %v", err)
	}
	deepest := `{"a":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + "}"
	if _, err := handoff.Parse("b.json", []byte(deepest)); err != nil {
		t.Errorf("nested as deep as allowed: %v", err)
	}
}

// A known field of another type, and a phase that is none, are refused with their line.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		`"phase": 7`:         `4:15: field checkpoint.phase: want a string, found 7`,
		`"phase": "testing"`: `4:15: field checkpoint.phase: want one of planning, implementation, verification`,
		`"schemaVersion": 3`: `4:23: field checkpoint.schemaVersion: want at most 2, ` +
			`the newest version this program knows, found 3`,
		`"schemaVersion": -1`:                                     `4:23: field checkpoint.schemaVersion: want at most 2`,
		`"pendingSteps": ["one", 2]`:                              `4:30: field checkpoint.pendingSteps[1]: want a string, found 2`,
		`"pendingSteps": "one"`:                                   `want a list of strings, found "one"`,
		`"completedSteps": {"step": "x"}`:                         `field checkpoint.completedSteps: want a list of objects, found an object`,
		`"completedSteps": ["a", {"timestamp": "yesterday"}]`:     `field checkpoint.completedSteps[1].timestamp: want a time such as`,
		`"currentStep": {"description": 1}`:                       `field checkpoint.currentStep.description: want a string, found 1`,
		`"verification": {"results": [{"activity": []}]}`:         `field checkpoint.verification.results[0].activity: want a string, found an array`,
		`"metadata": {"previousAgents": "a"}`:                     `field checkpoint.metadata.previousAgents: want a list of strings`,
		`"schemaVersion": "2"`:                                    `field checkpoint.schemaVersion: want a whole number, found "2"`,
		`"files": [1]`:                                            `field checkpoint.files: want an object, found an array`,
		`"decisions": [{"decision": "a", "rationale": {}}]`:       `field checkpoint.decisions[0].rationale: want a string, found an object`,
		`"failedApproaches": [{"what": true}]`:                    `field checkpoint.failedApproaches[0].what: want a string`,
		`"completedSteps": [{"step": "a", "runAgain": "always"}]`: `completedSteps[0].runAgain: want true or false`,
	} {
		_, err := parse(t, "{\n  \"activePrd\": {\"checkpoint\":\n  {\"x\": 1,\n     "+field+"}}}").Checkpoint(handoff.PRD)
		if !errors.Is(err, handoff.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", field, err, want)
		}
	}
}

// A checkpoint that an agent wrote by hand is read as far as it says something,
// and what is not understood is kept.
func TestReadLeniently(t *testing.T) {
	t.Parallel()
	c, err := parse(t, `{"activePrd": {"checkpoint": {
		"Phase": "x", "phase": "planning", "x-big": 9007199254740993.10, "blockers": [],
		"completedSteps": ["Did this", {"step": "And that", "by": "me"}],
		"currentStep": "In the middle",
		"decisions": [{"decision": "a"}, {"decision": "b", "decision": "c"}],
		"metadata": {"createdBy": "hand", "host": {"name": "x"}}, "error": null
	}}}`).Checkpoint(handoff.PRD)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(pairs ...string) handoff.Extra {
		extra := make(handoff.Extra)
		for i := 0; i < len(pairs); i += 2 {
			extra[pairs[i]] = []byte(pairs[i+1])
		}
		return extra
	}
	want := &handoff.Checkpoint{Work: handoff.Work{
		Phase:          handoff.PhasePlanning,
		CompletedSteps: []handoff.Step{{Step: "Did this"}, {Step: "And that", Extra: raw("by", `"me"`)}},
		CurrentStep:    &handoff.CurrentStep{Description: "In the middle"},
		Decisions:      []handoff.Decision{{Decision: "a"}, {Decision: "c"}},
		Metadata:       handoff.Metadata{CreatedBy: "hand", Extra: raw("host", `{"name":"x"}`)},
		Extra:          raw("Phase", `"x"`, "x-big", "9007199254740993.10"),
	}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("checkpoint (-want +got):\n%s", diff)
	}
	text, err := c.Compact()
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{`"Phase":"x"`, `"x-big":9007199254740993.10`, `"by":"me"`, `"host":{"name":"x"}`} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%s is lost in %s", kept, text)
		}
	}
}
