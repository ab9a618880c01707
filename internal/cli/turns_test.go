package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// turnsOfARoot are the turns of a root with four sub-calls.
func turnsOfARoot() []rlm.Turn {
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []rlm.Turn{
		{Turn: 1, State: perdure.Failed, Usage: perdure.Usage{Calls: 1, CostUSD: 0.002}, Blocks: []rlm.TurnBlock{
			{State: perdure.Failed, Code: "n = len(cntext)", EndedAt: &end,
				Failure: "NameError: name 'cntext' is not defined"}}},
		{Turn: 2, State: perdure.Waiting, SubCalls: 3, Usage: perdure.Usage{Calls: 4, UnpricedCalls: 1},
			Blocks: []rlm.TurnBlock{
				{State: perdure.Completed, Code: "n = len(context)", OutputBytes: 4, SubCalls: 1, EndedAt: &end},
				{State: perdure.Waiting, Code: "answers = llm_query_batched(prompts)", SubCalls: 2}}},
		{Turn: 3, State: perdure.Waiting},
	}
}

// The turns of a REPL are drawn each with its sub-calls; what no turn counts is below the last.
func TestTreeViewOfTurns(t *testing.T) {
	t.Parallel()
	s, b := screen(70)
	v := treeView{depth: -1, s: s}
	var nodes []*node
	for _, task := range testTasks("ccfr") {
		nodes = append(nodes, newNode(rowOf(&task)))
	}
	nodes[0].turns = turnsOfARoot()
	root := grow(nodes)[0]
	v.draw(root)
	same(t, b.String(), `
◌ task-0001  the root  1.5s
├─ ✗ turn 1   n = len(cntext) → NameError: name 'cntext' is …  $0.0020
├─ ◌ turn 2   n = len(contex… → 1 sub-call, printed 4 B  price unknown
│  ◌          answers = llm_query_batched(prom… → waiting, 2 sub-calls
│  ├─ ✓ task-0002  part 0  1.0s, $0.0010
│  ├─ ✓ task-0003  part 1  1.0s, $0.0010
│  └─ ✗ task-0004  part 2  1.0s, $0.0010
│       timeout: no answer after 300s
└─ ◌ turn 3   the model is asked
   └─ ● task-0005  part 3  1.0s, $0.0010
`)
	b.Reset()
	v.depth = 0
	v.draw(root)
	same(t, b.String(), "\n◌ task-0001  the root  1.5s\n└─ … 4 tasks below\n")
}

// A task has its turns in JSON as one more member.
func TestTurnsInJSON(t *testing.T) {
	t.Parallel()
	task := testTasks("")[0]
	plain, err := json.Marshal(taskWithTurns{&task, nil})
	if err != nil || strings.Contains(string(plain), "turns") {
		t.Errorf("without turns: %s, %v", plain, err)
	}
	raw, err := json.Marshal(taskWithTurns{&task, turnsOfARoot()})
	var got struct {
		ID    string     `json:"id"`
		Turns []rlm.Turn `json:"turns"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &got)
	}
	if err != nil || got.ID != "task-0001" || len(got.Turns) != 3 || got.Turns[1].SubCalls != 3 {
		t.Errorf("with turns: %s, %v", raw, err)
	}
}
