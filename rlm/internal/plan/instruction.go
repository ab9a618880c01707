package plan

import (
	"fmt"
	"strings"
)

// Limits are the limits stated in a request for a plan. They are stored in the
// journal: an interrupted attempt uses the same numbers, so that its request is
// the recorded one.
type Limits struct {
	Children int   `json:"children"`
	Deeper   bool  `json:"deeper,omitempty"`
	Nodes    int64 `json:"nodes"`
	// Tokens, Calls and Dollars are what is left of the budgets; nil without.
	Tokens  *int64   `json:"tokens,omitempty"`
	Calls   *int64   `json:"calls,omitempty"`
	Dollars *float64 `json:"usd,omitempty"`
	Window  int64    `json:"window"`
	Agents  []string `json:"agents,omitempty"`
	// Variables are named values, as they were when the model was asked.
	Variables []Variable `json:"variables,omitempty"`
}

// Instruction returns the system text of a request for a plan.
func (r *Rules) Instruction(t *Limits) string {
	var b strings.Builder
	b.WriteString("Do not answer the task yet: plan it. Reply with one JSON value that is valid against the JSON " +
		"Schema below, and with nothing else. Divide the task into sub-tasks only if that helps: if the files do not " +
		"fit into one request, if parts can run in parallel, or if steps build on each other. If the plan has no " +
		"sub-tasks, the next request asks you to answer directly.\n\n" +
		"A model answers each sub-task. It sees only the prompt of the sub-task, the files that the sub-task names and " +
		"the results of the tasks it depends on. A condition is one line over earlier results: ID.text, ID.state " +
		"(completed, skipped, failed), previous, results; for example: check.text contains \"yes\" and " +
		"len(results) > 1.\n\nLimits:\n")
	fmt.Fprintf(&b, "- at most %d sub-tasks in this plan; %d more tasks in the whole run\n", t.Children, t.Nodes)
	if t.Deeper {
		b.WriteString("- a sub-task that is still too large may be divided again: set decompose\n")
	} else {
		b.WriteString("- sub-tasks are answered directly; decompose has no effect\n")
	}
	fmt.Fprintf(&b, "- one request and its answer have about %d tokens; larger files are read in parts\n", t.Window)
	if t.Tokens != nil {
		fmt.Fprintf(&b, "- %d tokens are left for the whole run\n", *t.Tokens)
	}
	if t.Calls != nil {
		fmt.Fprintf(&b, "- %d calls are left for the whole run\n", *t.Calls)
	}
	if t.Dollars != nil {
		fmt.Fprintf(&b, "- %.4f US dollars are left for the whole run\n", *t.Dollars)
	}
	fmt.Fprintf(&b, "- merges: %s\n", strings.Join(r.Merges, ", "))
	if r.Strategy != "" {
		fmt.Fprintf(&b, "- the strategy is %s\n", r.Strategy)
	}
	if r.Merge != "" {
		fmt.Fprintf(&b, "- the merge is %s\n", r.Merge)
	}
	if len(r.Agents) > 0 {
		fmt.Fprintf(&b, "- agents: %s\n", strings.Join(r.Agents, ", "))
	}
	t.variables(&b)
	b.WriteString("\nJSON Schema:\n" + r.Shape.Text)
	return b.String()
}
