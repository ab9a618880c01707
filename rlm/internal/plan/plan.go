// Package plan reads the plans that models make of a task: sub-tasks with their
// dependencies and conditions.
package plan

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
	"github.com/perdure/perdure/rlm/internal/jsonreply"
)

// Schema is what the plans of models look like.
//
//go:embed plan_schema.json
var Schema []byte

// Strategies that decide after which others a task runs, and the merge where a
// plan names none.
const (
	Parallel     = "parallel"
	Sequential   = "sequential"
	DefaultMerge = "merge"
)

const (
	// maxPlanBytes bounds a plan: it is stored in the metadata of a task.
	maxPlanBytes = 256 << 10
	// maxPlanProblems bounds the reported problems of a plan.
	maxPlanProblems = 20
	// maxPatterns bounds the names and patterns of a task.
	maxPatterns = 100
)

// Plan is how a model breaks a task down. Its tasks are in an order in which
// each comes after those it depends on.
type Plan struct {
	Reason   string `json:"reason,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Merge    string `json:"merge,omitempty"`
	Tasks    []Task `json:"tasks"`
}

// Task is one sub-task of a plan.
type Task struct {
	ID     string `json:"id,omitempty"`
	Prompt string `json:"prompt"`
	// Files are names and patterns; nil means all files.
	Files     []string `json:"files"`
	DependsOn []string `json:"depends_on,omitempty"`
	When      string   `json:"when,omitempty"`
	Agent     string   `json:"agent,omitempty"`
	Decompose bool     `json:"decompose,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

// Rules are the requirements for a plan in addition to its schema.
type Rules struct {
	// Shape is Schema, compiled.
	Shape *jsonreply.Shape
	// Strategy and Merge, when set, are fixed by the configuration of the run.
	// Merges and Agents are the names that exist.
	Strategy string
	Merge    string
	Merges   []string
	// DefaultMerge, if it is not empty, is used instead of [DefaultMerge].
	DefaultMerge string
	Agents       []string
	// Children and Nodes are how many sub-tasks there may be.
	Children int
	Nodes    int64
	// Deeper reports whether sub-tasks may be divided again.
	Deeper bool
	// Files are the names of the files of the context.
	Files []string
	// PromptTokens is the longest prompt of a sub-task.
	PromptTokens int64
	// Direct says why the task cannot be answered without sub-tasks; "" when it
	// can.
	Direct string
}

// Parse reads a plan from a reply. The problems are sentences for the model,
// each with its place.
func (r *Rules) Parse(reply string) (*Plan, []string) {
	raw, problems := r.Shape.Check(reply)
	if len(problems) > 0 {
		return nil, problems
	}
	if len(raw) > maxPlanBytes {
		return nil, []string{fmt.Sprintf("the plan has %d bytes, the limit is %d", len(raw), maxPlanBytes)}
	}
	p := new(Plan)
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, []string{"the plan cannot be read: " + err.Error()}
	}
	c := check{Rules: r, plan: p}
	c.all()
	return p, c.problems
}

// check is the check of one plan.
type check struct {
	*Rules
	plan     *Plan
	problems []string
	more     int
}

func (c *check) bad(format string, args ...any) {
	if len(c.problems) < maxPlanProblems {
		c.problems = append(c.problems, clip.Bytes(fmt.Sprintf(format, args...), jsonreply.MaxProblemBytes))
		return
	}
	c.more++
}

func (c *check) all() {
	p := c.plan
	p.Strategy = cmp.Or(c.Strategy, p.Strategy, Parallel)
	p.Merge = cmp.Or(c.Merge, p.Merge, c.DefaultMerge, DefaultMerge)
	if !slices.Contains(c.Merges, p.Merge) {
		c.bad("/merge: %s", dedupe.NotOneOf(p.Merge, c.Merges))
	}
	switch n := len(p.Tasks); {
	case n == 0 && c.Direct != "":
		c.bad("/tasks: there are none, and %s", c.Direct)
	case n > c.Children:
		c.bad("/tasks: %d are more than the %d that are allowed; join some, and set decompose where one is large", n,
			c.Children)
		return
	case int64(n) > c.Nodes:
		c.bad("/tasks: %d are more than the %d that the limit of the whole tree leaves", n, c.Nodes)
		return
	}
	c.names()
	for i := range p.Tasks {
		c.task(i)
	}
	if len(c.problems) == 0 {
		c.order()
	}
	if len(c.problems) == 0 {
		c.conditions()
	}
	if c.more > 0 {
		c.problems = append(c.problems, fmt.Sprintf("and %d more", c.more))
	}
}

// names gives tasks without a name one, and refuses names twice.
func (c *check) names() {
	seen := make(map[string]int)
	conditions := slices.ContainsFunc(c.plan.Tasks, func(t Task) bool { return t.When != "" })
	for i := range c.plan.Tasks {
		t := &c.plan.Tasks[i]
		if t.ID == "" {
			t.ID = fmt.Sprintf("task_%d", i+1)
		} else if fault := nameable(t.ID); fault != "" {
			c.bad("/tasks/%d/id: %s", i, fault)
		} else if fault := askable(t.ID); fault != "" && conditions {
			c.bad("/tasks/%d/id: %s", i, fault)
		}
		if first, there := seen[t.ID]; there {
			c.bad("/tasks/%d/id: %q is the name of /tasks/%d too", i, t.ID, first)
			continue
		}
		seen[t.ID] = i
	}
}

// task checks one task without the others.
func (c *check) task(i int) {
	t := &c.plan.Tasks[i]
	if strings.TrimSpace(t.Prompt) == "" {
		c.bad("/tasks/%d/prompt: it is empty", i)
	}
	if n := model.EstimateTokens(len(t.Prompt)); n > c.PromptTokens {
		c.bad("/tasks/%d/prompt: about %d tokens are more than the %d that fit; name files instead of copying text", i, n,
			c.PromptTokens)
	}
	if strings.ContainsRune(t.Prompt, 0) {
		c.bad("/tasks/%d/prompt: it contains a NUL character", i)
	}
	if t.Agent != "" && !slices.Contains(c.Agents, t.Agent) {
		c.bad("/tasks/%d/agent: %s", i, dedupe.NotOneOf(t.Agent, c.Agents))
	}
	if len(c.problems) >= maxPlanProblems { // looking for the nearest name takes its time
		c.more++
		return
	}
	if t.Decompose && !c.Deeper {
		t.Decompose = false // at the depth limit it is answered directly
	}
	if len(t.Files) > maxPatterns {
		c.bad("/tasks/%d/files: %d are more than %d; use patterns", i, len(t.Files), maxPatterns)
		return
	}
	for k, name := range t.Files {
		if len(Match(c.Files, name)) == 0 {
			c.bad("/tasks/%d/files/%d: %s", i, k, dedupe.NotOneOf(name, c.Files))
		}
	}
	for k, on := range t.DependsOn {
		if !slices.ContainsFunc(c.plan.Tasks, func(o Task) bool { return o.ID == on }) {
			c.bad("/tasks/%d/depends_on/%d: %s", i, k, dedupe.NotOneOf(on, idsOf(c.plan.Tasks)))
		}
	}
}

func idsOf(tasks []Task) []string {
	ids := make([]string, len(tasks))
	for i := range ids {
		ids[i] = tasks[i].ID
	}
	return ids
}

// order sorts the tasks so that each comes after those it depends on, and else
// as they were written. What remains is a cycle.
func (c *check) order() {
	left := slices.Clone(c.plan.Tasks)
	sorted := make([]Task, 0, len(left))
	done := make(map[string]bool)
	for len(left) > 0 {
		ready := slices.IndexFunc(left, func(t Task) bool {
			return !slices.ContainsFunc(t.DependsOn, func(on string) bool { return !done[on] })
		})
		if ready < 0 {
			c.bad("/tasks: these depend on each other in a circle: %s", strings.Join(circle(left), " -> "))
			return
		}
		done[left[ready].ID] = true
		sorted = append(sorted, left[ready])
		left = slices.Delete(left, ready, ready+1)
	}
	c.plan.Tasks = sorted
}

// circle returns the names along one circle among tasks of which each depends on
// another.
func circle(tasks []Task) []string {
	next := make(map[string]string, len(tasks))
	for _, t := range tasks {
		for _, on := range t.DependsOn {
			if slices.ContainsFunc(tasks, func(o Task) bool { return o.ID == on }) {
				next[t.ID] = on
			}
		}
	}
	var path []string
	for at := tasks[0].ID; ; at = next[at] {
		if i := slices.Index(path, at); i >= 0 {
			return append(path[i:], at)
		}
		path = append(path, at)
	}
}

// conditions compiles the conditions: each may ask about the tasks before it.
func (c *check) conditions() {
	for i, t := range c.plan.Tasks {
		if t.When == "" {
			continue
		}
		if _, err := Compile(t.When, idsOf(c.plan.Tasks[:i])); err != nil {
			c.bad("condition of task %q: %s", t.ID, err)
		}
	}
}

// Waits are the names of the tasks after which a task of a plan runs.
func (p *Plan) Waits(i int) []string {
	t := &p.Tasks[i]
	if p.Strategy == Sequential || t.When != "" {
		return idsOf(p.Tasks[:i])
	}
	return t.DependsOn
}

// Sees are the names of the tasks whose results a task is shown.
func (p *Plan) Sees(i int) []string {
	if t := &p.Tasks[i]; len(t.DependsOn) > 0 {
		return t.DependsOn
	}
	return p.Waits(i)
}

// Match returns the numbers of the names that a name or pattern fits.
func Match(names []string, pattern string) []int {
	if i := slices.Index(names, pattern); i >= 0 {
		return []int{i}
	}
	var out []int
	if !doublestar.ValidatePattern(pattern) {
		return nil
	}
	for i, name := range names {
		if doublestar.MatchUnvalidated(pattern, name) {
			out = append(out, i)
		}
	}
	return out
}
