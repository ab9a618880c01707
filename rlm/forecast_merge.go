package rlm

import (
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/summarize"
)

// merge counts the calls that make the result of a task from those of its children.
func (f *forecast) merge(a *attempt, family []child, replies map[perdure.TaskID]reply) (reply, error) {
	var chain int64
	for a.mapReduces(family) {
		nodes := a.reductions(family, tops(family))
		if len(nodes) == 0 {
			break
		}
		byID := make(map[perdure.TaskID]child, len(family))
		for _, c := range family {
			byID[c.ID] = c
		}
		var longest int64
		for _, n := range nodes {
			c, err := f.child(a, n)
			if err != nil {
				return reply{}, err
			}
			inputs := make([]child, len(n.Reduce.Inputs))
			for i, id := range n.Reduce.Inputs {
				inputs[i] = byID[id]
			}
			below := f.attempt(*c.Task, n)
			m := below.merger(below.mergeOf(nil))
			m.level, m.whole, m.files = true, false, len(a.node.Files) > 0
			m.kind = a.kindOf(a.node, false)
			r, err := f.reduce(below, m, inputs, replies)
			if err != nil {
				return reply{}, err
			}
			family, replies[c.ID] = append(family, c), r
			longest = max(longest, r.chain)
		}
		chain += longest
	}
	children := tops(family)
	m := a.merger(a.mergeOf(family))
	m.kind = a.kindOf(a.node, false)
	r, err := f.reduce(a, m, children, replies)
	plain := m.merge == MergeUnion || m.merge == MergeConcatenate
	forms := a.run.shape != nil && a.node.Whole && len(a.node.Files) == 0
	if err == nil && plain && forms && !a.formable(f.text(r.bytes)) {
		m.merge = MergeSummarize
		r, err = f.reduce(a, m, children, replies)
	}
	if err != nil {
		return reply{}, err
	}
	r.chain += chain
	return f.form(a, r), nil
}

// reduce counts the calls of a merge.
func (f *forecast) reduce(a *attempt, m *merger, children []child, replies map[perdure.TaskID]reply) (reply, error) {
	list := make([]reply, len(children))
	var sum, largest int
	for i, c := range children {
		list[i] = replies[c.ID]
		sum, largest = sum+list[i].bytes+len("\n\n"), max(largest, list[i].bytes)
	}
	switch {
	case strings.HasPrefix(m.merge, MergeProgram):
		return f.program(a, m, sum), nil
	case m.ranked && (m.level || a.run.model(&a.l.Task).ranked):
		return reply{bytes: rankedReply}, nil
	case m.merge == MergeSummarize:
		return f.summarize(a, m, children, list)
	case m.merge == MergeVote:
		return reply{bytes: largest, structured: all(list, func(r reply) bool { return r.structured })}, nil
	case m.merge == MergeBest:
		return f.best(a, m, children, list), nil
	case m.ranked && m.merge != MergeConcatenate:
		return reply{bytes: rankedReply}, nil
	}
	return reply{bytes: sum}, nil
}

// program counts the call of a program that merges.
func (f *forecast) program(a *attempt, m *merger, bytes int) reply {
	if a.l.Task.Parent != 0 && a.node.Reduce == nil {
		return reply{bytes: bytes}
	}
	f.count(a, &inquiry{m: a.run.merger, req: programRequest(m.prompt, f.text(bytes)), times: 1, sure: true})
	return reply{bytes: bytes, chain: 1}
}

func all(list []reply, has func(reply) bool) bool {
	return !slices.ContainsFunc(list, func(r reply) bool { return !has(r) })
}

// best counts the calls that score the candidates.
func (f *forecast) best(a *attempt, m *merger, children []child, list []reply) reply {
	out := reply{scored: true, structured: all(list, func(r reply) bool { return r.structured })}
	var scored int64
	for i, c := range children {
		out.bytes = max(out.bytes, list[i].bytes)
		if list[i].scored || len(children) < 2 {
			continue
		}
		p := &part{text: f.text(list[i].bytes), context: c.Context}
		scored += f.judge(a, &candidate{part: p, prompt: m.prompt,
			documents: func() ([]model.Document, error) { return a.documentsOf(p) }}, 1)
	}
	out.chain = (scored + reduceWidth - 1) / reduceWidth
	return out
}

// summarize counts the calls of a summary, in the levels of [summary.run].
func (f *forecast) summarize(a *attempt, m *merger, children []child, list []reply) (reply, error) {
	inputs := make([]summarize.Input, 0, len(list))
	var sum int
	for i, r := range list {
		sum += r.bytes + len("\n\n")
		if r.bytes == 0 {
			continue
		}
		in := summarize.Input{First: i + 1, Last: i + 1, Of: len(list), Text: f.text(r.bytes),
			File: clip.Bytes(children[i].node.File, maxInputFile)}
		if m.marked {
			var err error
			if in.Where, err = a.placeOf(&children[i]); err != nil {
				return reply{}, err
			}
		}
		inputs = append(inputs, in)
	}
	by := a.writer()
	room := a.run.cfg.reductionRoom(by, m.prompt)
	switch {
	case len(inputs) < 2, room < leastReductionRoom:
		return reply{bytes: sum, structured: len(list) == 1 && list[0].structured}, nil
	case !m.marked && m.level && summarize.Total(inputs) <= room/int64(a.run.cfg.MaxChildren):
		return reply{bytes: sum}, nil
	}
	s := &summary{a: a, m: m, by: by}
	var chain int64
	for limit := room; ; limit = room / 2 {
		for i := range inputs {
			inputs[i].Cut(limit, by.name)
		}
		groups := summarize.Group(inputs, room)
		if len(groups) == 1 {
			w := &writing{by: by, prompt: m.prompt + summarize.Render(groups[0])}
			r := f.gated(a, w, &inquiry{m: by, req: s.request(groups[0], false), times: 1}, !m.files)
			r.chain += chain
			return r, nil
		}
		var calls int64
		var next []summarize.Input
		for _, g := range groups {
			if !summarize.Shortens(g, room) {
				next = append(next, g...)
				continue
			}
			req := s.request(g, true)
			f.count(a, &inquiry{m: by, req: req, times: 1})
			calls++
			first, last := g[0], g[len(g)-1]
			next = append(next, summarize.Input{First: first.First, Last: last.Last, Of: first.Of,
				Text: f.text(answerBytes(a, req))})
		}
		inputs, chain = next, chain+(calls+reduceWidth-1)/reduceWidth
	}
}

// form counts the call that makes a result structured.
func (f *forecast) form(a *attempt, r reply) reply {
	if a.run.shape == nil || !a.node.Whole || r.structured || len(a.node.Files) > 0 {
		return r
	}
	req := a.formRequest(f.text(r.bytes))
	a.run.shaped(req)
	f.count(a, &inquiry{m: a.writer(), req: req, times: 1})
	r.structured, r.bytes = true, answerBytes(a, req)
	r.chain++
	return r
}
