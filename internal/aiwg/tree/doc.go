// Package tree reads and writes the task trees of a folder .aiwg, in which other
// programs keep them: daemon/tasks.json and rlm/. Package loops does its loops.
//
// Reading is lenient. Every value that is changed or left out is noted with file,
// line and column. Records keep their IDs, so that an import can be repeated, and
// an export that is imported elsewhere and exported again has the same bytes.
package tree

import (
	"maps"
	"slices"
)

// The layout, with slashes.
const (
	layoutName   = ".aiwg"
	tasksFile    = "daemon/tasks.json"
	partEnd      = ".part" // of tasksFile while it is written
	backupFile   = "daemon/tasks.json.bak"
	rlmFolder    = "rlm/"
	globalFile   = "rlm/global-state.json"
	sessionsDir  = "rlm/sessions/"
	treesFolder  = "rlm/trees/"
	statesFolder = "rlm/states/"
	tempFolder   = "rlm/temp/"

	stateFile    = "state.json"
	treeFile     = "tree.json"
	reportFile   = "report.md"
	historyFile  = "history.jsonl"
	nodesFolder  = "nodes/"
	varsFolder   = "variables/"
	checksFolder = "checkpoints"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
