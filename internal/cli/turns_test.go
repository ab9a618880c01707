package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/view/graph"
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

// In a graph each turn is a box between the task and its sub-calls.
func TestGraphOfTurns(t *testing.T) {
	t.Parallel()
	s, _ := screen(70)
	var nodes []*node
	for _, task := range testTasks("ccfr") {
		nodes = append(nodes, newNode(rowOf(&task)))
	}
	nodes[0].turns = turnsOfARoot()
	g := treeView{depth: -1, s: s}.graph(grow(nodes)[0], -1)
	got, _, _ := strings.Cut(graph.Mermaid(g), "  classDef")
	same(t, got, `
flowchart LR
  t1["◌ task-0001 1.5s<br/>the root"]:::waiting
  t1turn1["✗ turn 1 $0.0020<br/>n #61; len(cntext) #8594; NameError: name #39;cntext#39; is n…"]:::failed
  t1 --> t1turn1
  t1turn2["◌ turn 2 price unknown<br/>n #61; len(context) #8594; 1 sub-call, printed 4 B<br/>`+
		`answers #61; llm#95;query#95;batc… #8594; waiting, 2 sub-calls"]:::waiting
  t2["✓ task-0002 1.0s, $0.0010<br/>part 0"]:::completed
  t1turn2 --> t2
  t3["✓ task-0003 1.0s, $0.0010<br/>part 1"]:::completed
  t1turn2 --> t3
  t4["✗ task-0004 1.0s, $0.0010<br/>part 2<br/>timeout: no answer after 300s"]:::failed
  t1turn2 --> t4
  t1 --> t1turn2
  t1turn3["◌ turn 3<br/>the model is asked"]:::waiting
  t5["● task-0005 1.0s, $0.0010<br/>part 3"]:::running
  t1turn3 --> t5
  t1 --> t1turn3
`)
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
