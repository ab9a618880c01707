package aiwg

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/perdure/perdure"
)

// KindIPC is the kind of trees of one task each, which clients of the socket of
// the layout's daemon submitted.
const KindIPC = "ipc"

// Record returns the root task of a tree of [KindIPC] as daemon/tasks.json has
// it: the record that an export shows, with the metadata that the client gave
// word for word.
func Record(ctx context.Context, store *perdure.Store, tree *perdure.Tree) (json.RawMessage, error) {
	if tree.Kind != KindIPC {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read task", Msg: fmt.Sprintf("tree %q was not submitted over the socket", tree.ID)}
	}
	x := newExporter(store)
	x.verbatim = true
	t := &exportTree{Tree: *tree}
	if err := x.ownNames(ctx, t); err != nil {
		return nil, err
	}
	t.id = x.treeNames.hex(t.id, string(t.ID), "tree-")
	x.restTasks(t.names)
	if err := x.load(ctx, t); err != nil {
		return nil, err
	}
	for i := range t.tasks {
		if t.tasks[i].ID == t.Root {
			return encode(x.taskDoc(t, &t.tasks[i]), "")
		}
	}
	return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "read task", Msg: fmt.Sprintf("tree %q is gone", tree.ID)}
}

// given are the members of the metadata that a client gave a task although the
// layout has a meaning for them. The client's count for a task that stands for
// itself. In files, where others rely on their form, those of another form are
// kept under another name.
func (x *exporter) given(t *exportTree, more map[string]json.RawMessage) map[string]bool {
	if t.Kind != KindIPC || !t.lone {
		return nil
	}
	over := make(map[string]bool)
	for _, key := range sortedKeys(more) {
		switch {
		case !reserved(key):
		case x.verbatim || fits(key, more[key]):
			over[key] = true
		default:
			more[key+"_as_given"] = more[key]
			delete(more, key)
		}
	}
	return over
}

var (
	checkPattern    = regexp.MustCompile(`^ckpt-[0-9a-f]{8}$`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// fits tells whether a member of the metadata has the form that the schema
// tasks-file gives it.
func fits(key string, raw json.RawMessage) bool {
	var text string
	null, isText := string(raw) == "null", json.Unmarshal(raw, &text) == nil && string(raw) != "null"
	switch key {
	case "tree_id":
		return isText && treePattern.MatchString(text)
	case "node_id":
		return isText && nodePattern.MatchString(text)
	case "parent_id":
		return null || isText && taskPattern.MatchString(text)
	case "depth", "position":
		var n uint32
		return !null && json.Unmarshal(raw, &n) == nil
	case "decomposition_strategy":
		return isText && (text == string(perdure.Parallel) || text == string(perdure.Sequential))
	case "failure_policy":
		return isText && (text == string(perdure.PolicyPartial) || text == string(perdure.PolicyFail))
	case "merge_strategy":
		return isText
	case "context_reference":
		return fitsContext(raw)
	case "cost_tracking":
		return fitsCost(raw)
	case "checkpoints":
		return fitsCheckpoints(raw)
	case "rlm_state":
		return fitsVariables(raw)
	}
	return false
}

func fitsContext(raw json.RawMessage) bool {
	var c struct {
		Type   string  `json:"type"`
		Source *string `json:"source"`
		Size   uint64  `json:"size_tokens"`
	}
	return json.Unmarshal(raw, &c) == nil && slices.Contains([]string{"full", "slice", "filtered", "summary", "none"}, c.Type)
}

func fitsCost(raw json.RawMessage) bool {
	var c struct {
		Input    *uint64  `json:"input_tokens"`
		Output   *uint64  `json:"output_tokens"`
		Cached   uint64   `json:"cached_tokens"`
		Calls    uint64   `json:"calls"`
		Unpriced uint64   `json:"unpriced_calls"`
		CostUSD  *float64 `json:"total_cost_usd"`
	}
	return json.Unmarshal(raw, &c) == nil && c.Input != nil && c.Output != nil && c.CostUSD != nil && *c.CostUSD >= 0
}

func fitsCheckpoints(raw json.RawMessage) bool {
	var list []struct {
		ID   string  `json:"checkpoint_id"`
		Name *string `json:"name"`
		Path *string `json:"snapshot_path"`
	}
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return false
	}
	for _, c := range list {
		if !checkPattern.MatchString(c.ID) || c.Name == nil || c.Path == nil {
			return false
		}
	}
	return true
}

func fitsVariables(raw json.RawMessage) bool {
	types := []string{"text", "number", "boolean", "null", "json", "array", "file_path", "file_content"}
	var all map[string]*struct {
		Name  *string         `json:"name"`
		Value json.RawMessage `json:"value"`
		Type  string          `json:"type"`
	}
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return false
	}
	for key, v := range all {
		switch {
		case v == nil && key == perdure.VarFinal:
		case v == nil || v.Value == nil || v.Name == nil || !variablePattern.MatchString(*v.Name) || !slices.Contains(types, v.Type):
			return false
		}
	}
	return true
}
