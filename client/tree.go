package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// TreeRequest asks for a tree.
type TreeRequest struct {
	// Kind says what runs it; empty means "run".
	Kind string `json:"kind,omitempty"`
	// Name is for people; may be empty.
	Name   string `json:"name,omitempty"`
	Prompt string `json:"prompt"`
	// Ask, when set, is the tree to which Prompt is a further question: the new tree has its context,
	// its configuration, changed by Config, and a copy of its variables.
	Ask perdure.TreeID `json:"ask,omitempty"`
	// ContextID is what PutContext returned; may be empty.
	ContextID string `json:"context_id,omitempty"`
	// Config is the JSON object of the kind's configuration; may be nil.
	Config json.RawMessage `json:"config,omitempty"`
	// Owner is the session that alone may run the tree; only the session of
	// the server's own process is accepted.
	Owner string `json:"owner,omitempty"`
	// IdempotencyKey makes a second request return the first tree, at most 255
	// bytes; another request with the same key is a conflict. Empty means a new key, so that at least a request that the
	// transport repeats makes one tree.
	IdempotencyKey string `json:"-"`
}

// CreateTree makes a tree. When it returns, the tree is durable.
func (c *Client) CreateTree(ctx context.Context, req TreeRequest) (perdure.Tree, error) {
	key := cmp.Or(req.IdempotencyKey, rand.Text())
	return do[perdure.Tree](ctx, c, &request{op: "create tree", method: http.MethodPost, path: "/v1/trees",
		header: http.Header{"Idempotency-Key": {key}}, body: &req})
}

// Estimate returns what a run takes, before anything is paid: nothing is created or sent to a
// model, and keys are not needed. Errors are those of CreateTree.
func (c *Client) Estimate(ctx context.Context, req TreeRequest) (rlm.Estimate, error) {
	return post[rlm.Estimate](ctx, c, "estimate run", "/v1/estimates", &req)
}

// Replay runs the code of a tree's REPLs again with the recorded answers, and compares what it
// does with the records. No model is asked, and nothing changes.
func (c *Client) Replay(ctx context.Context, id perdure.TreeID) (rlm.Replay, error) {
	return post[rlm.Replay](ctx, c, "replay tree", treePath(id, "/replay"), nil)
}

// TreePage is a part of a list of trees.
type TreePage struct {
	Trees []perdure.Tree `json:"trees"`
	// Next, when not empty, is where the list continues.
	Next perdure.TreeID `json:"next"`
}

// Trees lists trees, the newest first. Before continues behind a page; it is that page's
// Next.
func (c *Client) Trees(ctx context.Context, f perdure.TreeFilter) (TreePage, error) {
	return get[TreePage](ctx, c, "list trees", "/v1/trees",
		query("kind", f.Kind, "before", f.Before, "limit", f.Limit, "active", f.Active))
}

// Tree returns a tree.
func (c *Client) Tree(ctx context.Context, id perdure.TreeID) (perdure.Tree, error) {
	return get[perdure.Tree](ctx, c, "read tree", treePath(id, ""), nil)
}

const (
	// waitEach is how long one request waits at most; the server may say less.
	waitEach = time.Minute
	// waitPause is between requests that the server answered before their time.
	waitPause = 200 * time.Millisecond
)

// WaitTree waits until a tree is terminal and returns it.
func (c *Client) WaitTree(ctx context.Context, id perdure.TreeID) (perdure.Tree, error) {
	for {
		begin := time.Now()
		tree, err := get[perdure.Tree](ctx, c, "wait for tree", treePath(id, ""), query("wait", waitEach))
		if err != nil || tree.State.Terminal() {
			return tree, err
		}
		if time.Since(begin) >= time.Second {
			continue
		}
		if err := c.sleep(ctx, waitPause); err != nil {
			return tree, err
		}
	}
}

// sleep waits for a time or the end of the context.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return c.transportError(ctx, "wait", ctx.Err())
	}
}

// Status is how far a tree is.
type Status struct {
	perdure.Progress
	// Active are the tasks that run, at most 100.
	Active []perdure.ActiveTask `json:"active"`
	// Slowest is the task that runs longest; nil when nothing runs.
	Slowest *SlowestTask `json:"slowest"`
	// Pauses are what the server's process waits for and why (a model with a rate limit, an index that is
	// being built), one line each.
	Pauses []string `json:"pauses"`
	// Gate is what the tree waits for a person at; nil when it does not.
	Gate *OpenGate `json:"gate,omitempty"`
}

// OpenGate is an unanswered gate.
type OpenGate struct {
	perdure.Gate
	// Rests reports that the whole tree waits for the answer.
	Rests bool `json:"rests"`
}

// SlowestTask is the running task that was claimed first.
type SlowestTask struct {
	perdure.ActiveTask
	// Model and CallSince describe the call it waits for, if any.
	Model     string     `json:"model,omitempty"`
	CallSince *time.Time `json:"call_since,omitempty"`
}

// Status returns how far a tree is.
func (c *Client) Status(ctx context.Context, id perdure.TreeID) (Status, error) {
	return get[Status](ctx, c, "read status", treePath(id, "/status"), nil)
}

// TaskQuery selects tasks of a tree.
type TaskQuery struct {
	Tree perdure.TreeID
	// Parent, when not 0, selects the children of a task, by position. Without
	// it all tasks come by ID.
	Parent perdure.TaskID
	// States, when set, selects by state.
	States []perdure.State
	// Brief cuts long prompts and leaves out results and output.
	Brief bool
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
	// After continues behind a page; it is that page's Next.
	After perdure.TaskID
}

// TaskPage is a part of a list of tasks.
type TaskPage struct {
	Tasks []perdure.Task `json:"tasks"`
	// Next, when not 0, is where the list continues.
	Next perdure.TaskID `json:"next"`
}

// Tasks lists tasks of a tree.
func (c *Client) Tasks(ctx context.Context, q TaskQuery) (TaskPage, error) {
	return get[TaskPage](ctx, c, "list tasks", treePath(q.Tree, "/tasks"),
		query("parent", q.Parent, "after", q.After, "state", q.States, "brief", q.Brief, "limit", q.Limit))
}

// AllTasks yields the tasks that q selects, from q.After to the end of the
// list, page by page. An error is yielded last.
func (c *Client) AllTasks(ctx context.Context, q TaskQuery) iter.Seq2[perdure.Task, error] {
	return pages(q.After, func(after perdure.TaskID) ([]perdure.Task, perdure.TaskID, error) {
		q.After = after
		page, err := c.Tasks(ctx, q)
		return page.Tasks, page.Next, err
	})
}

// CancelTree cancels all tasks of a tree that are not terminal, and returns how
// many they were.
func (c *Client) CancelTree(ctx context.Context, id perdure.TreeID, reason string) (int64, error) {
	return c.cancel(ctx, "cancel tree", treePath(id, "/cancel"), reason)
}

func (c *Client) cancel(ctx context.Context, op, path, reason string) (int64, error) {
	body := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	out, err := post[struct{ Cancelled int64 }](ctx, c, op, path, &body)
	return out.Cancelled, err
}

// ResumeRequest asks to continue a tree.
type ResumeRequest struct {
	// Changes is a JSON object with what the tree has from now on instead of its
	// configuration: budget_usd, budget_tokens, budget_calls, timeout, max_nodes, model,
	// sub_model, base_url, max_attempts, search_replies; see rlm.Changes. May be nil.
	Changes json.RawMessage `json:"changes,omitempty"`
	// Owner is the session that alone may run the tree; only the session of the server's
	// own process is accepted.
	Owner string `json:"owner,omitempty"`
}

// Resume prepares a tree to continue and returns what is left to do. Tasks of a dead
// process are claimable at once. Of a run that is partial or failed, or if there are
// changes, the missing parts are taken up. It fails with perdure.CodeConflict when another
// living process runs the tree, and with perdure.CodeBudgetExceeded when its limits pay
// for no missing part.
func (c *Client) Resume(ctx context.Context, id perdure.TreeID, req ResumeRequest) (perdure.RecoverReport, error) {
	return post[perdure.RecoverReport](ctx, c, "resume tree", treePath(id, "/resume"), &req)
}
