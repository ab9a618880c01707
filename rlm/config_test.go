package rlm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := rlm.ParseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	depth, warm := rlm.DefaultMaxDepth, rlm.DefaultTemperature
	want := rlm.Config{
		Model: "builtin:extract", SubModel: "builtin:extract", Strategy: perdure.Parallel, Merge: "merge",
		Policy:   perdure.PolicyPartial,
		MaxDepth: &depth, MaxChildren: 10, MaxNodes: 10_000, MaxAttempts: 3, Temperature: &warm, Mode: "default",
		SearchAbove: 60, SearchReplies: 12,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultsDependOnEachOther(t *testing.T) {
	t.Parallel()
	tests := []struct {
		config string
		merge  string
		policy perdure.Policy
		sub    string
	}{
		{`{"strategy":"sequential"}`, "merge", perdure.PolicyFail, "builtin:extract"},
		{`{"strategy":"conditional","when":"true"}`, "merge", perdure.PolicyFail, "builtin:extract"},
		{`{"model":"mock:x","planner":"model"}`, "", perdure.PolicyPartial, "mock:x"},
		{`{"strategy":"sequential","policy":"partial"}`, "merge", perdure.PolicyPartial, "builtin:extract"},
		{`{"batch":true}`, "concatenate", perdure.PolicyPartial, "builtin:extract"},
		{`{"batch":true,"merge":"merge"}`, "merge", perdure.PolicyPartial, "builtin:extract"},
		{`{"model":"openai:big"}`, "summarize", perdure.PolicyPartial, "openai:big"},
		{`{"model":"exec:wc -w"}`, "concatenate", perdure.PolicyPartial, "exec:wc -w"},
		{`{"model":"exec:wc -w,openai:big"}`, "concatenate", perdure.PolicyPartial, "exec:wc -w,openai:big"},
		{`{"model":"openai:big,exec:wc -w"}`, "summarize", perdure.PolicyPartial, "openai:big,exec:wc -w"},
		{`{"model":"openai:big","sub_model":"exec:wc -w"}`, "concatenate", perdure.PolicyPartial, "exec:wc -w"},
		{`{"model":"openai:big","sub_model":"builtin:extract"}`, "merge", perdure.PolicyPartial, "builtin:extract"},
		{`{"model":"openai:big","samples":3}`, "vote", perdure.PolicyPartial, "openai:big"},
		{`{"model":"openai:big","batch":true}`, "concatenate", perdure.PolicyPartial, "openai:big"},
		{`{"model":"openai:big","merge":"merge"}`, "merge", perdure.PolicyPartial, "openai:big"},
		{`{"model":"openai:big","sub_model":"openai:small"}`, "summarize", perdure.PolicyPartial, "openai:small"},
	}
	for _, tt := range tests {
		c, err := rlm.ParseConfig(json.RawMessage(tt.config))
		if err != nil {
			t.Fatal(err)
		}
		if c.Merge != tt.merge || c.Policy != tt.policy || c.SubModel != tt.sub {
			t.Errorf("%s gives merge %q, policy %q, sub-model %q", tt.config, c.Merge, c.Policy, c.SubModel)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config string
		want         []string // of the message and the hint
	}{
		{"not JSON", `{"model"`, []string{"read configuration: 1:9: "}},
		{"a list", `[]`, []string{"array"}},
		{"two objects", `{}{}`, []string{"1:3: "}},
		{"wrong type", `{"max_nodes":"many"}`, []string{"1:14: field max_nodes: want a whole number, found a string"}},
		{"unknown field", `{"modle":"x"}`, []string{"field modle: ", `"model"`}},
		{"unknown field far from all", `{"zzzzzz":1}`, []string{"field zzzzzz: ", "the fields are", "max_nodes"}},
		{"duration", `{"timeout":"5"}`, []string{`"5"`, "duration"}},
		{"all at once", `{"planner":"x","strategy":"x","merge":"x","policy":"x","mode":"x","max_depth":6,"max_children":1,
			"max_nodes":-1,"chunk_tokens":-1,"overlap_tokens":-2,"context_window":999,"answer_tokens":-1,"max_attempts":101,
			"concurrency":-1,"budget_usd":-1,"budget_tokens":-1,"budget_calls":-1,"timeout":"-1s","call_timeout":"-1s",
			"call_retries":-1,"temperature":2.1}`,
			[]string{"planner", "strategy", "merge", "policy", "mode", "max_depth: 6 is not between 0 and 5", "max_children",
				"max_nodes",
				"chunk_tokens", "overlap_tokens", "context_window: 999 is not between 1000", "answer_tokens", "max_attempts",
				"concurrency", "budget_usd", "budget_tokens", "budget_calls", "timeout", "call_timeout", "call_retries",
				"temperature: 2.1 is not between 0 and 2"}},
		{"engine", `{"planner":"repl","model":"mock:hash","repl_engine":"lua"}`, []string{`"lua" is not one of`}},
		{"samples", `{"planner":"repl","model":"mock:hash","samples":3}`, []string{"leave out --samples"}},
		{"merge", `{"merge":"summarise"}`, []string{`"summarise" is not one of`}},
		{"seed", `{"model":"openai:x","mode":"strict"}`, []string{"seed", "mode strict"}},
		{"password", `{"base_url":"https://me:geheim@host/v1"}`,
			[]string{"base_url", "it contains a password", "OPENAI_API_KEY"}},
		{"NUL", `{"model":"a\u0000"}`, []string{"model", "NUL"}},
		{"long name", `{"model":"` + strings.Repeat("x", 2000) + `"}`, []string{"model: it has 2000 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := rlm.ParseConfig(json.RawMessage(tt.config))
			if !errors.Is(err, perdure.ErrInvalid) {
				t.Fatalf("error is %v", err)
			}
			text := err.Error() + " " + perdure.HintOf(err)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("it does not tell %q: %s", want, text)
				}
			}
		})
	}
}

func TestGoodConfigs(t *testing.T) {
	t.Parallel()
	c, err := rlm.ParseConfig(json.RawMessage(
		`{"max_depth":0,"temperature":0,"timeout":"1h30m","call_retries":0,"mode":"strict",
		"context_window":1000,"seed":-1,"budget_usd":0.5}`))
	if err != nil {
		t.Fatal(err)
	}
	if *c.MaxDepth != 0 || *c.Temperature != 0 || time.Duration(c.Timeout) != 90*time.Minute || *c.CallRetries != 0 {
		t.Errorf("zeros and durations are read as %+v", c)
	}
}

// FuzzParseConfig wants that what is accepted is accepted again in the form it
// is stored in, with the same meaning.
func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{"", "{}", `{"model":"mock:x","timeout":"5m"}`, `{"max_depth":0,"temperature":0.1,"seed":1}`,
		`{"batch":true,"strategy":"sequential"}`,
		`{"model":"mock:x","schema":{"type" : "object","title":"<b>"},"planner":"model"}`,
		`{"agents":{},"schema":null}`,
		`{"agent":"a","agents":{"a":{"model":"mock:x","system":"s","temperature":0,"max_output_tokens":9}}}`,
		`{"strategy":"conditional","when":"len(results) < 3"}`, `{"strategy":"map-reduce","fan_in":2,"mode":"strict"}`,
		`{"x":1}`, `[1]`, `{"budget_usd":1e-9}`, `{"model":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := rlm.ParseConfig(raw)
		if err != nil {
			if !errors.Is(err, perdure.ErrInvalid) {
				t.Errorf("error is %v", err)
			}
			return
		}
		stored, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := rlm.ParseConfig(stored)
		if err != nil {
			t.Fatalf("stored as %s: %v", stored, err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Error(diff)
		}
	})
}
