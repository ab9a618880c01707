package rlm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/fanout"
)

// decompose creates the children of a task, all at once. family is what is there
// already, from the task that this one replaces; begun is false when that leaves
// nothing to create.
func (a *attempt) decompose(ctx context.Context, family []child) (begun bool, err error) {
	timed, stop := a.timed(ctx)
	defer stop()
	if over := a.outOfTime(timed); over != nil {
		return false, over
	}
	nodes := lacking(a.below(), family)
	if len(nodes) == 0 {
		return false, nil
	}
	if a.l.Task.Parent == 0 && a.run.models[1].ranked && a.run.reader != nil { // once, before its parts are
		if _, err := a.e.indexOf(timed, a.run); err != nil {
			return false, a.interrupted(timed, err)
		}
	}
	return true, a.spawn(ctx, nodes, nil)
}

// lacking returns the nodes that no task of the family has completed.
func lacking(nodes []*node, family []child) []*node {
	known := make(map[partKey]child, len(family))
	for _, c := range family {
		known[c.node.key()] = c
	}
	var out []*node
	for _, n := range nodes {
		c, there := known[n.key()]
		if there && c.State == perdure.Completed {
			continue
		}
		if there {
			n.Replaces = c.ID
		}
		out = append(out, n)
	}
	return out
}

// below returns the children that the plan gives this task.
func (a *attempt) below() []*node {
	n := a.node
	if n.Samples > 0 {
		return n.samples()
	}
	if n.Step != nil {
		return n.spread(n.Chunks, 0, a.run.cfg.MaxChildren)
	}
	if len(n.Files) == 0 {
		return n.spread(n.Chunks, n.First, a.run.cfg.MaxChildren)
	}
	files := a.run.reader.Manifest().Files
	nodes := make([]*node, len(n.Files))
	at := 0
	for i, count := range n.Files {
		nodes[i] = &node{Version: planVersion, Total: count, File: files[i].Name, Whole: true,
			Chunks: n.Chunks[at : at+count], merge: a.run.cfg.FileMerge}
		at += count
	}
	return nodes
}

// spread distributes parts over at most limit children, evenly, with as few levels
// below as possible.
func (n *node) spread(parts chunks, first, limit int) []*node {
	sizes := fanout.Sizes(len(parts), limit)
	nodes := make([]*node, len(sizes))
	at := 0
	for i, size := range sizes {
		nodes[i] = &node{Version: planVersion, First: first + at, Total: n.Total, File: n.File, Chunks: parts[at : at+size],
			Overlap: n.overlapAt(parts, at)}
		if n.Divided > 0 {
			nodes[i].Divided, nodes[i].Head, nodes[i].Draw, nodes[i].merge = n.Divided, n.Head, n.Draw, n.merge
		}
		at += size
	}
	return nodes
}

// overlapAt returns the bytes of a part that the part before it has too.
func (n *node) overlapAt(parts chunks, at int) int64 {
	if at == 0 {
		return n.Overlap
	}
	return min(max(parts[at-1].End()-parts[at].Off, 0), parts[at].Length)
}

// spawn creates children and waits for them. work is their planned work, nil if it is part of
// that of a task above.
func (a *attempt) spawn(ctx context.Context, nodes []*node, work *perdure.Work) error {
	specs := make([]perdure.TaskSpec, len(nodes))
	for i, n := range nodes {
		spec, err := a.spec(n)
		if err != nil {
			return err
		}
		if n.Replaces != 0 {
			spec.Work = &perdure.Work{Levels: []perdure.WorkLevel{{Tasks: 1, Calls: 1}}}
		}
		specs[i] = spec
	}
	if work != nil {
		specs[0].Work = work
	}
	_, err := a.l.Spawn(ctx, specs)
	return err
}

// spec is the record of a child. One with a single part becomes a leaf: its
// part is its context reference.
func (a *attempt) spec(n *node) (perdure.TaskSpec, error) {
	cfg, root := &a.run.cfg, &a.run.root
	ref := perdure.ContextRef{Type: "slice", Source: root.Context.Source, Hash: root.Context.Hash}
	count := len(n.Chunks)
	if n.Sample {
		ref = root.Context
	} else if count > 0 {
		ref.Offset = n.Chunks[0].Off
		ref.Length = n.Chunks[count-1].End() - ref.Offset
		ref.SizeTokens = model.EstimateTokens(int(ref.Length))
	}
	title := n.title(cmp.Or(a.of, root.Prompt), count)
	switch {
	case n.Step != nil:
		title, ref = n.prompt, a.stepRef(n, ref)
	case n.Reduce != nil:
		ref = perdure.ContextRef{}
	case a.node.Step != nil:
		title = n.title(a.l.Task.Prompt, count)
		n.Of, n.Level = a.l.Task.ID, a.node.Level
	default:
		n.Of, n.Level = a.node.Of, a.node.Level
	}
	if count <= 1 {
		n.Chunks = nil
	}
	raw, err := encode("plan", metadata{n})
	if err != nil {
		return perdure.TaskSpec{}, err
	}
	return perdure.TaskSpec{
		Prompt: title, MaxAttempts: cfg.MaxAttempts, Priority: a.l.Task.Priority,
		Strategy: cfg.storeStrategy(), Policy: cfg.Policy, Merge: cmp.Or(n.merge, a.l.Task.Merge), Context: ref,
		Metadata: raw,
		Agent:    cmp.Or(n.agent, a.l.Task.Agent),
	}, nil
}

// child is a child task with its plan.
type child struct {
	*perdure.Task
	node *node
}

// partKey identifies a child among the children of one task.
type partKey struct {
	file         string
	first, level int
}

func (n *node) key() partKey {
	k := partKey{file: n.File, first: n.First}
	if n.Reduce != nil {
		k.level = n.Reduce.Level
	}
	return k
}

// task reads a task and its plan.
func (a *attempt) task(ctx context.Context, id perdure.TaskID) (child, error) {
	t, err := a.e.cfg.Store.Task(ctx, id)
	if err != nil {
		return child{}, err
	}
	n, err := nodeOf(&t)
	return child{&t, n}, err
}

// familyOf reads the children of a task and returns its family.
func (a *attempt) familyOf(ctx context.Context, parent child) ([]child, error) {
	children, err := a.children(ctx, parent.ID)
	if err != nil {
		return nil, err
	}
	return a.family(ctx, children, parent.node)
}

// family returns one child for each part of a task, in the order of the parts.
// Those of the tasks that it replaces are among them.
func (a *attempt) family(ctx context.Context, children []perdure.Task, n *node) ([]child, error) {
	for at := n; at.Replaces != 0; {
		old, err := a.task(ctx, at.Replaces)
		if err != nil {
			return nil, err
		}
		older, err := a.children(ctx, old.ID)
		if err != nil {
			return nil, err
		}
		children, at = append(older, children...), old.node
	}
	family, err := latest(children)
	if len(n.Files) == 0 { // the files of a batch are in the order of creation
		slices.SortStableFunc(family, func(x, y child) int { return cmp.Compare(x.node.First, y.node.First) })
	}
	return family, err
}

// latest returns one child for each part, in the order of their first creation:
// of those created for the same part the one that completed counts, else the
// last.
func latest(tasks []perdure.Task) ([]child, error) {
	at := make(map[partKey]int)
	var out []child
	for i := range tasks {
		n, err := nodeOf(&tasks[i])
		if err != nil {
			return nil, err
		}
		k, there := at[n.key()]
		switch {
		case !there:
			at[n.key()] = len(out)
			out = append(out, child{&tasks[i], n})
		case out[k].State != perdure.Completed:
			out[k] = child{&tasks[i], n}
		}
	}
	return out, nil
}

// merge makes the task's result of those of its children.
func (a *attempt) merge(ctx context.Context, family []child) error {
	children := tops(family)
	lost := lostOf(children)
	parts, err := partsOf(children)
	if err != nil {
		return err
	}
	skipped := len(children) - len(lost) - len(parts)
	if len(parts) == 0 && len(lost) == 0 && skipped > 0 {
		return a.nothingRan(ctx)
	}
	if a.hopeless(lost, parts) {
		return a.giveUp(lost, len(parts))
	}
	if begun, err := a.reduceFurther(ctx, family, children); begun || err != nil {
		return err
	}
	m, err := a.mergerOf(family, children, parts)
	if err != nil {
		return err
	}
	text, data, err := a.reduceToForm(ctx, m, parts)
	if err != nil {
		return err
	}
	if skipped > 0 {
		data.addNotes([]string{fmt.Sprintf("%d of %d tasks below task %q did not run: their conditions do not hold",
			skipped, len(children), a.l.Task.ID)})
	}
	data.addNotes(notBegun(family))
	if note := family[0].node.Note; note != "" {
		data.addNotes([]string{note})
	}
	data.addNotes(a.outOfOrder(children))
	if err := a.addLost(ctx, &data, lost); err != nil {
		return err
	}
	if len(a.node.Files) > 0 && a.run.shape != nil {
		if data.Structured, err = structuredFiles(parts); err != nil {
			return err
		}
	}
	if text, err = a.form(ctx, text, &data); err != nil {
		return err
	}
	return a.complete(ctx, text, &data)
}

// outOfOrder returns a note about the parts of an ordered tree that were answered before
// parts in front of them had a result, because these were taken up later.
func (a *attempt) outOfOrder(children []child) []string {
	var before time.Time
	early := 0
	for _, c := range children {
		if c.State != perdure.Completed || !a.run.cfg.ordered() {
			continue
		}
		if c.StartedAt.Before(before) {
			early++
		} else {
			before = c.CompletedAt
		}
	}
	if early == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d parts below task %q were answered without the results of parts before them, "+
		"which were missing then", early, len(children), a.l.Task.ID)}
}

// mergeOf is the merge for this task's children.
func (a *attempt) mergeOf(family []child) string {
	if p := planOf(family); p != nil {
		return p.Merge
	}
	if a.divided(family) {
		return cmp.Or(a.partsMerge(a.l.Task.Merge), a.run.cfg.defaultMerge())
	}
	return cmp.Or(a.l.Task.Merge, a.run.cfg.defaultMerge())
}

func (a *attempt) merger(merge string) *merger {
	n := a.node
	return &merger{prompt: a.query(), merge: merge, ranked: a.run.models[1].ranked, whole: n.Whole,
		level: !n.Whole && n.Step == nil, files: len(n.Files) > 0, marked: a.run.cfg.hasMarkedParts()}
}

// mergerOf is the merger for the results of children, of which parts are those that have one. It
// names the content of the parts.
func (a *attempt) mergerOf(family, children []child, parts []part) (m *merger, err error) {
	m = a.merger(a.mergeOf(family))
	m.kind = a.kindOf(a.node, a.divided(family))
	if err = a.nameParts(parts, children); err == nil {
		m.missing, err = a.nameMissing(lostOf(children), parts)
	}
	return m, err
}

// hopeless reports whether there is nothing to merge, or must not be because of
// what is lost. When the budget is spent or the model answers nothing, the finished parts count under either
// policy.
func (a *attempt) hopeless(lost []child, parts []part) bool {
	if len(parts) == 0 {
		return true
	}
	if len(lost) == 0 || a.run.cfg.Policy == perdure.PolicyPartial {
		return false
	}
	return !slices.ContainsFunc(lost, func(c child) bool {
		return isFault(c) || c.Error != nil && c.Error.Kind == KindBudget
	})
}

// isFault reports whether a task failed because its model answers no request.
func isFault(c child) bool { return c.Error != nil && c.Error.Kind == KindFault }

// giveUp returns the failure of a task whose children left nothing to merge.
func (a *attempt) giveUp(lost []child, completed int) error {
	first := lost[max(slices.IndexFunc(lost, func(c child) bool { return c.State == perdure.Failed }), 0)]
	if i := slices.IndexFunc(lost, isFault); i >= 0 {
		first = lost[i]
	}
	kind, msg := KindChildren, string(first.State)
	if first.Error != nil {
		msg = first.Error.Message
		if first.State == perdure.Failed {
			kind = first.Error.Kind
		}
	}
	switch {
	case completed == 0 && kind == KindFault:
		return failf(kind, "%s", msg) // all parts have the same
	case completed == 0:
		return failf(kind, "none of %s has a result; task %q: %s", human.Count(len(lost), "part"), first.ID, msg)
	}
	return failf(kind, "the policy is fail, and %d of %d parts have no result; task %q: %s",
		len(lost), completed+len(lost), first.ID, msg)
}

// addLost lists the parts without a result.
func (a *attempt) addLost(ctx context.Context, d *Data, lost []child) error {
	for _, c := range lost {
		missing, more, err := a.missing(ctx, c.Task)
		if err != nil {
			return err
		}
		d.addMissing(missing, more)
	}
	return nil
}

// missing lists the leaves without a result at and below a task that has none.
func (a *attempt) missing(ctx context.Context, t *perdure.Task) (list []Missing, more int, err error) {
	children, err := a.children(ctx, t.ID)
	if err != nil {
		return nil, 0, err
	}
	if len(children) == 0 {
		return []Missing{{Task: t.ID, Prompt: clip.Bytes(t.Prompt, shownPrompt), Error: lastError(t)}}, 0, nil
	}
	var d Data
	for i := range children {
		if children[i].State == perdure.Completed {
			continue
		}
		list, more, err := a.missing(ctx, &children[i])
		if err != nil {
			return nil, 0, err
		}
		d.addMissing(list, more)
	}
	if !d.partial() { // the parts are there, but were not merged
		d.addMissing([]Missing{{Task: t.ID, Prompt: t.Prompt, Error: lastError(t)}}, 0)
	}
	return d.Missing, d.MoreMissing, nil
}

func lastError(t *perdure.Task) string {
	if t.Error == nil {
		return string(t.State)
	}
	if t.Error.Message == "" { // cancelled without a reason
		return t.Error.Kind
	}
	return clip.Bytes(fmt.Sprintf("%s: %s", t.Error.Kind, t.Error.Message), shownPrompt)
}
