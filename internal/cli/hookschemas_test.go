package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/loop/hook"
)

// The schema of messages and the table of hooks agree.
func TestHookMessageHasTheTable(t *testing.T) {
	t.Parallel()
	doc, _ := schemaDoc(t, "hook-message")
	want, cases := make(map[string]any), []any{}
	names := []any{}
	for _, row := range hook.Table() {
		name := string(row.Hook)
		names = append(names, name)
		inputs := make(map[string]any)
		for _, in := range row.Inputs {
			inputs[in.Name] = map[string]any{"type": in.Type, "description": in.What}
		}
		want[name] = map[string]any{
			"description": strings.ToUpper(row.When[:1]) + row.When[1:] + ".", "type": "object", "properties": inputs,
		}
		cases = append(cases, jsonOf(t, strings.ReplaceAll(`{
			"if": {"properties": {"metadata": {"properties": {"hook_name": {"const": "NAME"}}}}},
			"then": {"properties": {"metadata": {"properties": {"inputs": {"$ref": "#/$defs/NAME"}}}}}}`, "NAME", name)))
	}
	if diff := cmp.Diff(want, doc["$defs"]); diff != "" {
		t.Errorf("(-table +schema):\n%s", diff)
	}
	if diff := cmp.Diff(cases, doc["allOf"]); diff != "" {
		t.Errorf("(-table +schema):\n%s", diff)
	}
	metadata := doc["properties"].(map[string]any)["metadata"].(map[string]any)["properties"].(map[string]any)
	if diff := cmp.Diff(names, metadata["hook_name"].(map[string]any)["enum"]); diff != "" {
		t.Errorf("(-table +schema):\n%s", diff)
	}
	both, _ := schemaDoc(t, "persistence-hooks")
	request := both["$defs"].(map[string]any)["request"].(map[string]any)["properties"].(map[string]any)
	old := request["metadata"].(map[string]any)["properties"].(map[string]any)["hook_name"].(map[string]any)["enum"]
	if diff := cmp.Diff(names, old); diff != "" {
		t.Errorf("persistence-hooks (-table +schema):\n%s", diff)
	}
}

// Written messages are valid, also under the schema of persistence hooks.
func TestHookSchemasOfWhatIsWritten(t *testing.T) {
	t.Parallel()
	_, message := schemaDoc(t, "hook-message")
	_, reply := schemaDoc(t, "hook-reply")
	_, both := schemaDoc(t, "persistence-hooks")
	at := time.Date(2026, 2, 2, 21, 10, 5, 0, time.UTC)
	for _, row := range hook.Table() {
		inputs := make(map[string]any)
		for _, in := range row.Inputs {
			inputs[in.Name] = map[string]any{"string": "x", "integer": 1, "number": 0.5, "boolean": true,
				"object": map[string]any{}, "array": []int{}}[in.Type]
		}
		m := hook.Message{Timestamp: at, Sender: "perdure",
			Metadata: hook.Metadata{HookName: row.Hook, LoopID: "x-a1b2c3d4", Inputs: inputs}}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, schema := range []interface{ Validate(any) error }{message, both} {
			if err := schema.Validate(jsonOf(t, string(text))); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		for _, in := range row.Inputs {
			wrong := maps.Clone(inputs)
			wrong[in.Name] = nil
			m.Metadata.Inputs = wrong
			if text, err := m.Encode(); err != nil || message.Validate(jsonOf(t, string(text))) == nil {
				t.Errorf("%s: %s of another type is valid (%v)", row.Hook, in.Name, err)
			}
		}
	}
	for _, r := range []hook.Reply{
		hook.NewReply(hook.Allow, ""),
		{Content: "x", Timestamp: at, Sender: "y", Metadata: hook.ReplyMetadata{
			Verdict: hook.Block, Recommendations: []string{"a"}, Inject: "b", Level: hook.LevelOff,
			RegressionType: hook.RunIncomplete, Severity: hook.Low, Details: map[string]any{"diff": 1},
			Extra: map[string]json.RawMessage{"artifacts": json.RawMessage(`["a"]`)},
		}},
	} {
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, schema := range []interface{ Validate(any) error }{reply, both} {
			if err := schema.Validate(jsonOf(t, string(text))); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// The schema of replies and the program refuse the same replies.
func TestHookReplySchema(t *testing.T) {
	t.Parallel()
	_, schema := schemaDoc(t, "hook-reply")
	with := func(more string) string { return `{"metadata":{"verdict":"BLOCK"` + more + `}}` }
	texts := map[string]bool{
		with(``): true, `{"metadata":{"verdict":"WARN"},"x":1}`: true, with(`,"x":{}`): true,
		`{"role":"assistant","content":null,"timestamp":null,"sender":null,"metadata":{"verdict":"ALLOW"}}`: true,
		`{"role":"user","metadata":{"verdict":"ALLOW"}}`:                                                    false,
		`{"content":7,"metadata":{"verdict":"ALLOW"}}`:                                                      false,
		`{"metadata":{"verdict":"MAYBE"}}`:                                                                  false,
		`{"metadata":{"verdict":null}}`:                                                                     false,
		`{"metadata":{}}`:                                                                                   false,
		`{"metadata":[]}`:                                                                                   false,
		`{"verdict":"ALLOW"}`:                                                                               false,
		`{"metadata":{"verdict":"ALLOW"},"timestamp":"now"}`:                                                false,
		with(`,"recommendations":[]`):                                                                       true,
		with(`,"recommendations":null`):                                                                     true,
		with(`,"recommendations":"x"`):                                                                      false,
		with(`,"recommendations":[null]`):                                                                   false,
		with(`,"recommendations":[` + strings.Repeat(`"",`, 100) + `""]`):                                   false,
		with(`,"inject":"` + strings.Repeat("x", hook.MaxInjectBytes+1) + `"`):                              false,
		with(`,"inject":null`):                                                                              true,
		with(`,"inject":1`):                                                                                 false,
		with(`,"reinforcement_level":"OFF"`):                                                                true,
		with(`,"reinforcement_level":"off"`):                                                                false,
		with(`,"reinforcement_level":""`):                                                                   true,
		with(`,"regression_type":"test_failure","severity":"low"`):                                          true,
		with(`,"regression_type":"test_failure"`):                                                           false,
		with(`,"regression_type":"test_failure","severity":null`):                                           false,
		with(`,"regression_type":null`):                                                                     true,
		with(`,"regression_type":"x","severity":"low"`):                                                     false,
		with(`,"severity":"x"`):                                                                             false,
		with(`,"severity":"low"`):                                                                           true,
		with(`,"details":{}`):                                                                               true,
		with(`,"details":null`):                                                                             true,
		with(`,"details":[]`):                                                                               false,
	}
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		want := texts[text]
		if err := schema.Validate(jsonOf(t, text)); (err == nil) != want {
			t.Errorf("%.200s: valid %v, want %v: %v", text, err == nil, want, err)
		}
		if _, err := hook.DecodeReply([]byte(text)); (err == nil) != want {
			t.Errorf("%.200s: read %v, want %v: %v", text, err == nil, want, err)
		}
	}
}

// The lines of hook-log.jsonl are entries of the schema that reads them.
func TestHookLogLines(t *testing.T) {
	t.Parallel()
	doc, schema := schemaDoc(t, "persistence-hooks")
	for _, r := range []hook.Record{
		{Time: time.Date(2026, 2, 2, 21, 10, 5, 0, time.UTC), Hook: hook.LogRotated},
		{
			Time: time.Date(2026, 2, 2, 21, 10, 5, 123456000, time.FixedZone("", 3600)), Hook: hook.OnError,
			LoopID: "x-a1b2c3d4", Iteration: 3, Handler: "h",
			Kind: hook.KindHTTP, Duration: time.Second, Verdict: hook.Block,
			Fault: &hook.RecordedFault{Kind: hook.FaultExit, Message: "m"}, StateChanges: map[string]any{"a": 1},
		},
	} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(jsonOf(t, string(text))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for i, example := range doc["examples"].([]any) {
		text, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		var r hook.Record
		entry := example.(map[string]any)["hook_name"] != nil
		if err := json.Unmarshal(text, &r); (err == nil) != entry {
			t.Errorf("example %d: %v, an entry: %v", i, err, entry)
		}
	}
}

// The requests and replies of that schema are accepted too.
func TestHooksReadTheFormTheyComeFrom(t *testing.T) {
	t.Parallel()
	doc, _ := schemaDoc(t, "persistence-hooks")
	read := map[string]int{}
	for i, example := range doc["examples"].([]any) {
		text, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		role, _ := example.(map[string]any)["role"].(string)
		switch role {
		case "user":
			_, err = hook.DecodeMessage(text)
		case "assistant":
			_, err = hook.DecodeReply(text)
		}
		if err != nil {
			t.Errorf("example %d: %v", i, err)
		}
		read[role]++
	}
	if read["user"] < 3 || read["assistant"] < 2 {
		t.Errorf("read %v", read)
	}
}

func TestHookMessageSchemaRefuses(t *testing.T) {
	t.Parallel()
	doc, schema := schemaDoc(t, "hook-message")
	for _, change := range []string{
		`{"role":null}`, `{"role":"assistant"}`, `{"content":null}`, `{"content":7}`, `{"metadata":null}`,
		`{"metadata":{"hook_name":"on_lunch"}}`, `{"metadata":{"hook_name":null}}`,
		`{"metadata":{"inputs":null}}`, `{"metadata":{"inputs":"x"}}`, `{"metadata":{"loop_id":"x"}}`,
		`{"metadata":{"iteration":-1}}`, `{"metadata":{"iteration":null}}`, `{"timestamp":"now"}`, `{"sender":7}`,
		`{"metadata":{"inputs":{"error_history":"x"}}}`,
	} {
		if schema.Validate(merge(doc["examples"].([]any)[0], jsonOf(t, change))) == nil {
			t.Errorf("valid although %s", change)
		}
	}
	for i, example := range doc["examples"].([]any) {
		text, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hook.DecodeMessage(text); err != nil {
			t.Errorf("example %d: %v", i, err)
		}
	}
}

// TestToolCallSchema: the lines of a journal of tool calls are valid.
func TestToolCallSchema(t *testing.T) {
	t.Parallel()
	_, schema := schemaDoc(t, "tool-call")
	line := policy.NewLine(policy.Asked, 1, &agent.ToolCall{ID: "1", Name: "Bash", Kind: agent.ToolExecute,
		Command: "rm x"},
		&policy.Judgement{Findings: []risk.Finding{{Rule: risk.Table()[0], Target: "x"}}})
	line.Answer, line.Wanted, line.Snapshot = risk.Gate, []string{"delete_files x"}, "abc"
	line.After = &policy.Evidence{TestsBefore: 1, Findings: []detect.Finding{{Type: detect.TestDeletion}},
		Skipped: []string{"y: binary"}}
	for _, l := range []policy.Line{line, policy.NewLine(policy.Seen, 0, &agent.ToolCall{Kind: agent.ToolOther}, nil)} {
		doc, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(jsonOf(t, string(doc))); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
}
