package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// TestPlan: a plan, an agent from the settings and a structured answer, from the command
// line to the printed JSON.
func TestPlanAgentsAndSchema(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write(".perdure/config.yaml", `agents:
  geographer:
    model: mock:agent.yaml
    system: You know rivers.
`)
	p.write("agent.yaml", `replies: [{match: 'You know rivers\.(?s:.*)Name a river\.', text: Rhine}]`)
	p.write("model.yaml", `replies:
  - {match: 'Do not answer the task yet(?s:.*)agents: geographer', text: '{"merge":"merge","tasks":[{"prompt":"Name a river.","agent":"geographer"},{"prompt":"Name a hill."}]}'}
  - {match: 'what was found(?s:.*)Rhine\nBen Nevis', text: '{"names":["Rhine","Ben Nevis"]}'}
  - {match: 'Name a hill', text: Ben Nevis}
`)
	p.write("names.json", `{"type":"object","required":["names"],"properties":{"names":{"type":"array",`+
		`"items":{"type":"string"}}}}`)
	stdout, stderr := p.run(0, "run", "Name a river and a hill.", "--planner", "model", "--model", "mock:model.yaml",
		"--schema", "names.json", "--json")
	var r struct {
		Answer struct{ Names []string }
		Usage  struct{ Calls int }
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s%s", err, stdout, stderr)
	}
	if len(r.Answer.Names) != 2 || r.Answer.Names[0] != "Rhine" || r.Usage.Calls != 4 {
		t.Errorf("printed %s", stdout)
	}
	stdout, _ = p.run(0, "run", "Name a river.", "--agent", "geographer")
	if stdout != "Rhine\n" {
		t.Errorf("the agent answers %q", stdout)
	}
	stdout, _ = p.run(0, "run", "Name a hill.", "--agent", "geographer", "--model", "mock:model.yaml")
	if stdout != "Ben Nevis\n" {
		t.Errorf("with a flag for the model the agent answers %q", stdout)
	}
}

// Invalid flags are refused before a tree is created.
func TestPlanningRefusals(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write(".perdure/config.yaml", "agents: {reviewer: {system: x}}\n")
	p.write("list.json", "[1]")
	p.write("cut.json", "{\n\"type\":")
	p.write("none.json", `{"type":"objekt"}`)
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{"--schema", "missing.json"}, []string{`--schema "missing.json": no such file`}},
		{[]string{"--schema", "."}, []string{`--schema ".": `}},
		{[]string{"--schema", "list.json"}, []string{`--schema "list.json": it is not a JSON object`, "hint"}},
		{[]string{"--schema", "cut.json"}, []string{`--schema "cut.json": it is not JSON: line 2`}},
		{[]string{"--schema", "none.json"},
			[]string{`--schema "none.json": it is not a JSON Schema: /type: value must be one of 'array'`}},
		{[]string{"--agent", "reviewr"}, []string{`agent: "reviewr" is not one of reviewer; did you mean "reviewer"?`}},
		{[]string{"--strategy", "conditional", "--when", "results[0].txt == ''"}, []string{"when: column 12: type"}},
		{[]string{"--planner", "modle"}, []string{`planner: "modle" is not one of none, split, search, model`}},
		{[]string{"--strategy", "map-reduce", "--fan-in", "1"}, []string{"fan_in: 1 is not between 2 and 1000"}},
		{[]string{"--planner", "model", "--model", "builtin:extract"}, []string{"cannot write a plan"}},
		{[]string{"--mode", "strict", "--seed", "1", "--model", "exec:cat"}, []string{"takes no seed"}},
	}
	for _, tt := range tests {
		args := append([]string{"run", "x", "--model", "mock:echo"}, tt.args...)
		stdout, stderr := p.run(env.StatusUsage, args...)
		for _, want := range tt.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q does not tell %q:\n%s", tt.args, want, stderr)
			}
		}
		if stdout != "" || strings.Contains(stderr, "tree-") {
			t.Errorf("%q printed %q and %q", tt.args, stdout, stderr)
		}
	}
}
