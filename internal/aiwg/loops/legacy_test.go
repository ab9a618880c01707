package loops_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	aiwgloops "github.com/perdure/perdure/internal/aiwg/loops"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// oldStates are states of a loop in the forms before version 2.
func oldStates() map[string]string {
	return map[string]string{
		"snake": `{"id":"ralph-tidy-2026-01-25","task":"tidy the shed","completion_criteria":["floor is swept","door shuts"],
			"max_iterations":50,"checkpoint_frequency":5,"current_iteration":3,"status":"completed","flow_track":"garden",
			"started_at":"2026-01-25T17:00:00Z","completed_at":"2026-01-25T17:45:00Z","metrics":{"bins":4},
			"phases":{"phase_1_sort":"completed"},"phases_completed":["phase-1"],"learnings":["wear gloves"]}`,
		"nameless": `{"task":"paint it","completion_criteria":["it is red"],"max_iterations":25,"current_iteration":1,
			"started_at":"2026-01-22T00:00:00Z","status":"running","iterations":[],"active":true}`,
		"in progress": `{"id":"ralph-x-1","task":"t","current_iteration":2,"status":"in_progress","completion_criteria":"c",
			"started_at":"2026-01-28T23:05:00Z","phases_pending":["phase-3"]}`,
		"camel": `{"loopId":"ralph-dig-0a0b0c0d","objective":"dig","completionCriteria":"hole","status":"running",
			"maxIterations":7,"currentIteration":2,"startTime":"2026-01-28T23:05:00Z","lastUpdate":"2026-01-28T23:06:00Z",
			"currentPid":12,"workingDir":"/garden","timeoutMinutes":1.5}`,
		"bare": `{"task":"t","max_iterations":3}`,
	}
}

// Every previous form of a state comes in, from the folder and as a file, with all that it
// says, and the export of it is valid and comes in as the same loop.
func TestOldForms(t *testing.T) {
	t.Parallel()
	for name, text := range oldStates() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			dir := folder(t, map[string]string{"ralph/current-loop.json": text})
			r := importFrom(t, s, dir)
			if r.Loops != 1 || r.Count(aiwgtree.NotRead)+r.Count(aiwgtree.Left) > 0 || r.Count(aiwgtree.Corrected) == 0 {
				t.Fatalf("%+v", r)
			}
			out := exportTo(t, s)
			first := content(t, out)
			allSchemas(t).all(t, first)
			holdsAll(t, text, first)
			file := filepath.Join(t.TempDir(), "anywhere.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{dir, out} {
				if r := importFrom(t, s, path); total(r) > 0 || r.Count(aiwgtree.Differs) > 0 || r.PresentLoops != 1 {
					t.Errorf("once more from %s: %+v", path, r)
				}
			}
			if r := importFrom(t, s, file); r.PresentLoops != 1 {
				t.Errorf("as a file: %+v", r)
			}
			if _, _, err := aiwgloops.ReadState("s.json", []byte(text)); err != nil {
				t.Errorf("to continue: %v", err)
			}
			other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			importFrom(t, other, out)
			same(t, "the round trip", first, content(t, exportTo(t, other)))
		})
	}
}

// FuzzOldForms: whatever is in a state in one of the forms before version 2, its import ends,
// what came in is sound, its export is valid and comes in elsewhere as the same bytes, and the
// loop is there when the file is imported once more.
func FuzzOldForms(f *testing.F) {
	for _, text := range oldStates() {
		f.Add([]byte(text))
	}
	for _, text := range []string{`{"task":1,"max_iterations":null}`, `{"id":"x","task":"t","completion_criteria":[1]}`,
		`{"loopId":["a"],"objective":{},"currentIteration":-1,"configuration":7}`,
		`{"task":"t","current_iteration":1e9,"iterations":[{"iteration":1}],"startTime":0,"status":"","id":""}`,
		`{"id":"a","id":"b","task":"t","maxIterations":"9","max_iterations":3,"configuration":{"max_iterations":1}}`} {
		f.Add([]byte(text))
	}
	schemas := allSchemas(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := jsontree.Parse(text, jsontree.Options{})
		if err != nil || !aiwgloops.IsState(v) {
			t.Skip() // FuzzFit has any text
		}
		s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		dir := folder(t, map[string]string{aiwgloops.CurrentFile: string(text)})
		r := importFrom(t, s, dir)
		if r.Loops == 0 {
			return // refused, with a note
		}
		if again := importFrom(t, s, dir); again.Loops > 0 || again.PresentLoops != 1 {
			t.Errorf("once more: %+v", again)
		}
		out := exportTo(t, s)
		first := content(t, out)
		schemas.all(t, first)
		other := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		importFrom(t, other, out)
		same(t, "the round trip", first, content(t, exportTo(t, other)))
	})
}

// A loop without any time is listed with the time that it got, and is refused strictly.
func TestLoopsWithoutTimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ state, want string }{
		{`"status":"running","iteration":0`, "no started_at; its creation time was set to 1970-01-01T00:00:00Z"},
		{`"status":"failed","iteration":0,"last_error":null`, "is failed and has no completed_at"},
		{`"status":"running","iteration":1,"iteration_history":[{"iteration":1}]`, "no time of iterations: 1; it was set to"},
	} {
		s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		dir := folder(t, map[string]string{"ralph/loops/ralph-a-0a0b0c0d/state.json": `{"version":"2.0.0",` +
			`"loop_id":"ralph-a-0a0b0c0d","task":"t",` + test.state + `}`})
		r := must[*aiwgtree.Report](t)(aiwgtree.Import(t.Context(), s, aiwgtree.ImportConfig{Path: dir, Strict: true}))
		listed := false
		for _, n := range r.Notes {
			listed = listed || n.Kind == aiwgtree.Default && strings.Contains(n.Message, test.want)
		}
		if !listed || !r.Refused {
			t.Errorf("%s: refused %v, %+v", test.state, r.Refused, r.Notes)
		}
	}
}

// Recoveries whose steps are missing, or in the form of other programs, stay in their list.
func TestRecoveriesWithoutSteps(t *testing.T) {
	t.Parallel()
	const list = `[{"iteration":2,"timestamp":"2026-02-02T21:05:00Z","trigger":"regression_detected: test_deletion",` +
		`"protocol_steps":{"pause":{"executed_at":"2026-02-02T21:05:00Z"}},"outcome":"success"},` +
		`{"iteration":3,"steps":{"PAUSE":{"executed_at":"2026-02-02T21:06:00Z"}}},{"iteration":4,"outcome":"failed"},` +
		`{"iteration":5,"steps":null}]`
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	dir := folder(t, map[string]string{"ralph/loops/ralph-a-0a0b0c0d/state.json": `{"version":"2.0.0",` +
		`"loop_id":"ralph-a-0a0b0c0d","status":"running","iteration":5,"task":"t","started_at":"2026-02-02T21:00:00Z",` +
		`"recovery_history":` + list + `}`})
	r := importFrom(t, s, dir)
	for _, n := range r.Notes {
		if strings.Contains(n.Message, "recovery_history") {
			t.Errorf("%+v", n)
		}
	}
	text := content(t, exportTo(t, s))["ralph/loops/ralph-a-0a0b0c0d/state.json"]
	var got struct {
		List json.RawMessage `json:"recovery_history"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, got.List); err != nil || compact.String() != list {
		t.Errorf("the list became %s, %v", compact.String(), err)
	}
}

// holdsAll checks that the only state of an export has all values of a document.
func holdsAll(t *testing.T, text string, out map[string]string) {
	t.Helper()
	var given map[string]any
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		t.Fatal(err)
	}
	state := ""
	for name, text := range out {
		if strings.HasSuffix(name, "/state.json") {
			state = text
		}
	}
	for key, value := range given {
		items, isList := value.([]any)
		if !isList {
			items = []any{value}
		}
		for _, item := range items {
			raw, err := json.Marshal(item)
			if err != nil {
				t.Fatal(err)
			}
			if _, isObject := item.(map[string]any); isObject || item == "in_progress" {
				continue
			}
			if !strings.Contains(state, string(raw)) {
				t.Errorf("%s is %s and not in the export:\n%s", key, raw, state)
			}
		}
	}
}

// A folder of the loop has precedence over the file of previous versions.
func TestCurrentLoopHasFolder(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r := importFrom(t, s, folder(t, map[string]string{
		"ralph/current-loop.json": `{"loopId":"ralph-dig-0a0b0c0d","task":"dig","currentIteration":1}`,
		"ralph/loops/ralph-dig-0a0b0c0d/state.json": `{"version":"2.0.0","loop_id":"ralph-dig-0a0b0c0d","iteration":2,
			"status":"paused","task":"dig"}`}))
	if r.Loops != 1 || r.Count(aiwgtree.Left) != 1 {
		t.Errorf("%+v", r)
	}
}

// An export has no null and no fraction where other readers allow none.
func TestStatesForReaders(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	importFrom(t, s, folder(t, map[string]string{"ralph/loops/dig-0a0b0c0d/state.json": `{"version":"2.1.0",
		"loop_id":"dig-0a0b0c0d","iteration":2,"status":"paused","completed_at":null,"pid":null,"owner":null,
		"configuration":{"timeout_minutes":null},"progress":{"last_completion_check":null},
		"metrics":{"total_duration_seconds":2.5,"total_cost_usd":null}}`}))
	first := exportTo(t, s)
	text := content(t, first)["ralph/loops/ralph-dig-0a0b0c0d/state.json"]
	if strings.Contains(text, "null") || !strings.Contains(text, `"total_duration_seconds": 3,`) ||
		!strings.Contains(text, `"total_duration_seconds_exact": 2.5`) {
		t.Errorf("the state is %s", text)
	}
	if r := importFrom(t, s, first); total(r) > 0 || r.Count(aiwgtree.Differs) > 0 {
		t.Errorf("the own export: %+v", r)
	}
}
