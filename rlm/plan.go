package rlm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// planSchema is what the plans of models look like.
//
//go:embed plan_schema.json
var planSchema []byte

const (
	// maxPlanBytes bounds a plan: it stands in the metadata of a task.
	maxPlanBytes = 256 << 10
	// maxPlanProblems bounds what is told of a plan.
	maxPlanProblems = 20
)

// plan is how a model breaks a task down. Its tasks are in an order in which
// each comes after those it depends on.
type plan struct {
	Reason   string           `json:"reason,omitempty"`
	Strategy perdure.Strategy `json:"strategy,omitempty"`
	Merge    string           `json:"merge,omitempty"`
	Tasks    []planTask       `json:"tasks"`
}

// planTask is one sub-task of a plan.
type planTask struct {
	ID     string `json:"id,omitempty"`
	Prompt string `json:"prompt"`
	// Files are names and patterns; nil stands for all files.
	Files     []string `json:"files"`
	DependsOn []string `json:"depends_on,omitempty"`
	When      string   `json:"when,omitempty"`
	Agent     string   `json:"agent,omitempty"`
	Decompose bool     `json:"decompose,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

// planRules is what a plan has to keep to, beside its schema.
type planRules struct {
	shape *shape
	// strategy and merge, when set, are fixed by who started the run.
	strategy perdure.Strategy
	merge    string
	merges   []string
	agents   []string
	// children and nodes are how many sub-tasks there may be.
	children int
	nodes    int64
	// deeper tells that sub-tasks may be planned in turn.
	deeper bool
	// files are the names of the files of the context.
	files []string
	// promptTokens is the longest prompt of a sub-task.
	promptTokens int64
	// direct says why the task cannot be answered without sub-tasks; "" when it
	// can.
	direct string
}

// parse reads a plan from a reply. The problems are sentences for the model,
// each with its place.
func (r *planRules) parse(reply string) (*plan, []string) {
	raw, problems := r.shape.check(reply)
	if len(problems) > 0 {
		return nil, problems
	}
	if len(raw) > maxPlanBytes {
		return nil, []string{fmt.Sprintf("the plan has %d bytes, the limit is %d", len(raw), maxPlanBytes)}
	}
	p := new(plan)
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, []string{"the plan cannot be read: " + err.Error()}
	}
	c := planCheck{planRules: r, plan: p}
	c.all()
	return p, c.problems
}

// planCheck is the check of one plan.
type planCheck struct {
	*planRules
	plan     *plan
	problems []string
	more     int
}

func (c *planCheck) bad(format string, args ...any) {
	if len(c.problems) < maxPlanProblems {
		c.problems = append(c.problems, shorten(fmt.Sprintf(format, args...), maxProblemBytes))
		return
	}
	c.more++
}

func (c *planCheck) all() {
	p := c.plan
	if c.strategy != "" {
		p.Strategy = c.strategy
	}
	setDefault(&p.Strategy, perdure.Parallel)
	if c.merge != "" {
		p.Merge = c.merge
	}
	setDefault(&p.Merge, MergeUnion)
	if !slices.Contains(c.merges, p.Merge) {
		c.bad("/merge: %s", notOneOf(p.Merge, c.merges))
	}
	switch n := len(p.Tasks); {
	case n == 0 && c.direct != "":
		c.bad("/tasks: there are none, and %s", c.direct)
	case n > c.children:
		c.bad("/tasks: %d are more than the %d that are allowed; join some, and set decompose where one is large", n, c.children)
		return
	case int64(n) > c.nodes:
		c.bad("/tasks: %d are more than the %d that the limit of the whole tree leaves", n, c.nodes)
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
func (c *planCheck) names() {
	seen := make(map[string]int)
	conditions := slices.ContainsFunc(c.plan.Tasks, func(t planTask) bool { return t.When != "" })
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

// task checks what can be said about a task by itself.
func (c *planCheck) task(i int) {
	t := &c.plan.Tasks[i]
	if strings.TrimSpace(t.Prompt) == "" {
		c.bad("/tasks/%d/prompt: it is empty", i)
	}
	if n := model.EstimateTokens(len(t.Prompt)); n > c.promptTokens {
		c.bad("/tasks/%d/prompt: about %d tokens are more than the %d that fit; name files instead of copying text", i, n, c.promptTokens)
	}
	if strings.ContainsRune(t.Prompt, 0) {
		c.bad("/tasks/%d/prompt: it holds a NUL character", i)
	}
	if t.Agent != "" && !slices.Contains(c.agents, t.Agent) {
		c.bad("/tasks/%d/agent: %s", i, notOneOf(t.Agent, c.agents))
	}
	if t.Decompose && !c.deeper {
		t.Decompose = false // at the depth limit it is answered directly
	}
	for k, name := range t.Files {
		if len(matchFiles(c.files, name)) == 0 {
			c.bad("/tasks/%d/files/%d: %s", i, k, notOneOf(name, c.files))
		}
	}
	for k, on := range t.DependsOn {
		if !slices.ContainsFunc(c.plan.Tasks, func(o planTask) bool { return o.ID == on }) {
			c.bad("/tasks/%d/depends_on/%d: %s", i, k, notOneOf(on, c.ids(len(c.plan.Tasks))))
		}
	}
}

// ids are the names of the first n tasks.
func (c *planCheck) ids(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = c.plan.Tasks[i].ID
	}
	return ids
}

// order sorts the tasks so that each comes after those it depends on, and else
// as they were written. What remains is a cycle.
func (c *planCheck) order() {
	left := slices.Clone(c.plan.Tasks)
	sorted := make([]planTask, 0, len(left))
	done := make(map[string]bool)
	for len(left) > 0 {
		ready := slices.IndexFunc(left, func(t planTask) bool {
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
func circle(tasks []planTask) []string {
	next := make(map[string]string, len(tasks))
	for _, t := range tasks {
		for _, on := range t.DependsOn {
			if slices.ContainsFunc(tasks, func(o planTask) bool { return o.ID == on }) {
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
func (c *planCheck) conditions() {
	for i, t := range c.plan.Tasks {
		if t.When == "" {
			continue
		}
		if _, err := compilePredicate(t.When, c.ids(i)); err != nil {
			c.bad("condition of task %q: %s", t.ID, err)
		}
	}
}

// waits tells whether a task of a plan runs only after others, and after which.
func (p *plan) waits(i int) []string {
	t := &p.Tasks[i]
	if p.Strategy == perdure.Sequential || t.When != "" {
		ids := make([]string, i)
		for k := range ids {
			ids[k] = p.Tasks[k].ID
		}
		return ids
	}
	return t.DependsOn
}

// sees are the names of the tasks whose results a task is shown.
func (p *plan) sees(i int) []string {
	if t := &p.Tasks[i]; len(t.DependsOn) > 0 {
		return t.DependsOn
	}
	return p.waits(i)
}

// notOneOf says that a word is none of some, and which was probably meant.
func notOneOf(word string, words []string) string {
	const shown = 20
	msg := fmt.Sprintf("%q is not one of %s", shorten(word, 60), strings.Join(words[:min(len(words), shown)], ", "))
	switch {
	case len(words) == 0:
		msg = fmt.Sprintf("%q is not there; there are none", shorten(word, 60))
	case len(words) > shown:
		msg += fmt.Sprintf(" and %d more", len(words)-shown)
	}
	if near := nearest(word, words); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return msg
}
