package tree

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/perdure/perdure"
)

// document is a kind of documents or of objects in them, as the table of fields names it.
type document string

// Documents of the layout.
const (
	docTasks      document = "daemon/tasks.json"
	docRecord     document = "task"
	docRecordMeta document = "task: metadata"
	docContext    document = "task: metadata.context_reference"
	docCost       document = "task: metadata.cost_tracking"
	docTree       document = "tree.json"
	docTreeMeta   document = "tree.json: metadata"
	docNode       document = "tree.json: node"
	docNodePart   document = "tree.json: context, cost, timestamps and result of a node"
	docState      document = "state.json"
	docStateMeta  document = "state.json: metadata"
	docHistory    document = "state.json: history"
	docVariable   document = "variable"
	docVarMeta    document = "variable: metadata"
	docMutation   document = "mutation"
	docCheckpoint document = "checkpoint"
	// docNames is an object with any names, such as those of variables.
	docNames document = ""
)

// Field is a field of a document of the layout and its place in the store. The table of fields
// decides what is read and written: [object.get] finds only members that are in it, and a
// document with others is not exported.
type Field struct {
	Document document
	Name     string
	Place    string
}

// derived is the place of fields that follow from others. A given value that differs is kept
// and exported again, or noted.
const derived = "follows from the rest"

// Fields returns all fields.
func Fields() []Field {
	var all []Field
	for _, list := range [][]Field{taskFields(), treeFields(), nodeFields(), stateFields(), variableFields(),
		historyFields()} {
		all = append(all, list...)
	}
	return all
}

// fieldNames returns the names of the fields of each document.
var fieldNames = sync.OnceValue(func() map[document]map[string]bool {
	names := make(map[document]map[string]bool)
	for _, f := range Fields() {
		if names[f.Document] == nil {
			names[f.Document] = make(map[string]bool)
		}
		names[f.Document][f.Name] = true
	}
	return names
})

// checkWritten returns an error if a document that exports write has a member that is not in
// the table.
var checkWritten = sync.OnceValue(func() error {
	var errs []error
	for doc, types := range writtenTypes() {
		for _, t := range types {
			for f := range t.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.IsExported() && !f.Anonymous && name != "-" && !doc.has(name) {
					errs = append(errs, fmt.Errorf("the table of fields lacks %q of %s, which %s has", name, doc, t.Name()))
				}
			}
		}
	}
	return errors.Join(errs...)
})

// writtenTypes returns the types of the documents that exports write.
func writtenTypes() map[document][]reflect.Type {
	return map[document][]reflect.Type{
		docRecord:     {reflect.TypeFor[taskDoc]()},
		docRecordMeta: {reflect.TypeFor[metaDoc]()},
		docContext:    {reflect.TypeFor[perdure.ContextRef]()},
		docCost:       {reflect.TypeFor[costDoc]()},
		docTree:       {reflect.TypeFor[treeDoc]()},
		docTreeMeta:   {reflect.TypeFor[treeMeta]()},
		docNode:       {reflect.TypeFor[nodeDoc](), reflect.TypeFor[nodeColumns]()},
		docNodePart: {reflect.TypeFor[nodeCostDoc](), reflect.TypeFor[nodeTimesDoc](), reflect.TypeFor[nodeResultDoc](),
			reflect.TypeFor[nodeErrorDoc]()},
		docState:      {reflect.TypeFor[stateDoc]()},
		docStateMeta:  {reflect.TypeFor[stateMeta]()},
		docHistory:    {reflect.TypeFor[historyDoc]()},
		docVariable:   {reflect.TypeFor[variableDoc]()},
		docVarMeta:    {reflect.TypeFor[variableMeta]()},
		docMutation:   {reflect.TypeFor[mutationDoc](), reflect.TypeFor[mutationMeta]()},
		docCheckpoint: {reflect.TypeFor[checkRef](), reflect.TypeFor[checkDoc](), reflect.TypeFor[snapshotDoc]()},
	}
}

// has reports whether a document has a field. A node has those of a task, too.
func (d document) has(name string) bool {
	all := fieldNames()
	return d == docNames || all[d][name] || d == docNode && (all[docRecord][name] || all[docRecordMeta][name])
}

func taskFields() []Field {
	return []Field{
		{docTasks, "version", "checked: 1"}, {docTasks, "updatedAt", derived + ": the latest time of its tasks"},
		{docTasks, "tasks", "tasks"},
		{docRecord, "id", "`id`, if it is unused; the given one in `metadata.perdure_import`"},
		{docRecord, "prompt", "`prompt`"}, {docRecord, "agent", "`agent`; null is none"},
		{docRecord, "priority", "`priority`, -100 to 100"},
		{docRecord, "state", "`state`; unfinished tasks are queued, the given one in `metadata.perdure_import`"},
		{docRecord, "status", "as `state`, which is written"},
		{docRecord, "result", "`result` of a completed task, else `metadata.result_as_given`"},
		{docRecord, "data", "`data`"}, {docRecord, "error", "`error` (kind, message); clients of the socket get the message"},
		{docRecord, "error_kind", "`error.kind`, only for clients of the socket"},
		{docRecord, "kind", "`error.kind`"}, {docRecord, "message", "`error.message`"}, {docRecord, "output", "`output`"},
		{docRecord, "pid", "`metadata.perdure_import`; that of the worker while a client works on the task"},
		{docRecord, "attempts", "`attempts`"}, {docRecord, "max_attempts", "`max_attempts`"},
		{docRecord, "active_ms", "time of the attempts"}, {docRecord, "createdAt", "`createdAt`"},
		{docRecord, "startedAt", "`startedAt`"}, {docRecord, "completedAt", "`completedAt`"},
		{docRecord, "metadata", "`metadata`; unknown members of it and of the task too"},
		{docRecord, "tree_id", "as in `metadata`, where it is written"},
		{docRecord, "node_id", "as in `metadata`, where it is written"},
		{docRecord, "parent_id", "as in `metadata`, where it is written"},
		{docRecordMeta, "tree_id", "`tree_id`, if it is unused; else a new one"},
		{docRecordMeta, "node_id", "`metadata.perdure_import`"}, {docRecordMeta, "parent_id", "the parent"},
		{docRecordMeta, "depth", derived + ": the parents"}, {docRecordMeta, "position", "order among siblings"},
		{docRecordMeta, "decomposition_strategy", "strategy: parallel, sequential"},
		{docRecordMeta, "merge_strategy", "merge"}, {docRecordMeta, "failure_policy", "failure policy"},
		{docRecordMeta, "rlm_state", "variables of the task"}, {docRecordMeta, "context_reference", "context"},
		{docRecordMeta, "cost_tracking", "usage"}, {docRecordMeta, "checkpoints", "checkpoints, with their files"},
		{docRecordMeta, nodeKey, "`metadata`: what an export of the node adds to the columns"},
		{docRecordMeta, importKey, "reserved"},
		{docContext, "type", "type"}, {docContext, "source", "source"}, {docContext, "size_tokens", "size"},
		{docContext, "offset", "position in the source"}, {docContext, "length", "length"},
		{docContext, "content_hash", "hash"},
		{docCost, "input_tokens", "tokens"}, {docCost, "output_tokens", "tokens"}, {docCost, "cached_tokens", "tokens"},
		{docCost, "calls", "calls"}, {docCost, "unpriced_calls", "calls"},
		{docCost, "total_cost_usd", "dollars, rounded to millionths"},
	}
}

func treeFields() []Field {
	return []Field{
		{docTree, "version", "checked: 1.x.y; kept if it is not 1.0.0"}, {docTree, "tree_id", "`tree_id`, if it is unused"},
		{docTree, "name", "name"}, {docTree, "kind", "`config`"}, {docTree, "configuration", "`config`"},
		{docTree, "limits", "limits"}, {docTree, "root_task", "the root"}, {docTree, "metadata", "see below"},
		{docTreeMeta, "tree_id", "`tree_id`"}, {docTreeMeta, "status", derived}, {docTreeMeta, "partial", "partial"},
		{docTreeMeta, "root_prompt", derived}, {docTreeMeta, "max_depth", derived}, {docTreeMeta, "total_nodes", derived},
		{docTreeMeta, "completed_nodes", derived}, {docTreeMeta, "failed_nodes", derived},
		{docTreeMeta, "total_cost_usd", derived}, {docTreeMeta, "total_tokens", derived},
		{docTreeMeta, "execution_mode", "`config`"}, {docTreeMeta, "session_id", "`config`"},
		{docTreeMeta, "created_at", "creation time of a root without one"},
		{docTreeMeta, "completed_at", "completion time of a root without one"}, {docTreeMeta, "duration_ms", derived},
	}
}

func nodeFields() []Field {
	list := []Field{
		{docNode, "node_id", "`metadata.perdure_import`"}, {docNode, "task_id", "as `id` of a task"},
		{docNode, "parent_id", "the parent"}, {docNode, "prompt", "`prompt`; that of its record has precedence"},
		{docNode, "agent", "`agent`"}, {docNode, "status", "as `state` of a task; pending is queued"},
		{docNode, "depth", derived}, {docNode, nodeStrategy, "strategy; conditional is sequential, map-reduce parallel"},
		{docNode, nodeMerge, "merge"}, {docNode, nodeContext, "context"}, {docNode, nodeCost, "usage"},
		{docNode, nodeTimes, "times"}, {docNode, nodeResult, "result or error"},
		{docNode, nodeExecution, "`metadata.tree_node`"}, {docNode, "children", "children"},
		{docNodePart, "output", "`result` of a completed task"}, {docNodePart, "status", derived},
		{docNodePart, "errors", "the first one of a failed task: `error`"}, {docNodePart, "code", "`error.kind`"},
		{docNodePart, "message", "`error.message`"}, {docNodePart, "total_tokens", derived},
		{docNodePart, "created_at", "`createdAt`"}, {docNodePart, "started_at", "`startedAt`"},
		{docNodePart, "completed_at", "`completedAt`"}, {docNodePart, "duration_ms", "time of the attempts"},
	}
	for _, name := range []string{"documents", "filters", "output_type", "confidence", "metadata", "artifacts",
		"input_cost_usd", "output_cost_usd", "subtree_total_cost_usd", "cache_hits", "cache_savings_usd"} {
		list = append(list, Field{docNodePart, name, "`metadata.tree_node`"})
	}
	return list
}

func stateFields() []Field {
	return []Field{
		{docState, "version", "checked: 1.x.y; kept if it is not 1.0.0"},
		{docState, "state_id", "kept; new if it is missing"},
		{docState, "session_id", "session"}, {docState, "tree_id", "tree"}, {docState, "variables", "variables"},
		{docState, "history", "history"}, {docState, "metadata", "see below"},
		{docStateMeta, "created_at", "creation time"}, {docStateMeta, "last_updated_at", "time of the last change"},
		{docStateMeta, "variable_count", derived}, {docStateMeta, "mutation_count", derived},
		{docStateMeta, "checkpoint_count", derived}, {docStateMeta, "total_size_bytes", derived},
		{docStateMeta, "compacted_mutations", "number of compacted mutations"},
		{docStateMeta, "completion_status",
			derived + ": Final, or the task; without a task that of the file is kept until the state changes"},
		{docStateMeta, "scope", "scope"},
		{docStateMeta, "name", "name of a temporary state"}, {docStateMeta, "node_id", "the task"},
		{docStateMeta, "expires_at", "end of a temporary state"}, {docStateMeta, "execution_config",
			"kept with the state; its settings are listed and not applied"},
	}
}

func variableFields() []Field {
	return []Field{
		{docVariable, "name", "name"}, {docVariable, "value", "value; one from a file stays in a file in exports"},
		{docVariable, "type", "type; null is written as json with `value_type`, which other schemas require"},
		{docVariable, "description", "description"}, {docVariable, "source", "source"},
		{docVariable, "created_at", "creation time"}, {docVariable, "updated_at", "time of the last change"},
		{docVariable, "access_count", "number of accesses"}, {docVariable, "metadata", "see below"},
		{docVarMeta, "read_only", "read only"}, {docVarMeta, "scope", derived + ": the state"},
		{docVarMeta, "ttl_seconds", "time to live"}, {docVarMeta, "expires_at", "end"},
		{docVarMeta, "value_type", "type of the value in the file"},
	}
}

func historyFields() []Field {
	return []Field{
		{docHistory, "mutations", "mutations"}, {docHistory, "checkpoints", "checkpoints"},
		{docMutation, "mutation_id", "kept if it matches its pattern"},
		{docMutation, "operation", "operation; set and write are update"}, {docMutation, "variable_name", "variable"},
		{docMutation, "old_value", "value before"}, {docMutation, "new_value", "value after"},
		{docMutation, "old_file", "file of the value before"}, {docMutation, "new_file", "file of the value after"},
		{docMutation, "source", "source"}, {docMutation, "timestamp", "time"}, {docMutation, "metadata", "see below"},
		{docMutation, "reason", "reason"}, {docMutation, "to", "new name, or target of a rollback"},
		{docMutation, "task_node_id", "task"}, {docMutation, "sequence", "order"},
		{docCheckpoint, "checkpoint_id", "kept if it matches its pattern"}, {docCheckpoint, "name", "name"},
		{docCheckpoint, "timestamp", "time"}, {docCheckpoint, "snapshot_path", "variables at that time"},
		{docCheckpoint, "description", "description"}, {docCheckpoint, "sequence", "order"},
		{docCheckpoint, "state", "variables at that time"}, {docCheckpoint, "tasks", "variables of the tasks below"},
		{docCheckpoint, "task_id", "task"},
	}
}
