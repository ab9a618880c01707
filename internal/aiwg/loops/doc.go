// Package loops reads and writes the loops of a .aiwg folder: ralph/loops/,
// and the section agent_persistence of aiwg.yml.
//
// A loop is imported as a record: a tree whose root holds the documents of the loop
// and whose other tasks are its iterations. Each document is validated and corrected
// with its published schema: a member that does not fit is kept under a name that ends
// in _as_given. So exports are valid, and an export that is imported elsewhere and
// exported again has the same bytes.
package loops

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Folder is the folder of loops in the .aiwg folder.
const Folder = "ralph/loops/"

// The files in the folder of a loop.
const (
	stateFile     = "state.json"
	analyticsFile = "analytics/analytics.json"
	hookFile      = "hook-log.jsonl"
	checksFolder  = "checkpoints/"
	itersFolder   = "iterations/"
)

// reports are files of text, kept unchanged.
func reports() []string { return []string{"analytics/report.md", "report.md"} }

// Kinds of notes.
const (
	// Corrected is the kind of a value that was changed.
	Corrected = "corrected"
	// Default is the kind of a missing value for which a default was used.
	Default = "default"
	// Kept is the kind of a value that has no place of its own in the store; exports have it.
	Kept = "kept"
	// NotRead is the kind of a value that could not be read and was not imported.
	NotRead = "not_read"
	// Missing is the kind of a value that a document refers to and that does not exist.
	Missing = "missing"
	// Left is the kind of a file that this version does not import.
	Left = "left"
	// Differs is the kind of a value that differs from the store, which was not changed.
	Differs = "differs"
)

// Note reports a value that was not imported unchanged.
type Note struct {
	Kind string `json:"kind"`
	File string `json:"file"`
	// Line and Column are counted from 1; 0 for a note about the whole file.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// SyntaxNote returns the message about a document with a syntax error, after which the
// value root is complete; nil if nothing is.
func SyntaxNote(root *jsontree.Value, err *jsontree.Error) string {
	if root == nil {
		return fmt.Sprintf("invalid JSON: %s; nothing was imported", err.Msg)
	}
	return fmt.Sprintf("invalid JSON: %s; the part before it was imported", err.Msg)
}

// TimeLayouts returns the layouts of times that are read.
func TimeLayouts() []string {
	return []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateTime, time.DateOnly}
}

// ImportKey returns the key by which later imports find a tree, made of values that do
// not change.
func ImportKey(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return importPrefix + hex.EncodeToString(h.Sum(nil))[:40]
}

const importPrefix = "import:"

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
