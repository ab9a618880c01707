package client

import (
	"context"
	"iter"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// OutlineQuery selects rows of a tree's outline.
type OutlineQuery struct {
	Tree perdure.TreeID
	// Tasks, when set, selects these tasks (at most 1,000), in this order;
	// unknown ones are left out.
	Tasks []perdure.TaskID
	// Parent selects the children of a task, by position, from position From
	// on. 0 selects the root.
	Parent perdure.TaskID
	From   int64
	// States and Text, when one is set, select from the whole tree instead, by
	// ID: tasks in one of the states whose ID or prompt (up to 10,240 bytes)
	// holds the text; with All without a choice. After continues behind a task.
	States []perdure.State
	Text   string
	All    bool
	After  perdure.TaskID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
}

// OutlineRow is a task in an outline: what a view shows of it in one line.
type OutlineRow struct {
	Task     perdure.TaskID `json:"task_id"`
	Parent   perdure.TaskID `json:"parent_id,omitempty"`
	Depth    int            `json:"depth"`
	Position int            `json:"position"`
	State    perdure.State  `json:"state"`
	// Partial is set on a completed task whose result lacks parts, Skipped on one that did
	// not run because a condition was false.
	Partial bool `json:"partial,omitempty"`
	Skipped bool `json:"skipped,omitempty"`
	// Lost is set while a dead process holds the task.
	Lost bool `json:"lost,omitempty"`
	// Blocked is set while a queued task waits for its turn behind a sibling.
	Blocked bool `json:"blocked,omitempty"`
	// Label is the beginning of the prompt, in one line.
	Label string `json:"label"`
	// Children counts the tasks directly below; their positions are 0 to
	// Children-1.
	Children int64 `json:"children"`
	Attempts int   `json:"attempts"`
	// ActiveMS is how long attempts ran; of a running one until now.
	ActiveMS float64       `json:"active_ms"`
	Usage    perdure.Usage `json:"usage"`
	// Error is set for failed tasks; the message is cut.
	Error       *perdure.TaskError `json:"error,omitempty"`
	StartedAt   *time.Time         `json:"started_at,omitempty"`
	CompletedAt *time.Time         `json:"completed_at,omitempty"`
}

// Active is ActiveMS as a duration.
func (r *OutlineRow) Active() time.Duration {
	return time.Duration(r.ActiveMS * float64(time.Millisecond))
}

// Outline returns a page of a tree's outline. A page shorter than the limit is
// the last.
func (c *Client) Outline(ctx context.Context, q OutlineQuery) ([]OutlineRow, error) {
	page, err := get[struct{ Rows []OutlineRow }](ctx, c, "list outline", treePath(q.Tree, "/outline"),
		query("task", q.Tasks, "parent", q.Parent, "after", q.After, "state", q.States, "text", q.Text, "all", q.All,
			"from", q.From, "limit", q.Limit))
	return page.Rows, err
}

// Turns returns the turns of the tasks of a tree that are answered by a REPL, in brief; with
// task, those of this task only. A tree without a REPL has none.
func (c *Client) Turns(ctx context.Context, tree perdure.TreeID, task perdure.TaskID) ([]rlm.TaskTurns, error) {
	out, err := get[struct{ Tasks []rlm.TaskTurns }](ctx, c, "list turns", treePath(tree, "/turns"), query("task", task))
	return out.Tasks, err
}

// WholeOutline yields the rows of all tasks of a tree by ID, page by page. An
// error is yielded last.
func (c *Client) WholeOutline(ctx context.Context, tree perdure.TreeID) iter.Seq2[OutlineRow, error] {
	const limit = 1000
	return pages(0, func(after perdure.TaskID) (rows []OutlineRow, next perdure.TaskID, err error) {
		rows, err = c.Outline(ctx, OutlineQuery{Tree: tree, All: true, After: after, Limit: limit})
		if len(rows) == limit {
			next = rows[limit-1].Task
		}
		return rows, next, err
	})
}
