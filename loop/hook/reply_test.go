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

// Replies of the document that the form comes from.
const (
	seedReply = `{
  "role": "assistant",
  "content": "ITERATION #5 - Stuck Loop Risk",
  "metadata": {
    "verdict": "WARN",
    "recommendations": ["Escalate if iteration 6 also fails", "Consider decomposing task into smaller steps"],
    "reinforcement_level": "AGGRESSIVE"
  },
  "timestamp": "2026-02-02T21:10:05Z",
  "sender": "prompt-reinforcement"
}`
	seedDetection = `{
  "role": "assistant",
  "content": "REGRESSION DETECTED: test_deletion",
  "metadata": {
    "verdict": "BLOCK", "regression_type": "test_deletion", "severity": "critical", "confidence": 0.9,
    "details": {"baseline_value": 150, "current_value": 148, "diff": {"deleted_tests": ["login.test.ts: should reject weak passwords"]}}
  }
}`
)

func TestDecodeReply(t *testing.T) {
	t.Parallel()
	tests := map[string]hook.Reply{
		seedReply: {
			Role: hook.RoleAssistant, Content: "ITERATION #5 - Stuck Loop Risk",
			Metadata: hook.ReplyMetadata{
				Verdict:         hook.Warn,
				Recommendations: []string{"Escalate if iteration 6 also fails", "Consider decomposing task into smaller steps"},
				Level:           hook.LevelAggressive,
			},
			Timestamp: time.Date(2026, 2, 2, 21, 10, 5, 0, time.UTC), Sender: "prompt-reinforcement",
		},
		seedDetection: {
			Role: hook.RoleAssistant, Content: "REGRESSION DETECTED: test_deletion",
			Metadata: hook.ReplyMetadata{
				Verdict: hook.Block, RegressionType: hook.TestDeletion, Severity: hook.Critical,
				Details: map[string]any{
					"baseline_value": json.Number("150"), "current_value": json.Number("148"),
					"diff": map[string]any{"deleted_tests": []any{"login.test.ts: should reject weak passwords"}},
				},
				Extra: map[string]json.RawMessage{"confidence": json.RawMessage("0.9")},
			},
		},
		`{"metadata":{"verdict":"ALLOW","inject":"mind <b> & c","recommendations":null,"details":null},"more":1}`: {
			Role: hook.RoleAssistant, Metadata: hook.ReplyMetadata{Verdict: hook.Allow, Inject: "mind <b> & c"},
		},
	}
	for text, want := range tests {
		got, err := hook.DecodeReply([]byte(text))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		written, err := got.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := hook.DecodeReply(written)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("written and read again: %s", diff)
		}
	}
}

func TestDecodeReplyRefuses(t *testing.T) {
	t.Parallel()
	with := func(metadata string) string {
		return `{"role":"assistant","content":"x","metadata":{` + metadata + `}}`
	}
	tests := []struct {
		name, text, want string
		verdict          hook.Verdict // what is left of it
	}{
		{"empty object", `{}`, "metadata: is missing", ""},
		{"no verdict", with(``), "metadata.verdict: is missing", ""},
		{"null", with(`"verdict":null`), "metadata.verdict: is missing", ""},
		{"unknown verdict", with(`"verdict":"MAYBE"`),
			`field metadata.verdict: want one of ALLOW, WARN, BLOCK; found "MAYBE"`, ""},
		{"small letters", with(`"verdict":"block"`),
			`field metadata.verdict: want one of ALLOW, WARN, BLOCK; found "block"`, ""},
		{"other case", with(`"Verdict":"ALLOW"`), "metadata.verdict: is missing", ""},
		{"verdict in the wrong place", `{"verdict":"ALLOW"}`, "metadata: is missing", ""},
		{"twice", with(`"verdict":"BLOCK","verdict":"ALLOW"`), "1:65: field metadata.verdict: ", ""},
		{"trailing", with(`"verdict":"BLOCK"`) + "}", "1:66: ", ""},
		{"role", `{"role":"user","metadata":{"verdict":"BLOCK"}}`, `role: want "assistant"`, hook.Block},
		{"regression", with(`"verdict":"BLOCK","regression_type":"laziness","severity":"high"`),
			"field metadata.regression_type: ", hook.Block},
		{"severity", with(`"verdict":"WARN","regression_type":"test_deletion","severity":"grave"`),
			"field metadata.severity: ", hook.Warn},
		{"no severity", with(`"verdict":"BLOCK","regression_type":"test_deletion"`),
			"metadata.severity: is missing", hook.Block},
		{"level", with(`"verdict":"ALLOW","reinforcement_level":"LOUD"`), "field metadata.reinforcement_level: ",
			hook.Allow},
		{"recommendations", with(`"verdict":"ALLOW","recommendations":"x"`),
			"1:83: field metadata.recommendations: ", hook.Allow},
		{"null among them", with(`"verdict":"ALLOW","recommendations":["a",null]`),
			"field metadata.recommendations: want an array of strings, found null at [1]",
			hook.Allow},
		{"inject", with(`"verdict":"ALLOW","inject":{}`), "1:74: field metadata.inject: want a string, found an object",
			hook.Allow},
		{"details", with(`"verdict":"BLOCK","details":"x"`), "1:75: field metadata.details: ", hook.Block},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := hook.DecodeReply([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
			if got.Metadata.Verdict != tt.verdict {
				t.Errorf("verdict %q is left, want %q", got.Metadata.Verdict, tt.verdict)
			}
		})
	}
}

func TestReplyLimits(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n+1) }
	many := make([]string, hook.MaxRecommendations+1)
	tests := map[string]func(*hook.Reply){
		"content":                  func(r *hook.Reply) { r.Content = long(hook.MaxContentBytes) },
		"sender":                   func(r *hook.Reply) { r.Sender = long(hook.MaxNameBytes) },
		"metadata.inject":          func(r *hook.Reply) { r.Metadata.Inject = long(hook.MaxInjectBytes) },
		"metadata.recommendations": func(r *hook.Reply) { r.Metadata.Recommendations = many },
		"metadata.recommendations[0]": func(r *hook.Reply) {
			r.Metadata.Recommendations = []string{long(hook.MaxRecommendationBytes)}
		},
		"metadata.details": func(r *hook.Reply) {
			r.Metadata.Details = map[string]any{"a": long(hook.MaxDetailsBytes)}
		},
	}
	for what, change := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := hook.NewReply(hook.Block, "no")
			change(&r)
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			_, write := r.Encode()
			_, read := hook.DecodeReply(text)
			for _, err := range []error{write, read} {
				var limit *hook.LimitError
				if !errors.As(err, &limit) || limit.What != what || limit.Got <= limit.Limit {
					t.Errorf("error is %v", err)
				}
			}
		})
	}
	if _, err := hook.DecodeReply([]byte(`{"a":"` + long(hook.MaxReplyBytes) + `"}`)); err == nil {
		t.Error("a reply of any length is read")
	}
}

// What a handler in this process made does not come through unseen either.
func TestEncodeReplyRefuses(t *testing.T) {
	t.Parallel()
	for _, r := range []hook.Reply{
		{}, hook.NewReply("MAYBE", ""), {Role: hook.RoleUser, Metadata: hook.ReplyMetadata{Verdict: hook.Allow}},
		{Metadata: hook.ReplyMetadata{Verdict: hook.Allow, Level: "LOUD"}},
		{Metadata: hook.ReplyMetadata{Verdict: hook.Allow, RegressionType: hook.TestDeletion}},
		{Metadata: hook.ReplyMetadata{Verdict: hook.Allow, Details: map[string]any{"f": func() {}}}},
	} {
		if text, err := r.Encode(); err == nil {
			t.Errorf("%+v was written: %s", r, text)
		}
	}
	r := hook.NewReply(hook.Allow, "")
	r.Metadata.Extra = map[string]json.RawMessage{"verdict": json.RawMessage(`"BLOCK"`), "z": json.RawMessage(`1`),
		"a": json.RawMessage(`{}`)}
	text, err := r.Encode()
	if want := `{"role":"assistant","content":"","metadata":{"verdict":"ALLOW","a":{},"z":1}}`; err != nil ||
		string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

func TestStricter(t *testing.T) {
	t.Parallel()
	order := []hook.Verdict{"", hook.Allow, hook.Warn, hook.Block}
	for i, a := range order {
		for j, b := range order {
			if got, want := hook.Stricter(a, b), order[max(i, j)]; got != want {
				t.Errorf("Stricter(%q, %q) is %q", a, b, got)
			}
		}
	}
}
