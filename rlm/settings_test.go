package rlm_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/rlm"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ config, model, flags string }{
		{``, "", ""},
		{`[]`, "", ""},
		{`{}`, "", ""},
		{`{"model":"exec:wc -l","planner":"split","merge":"concatenate"}`, "exec:wc -l",
			"--planner split --merge concatenate"},
		{`{"model":"m","temperature":0,"seed":7,"cite":true,"max_depth":2,"schema":{"type":"object"}}`, "m",
			"--temperature 0 --seed 7 --max-depth 2 --cite --schema"},
		{`{"model":"m","params":{"top_p":0.9,"user":"a b"},"cite":false,"headers":{"Authorization":"secret"}}`, "m",
			`--param top_p=0.9 --param user="a b"`},
		{`{"model":"m","merge":"exec:sum up","when":null}`, "m", `--merge "exec:sum up"`},
	} {
		model, flags := rlm.Settings(json.RawMessage(test.config))
		if model != test.model || flags != test.flags {
			t.Errorf("%s: %q, %q", test.config, model, flags)
		}
	}
}
