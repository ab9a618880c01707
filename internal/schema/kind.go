package schema

import (
	"path"
	"strings"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// packedEnd is the end of the names of checkpoints of loops, which are packed.
const packedEnd = ".gz"

// KindOf returns the name of the schema of a document, by its file's name and its members,
// "" if no published schema is for it.
func KindOf(name string, v *jsontree.Value) string {
	file := path.Base(strings.TrimSuffix(name, packedEnd))
	folder := path.Base(path.Dir(name))
	switch {
	case file == "hook-log.jsonl":
		return "persistence-hooks"
	case file == "tool-calls.jsonl":
		return "tool-call"
	case folder == "checkpoints" && strings.HasPrefix(file, "iteration-"):
		return "loop-checkpoint"
	case file == "builder-state.json":
		return "builder-state"
	case file == "tasks.json":
		return "tasks-file"
	case file == "tree.json":
		return "rlm-task-tree"
	case file == "analytics.json":
		return "iteration-analytics"
	}
	return kindOf(v)
}

// kindOf returns the name of the schema of a value by the members that only it has.
func kindOf(v *jsontree.Value) string {
	for _, kind := range []struct {
		name    string
		members []string
	}{{"tasks-file", []string{"tasks"}}, {"rlm-task-tree", []string{"root_task"}}, {"rlm-state", []string{"variables"}},
		{"iteration-analytics", []string{"loop_id", "iterations"}},
		{"loop-checkpoint", []string{"checkpoint_id", "iteration"}},
		{"persistence-hooks", []string{"hook_name"}}, {"loop-state", []string{"loop_id"}},
		{"builder-state", []string{"activePrd"}}, {"handoff-checkpoint", []string{"phase", "currentStep"}}} {
		all := true
		for _, member := range kind.members {
			all = all && v.Get(member) != nil
		}
		if all {
			return kind.name
		}
	}
	return ""
}
