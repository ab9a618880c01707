// Package loops reads and writes the loops of a .aiwg folder: ralph/loops/,
// and the section agent_persistence of aiwg.yml.
//
// A loop comes in as a record: a tree whose root holds the documents of the loop
// and whose other tasks are its iterations. Each document is held against its
// published schema, which also says how it is corrected: what does not fit is
// kept beside under a name that ends in _as_given. So what is exported is valid,
// and what is exported, imported elsewhere and exported again is the same bytes.
package loops

import (
	"maps"
	"slices"
)

// Folder is where loops are, inside of the .aiwg folder.
const Folder = "ralph/loops/"

// The files in the folder of a loop.
const (
	stateFile     = "state.json"
	analyticsFile = "analytics/analytics.json"
	hookFile      = "hook-log.jsonl"
	checksFolder  = "checkpoints/"
	itersFolder   = "iterations/"
)

// reports are files of the user's language, kept as they are.
func reports() []string { return []string{"analytics/report.md", "report.md"} }

// Kinds of notes.
const (
	// Corrected is what came in otherwise than it stands there.
	Corrected = "corrected"
	// NotRead is what could not be read; it did not come in.
	NotRead = "not_read"
	// Missing is what is not there although something tells of it.
	Missing = "missing"
	// Left is what this version does not read; it stays where it is.
	Left = "left"
	// Differs is what is otherwise in the store already; the store's stays.
	Differs = "differs"
)

// Note tells of something that did not come in as it stands in its file.
type Note struct {
	Kind string `json:"kind"`
	File string `json:"file"`
	// Line and Column (in bytes) are from 1; 0 when it is about the whole file.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
