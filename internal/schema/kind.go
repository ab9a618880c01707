package schema

import (
	"path"
	"strings"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// packedEnd is the end of the names of checkpoints of loops, which are packed.
const packedEnd = ".gz"

const (
	loopCheckpoint = "loop-checkpoint"
	taskRecord     = "task-record"
)

// kind is a kind of documents in files.
type kind struct {
	name    string   // of the schema
	file    string   // the name of the files, "" if they have different ones
	members []string // which no document of a later kind has, nil if the file's name decides
	without string   // a member that documents of a later kind have, and of this one do not
}

func kinds() []kind {
	return []kind{
		{loopCheckpoint, "", []string{"checkpoint_id", "iteration"}, ""},
		{"state-checkpoint", "", []string{"checkpoint_id", "name", "state"}, ""},
		{"tasks-file", "tasks.json", []string{"tasks"}, ""},
		{"rlm-task-tree", "tree.json", []string{"root_task"}, ""},
		{"rlm-state", "", []string{"variables"}, ""},
		{"iteration-analytics", "analytics.json", []string{"loop_id", "iterations"}, "status"},
		{taskRecord, "", nil, ""}, // a record has the members of other documents
		{"persistence-hooks", "hook-log.jsonl", []string{"hook_name"}, ""},
		{"loop-state", "", []string{"loop_id"}, ""},
		{"builder-state", "builder-state.json", []string{"activePrd"}, ""},
		{"handoff-checkpoint", "", []string{"phase", "currentStep"}, ""},
		{"rlm-log-line", "", []string{"root_model", "environment_type"}, ""},
		{"tool-call", "tool-calls.jsonl", nil, ""},
	}
}

// Kinds returns the names of the schemas that are for files, which [KindOf] finds. The other
// schemas are for outputs.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// KindOf returns the name of the schema of a document, by its file's name and its members,
// "" if no published schema is for it.
func KindOf(name string, v *jsontree.Value) string {
	file := path.Base(strings.TrimSuffix(name, packedEnd))
	if path.Base(path.Dir(name)) == "nodes" {
		return taskRecord
	}
	if strings.HasPrefix(file, "iteration-") {
		switch path.Base(path.Dir(name)) {
		case "checkpoints":
			return loopCheckpoint
		case "iterations": // has members of a loop's state, and no schema of its own
			return ""
		}
	}
	for _, k := range kinds() {
		if k.file == file {
			return k.name
		}
	}
	for _, k := range kinds() {
		if k.members != nil && k.isOf(v) {
			return k.name
		}
	}
	return ""
}

// isOf reports whether a value has the members of the kind.
func (k *kind) isOf(v *jsontree.Value) bool {
	for _, member := range k.members {
		if v.Get(member) == nil {
			return false
		}
	}
	return k.without == "" || v.Get(k.without) == nil
}
