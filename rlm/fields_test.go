package rlm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/rlm"
)

// Parameters and headers are kept in one form, and values of headers are not stored.
func TestFieldsOfRequests(t *testing.T) {
	t.Parallel()
	c, err := rlm.ParseConfig(json.RawMessage(`{"params":{"top_p": 0.9,"b":[1]},"headers":{"X-Team":"$TEAM"}}`))
	if err != nil || c.Params != `{"b":[1],"top_p":0.9}` || c.Headers.Strings()["X-Team"] != "$TEAM" {
		t.Errorf("%+v, %v", c, err)
	}
	raw, err := json.Marshal(c)
	if err != nil || !strings.Contains(string(raw), `"params":{"b":[1],"top_p":0.9}`) {
		t.Errorf("%s, %v", raw, err)
	}
	if plain, err := json.Marshal(rlm.Config{}); err != nil || strings.Contains(string(plain), "params") {
		t.Errorf("%s, %v", plain, err)
	}
	for _, wrong := range []string{`{"params":[1]}`, `{"params":"x"}`, `{"headers":{"X-Team":"secret"}}`,
		`{"headers":{"X Team":"$T"}}`, `{"headers":{"X-Team":7}}`, `{"agents":{"a":{"headers":{"X":"plain"}}}}`} {
		if _, err := rlm.ParseConfig(json.RawMessage(wrong)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A profile adds to the parameters of the run, which override those of the tree's own profile.
func TestFieldsOfProfiles(t *testing.T) {
	t.Parallel()
	c, err := rlm.ParseConfig(json.RawMessage(`{"agent":"a","params":{"top_p":0.9},` +
		`"agents":{"a":{"params":{"top_p":0.5,"top_k":40}}}}`))
	if err != nil || c.Params != `{"top_k":40,"top_p":0.9}` {
		t.Errorf("%q, %v", c.Params, err)
	}
}
