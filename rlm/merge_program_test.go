package rlm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// mergedParts is the number of parts of the runs below.
const mergedParts = 3

// mergeRun is a run over three parts whose answers a program or the model merges.
func (b *bench) mergeRun(config M) perdure.Tree {
	b.Helper()
	all := M{"planner": "split", "chunk_tokens": 450, "overlap_tokens": -1}
	for k, v := range config {
		all[k] = v
	}
	return b.launch("How many alarms?", b.put(file{"a.txt", numbered(40 * mergedParts)}), all)
}

// What a program that merges prints is the result, or the run fails with what is wrong: no model makes
// another answer of it. The parts are not asked again when the run is resumed.
func TestProgramsThatMerge(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"alarms":{"type":"integer"}},"required":["alarms"]}`)
	failed := &model.Error{Kind: model.KindFailed, Status: 3, Msg: `program "sum": no input`}
	slow := &model.Error{Kind: model.KindTimeout, Msg: "exec:sum did not answer within 1s"}
	for _, tt := range []struct {
		name, printed string
		err           error
		schema        bool
		want, why     string
	}{
		{name: "a number", printed: "6\n", want: "6"},
		{name: "a number, with a schema", printed: "6", schema: true, why: "not valid against the schema"},
		{name: "an object", printed: `{"alarms": 6}`, schema: true, want: `{"alarms":6}`},
		{name: "an object of several lines", printed: "{\n  \"alarms\": 6\n}\n", schema: true, want: `{"alarms":6}`},
		{name: "text", printed: "six alarms", schema: true, why: "not one JSON value"},
		{name: "an object behind text", printed: `total: {"alarms": 6}`, schema: true, why: "not valid against"},
		{name: "two objects", printed: "{\"alarms\": 2}\n{\"alarms\": 4}", schema: true, why: "not valid against"},
		{name: "a value of another type", printed: `{"alarms": "6"}`, schema: true, why: "alarms"},
		{name: "a value is missing", printed: `{"alarm": 6}`, schema: true, why: "alarms"},
		{name: "a cut object", printed: `{"alarms": 6`, schema: true, why: "not one JSON value"},
		{name: "nothing, with a schema", printed: " ", schema: true, why: "not one JSON value"},
		{name: "a status other than 0", err: failed, why: "no input"},
		{name: "a status other than 0, with a schema", err: failed, schema: true, why: "no input"},
		{name: "too slow", err: slow, schema: true, why: "did not answer within 1s"},
		{name: "nothing for good", err: &model.Error{Kind: model.KindEmpty, Permanent: true,
			Msg: "exec:sum returned an empty answer"}, why: "merge the results"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			repaired := false
			sum := program(func(req *model.Request) (string, error) {
				if strings.Count(model.RenderAll(req), `{"alarms": 2}`) != mergedParts {
					return "", errors.New("the results of the parts are not there")
				}
				if repaired {
					return `{"alarms": 6}`, nil
				}
				return tt.printed, tt.err
			})
			m := &mortal{Model: script(t, `replies: [{text: '{"alarms": 2}', repeat: -1}]`)}
			b := newBench(t, models{"mock:m": m, "exec:sum": sum})
			config := M{"model": "mock:m", "merge": "exec:sum", "max_attempts": 1}
			if tt.schema {
				config["schema"] = schema
			}
			tree := b.mergeRun(config)
			got, root := b.finish(tree.ID, 1)
			if tt.why == "" {
				if got.State != perdure.Completed || root.Result != tt.want {
					t.Errorf("the tree is %s with %q: %+v", got.State, root.Result, root.Error)
				}
				return
			}
			if got.State != perdure.Failed || !strings.Contains(root.Error.Message, tt.why) {
				t.Fatalf("the tree is %s with %q: %+v, want %q", got.State, root.Result, root.Error, tt.why)
			}
			repaired = true
			before := m.Ledger().Totals().Started
			if root := b.resumed(tree.ID, M{}); !strings.Contains(root.Result, "6") || m.Ledger().Totals().Started != before {
				t.Errorf("resumed: %q after %d more requests", root.Result, m.Ledger().Totals().Started-before)
			}
		})
	}
}

// The process can die before or after any request of a run with a merge: the answer is the same, and
// nothing that was answered is asked again.
func TestDeathInAMerge(t *testing.T) {
	t.Parallel()
	replies := "replies:\n- {match: 'results? of', text: '{{hash}} merged', repeat: -1}\n" +
		"- {text: '2 {{hash}}', repeat: -1}\n"
	for _, merge := range []string{"summarize", "exec:sum"} {
		want := ""
		for at := 0; at <= mergedParts+1; at++ { // 0: without a death
			for _, after := range []bool{false, true} {
				m := &mortal{Model: script(t, replies)}
				sum := &mortal{Model: script(t, "replies: [{text: 'sum {{hash}}', repeat: -1}]")}
				b := newBench(t, models{"mock:m": m, "exec:sum": sum})
				tree := b.mergeRun(M{"model": "mock:m", "merge": merge})
				dying := m
				if merge == "exec:sum" && at == mergedParts+1 {
					dying = sum
				}
				n := at
				if dying == sum {
					n = 1
				}
				for ; !b.die(dying, tree.ID, max(n, -1), after); n = -1 {
					b.close()
					b.open()
				}
				root, err := b.store.Task(t.Context(), tree.Root)
				b.ok(err)
				if want == "" {
					want = root.Result
				}
				if root.Result != want || root.Result == "" {
					t.Errorf("%s, death %d, after the answer %v: %q, want %q", merge, at, after, root.Result, want)
				}
				if again := append(m.Ledger().Repeated(), sum.Ledger().Repeated()...); len(again) > 0 {
					t.Errorf("%s, death %d, after the answer %v: asked again %+v", merge, at, after, again)
				}
			}
		}
	}
}
