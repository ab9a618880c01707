// Package tree reads and writes the files of other programs that keep task trees
// in a folder .aiwg: daemon/tasks.json and rlm/. Its loops are read and written by
// aiwgloop.
//
// Reading is lenient and loses nothing silently: what came in otherwise than it
// stands there, and what could not come in, is noted with file, line and column.
// What came in keeps the IDs it had, so that an import can be repeated, and so
// that what is exported, imported elsewhere and exported again is the same bytes.
package tree

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// The layout, with slashes.
const (
	layoutName   = ".aiwg"
	tasksFile    = "daemon/tasks.json"
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

// encode writes JSON without escaping what only matters in HTML, with a line end
// when it is indented.
func encode(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	if indent == "" {
		return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
	}
	return buf.Bytes(), nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
