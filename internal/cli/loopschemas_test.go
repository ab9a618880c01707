package cli

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/testing/schematest"
)

// schemaDoc reads a published schema, as data and compiled.
func schemaDoc(t *testing.T, name string) (map[string]any, *schematest.Schema) {
	t.Helper()
	s := schematest.Published(t, name)
	return s.Doc, s
}

// merge replaces the members of doc by those of patch; null removes one.
func merge(doc, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	d, ok := doc.(map[string]any)
	if !ok {
		d = nil
	}
	out := maps.Clone(d)
	if out == nil {
		out = make(map[string]any)
	}
	for key, value := range p {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = merge(out[key], value)
		}
	}
	return out
}

// refused are changes of the first example after which it is not valid.
func refused() map[string][]string {
	iteration := func(change string) string { return `{"iteration_history":[{"iteration":1,` + change + `}]}` }
	event := func(change string) string {
		return `{"regression_events":[{"event_id":"reg-1","iteration":1,"regression_type":"test_deletion",` +
			`"severity":"high",` + change + `}]}`
	}
	extension := []string{
		`{"baseline_metrics":{"test_count":"150"}}`, `{"baseline_metrics":{"test_count":-1}}`,
		`{"baseline_metrics":{"coverage_percentage":101}}`,
		`{"baseline_metrics":{"captured_at":"yesterday"}}`, `{"baseline_metrics":[]}`,
		`{"baseline_metrics":{"custom":{"a":"b"}}}`,
		`{"iteration_history":{}}`, `{"iteration_history":[1]}`, `{"iteration_history":[{"quality_score":1}]}`,
		iteration(`"quality_score":101`), iteration(`"quality_breakdown":{"validation":-1}`), iteration(`"artifacts":"x"`),
		iteration(`"artifacts":[{"hash":"x"}]`),
		iteration(`"test_results":{"verification_status":"maybe"}`), iteration(`"regression_detected":"no"`),
		iteration(`"quality_delta":"+3"`),
		`{"best_iteration":{"iteration":null}}`, `{"best_iteration":3}`, `{"selected_iteration":"2"}`,
		`{"selected_iteration":{"quality_score":1}}`, `{"selected_iteration":-1}`,
		`{"regression_events":[{"event_id":"reg-1"}]}`, event(`"human_decision":"maybe"`), event(`"details":[]`),
		event(`"recovery_outcome":""`), event(`"human_gate_invoked":1`),
		`{"regression_events":[{"event_id":"reg-1","iteration":1,"regression_type":"slow_tests","severity":"high"}]}`,
		`{"regression_events":[{"event_id":"reg-1","iteration":1,"regression_type":"test_deletion","severity":"grave"}]}`,
		`{"reinforcement_level":"LOUD"}`, `{"reinforcement_history":[{"iteration":5}]}`,
		`{"reinforcement_history":[{"iteration":5,"to_level":"OFF","from_level":"x"}]}`,
		`{"recovery_attempts":-1}`, `{"recovery_attempts":1.5}`, `{"recovery_history":[{"attempt":-1}]}`,
		`{"recovery_history":[{"steps":[]}]}`,
		`{"recovery_history":[{"steps":{"PAUSE":{}}}]}`,
		`{"recovery_history":[{"steps":{"PANIC":{"executed_at":"2026-02-02T21:15:05Z"}}}]}`,
		`{"error_history":[{"error":"x"}]}`, `{"error_count":"3"}`,
		`{"risky_actions":[{"target":"x"}]}`, `{"risky_actions":[{"tool":"Bash","risk_level":"some"}]}`,
		`{"tool_call_history":[{"tool":""}]}`,
		`{"detection_enabled":"yes"}`, `{"detection_mode":"loud"}`, `{"detected_patterns":[1]}`,
		`{"persistence_metrics":{"false_positive_rate":5}}`,
		`{"stuck_loop_detected":0}`, `{"pre_iteration_snapshot":7}`, `{"completion_report_path":[]}`,
	}
	return map[string][]string{
		"loop-state": append([]string{
			`{"version":null}`, `{"version":"1.0.0"}`, `{"version":"2"}`, `{"loop_id":null}`, `{"loop_id":"ralph-fix-tests"}`,
			`{"loop_id":"../x-a1b2c3d4"}`, `{"loop_id":"Ralph-a1b2c3d4"}`,
			`{"status":null}`, `{"status":"stuck"}`, `{"iteration":null}`, `{"iteration":-1}`, `{"iteration":1.5}`,
			`{"iteration":"7"}`, `{"task":7}`, `{"completion_criteria":[]}`,
			`{"started_at":"2026-02-02"}`, `{"last_updated":0}`, `{"configuration":{"max_iterations":0}}`,
			`{"configuration":{"timeout_minutes":-1}}`, `{"configuration":[]}`,
			`{"progress":{"completion_checks":[{"passed":true}]}}`,
			`{"progress":{"completion_checks":[{"iteration":1,"passed":"no"}]}}`, `{"metrics":{"total_cost_usd":"0.1"}}`,
		}, extension...),
		"persistence-extension": append(
			[]string{`{"baseline_metrics":null,"iteration_history":null,"regression_events":null,"reinforcement_level":null,` +
				`"detection_enabled":null}`}, extension...),
		"loop-checkpoint": {`{"checkpoint_id":null}`, `{"checkpoint_id":""}`, `{"checkpoint_id":7}`, `{"iteration":null}`,
			`{"iteration":-1}`, `{"loop_id":"x"}`, `{"created_at":"now"}`,
			`{"trigger":""}`, `{"workflow_type":"dance"}`, `{"metrics":{"test_count":-1}}`, `{"metrics":[]}`,
			`{"file_hashes":{"a":1}}`, `{"file_hashes":{"a":""}}`, `{"file_hashes":[]}`,
			`{"state":"running"}`, `{"state":{"status":"stuck"}}`, `{"state":{"iteration":{"current":-1}}}`,
			`{"artifacts":[{"status":"new"}]}`, `{"artifacts":[7]}`,
			`{"execution_config":{"temperature":3}}`, `{"metadata":{"compression":"zip"}}`},
		"iteration-analytics": {`{"loop_id":null}`, `{"loop_id":"x"}`, `{"iterations":null}`, `{"iterations":{}}`,
			`{"iterations":[{"quality_score":1}]}`, `{"iterations":[{"iteration_number":-1}]}`,
			`{"iterations":[{"iteration_number":1,"quality_score":101}]}`,
			`{"iterations":[{"iteration_number":1,"verification_status":"maybe"}]}`,
			`{"iterations":[{"iteration_number":1,"tokens_used":1.5}]}`,
			`{"iterations":[{"iteration_number":1,"reflections":[1]}]}`, `{"total_iterations":"7"}`, `{"total_cost_usd":-1}`,
			`{"quality_trajectory":"odd"}`, `{"start_time":"now"}`, `{"optimal_iteration":{}}`,
			`{"regression_events":[{}]}`, `{"recovery_attempts":null,"persistence_metrics":{"false_positive_rate":2}}`},
		"persistence-hooks": {`{"role":null}`, `{"role":"system"}`, `{"role":"assistant"}`, `{"content":null}`,
			`{"content":7}`, `{"metadata":null}`, `{"metadata":{"hook_name":"on_lunch"}}`,
			`{"metadata":{"inputs":null}}`, `{"metadata":{"inputs":"x"}}`, `{"metadata":{"loop_id":"x"}}`,
			`{"metadata":{"iteration":-1}}`, `{"timestamp":"now"}`, `{"sender":7}`},
	}
}

// The schemas of loops refuse invalid members.
func TestLoopSchemasRefuse(t *testing.T) {
	t.Parallel()
	for name, changes := range refused() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, schema := schemaDoc(t, name)
			example := doc["examples"].([]any)[0]
			for _, change := range changes {
				if schema.Validate(merge(example, jsonOf(t, change))) == nil {
					t.Errorf("valid although %s", change)
				}
			}
		})
	}
}

// Lines of the log and answers have additional rules.
func TestHookSchemasRefuse(t *testing.T) {
	t.Parallel()
	_, schema := schemaDoc(t, "persistence-hooks")
	reply := `{"role":"assistant","content":"x","metadata":{"verdict":"WARN"%s}}`
	line := `{"timestamp":"2026-02-02T21:10:05Z","hook_name":"pre_iteration"%s}`
	for text, valid := range map[string]bool{
		fmt.Sprintf(reply, ""): true, fmt.Sprintf(reply, `,"verdict":"MAYBE"`): false,
		fmt.Sprintf(reply, `,"recommendations":"x"`): false,
		fmt.Sprintf(reply, `,"regression_type":"x"`): false, fmt.Sprintf(reply, `,"severity":"x"`): false,
		fmt.Sprintf(reply, `,"details":[]`):              false,
		fmt.Sprintf(reply, `,"reinforcement_level":"x"`): false, `{"role":"assistant","content":"x","metadata":{}}`: false,
		fmt.Sprintf(line, ""): true, fmt.Sprintf(line, `,"hook_name":"of_the_user"`): true,
		fmt.Sprintf(line, `,"hook_name":"Not A Name"`): false, fmt.Sprintf(line, `,"timestamp":null`): false,
		fmt.Sprintf(line, `,"duration_ms":-1`): false, fmt.Sprintf(line, `,"verdict":"MAYBE"`): false,
		fmt.Sprintf(line, `,"state_changes":[]`): false, fmt.Sprintf(line, `,"iteration":1.5`): false,
		fmt.Sprintf(line, `,"agents_invoked":"x"`): false, `{"hook_name":"pre_iteration"}`: false, `[]`: false, `null`: false,
	} {
		if err := schema.ValidateJSON([]byte(text)); (err == nil) != valid {
			t.Errorf("%s: valid %v, want %v: %v", text, err == nil, valid, err)
		}
	}
}

// The extension is the same in both schemas, and a state is valid without it.
func TestPersistenceExtension(t *testing.T) {
	t.Parallel()
	state, compiled := schemaDoc(t, "loop-state")
	extension, alone := schemaDoc(t, "persistence-extension")
	plain := maps.Clone(state["examples"].([]any)[0].(map[string]any))
	for name, want := range extension["properties"].(map[string]any) {
		if diff := cmp.Diff(want, state["properties"].(map[string]any)[name]); diff != "" {
			t.Errorf("%s (-extension +state):\n%s", name, diff)
		}
		delete(plain, name)
	}
	for name, want := range extension["$defs"].(map[string]any) {
		if diff := cmp.Diff(want, state["$defs"].(map[string]any)[name]); diff != "" {
			t.Errorf("%s (-extension +state):\n%s", name, diff)
		}
	}
	if err := compiled.Validate(plain); err != nil {
		t.Errorf("without the extension: %v", err)
	}
	if alone.Validate(plain) == nil {
		t.Error("a state without the extension has it")
	}
	if err := alone.Validate(state["examples"].([]any)[0]); err != nil {
		t.Errorf("a state with the extension: %v", err)
	}
	for i, example := range extension["examples"].([]any) {
		if err := compiled.Validate(merge(plain, example)); err != nil {
			t.Errorf("example %d in a state: %v", i, err)
		}
	}
}
