package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

const goodState = `{"version":"1.0.0","state_id":"state-0a0b0c0d","session_id":"s","tree_id":"tree-0a0b0c0d",` +
	`"variables":{"n":{"name":"n","value":1,"type":"number","created_at":"2026-01-01T00:00:00Z",` +
	`"metadata":{"scope":"session"}}},"metadata":{"created_at":"2026-01-01T00:00:00Z","scope":"session",` +
	`"variable_count":1,"completion_status":"incomplete","execution_config":{"execution_mode":"default"}}}`

// Each default and each correction of a state is listed, and a strict import refuses it.
func TestStrictStates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, new, kind, says string }{
		"good":            {"", "", "", ""},
		"no version":      {`"version":"1.0.0",`, ``, tree.Default, "there is no version"},
		"next version":    {`"1.0.0"`, `"2.0.0"`, tree.Corrected, `the version is "2.0.0"`},
		"numeric version": {`"1.0.0"`, `1`, tree.Corrected, `the version is "1"`},
		"no ID":           {`"state_id":"state-0a0b0c0d",`, ``, tree.Default, "there is no state_id"},
		"odd ID":          {`state-0a0b0c0d`, `state-1`, tree.Corrected, "does not match its pattern"},
		"no type":         {`,"type":"number"`, ``, tree.Default, "there is no type; it was set to number"},
		"wrong type":      {`"number"`, `"text"`, tree.Corrected, "the type was set to number"},
		"bad scope":       {`{"scope":"session"}}}`, `{"scope":"galaxy"}}}`, tree.Corrected, `unknown scope "galaxy"`},
		"other scope":     {`"scope":"session","v`, `"scope":"moon","v`, tree.Corrected, `metadata.scope is "moon"`},
		"bad metadata":    {`{"execution_mode":"default"}`, `"fast"`, tree.Corrected, "kept as execution_config_as_given"},
		"model":           {`"default"}`, `"default","model":"m"}`, tree.NotApplied, `.model = "m" is kept and not applied`},
		"seed":            {`"default"`, `"seeded"`, tree.NotApplied, "a run takes it from --mode"},
		"other setting":   {`"default"}`, `"default","top_k":7}`, tree.NotApplied, "perdure has no such setting"},
		"no metadata":     {`"metadata":{"created_at`, `"metadata":7,"x":{"created_at`, tree.Corrected, "is not an object"},
		"bad tree ID":     {`tree-0a0b0c0d`, `oak`, tree.Corrected, "kept as tree_id_as_given"},
		"wrong count":     {`"variable_count":1`, `"variable_count":9`, tree.Corrected, "the state has 1"},
		"bad status":      {`"incomplete"`, `"nearly"`, tree.Corrected, "metadata.completion_status is"},
		"status despite Final": {`"variables":{`, `"variables":{"Final":{"name":"Final","value":1,"type":"number"},`,
			tree.Corrected, "Final is set, so it is complete"},
		"no time": {`"type":"number","created_at":"2026-01-01T00:00:00Z"`, `"type":"number"`, tree.Default,
			`no creation time of variable "n"; it was set to 2026-01-01T00:00:00Z`},
		"no time at all": {`"type":"number","created_at":"2026-01-01T00:00:00Z",` +
			`"metadata":{"scope":"session"}}},"metadata":{"created_at":"2026-01-01T00:00:00Z",`,
			`"type":"number"}},"metadata":{`, tree.Default,
			`no creation time of the state, variable "n"; it was set to 1970-01-01T00:00:00Z`},
		"cut off": {`}}}`, ``, tree.NotRead, "invalid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(goodState, test.old, test.new, 1)
			file := filepath.Join(t.TempDir(), "state.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			r := must[*tree.Report](t)(tree.Import(t.Context(), s, tree.ImportConfig{Path: file, Strict: true}))
			if test.kind == "" {
				if r.Refused || r.States != 1 || len(notes(r, tree.Kept, "")) != len(r.Notes) {
					t.Errorf("%+v", r)
				}
				return
			}
			if !r.Refused || len(notes(r, test.kind, test.says)) != 1 {
				t.Errorf("refused %v: %+v", r.Refused, r.Notes)
			}
			if states := must[[]perdure.StateInfo](t)(s.States(t.Context(), "")); len(states) > 0 {
				t.Errorf("imported: %+v", states)
			}
			if r := importFrom(t, s, file); r.States != 1 || len(notes(r, test.kind, test.says)) != 1 {
				t.Errorf("without strict: %+v", r)
			}
			validAll(t, exportTo(t, s))
		})
	}
}

// An export of a store comes in strictly.
func TestStrictExport(t *testing.T) {
	t.Parallel()
	a, b := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	lived(t, a)
	r := must[*tree.Report](t)(tree.Import(t.Context(), b, tree.ImportConfig{Path: exportTo(t, a), Strict: true}))
	if r.Refused || r.Trees != 2 {
		t.Errorf("%+v", r)
	}
}
