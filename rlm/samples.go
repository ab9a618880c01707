package rlm

import (
	"fmt"

	"github.com/perdure/perdure/model"
)

// sample gives the root one child for each sample of its prompt, if the work is not
// divided otherwise. A vote and best-of-n choose from these samples.
func (p *planning) sample(root *node) error {
	n := p.cfg.Samples
	if p.cfg.Planner == PlannerModel {
		if n > 1 {
			return invalid("samples: planner model chooses the sub-tasks itself", "leave out --samples, or --planner model")
		}
		return nil
	}
	if !root.leaf() {
		if n > 1 {
			return invalid("samples: the context has to be split into parts, and each part gets one request",
				"leave out --samples, or raise --context-window")
		}
		return nil
	}
	if n == 0 && (p.cfg.Merge == MergeVote || p.cfg.Merge == MergeBest) && *p.cfg.MaxDepth > 0 {
		n = DefaultSamples
	}
	if n <= 1 {
		return nil
	}
	if err := p.checkReduction(); err != nil {
		return err
	}
	switch {
	case *p.cfg.MaxDepth == 0:
		return invalid("samples: max_depth: 0 means a direct answer", "raise --max-depth")
	case int64(n)+1 > p.cfg.MaxNodes:
		return invalid(fmt.Sprintf("samples: %d make %d tasks, more than max_nodes, %d", n, n+1, p.cfg.MaxNodes),
			"raise --max-nodes")
	case p.models[1].ranked:
		return invalid(fmt.Sprintf("samples: %s answers the same each time", p.models[1].name), "choose another --model")
	}
	if p.reader != nil {
		r, err := p.roomOf(p.models[1], false)
		if err != nil {
			return err
		}
		if tokens, _ := p.renderedTokens(); tokens > r.text {
			return invalid(fmt.Sprintf("samples: the context has about %d tokens; next to prompt and answer model %q reads %d "+
				"at once",
				tokens, p.models[1].name, r.text), "use --sub-model with a larger window, or leave out --samples")
		}
		root.Window, root.Answer = r.window, r.answer
	}
	root.Samples = n
	return nil
}

// samples returns the children that ask the prompt of a node again.
func (n *node) samples() []*node {
	nodes := make([]*node, n.Samples)
	for i := range nodes {
		nodes[i] = &node{Version: planVersion, First: i, Total: n.Samples, Sample: true, Whole: true}
	}
	return nodes
}

// sampled makes requests of the same text different ones: none is answered by
// what a cache has of another, and where the run has a seed each has its own.
func (a *attempt) sampled(req *model.Request) {
	draw := a.draw()
	if draw == 0 {
		return
	}
	req.Sample = draw - 1
	if req.Seed != nil {
		own := *req.Seed + int64(draw-1)
		req.Seed = &own
	}
}

// draw is one more than the number of the sample that the task is or is below; 0
// without samples.
func (a *attempt) draw() int {
	if a.node.Sample {
		return a.node.First + 1
	}
	return a.node.Draw
}
