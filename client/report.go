package client

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

// Report is what a tree looks like as a whole. Its size does not grow with the
// tree.
type Report struct {
	Tree perdure.TreeID `json:"tree_id"`
	// At is when it was looked at.
	At     time.Time     `json:"at"`
	Depths []ReportDepth `json:"by_depth"`
	// Models are the models that were asked, the dearest first, at most 100;
	// MoreModels counts the others.
	Models     []ReportModel  `json:"by_model"`
	MoreModels int            `json:"more_models,omitempty"`
	Timeline   ReportTimeline `json:"timeline"`
	// Slowest are the tasks that ran longest, at most 10.
	Slowest []OutlineRow `json:"slowest"`
	// Failures are the failed tasks by ID, at most 100, parents that failed
	// because of them included; FailuresTotal is how many there are.
	Failures      []OutlineRow `json:"failures"`
	FailuresTotal int64        `json:"failures_total"`
	// ErrorKinds counts the failed tasks by the kind of their error.
	ErrorKinds []ReportErrorKind `json:"error_kinds"`
	// Outline is the tree from the root down, some hundred rows at most: long
	// runs of siblings, and what is below a depth, are folded.
	Outline []ReportRow `json:"outline"`
}

// ReportDepth sums up a level of a tree; the root's is 0.
type ReportDepth struct {
	Depth     int           `json:"depth"`
	Total     int64         `json:"total"`
	Completed int64         `json:"completed"`
	Failed    int64         `json:"failed"`
	Cancelled int64         `json:"cancelled"`
	ActiveMS  float64       `json:"active_ms"`
	Usage     perdure.Usage `json:"usage"`
}

// ReportModel sums up the calls to a model.
type ReportModel struct {
	Model string `json:"model"`
	// Failed, Uncertain and Open calls are among those of Usage; Retries
	// counts the requests that were sent again after they failed.
	Failed    int64         `json:"failed"`
	Uncertain int64         `json:"uncertain"`
	Open      int64         `json:"open"`
	Retries   int64         `json:"retries"`
	Usage     perdure.Usage `json:"usage"`
	// BusyMS sums the time of calls that ended; MaxMS is the longest.
	BusyMS float64 `json:"busy_ms"`
	MaxMS  float64 `json:"max_ms"`
}

// ReportTimeline shows what went on when, in steps of the same length.
type ReportTimeline struct {
	Start time.Time `json:"start"`
	// StepSeconds is the length of a step; 0 when nothing ran.
	StepSeconds float64 `json:"step_seconds"`
	// Of is what Running counts: "calls", or "tasks" where there are no calls.
	Of    string       `json:"of"`
	Steps []ReportStep `json:"steps"`
}

// ReportStep is a part of the timeline.
type ReportStep struct {
	// Running is the mean number of calls under way.
	Running float64 `json:"running"`
	// Completed and Failed count the tasks that ended so.
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
}

// ReportErrorKind counts failures.
type ReportErrorKind struct {
	Kind  string `json:"kind"`
	Tasks int64  `json:"tasks"`
}

// ReportRow is a task of the outline, or several that are folded into one row.
type ReportRow struct {
	OutlineRow
	// Level is the indentation.
	Level int `json:"level"`
	// Folded is how many siblings the row stands for, up to To; 0 for a task of
	// its own. State is empty when theirs differ.
	Folded int64          `json:"folded,omitempty"`
	To     perdure.TaskID `json:"to_id,omitempty"`
	// Below counts the tasks below that have no row. When it is set, and of
	// folded siblings, the sums and times of the row include them.
	Below int64 `json:"below,omitempty"`
}

// Report looks at a whole tree, of which 100,000 tasks take about a second.
func (c *Client) Report(ctx context.Context, id perdure.TreeID) (Report, error) {
	return get[Report](ctx, c, "report tree", treePath(id, "/report"), nil)
}
