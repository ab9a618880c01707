package rlm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm/internal/fanout"
	"github.com/perdure/perdure/rlm/internal/plan"
)

// step is the part of a plan that a planned task stores.
type step struct {
	// ID is the task's name in the plan.
	ID string `json:"id"`
	// Sees are the tasks of the plan whose results it is shown.
	Sees []string `json:"sees,omitempty"`
	// When is its condition, After are the tasks that this may ask about.
	When  string   `json:"when,omitempty"`
	After []string `json:"after,omitempty"`
}

// continuePlan continues a task whose sub-tasks come from a plan: it asks for
// the plan, creates the sub-tasks whose time has come, or merges. family is one
// child for each sub-task that was created.
func (a *attempt) continuePlan(ctx context.Context, own []perdure.Task, family []child) error {
	if len(family) == 0 {
		return a.plan(ctx)
	}
	p := planOf(family)
	if p == nil {
		return failf(KindPlan, "read plan of task %q: it is not with its children", a.l.Task.ID)
	}
	if len(own) > 0 && a.run.cfg.Policy == perdure.PolicyFail &&
		slices.ContainsFunc(family, func(c child) bool { return c.State != perdure.Completed }) {
		return a.merge(ctx, family)
	}
	return a.follow(ctx, p, family)
}

// planOf returns the plan that children carry.
func planOf(family []child) *plan.Plan {
	for _, c := range family {
		if c.node.Plan != nil {
			return c.node.Plan
		}
	}
	return nil
}

// notBegun returns the tasks of a plan that were never created, because one before
// them was lost.
func notBegun(family []child) []string {
	p := planOf(family)
	if p == nil {
		return nil
	}
	var ids []string
	for i, t := range p.Tasks {
		if !slices.ContainsFunc(family, func(c child) bool { return c.node.Step != nil && c.node.First == i }) {
			ids = append(ids, t.ID)
		}
	}
	switch len(ids) {
	case 0:
		return nil
	case 1:
		return []string{"1 task of the plan was not begun: " + ids[0]}
	}
	return []string{fmt.Sprintf("%d tasks of the plan were not begun: %s", len(ids), strings.Join(ids, ", "))}
}

// follow creates the sub-tasks of a plan whose time has come. When there is none
// left it merges.
func (a *attempt) follow(ctx context.Context, p *plan.Plan, family []child) error {
	known := make(map[int]child, len(family))
	for _, c := range family {
		if c.node.Reduce == nil {
			known[c.node.First] = c
		}
	}
	ended := make(map[string]bool, len(p.Tasks))
	for i, c := range known {
		ended[p.Tasks[i].ID] = c.State == perdure.Completed || c.Parent == a.l.Task.ID
	}
	var nodes []*node
	for i, t := range p.Tasks {
		if ended[t.ID] || slices.ContainsFunc(p.Waits(i), func(id string) bool { return !ended[id] }) {
			continue
		}
		n, err := a.stepNode(p, i)
		if err != nil {
			return err
		}
		if before, there := known[i]; there {
			n.Replaces = before.ID
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return a.merge(ctx, family)
	}
	var work *perdure.Work
	if !slices.ContainsFunc(family, func(c child) bool { return c.Parent == a.l.Task.ID }) {
		var err error
		nodes[0].Plan = p
		if work, err = a.planWork(p); err != nil {
			return err
		}
	}
	return a.spawn(ctx, nodes, work)
}

// stepNode is the plan of one sub-task: what it reads, and whether that has to
// be split.
func (a *attempt) stepNode(p *plan.Plan, i int) (*node, error) {
	t := &p.Tasks[i]
	n := &node{Version: planVersion, First: i, Total: 1, Level: a.node.Level + 1, prompt: t.Prompt, agent: t.Agent,
		Step:  &step{ID: t.ID, Sees: p.Sees(i), When: t.When},
		merge: a.run.cfg.stepMerge(p.Merge),
		Plans: t.Decompose && a.node.Level+1 < *a.run.cfg.MaxDepth}
	if t.When != "" {
		n.Step.After = p.Waits(i)
	}
	if a.run.reader == nil {
		return n, nil
	}
	n.Read = a.readsOf(t.Files)
	if n.Plans || len(n.Read) == 0 {
		return n, nil
	}
	to := a.planning()
	to.req = &LaunchRequest{Prompt: t.Prompt}
	if agent := a.run.agents[t.Agent]; agent != nil {
		to.models[1] = agent
	}
	r, err := to.roomOf(to.models[1], true)
	if err != nil {
		return nil, &attemptError{kind: KindPlan, err: fmt.Errorf("plan task %q: %w", t.ID, err)}
	}
	if len(n.Step.Sees) > 0 {
		r.text -= r.window / earlierShare
	}
	if to.tokensOf(n.Read) <= r.text {
		return n, nil
	}
	n.Chunks, err = a.cutRanges(to, n.Read, r)
	n.Read, n.Total = nil, len(n.Chunks)
	return n, err
}

// stepMerge is how the parts of one sub-task become its result when its text has
// to be split: answers about different parts are not votes.
func (c *Config) stepMerge(merge string) string {
	if merge == MergeVote || merge == MergeBest {
		return c.defaultMerge()
	}
	return merge
}

// stepRef is the context reference of a planned task.
func (a *attempt) stepRef(n *node, whole perdure.ContextRef) perdure.ContextRef {
	read := n.Read
	if len(n.Chunks) > 0 {
		read = n.Chunks
	}
	ref := perdure.ContextRef{Source: whole.Source, Hash: whole.Hash, Type: "slice"}
	switch {
	case len(read) == 0:
		return perdure.ContextRef{}
	case len(read) > 1 && len(n.Chunks) == 0:
		ref.Type = "filtered"
	default:
		n.Read = nil
	}
	ref.Offset, ref.Length = read[0].Off, read[len(read)-1].End()-read[0].Off
	ref.SizeTokens = a.planning().tokensOf(read)
	return ref
}

// cutRanges splits ranges of the context into parts that fit. The whole context
// is cut once for all sub-tasks that have the same room.
func (a *attempt) cutRanges(p *planning, read chunks, r room) (chunks, error) {
	var frame int64
	files := p.files(read)
	for _, f := range files {
		frame = max(frame, int64(len(f.Name)+documentBytes)/bytesPerToken+1)
	}
	size := min(r.text-frame, DefaultChunkTokens)
	if p.cfg.ChunkTokens > 0 {
		size = min(size, int64(p.cfg.ChunkTokens))
	}
	if size < minRoomTokens {
		return nil, failf(KindPlan, "there is room for %d tokens of text next to prompt and answer", max(size, 0))
	}
	if a.cuts[size] == nil {
		parts, err := p.cut(size, fanout.Chunk{})
		if err != nil {
			return nil, err
		}
		a.cuts[size] = parts
	}
	var out chunks
	for _, part := range a.cuts[size] {
		out = append(out, overlap(part, files)...)
	}
	return out, nil
}

// overlap returns what of a part lies in files, each run of neighbouring files as
// one range.
func overlap(part fanout.Chunk, files []pack.File) chunks {
	var out chunks
	for _, f := range files {
		from, to := max(part.Off, f.Offset), min(part.End(), f.End())
		if from >= to {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].End() == from {
			out[last].Length += to - from
			continue
		}
		out = append(out, fanout.Chunk{Off: from, Length: to - from})
	}
	return out
}

// readsOf returns the ranges of the task's context that names and patterns
// stand for; nil names stand for all.
func (a *attempt) readsOf(patterns []string) chunks {
	if patterns == nil {
		return a.reads()
	}
	files := a.planning().files(a.reads())
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	chosen := make([]bool, len(files))
	for _, pattern := range patterns {
		for _, i := range plan.Match(names, pattern) {
			chosen[i] = true
		}
	}
	var out chunks
	for i, f := range files {
		if !chosen[i] {
			continue
		}
		for _, c := range a.reads() {
			out = append(out, overlap(c, []pack.File{f})...)
		}
	}
	return out.Joined()
}

// reads are the ranges of the context that the task is about.
func (a *attempt) reads() chunks {
	if len(a.node.Read) > 0 {
		return a.node.Read
	}
	if ref := a.l.Task.Context; a.run.reader != nil && ref.Length > 0 {
		return chunks{{Off: ref.Offset, Length: ref.Length}}
	}
	return nil
}

// siblings returns one child for each sub-task of the plan that this task is
// part of.
func (a *attempt) siblings(ctx context.Context) ([]child, error) {
	parent, err := a.task(ctx, a.l.Task.Parent)
	if err != nil {
		return nil, err
	}
	return a.familyOf(ctx, parent)
}

// seen is the section of a planned task's prompt with the results that it
// depends on. When they are too long, each is cut to its share.
func (a *attempt) seen(ctx context.Context) (string, error) {
	s := a.node.Step
	if s == nil || len(s.Sees) == 0 {
		return "", nil
	}
	family, err := a.siblings(ctx)
	if err != nil {
		return "", err
	}
	share := 4 * int(a.run.plan.Window) / earlierShare / len(s.Sees)
	var b strings.Builder
	b.WriteString("\n\n=== results so far ===\n")
	for i := range family {
		c := &family[i]
		if c.node.Step == nil || !slices.Contains(s.Sees, c.node.Step.ID) {
			continue
		}
		o, err := outcomeOf(c)
		if err != nil {
			return "", err
		}
		text := clip.Bytes(strings.TrimRight(o.Text, "\n"), max(share-resultHeader-len(o.ID), 0))
		if o.State != string(perdure.Completed) {
			text = fmt.Sprintf("(no result: %s)", strings.TrimSpace(o.State+" "+clip.Bytes(o.Error, 200)))
		}
		fmt.Fprintf(&b, "\n--- result of %q ---\n%s\n", o.ID, text)
	}
	b.WriteString("\n=== end of results so far ===\n")
	return b.String(), nil
}
