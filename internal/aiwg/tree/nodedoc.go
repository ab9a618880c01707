package tree

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/schema"
)

// nodeDoc is a node of a tree.json.
type nodeDoc struct {
	NodeID   string `json:"node_id"`
	TaskID   string `json:"task_id"`
	ParentID string `json:"parent_id,omitempty"`
	Prompt   string `json:"prompt"`
	Agent    string `json:"agent,omitempty"`
	Status   string `json:"status"`
	Depth    int    `json:"depth"`
	nodeColumns
	Execution any   `json:"execution_config,omitempty"`
	Children  []any `json:"children"`
}

// nodeColumns are the members of a node that are columns of its task.
type nodeColumns struct {
	Strategy string `json:"decomposition_strategy"`
	Merge    string `json:"merge_strategy,omitempty"`
	Context  any    `json:"context,omitempty"`
	Cost     any    `json:"cost,omitempty"`
	Times    any    `json:"timestamps,omitempty"`
	Result   any    `json:"result,omitempty"`
}

func (c *nodeColumns) byName() map[string]any {
	return map[string]any{nodeStrategy: c.Strategy, nodeMerge: c.Merge, nodeContext: c.Context, nodeCost: c.Cost,
		nodeTimes: c.Times, nodeResult: c.Result}
}

type nodeCostDoc struct {
	costDoc
	Total int64 `json:"total_tokens"`
}

type nodeTimesDoc struct {
	CreatedAt   *time.Time `json:"created_at,omitempty"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	CompletedAt *time.Time `json:"completed_at,omitempty"`
	Duration    int64      `json:"duration_ms,omitempty"`
}

type nodeResultDoc struct {
	Status string         `json:"status"`
	Output *string        `json:"output,omitempty"`
	Errors []nodeErrorDoc `json:"errors,omitempty"`
}

type nodeErrorDoc struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// nodeParts returns what the columns of a task are in its node. state is its state in
// the files.
func nodeParts(t *perdure.Task, state string) *nodeColumns {
	c := &nodeColumns{Strategy: string(t.Strategy), Merge: mergeWord(t.Merge)}
	if c.Strategy == "" {
		c.Strategy = string(perdure.Parallel)
	}
	ref := t.Context
	if ref.Type == "none" {
		ref.Type = ""
	}
	if ref != (perdure.ContextRef{}) {
		c.Context = t.Context
	}
	if t.Usage != (perdure.Usage{}) {
		c.Cost = nodeCostDoc{usageDoc(&t.Usage), t.Usage.InputTokens + t.Usage.OutputTokens}
	}
	times := nodeTimesDoc{CreatedAt: someTime(t.CreatedAt), StartedAt: someTime(t.StartedAt),
		CompletedAt: someTime(t.CompletedAt), Duration: t.Active.Milliseconds()}
	if !perdure.State(state).Terminal() {
		times.CompletedAt = nil
	}
	c.Times = times
	c.Result = resultOf(t, state)
	return c
}

func usageDoc(u *perdure.Usage) costDoc {
	return costDoc{u.InputTokens, u.OutputTokens, u.CachedTokens, u.Calls, u.UnpricedCalls, u.CostUSD}
}

func resultOf(t *perdure.Task, state string) any {
	switch perdure.State(state) {
	case perdure.Completed:
		return nodeResultDoc{Status: "success", Output: &t.Result}
	case perdure.Failed:
		d := nodeResultDoc{Status: state}
		if t.Error != nil {
			d.Errors = []nodeErrorDoc{{t.Error.Message, t.Error.Kind}}
		}
		return d
	case perdure.Cancelled:
		return nodeResultDoc{Status: state}
	case perdure.Queued, perdure.Running, perdure.Waiting:
	}
	return nil
}

// mergeWord returns a merge in the words of tree.json, "" for one that it has no word for.
func mergeWord(merge string) string {
	switch merge {
	case "concatenate", "summarize", "vote", "best-of-n":
		return merge
	case "merge": // as concatenate, without repetitions
		return "concatenate"
	}
	return ""
}

// statusWord returns a state in the words of tree.json.
func statusWord(state string) string {
	if state == string(perdure.Queued) {
		return "pending"
	}
	return state
}

// nodeDoc returns the node of a task without its children.
func (x *exporter) nodeDoc(t *exportTree, task *perdure.Task, state string) *nodeDoc {
	name := t.names[task.ID]
	n := &nodeDoc{NodeID: name.node, TaskID: name.id, ParentID: t.names[task.Parent].node, Prompt: task.Prompt,
		Agent: task.Agent, Status: statusWord(state), Depth: task.Depth, nodeColumns: *nodeParts(task, state),
		Children: []any{}}
	return n
}

// withRest returns a document with the members that were kept of the imported node.
func (n *nodeDoc) withRest(metadata json.RawMessage) any {
	var m struct {
		Rest map[string]json.RawMessage `json:"tree_node"`
	}
	if json.Unmarshal(metadata, &m) != nil || len(m.Rest) == 0 {
		return n
	}
	more := make(map[string]json.RawMessage)
	for key, part := range map[string]*any{nodeContext: &n.Context, nodeCost: &n.Cost, nodeTimes: &n.Times,
		nodeResult: &n.Result, nodeExecution: &n.Execution} {
		var rest map[string]json.RawMessage
		if json.Unmarshal(m.Rest[key], &rest) == nil && len(rest) > 0 {
			*part = overlaid(key, *part, rest)
			delete(m.Rest, key)
		}
	}
	for key, value := range m.Rest {
		switch key {
		case nodeStrategy, nodeMerge, nodeExecution, nodeContext, nodeCost, nodeTimes, nodeResult:
			if !allows(key, value) {
				more[key+"_as_given"] = value
				continue
			}
			more[key] = value
		case "node_id", "task_id", "parent_id", "prompt", "agent", "status", "depth", "children":
			more[key+"_as_given"] = value
		default:
			more[key] = value
		}
	}
	return extended[*nodeDoc]{doc: n, more: more, over: setOf(more)}
}

// overlaid returns a part of a node with the members that were kept. One that the schema
// does not allow is renamed.
func overlaid(part string, own any, rest map[string]json.RawMessage) any {
	if own == nil {
		own = struct{}{}
	}
	more := make(map[string]json.RawMessage, len(rest))
	for key, value := range rest {
		if allows(part, json.RawMessage(`{`+quoted(key)+`:`+string(value)+`}`)) {
			more[key] = value
		} else {
			more[key+"_as_given"] = value
		}
	}
	return extended[any]{doc: own, more: more, over: setOf(more)}
}

func setOf(m map[string]json.RawMessage) map[string]bool {
	set := make(map[string]bool, len(m))
	for key := range m {
		set[key] = true
	}
	return set
}

// Parts of documents, besides those of nodes, of which members are kept.
const (
	treePart  = "metadata"
	statePart = "state metadata"
)

// partSchemas are parts of the published schemas by their names.
var partSchemas = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	const tree = "rlm-task-tree.json"
	refs := map[string]string{treePart: tree + "#/properties/metadata", statePart: "rlm-state.json#/properties/metadata"}
	for _, part := range []string{nodeContext, nodeCost, nodeTimes, nodeResult, nodeStrategy, nodeMerge, nodeExecution} {
		refs[part] = tree + "#/$defs/node/properties/" + part
	}
	load := func(address *url.URL) (*jsonschema.Schema, error) {
		var file jsonschema.Schema
		text, err := schema.FS.ReadFile(path.Base(address.Path))
		if err != nil {
			return nil, err
		}
		return &file, json.Unmarshal(text, &file)
	}
	out := make(map[string]*jsonschema.Resolved, len(refs))
	for _, part := range slices.Sorted(maps.Keys(refs)) {
		s := jsonschema.Schema{Ref: "schema:///" + refs[part]}
		options := &jsonschema.ResolveOptions{BaseURI: "schema:///" + url.PathEscape(part), Loader: load}
		var err error
		if out[part], err = s.Resolve(options); err != nil {
			return nil, err
		}
	}
	return out, nil
})

// allows reports whether the schema of a part allows a value.
func allows(part string, raw json.RawMessage) bool {
	parts, err := partSchemas()
	if err != nil {
		return false
	}
	var value any
	return json.Unmarshal(raw, &value) == nil && parts[part].Validate(value) == nil && timesAllowed(value)
}

// timesAllowed reports whether all times of a value are times, which the library does not
// check.
func timesAllowed(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			text, isText := member.(string)
			named := strings.HasSuffix(key, "_at") || key == "timestamp" || key == "start" || key == "end"
			if isText && named {
				if _, err := time.Parse(time.RFC3339, text); err != nil {
					return false
				}
			}
			if !timesAllowed(member) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !timesAllowed(item) })
	}
	return true
}
