package client

import (
	"context"

	"github.com/perdure/perdure"
)

// Task returns a task with its calls.
func (c *Client) Task(ctx context.Context, id perdure.TaskID) (perdure.ShowTask, error) {
	return get[perdure.ShowTask](ctx, c, "read task", taskPath(id, ""), nil)
}

// TaskByNode returns the task that has a node ID in exported files.
func (c *Client) TaskByNode(ctx context.Context, id perdure.NodeID) (perdure.ShowTask, error) {
	return get[perdure.ShowTask](ctx, c, "read task", "/v1/tasks/"+id.String(), query("node", true))
}

// Calls lists the calls of a task, of all its attempts, in order.
func (c *Client) Calls(ctx context.Context, id perdure.TaskID) ([]perdure.Call, error) {
	out, err := get[struct{ Calls []perdure.Call }](ctx, c, "list calls", taskPath(id, "/calls"), nil)
	return out.Calls, err
}

// CancelTask cancels a task and its descendants that are not terminal, and
// returns how many they were.
func (c *Client) CancelTask(ctx context.Context, id perdure.TaskID, reason string) (int64, error) {
	return c.cancel(ctx, "cancel task", taskPath(id, "/cancel"), reason)
}

// RetryTask makes a failed task claimable again.
func (c *Client) RetryTask(ctx context.Context, id perdure.TaskID) (perdure.Task, error) {
	return post[perdure.Task](ctx, c, "retry task", taskPath(id, "/retry"), struct{}{})
}
