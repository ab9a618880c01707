package hook_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/loop/hook"
)

// The first message of the document that the form comes from.
const seedMessage = `{
  "role": "user",
  "content": "Inject anti-laziness reinforcement for iteration 5",
  "metadata": {
    "hook_name": "pre_iteration",
    "loop_id": "ralph-fix-tests-a1b2c3d4",
    "iteration": 5,
    "inputs": {
      "iteration_number": 5,
      "task_context": "Fix all TypeScript errors",
      "error_history": [{"iteration": 3, "error": "TypeError at line 42"}],
      "risk_patterns": ["repeated_error"]
    }
  },
  "timestamp": "2026-02-02T21:10:00Z",
  "sender": "ralph-orchestrator"
}`

func TestDecodeMessage(t *testing.T) {
	t.Parallel()
	got, err := hook.DecodeMessage([]byte(seedMessage))
	if err != nil {
		t.Fatal(err)
	}
	want := hook.Message{
		Role: hook.RoleUser, Content: "Inject anti-laziness reinforcement for iteration 5",
		Metadata: hook.Metadata{
			HookName: hook.PreIteration, LoopID: "ralph-fix-tests-a1b2c3d4", Iteration: 5,
			Inputs: map[string]any{
				"iteration_number": json.Number("5"), "task_context": "Fix all TypeScript errors",
				"error_history": []any{map[string]any{"iteration": json.Number("3"), "error": "TypeError at line 42"}},
				"risk_patterns": []any{"repeated_error"},
			},
		},
		Timestamp: time.Date(2026, 2, 2, 21, 10, 0, 0, time.UTC), Sender: "ralph-orchestrator",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text, err := got.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := hook.DecodeMessage(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("written and read again: %s", diff)
	}
}

func TestDecodeMessageTolerates(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"role":"user","content":"x","metadata":{"hook_name":"on_error"}}`,
		`{"role":"user","content":"x","metadata":{"hook_name":"on_error","inputs":null,"loop_id":null,"new":[1]},` +
			`"timestamp":null,"sender":null,"also":{}}`,
		" \n" + `{"role":"user","metadata":{"hook_name":"on_error","iteration":0}}` + "\r\n",
	} {
		m, err := hook.DecodeMessage([]byte(text))
		if err != nil || m.Metadata.HookName != hook.OnError || m.Metadata.Inputs == nil {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}

func TestDecodeMessageRefuses(t *testing.T) {
	t.Parallel()
	in := func(metadata string) string { return `{"role":"user","content":"x","metadata":{` + metadata + `}}` }
	tests := []struct{ name, text, want string }{
		{"empty", "", "not a JSON object"},
		{"another value", "[]", "not a JSON object: found"},
		{"null", "null", "not a JSON object: found"},
		{"cut off", seedMessage[:100], "not a JSON object"},
		{"trailing", seedMessage + "x", "after the end of the value"},
		{"two", seedMessage + seedMessage, "after the end of the value"},
		{"twice", in(`"hook_name":"on_error","hook_name":"loop_start"`), "metadata.hook_name: the name appears twice"},
		{"twice deep", in(`"hook_name":"on_error","inputs":{"a":[{"b":1,"b":2}]}`),
			"field metadata.inputs.a[0].b: the name appears twice"},
		{"twice by another spelling", in(`"hook_name":"on_error","hook\u005fname":"loop_start"`),
			"metadata.hook_name: the name appears twice"},
		{"case", in(`"Hook_Name":"on_error"`), "metadata.hook_name: is missing"},
		{"role", `{"role":"assistant","content":"x","metadata":{"hook_name":"on_error"}}`,
			`role: want "user"`},
		{"no metadata", `{"role":"user","content":"x"}`, "metadata: is missing"},
		{"metadata", `{"role":"user","content":"x","metadata":[]}`, "1:41: field metadata: want an object"},
		{"unknown hook", in(`"hook_name":"pre_iterations"`),
			`there is no hook "pre_iterations"; did you mean "pre_iteration"?`},
		{"inputs", in(`"hook_name":"on_error","inputs":[]`), "1:74: field metadata.inputs: want an object"},
		{"iteration", in(`"hook_name":"on_error","iteration":1.5`), "field metadata.iteration: want a whole number"},
		{"below", in(`"hook_name":"on_error","iteration":-1`), "field metadata.iteration: want a whole number from 0"},
		{"loop", in(`"hook_name":"on_error","loop_id":"a\nb"`), "control character"},
		{"time", `{"role":"user","content":"x","metadata":{"hook_name":"on_error"},"timestamp":"now"}`,
			"1:78: field timestamp: want a time as in RFC 3339"},
		{"all at once", in(`"hook_name":7,"iteration":"x"`), "field metadata.iteration: want a whole number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := hook.DecodeMessage([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestMessageLimits(t *testing.T) {
	t.Parallel()
	deep := `{"role":"user","metadata":{"hook_name":"on_error","inputs":{"a":` + strings.Repeat("[", hook.MaxDepth) +
		strings.Repeat("]", hook.MaxDepth) + `}}}`
	long := `{"role":"user","metadata":{"hook_name":"on_error","loop_id":"` +
		strings.Repeat("x", hook.MaxLoopIDBytes+1) + `"}}`
	large := `{"role":"user","content":"` + strings.Repeat("x", hook.MaxMessageBytes) +
		`","metadata":{"hook_name":"on_error"}}`
	for what, text := range map[string]string{"depth": deep, "metadata.loop_id": long, "message": large} {
		_, err := hook.DecodeMessage([]byte(text))
		var limit *hook.LimitError
		if !errors.As(err, &limit) || limit.What != what {
			t.Errorf("%s: error is %v", what, err)
		}
	}
	m := message(hook.OnError, map[string]any{"error_message": strings.Repeat("x", hook.MaxMessageBytes)})
	var limit *hook.LimitError
	if _, err := m.Encode(); !errors.As(err, &limit) || limit.Got <= limit.Limit {
		t.Errorf("a large message: %v", err)
	}
	if _, err := message(hook.OnError, map[string]any{"error_message": func() {}}).Encode(); err == nil {
		t.Error("a function was written as JSON")
	}
}
