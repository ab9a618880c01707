package rlm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// TestAgentOfATree: what the profile says is used where the configuration is
// silent.
func TestAgentOfATree(t *testing.T) {
	t.Parallel()
	big := script(t, "replies: [{match: 'Be strict.', text: strict, repeat: -1}]")
	small := script(t, "replies: [{match: 'Be kind.', text: kind, repeat: -1}]")
	b := newBench(t, models{"mock:big": big, "mock:small": small})
	agents := M{"judge": M{"model": "mock:big", "system": "Be strict.", "temperature": 0.1, "max_output_tokens": 77}}
	tree := b.launch("Judge.", "", M{"agents": agents, "agent": "judge", "mode": "logged"})
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "strict" || root.Agent != "judge" {
		t.Errorf("tree is %s with %q by %q: %+v", got.State, root.Result, root.Agent, root.Error)
	}
	calls, err := b.store.Calls(t.Context(), tree.Root)
	b.ok(err)
	for _, want := range []string{`"temperature":0.1`, `"max_output_tokens":77`} {
		if !strings.Contains(string(calls[0].Data), want) {
			t.Errorf("the request has no %s: %s", want, calls[0].Data)
		}
	}
	tree = b.launch("Judge.", "", M{"agents": agents, "agent": "judge", "model": "mock:small", "system": "Be kind."})
	if _, root = b.finish(tree.ID, 1); root.Result != "kind" {
		t.Errorf("what is set is not stronger than the profile: %q", root.Result)
	}
}

// TestAgentsOfTasks: each task of a plan is done by the agent it names, with its
// model, system text and limits; one that is not there goes back to the model.
func TestAgentsOfTasks(t *testing.T) {
	t.Parallel()
	server, m := endpoint(t, `replies:
  - {match: '"writr" is not one of reviewer, writer; did you mean "writer"\?', text: '{"merge":"concatenate","tasks":[{"prompt":"Write.","agent":"writer"},
      {"prompt":"Review.","agent":"reviewer"},{"prompt":"Rest."}]}'}
  - {match: '`+planning+`(?s:.*)agents: reviewer, writer\n', text: '{"tasks":[{"prompt":"Write.","agent":"writr"}]}'}
  - {match: '^You write\.\s+Write\.$', text: written}
  - {match: '^Be brief\.\s+Rest\.$', text: rested}`)
	m["mock:other"] = script(t, "replies: [{match: '^Be brief.\\s+Review.$', text: reviewed}]")
	b := newBench(t, m)
	tree := b.launch("Do it.", "", M{"model": "openai:m", "system": "Be brief.", "planner": "model", "agents": M{
		"writer": M{"system": "You write."}, "reviewer": M{"model": "mock:other"}, "away": M{"model": "openai:away"}}})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || root.Result != "written\n\nreviewed\n\nrested" {
		t.Fatalf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	if n := server.Ledger().Totals(); n.Started != 4 || n.Failed != 0 || b.usage(tree.ID).Calls != 5 {
		t.Errorf("%+v requests, %d calls", n, b.usage(tree.ID).Calls)
	}
}

// TestTaskOfAnUnknownAgent fails with the nearest name: tasks may come from
// outside.
func TestTaskOfAnUnknownAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	tree := b.launch("Do it.", "",
		M{"model": "mock:m", "agents": M{"writer": M{"system": "x"}, "away": M{"model": "mock:away"}}})
	ids, err := b.store.Submit(t.Context(), tree.Root, perdure.TaskSpec{Prompt: "a", Agent: "writr"},
		perdure.TaskSpec{Prompt: "b", Agent: "away"})
	b.ok(err)
	stop := b.work(2)
	defer stop()
	for _, tt := range []struct {
		id   perdure.TaskID
		want []string
	}{{ids[0], []string{"writr", `did you mean "writer"?`}}, {ids[1], []string{`use agent "away"`, "mock:away"}}} {
		for {
			changed := b.store.Changed()
			task, err := b.store.Task(t.Context(), tt.id)
			b.ok(err)
			if !task.State.Terminal() {
				<-changed
				continue
			}
			for _, want := range tt.want {
				if task.Error == nil || !strings.Contains(task.Error.Message, want) {
					t.Errorf("task %q is %s with %+v, want %q", task.ID, task.State, task.Error, want)
				}
			}
			break
		}
	}
}

func TestBadAgents(t *testing.T) {
	t.Parallel()
	tests := []struct{ config, want string }{
		{`{"agent":"x"}`, `agent: "x" is not there; there are none`},
		{`{"agent":"writr","agents":{"writer":{}}}`, `agent: "writr" is not one of writer; did you mean "writer"?`},
		{`{"agents":{"a":{"temperature":3}}}`, "agents.a.temperature: 3 is not between 0 and 2"},
		{`{"agents":{"a":{"max_output_tokens":-1}}}`, "agents.a.max_output_tokens"},
		{`{"agents":{"a":{"base_url":"http://me:geheim@h"}}}`, "agents.a.base_url: it contains a password"},
		{`{"agents":{"a":{"system":"\u0000"}}}`, "agents.a.system: it contains a NUL byte"},
		{`{"agents":{"":{}}}`, "is not a name"},
		{`{"agents":{"a":{"modle":"x"}}}`, "1:17: field agents.a.modle: "},
	}
	for _, tt := range tests {
		_, err := rlm.ParseConfig(json.RawMessage(tt.config))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: error is %v, want %q", tt.config, err, tt.want)
		}
	}
}
