package client

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
)

// Result is the outcome of a terminal tree.
type Result struct {
	Tree  perdure.TreeID `json:"tree_id"`
	State perdure.State  `json:"state"`
	// Partial is set when parts are missing.
	Partial bool `json:"partial"`
	// Answer is a JSON string, the structured result, or null when the tree did
	// not complete. See Text.
	Answer    json.RawMessage `json:"answer"`
	Citations []Citation      `json:"citations"`
	Usage     perdure.Usage   `json:"usage"`
	// Error is why the tree failed.
	Error *perdure.TaskError `json:"error,omitempty"`
	// Missing are the leaves that failed or were cancelled, at most 1,000;
	// MissingTotal is how many there are.
	Missing      []MissingTask `json:"missing"`
	MissingTotal int64         `json:"missing_total"`
	// Limits are those of the tree, with what was used of them; one that was
	// exceeded is why parts are missing.
	Limits []perdure.LimitUse `json:"limits"`
	// Resumable is set if `perdure resume` takes the tree up again.
	Resumable bool `json:"resumable,omitempty"`
	Details
}

// Citation is a place in the context that the answer rests on.
type Citation struct {
	// Kind is "quote" for text that a model quoted and that was found at this place,
	// "read" for a place that was read for the answer, whose text is empty, and "" for a
	// passage that builtin:extract ranked.
	Kind string `json:"kind,omitempty"`
	// File is the name as the user gave it.
	File string `json:"file"`
	// StartLine and EndLine are counted from 1, both included.
	StartLine int `json:"start_line"`
	EndLine   int `json:"end_line"`
	// StartColumn is the byte of the first line, counted from 1, at which Text begins; 0 if it is
	// the first one.
	StartColumn int `json:"start_column,omitempty"`
	// Cell is the number of the notebook's cell that StartLine is in, from 1; 0 in other files.
	Cell   int    `json:"cell,omitempty"`
	Text   string `json:"text"`
	SHA256 string `json:"sha256"`
}

// MissingTask is a part without a result.
type MissingTask struct {
	Task perdure.TaskID `json:"task_id"`
	// Prompt is cut after 200 characters.
	Prompt string            `json:"prompt"`
	Error  perdure.TaskError `json:"error"`
	// Files are the files and lines of the context that it is about, at most 20;
	// MoreFiles counts the others.
	Files     []Place `json:"files,omitempty"`
	MoreFiles int     `json:"more_files,omitempty"`
}

// Place is a run of lines of a file, counted from 1 and both included.
type Place struct {
	File      string `json:"file"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
}

// Text returns the answer for people: the text, or the structured result as
// JSON; "" without an answer.
func (r *Result) Text() string {
	var text *string
	if err := json.Unmarshal(r.Answer, &text); err != nil {
		return string(r.Answer)
	}
	if text == nil {
		return ""
	}
	return *text
}

// Result returns the outcome of a tree. It fails with perdure.CodeConflict when
// the tree is not terminal; WaitTree waits for that.
func (c *Client) Result(ctx context.Context, id perdure.TreeID) (Result, error) {
	return get[Result](ctx, c, "read result", treePath(id, "/result"), nil)
}
