package tree

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// nodeKey is the member of a task's metadata with those members of its node in tree.json
// that an export would not write from the columns of the task.
const nodeKey = "tree_node"

// Members of a node that are objects, and the words that become columns.
const (
	nodeContext   = "context"
	nodeCost      = "cost"
	nodeTimes     = "timestamps"
	nodeResult    = "result"
	nodeStrategy  = "decomposition_strategy"
	nodeMerge     = "merge_strategy"
	nodeExecution = "execution_config"
)

// nodeTask reads a node of a tree.json as a task.
func (r *reader) nodeTask(g *tree, f *file, o *object) *task {
	t := &task{f: f, n: o.n, id: o.text("task_id"), node: o.text("node_id"), tree: g.id, fromNode: true, doc: o.n,
		meta: make(map[string]json.RawMessage)}
	o.what = t.what()
	r.readTask(o, t)
	r.taskMetadata(o, t)
	r.nodeTimes(o.sub(docNodePart, nodeTimes), t)
	r.nodeUsage(o.sub(docCost, nodeCost), t)
	r.nodeContext(o.sub(docContext, nodeContext), t)
	r.nodeResult(o, t)
	o.get("children")
	t.parent = cmp.Or(t.parent, o.text("parent_id"))
	t.unread = o.unread()
	return t
}

func (r *reader) nodeTimes(o *object, t *task) {
	t.CreatedAt = cmp.Or(o.time("created_at"), t.CreatedAt)
	t.StartedAt = cmp.Or(o.time("started_at"), t.StartedAt)
	t.CompletedAt = cmp.Or(o.time("completed_at"), t.CompletedAt)
	if o.has("duration_ms") {
		t.Active = time.Duration(min(o.number("duration_ms"), 1e12)*1000+0.5) * time.Microsecond
	} else if t.Active == 0 && !t.StartedAt.IsZero() && t.CompletedAt.After(t.StartedAt) {
		t.Active = t.CompletedAt.Sub(t.StartedAt)
	}
}

func (r *reader) nodeUsage(o *object, t *task) {
	if len(o.n.Members) == 0 {
		return
	}
	t.Usage = perdure.Usage{InputTokens: o.whole("input_tokens"), OutputTokens: o.whole("output_tokens"),
		CachedTokens: o.whole("cached_tokens"), Calls: o.whole("calls"), UnpricedCalls: o.whole("unpriced_calls"),
		CostUSD: o.dollars("total_cost_usd")}
}

func (r *reader) nodeContext(o *object, t *task) {
	if len(o.n.Members) > 0 {
		t.Context = o.contextRef()
	}
}

// contextRef reads a reference to a context.
func (o *object) contextRef() perdure.ContextRef {
	c := perdure.ContextRef{Type: o.text("type"), Source: o.text("source"), SizeTokens: o.whole("size_tokens"),
		Offset: o.whole("offset"), Length: o.whole("length"), Hash: o.text("content_hash")}
	if !slices.Contains([]string{"full", "slice", "filtered", "summary", "none"}, c.Type) {
		o.note(o.n.Get("type"), "unknown context type %s; it was set to none", quoted(c.Type))
		c.Type = "none"
	}
	return c
}

// dollars reads an amount, rounded as the store has it.
func (o *object) dollars(key string) float64 {
	given := min(o.number(key), 1e12)
	is := math.Floor(given*1e6+0.5) / 1e6
	if math.Abs(is-given) > 1e-12*max(given, 1e-6) {
		o.note(o.n.Get(key), "%s was rounded to %g", key, is)
	}
	return is
}

// isNodeResult reports whether a value is the result of a node, not that of a record.
func isNodeResult(n *jsontree.Value) bool {
	return n != nil && n.Kind == jsontree.Object && (n.Get("output") != nil || n.Get("status") != nil)
}

// nodeResult reads the result of a node: the output of a completed task, the first
// error of another.
func (r *reader) nodeResult(o *object, t *task) {
	n := o.get(nodeResult)
	if !isNodeResult(n) {
		return
	}
	in := r.object(docNodePart, o.f, n, o.what+": "+nodeResult)
	switch {
	case t.State == perdure.Completed:
		t.Result = in.cut("output", perdure.MaxResultBytes)
	case t.State == perdure.Failed && t.Error == nil:
		for _, e := range in.list("errors") {
			first := r.object(docNodePart, o.f, e, in.what)
			t.Error = &perdure.TaskError{Kind: cmp.Or(first.cut("code", 256), "unknown"),
				Message: first.cut("message", perdure.MaxErrorBytes)}
			break
		}
	}
}

// fill adds the members of a node to the record of the same task, which has precedence.
func (t *task) fill(r *reader, n *task) {
	if t.doc != nil {
		return
	}
	t.doc, t.unread = n.doc, n.unread
	t.CreatedAt, t.StartedAt = cmp.Or(t.CreatedAt, n.CreatedAt), cmp.Or(t.StartedAt, n.StartedAt)
	if t.State == n.State {
		t.CompletedAt = cmp.Or(t.CompletedAt, n.CompletedAt)
		t.Result = cmp.Or(t.Result, n.Result)
		t.Error = cmp.Or(t.Error, n.Error)
	} else if n.stated {
		r.note(Corrected, n.f, n.n.Start, "%s is %s here and %s in its record, which is used", t.what(), n.State, t.State)
	}
	t.Active, t.Agent = cmp.Or(t.Active, n.Active), cmp.Or(t.Agent, n.Agent)
	t.Usage, t.Context = cmp.Or(t.Usage, n.Usage), cmp.Or(t.Context, n.Context)
	t.Strategy, t.Merge = cmp.Or(t.Strategy, n.Strategy), cmp.Or(t.Merge, n.Merge)
	if n.Prompt != t.Prompt && n.Prompt != "" {
		r.note(Corrected, n.f, n.n.Start, "the prompt of %s differs from its record, which is used", t.what())
	}
}

// keepNode adds the members of the node to the metadata that an export would not write.
func (r *reader) keepNode(t *task) {
	if t.doc == nil || t.meta[nodeKey] != nil {
		return
	}
	rest := t.unread
	if rest == nil {
		rest = make(map[string]json.RawMessage)
	}
	own := nodeParts(&t.Task, cmp.Or(t.foreign.State, exportState(t.State)))
	for name, part := range own.byName() {
		given := t.doc.Get(name)
		switch {
		case given.IsNull() || given.Cut:
		case given.Kind != jsontree.Object || name == nodeResult && !isNodeResult(given):
			if name != nodeResult && !sameValue(compacted(given), jsontree.MustMarshal(part)) {
				rest[name] = compacted(given)
			}
		default:
			if left := leftOver(given, part); len(left) > 0 {
				rest[name] = jsontree.MustMarshal(left)
			}
		}
	}
	if len(rest) > 0 {
		t.meta[nodeKey] = jsontree.MustMarshal(rest)
		names := strings.Join(sortedKeys(rest), ", ")
		r.note(Kept, t.f, t.doc.Start, "%s: members kept in metadata.%s: %s", t.what(), nodeKey, names)
	}
}

// leftOver returns the members of a value that own does not have, or has with another
// value.
func leftOver(given *jsontree.Value, own any) map[string]json.RawMessage {
	have := make(map[string]json.RawMessage)
	if own != nil && json.Unmarshal(jsontree.MustMarshal(own), &have) != nil {
		have = nil
	}
	left := make(map[string]json.RawMessage)
	for _, m := range given.Members {
		if m.Value.Cut || m.Value.IsNull() && have[m.Name] == nil {
			continue
		}
		if raw := compacted(m.Value); !sameValue(raw, have[m.Name]) {
			left[m.Name] = raw
		}
	}
	return left
}

// sameValue reports whether two JSON values are equal.
func sameValue(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
