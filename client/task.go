package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/perdure/perdure"
)

// Task returns a task with its calls.
func (c *Client) Task(ctx context.Context, id perdure.TaskID) (perdure.ShowTask, error) {
	var t perdure.ShowTask
	err := c.get(ctx, "read task", taskPath(id, ""), nil, &t)
	return t, err
}

// TaskByNode returns the task that has a node ID in exported files.
func (c *Client) TaskByNode(ctx context.Context, id perdure.NodeID) (perdure.ShowTask, error) {
	var t perdure.ShowTask
	err := c.get(ctx, "read task", fmt.Sprintf("/v1/tasks/%s", id), url.Values{"node": {"true"}}, &t)
	return t, err
}

// Calls lists the calls of a task, of all its attempts, in order.
func (c *Client) Calls(ctx context.Context, id perdure.TaskID) ([]perdure.Call, error) {
	var out struct {
		Calls []perdure.Call `json:"calls"`
	}
	err := c.get(ctx, "list calls", taskPath(id, "/calls"), nil, &out)
	return out.Calls, err
}

// CancelTask cancels a task and its descendants that are not terminal, and
// returns how many they were.
func (c *Client) CancelTask(ctx context.Context, id perdure.TaskID, reason string) (int64, error) {
	return c.cancel(ctx, "cancel task", taskPath(id, "/cancel"), reason)
}

// RetryTask makes a failed task claimable again.
func (c *Client) RetryTask(ctx context.Context, id perdure.TaskID) (perdure.Task, error) {
	var t perdure.Task
	err := c.post(ctx, "retry task", taskPath(id, "/retry"), struct{}{}, &t)
	return t, err
}
