package rlm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

func TestModesNeedSeeds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		config M
		want   string // "": fine
	}{
		{M{"mode": "strict"}, ""},
		{M{"mode": "strict", "model": "mock:x"}, ""},
		{M{"mode": "strict", "model": "openai:x", "seed": 1}, ""},
		{M{"mode": "strict", "model": "openai:x"}, "seed: it is missing, and mode strict needs one"},
		{M{"mode": "seeded", "model": "openai:x"}, "seed: it is missing, and mode seeded needs one"},
		{M{"mode": "seeded", "model": "exec:cat", "seed": 1}, ""},
		{M{"mode": "strict", "model": "exec:cat", "seed": 1}, `model: "exec:cat" takes no seed`},
		{M{"mode": "strict", "model": "openai:x", "sub_model": "anthropic:y", "seed": 1},
			`sub_model: "anthropic:y" takes no seed`},
		{M{"mode": "strict", "model": "openai:x,openai:y", "seed": 1}, "takes no seed"},
		{M{"mode": "strict", "model": "openai:x", "seed": 1, "planner": "model", "agents": M{"a": M{"model": "exec:cat"}}},
			`agents.a.model: "exec:cat" takes no seed`},
		{M{"mode": "strict", "model": "openai:x", "seed": 1, "agents": M{"a": M{"model": "exec:cat"}}}, ""},
	}
	for _, tt := range tests {
		raw, err := json.Marshal(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rlm.ParseConfig(raw)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error is %v, want %q", raw, err, tt.want)
		}
	}
}

// TestLoggedKeepsEveryRequest: also that of a call that failed.
func TestLoggedKeepsEveryRequest(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"logged", "default"} {
		b := newBench(t, models{"mock:m": script(t, "replies: [{status: 503}, {text: fine}]")})
		tree := b.launch("Say it.", "", M{"model": "mock:m", "mode": mode, "seed": 7})
		b.finish(tree.ID, 1)
		calls, err := b.store.Calls(t.Context(), tree.Root)
		b.ok(err)
		if len(calls) != 2 || calls[0].State != perdure.CallFailed || calls[1].Response != "fine" {
			t.Fatalf("calls are %+v", calls)
		}
		for i, c := range calls {
			kept := strings.Contains(string(c.Data), `"prompt":"Say it."`) && strings.Contains(string(c.Data), `"seed":7`)
			if kept != (mode == "logged") {
				t.Errorf("mode %s, call %d keeps %s", mode, i, c.Data)
			}
		}
	}
}
