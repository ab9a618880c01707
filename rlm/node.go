package rlm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm/internal/fanout"
	"github.com/perdure/perdure/rlm/internal/plan"
)

// chunks are parts of the context: ranges of bytes of the pack.
type chunks = fanout.Chunks

// planVersion is the version of what tasks carry in their metadata.
const planVersion = 1

// node is the plan of one task. It is stored in the task's metadata under
// the key "rlm".
type node struct {
	Version int `json:"v"`
	// First is the number of the first part below this task, counted from 0,
	// Total the number of all parts of the tree (of the file, in a batch).
	First int `json:"first"`
	Total int `json:"total"`
	// Chunks are the parts below this task; nil for a leaf, whose part is the
	// task's context reference.
	Chunks chunks `json:"chunks,omitempty"`
	// Files, only in the root of a batch, counts the parts of each file, in
	// the order of the manifest.
	Files []int `json:"files,omitempty"`
	// File is the file of a batch that this task is about or below.
	File string `json:"file,omitempty"`
	// Whole is set on tasks whose result is an answer for people: the root,
	// and each file of a batch.
	Whole bool `json:"whole,omitempty"`
	// Manifest, Window and Answer, only in the root, are the hash of the
	// context's manifest, the tokens a model reads and writes at once, and
	// those of them kept for the answer.
	Manifest string `json:"manifest,omitempty"`
	Window   int64  `json:"window,omitempty"`
	Answer   int64  `json:"answer,omitempty"`
	// Limited, only in the root, is set if each request has a limit for the answer.
	// Requests of trees from before that are only found in the journal without it.
	Limited bool `json:"limited,omitempty"`
	// Head, in the root and where a text was divided, is the longest header of a
	// table, in bytes, that parts of tables are shown with.
	Head int64 `json:"head,omitempty"`
	// Plans is set on tasks that are broken down by a plan of the model.
	Plans bool `json:"plans,omitempty"`
	// Search, only in the root, is set if it is answered by a search: the tokens of
	// text that one request may show.
	Search int64 `json:"search,omitempty"`
	// Repl is set if the task is answered by a REPL, Call if it answers a call of a REPL's code.
	Repl *replPlan `json:"repl,omitempty"`
	Call *subCall  `json:"call,omitempty"`
	// Log, only in the root of a record, is the log that it was imported from.
	Log *logRef `json:"log,omitempty"`
	// Level counts the plans above this task.
	Level int `json:"level,omitempty"`
	// Plan, only in the first child of a task that was planned, is its plan.
	Plan *plan.Plan `json:"plan,omitempty"`
	// Step is set on the tasks of a plan, of which First is the number.
	Step *step `json:"step,omitempty"`
	// Of is the task whose prompt this one asks about a part; 0: the root.
	Of perdure.TaskID `json:"of,omitempty"`
	// Read are the ranges of the context that a planned task reads; nil: its
	// context reference.
	Read chunks `json:"read,omitempty"`
	// Reduce is set on the tasks of a reduction tree.
	Reduce *reduction `json:"reduce,omitempty"`
	// prompt and agent are those of a task that is to be created.
	prompt, agent, merge string
	// Samples, only in the root, is how many children ask its prompt; Sample
	// is set on these, of which First and Total identify the sample.
	Samples int  `json:"samples,omitempty"`
	Sample  bool `json:"sample,omitempty"`
	// Draw is, below such a task whose text was divided, one more than its number.
	Draw int `json:"draw,omitempty"`
	// Divided is how often the text was divided above this task because a model
	// found it too long.
	Divided int `json:"divided,omitempty"`
	// Replaces is the task without a result that an earlier version created this one for:
	// those of its children that completed count as this one's.
	Replaces perdure.TaskID `json:"replaces,omitempty"`
	// Note, only in a first child, is a note for the result of its parent.
	Note string `json:"note,omitempty"`
	// Overlap is how many bytes at the beginning of the text the part before has too.
	Overlap int64 `json:"overlap,omitempty"`
}

// metadata is the JSON object in which a node is kept.
type metadata struct {
	Node *node `json:"rlm"`
}

// nodeOf reads the plan of a task. A task that was made by another program
// else is a leaf of its own.
func nodeOf(t *perdure.Task) (*node, error) {
	var m metadata
	if err := json.Unmarshal(t.Metadata, &m); err != nil {
		return nil, failf(KindPlan, "read plan of task %q: %w", t.ID, err)
	}
	if m.Node == nil {
		return &node{Version: planVersion, Total: 1, Whole: true}, nil
	}
	if m.Node.Version != planVersion {
		return nil, failf(KindPlan, "read plan of task %q: version %d, this program knows %d", t.ID, m.Node.Version,
			planVersion)
	}
	if m.Node.Step != nil {
		m.Node.prompt = t.Prompt
	}
	m.Node.agent, m.Node.merge = t.Agent, t.Merge
	return m.Node, nil
}

// leaf reports whether the task is answered by one call.
func (n *node) leaf() bool {
	return len(n.Chunks) == 0 && len(n.Files) == 0 && n.Samples == 0 && !n.Plans && n.Reduce == nil && n.Search == 0 &&
		n.Repl == nil
}

// shownPrompt bounds the prompt in the record of a task below the root: the
// whole prompt is stored once, in the root.
const shownPrompt = 400

// title is the prompt in the record of a task: what it is about, and the
// beginning of the prompt.
func (n *node) title(prompt string, count int) string {
	if n.File != "" {
		prompt = forFile(prompt, n.File)
	}
	prompt = clip.Bytes(prompt, shownPrompt)
	switch {
	case n.Sample:
		return fmt.Sprintf("[answer %d of %d] %s", n.First+1, n.Total, prompt)
	case n.Reduce != nil:
		return fmt.Sprintf("[merge of %d results, level %d] %s", len(n.Reduce.Inputs), n.Reduce.Level, prompt)
	case n.Total <= 1 || n.Whole:
		return prompt
	case count == 1:
		return fmt.Sprintf("[part %d of %d] %s", n.First+1, n.Total, prompt)
	}
	return fmt.Sprintf("[parts %d-%d of %d] %s", n.First+1, n.First+count, n.Total, prompt)
}

// filePlaceholder in the prompt of a batch is replaced by the file's name.
const filePlaceholder = "{file}"

func forFile(prompt, file string) string { return strings.ReplaceAll(prompt, filePlaceholder, file) }
