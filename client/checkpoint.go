package client

import (
	"context"
	"net/http"

	"github.com/perdure/perdure"
)

// SaveCheckpoint makes a checkpoint of a state as it is; the name may be empty. The state of a tree
// covers those of its tasks. The request is sent once: when the connection
// breaks, whether there is a checkpoint is not known.
func (c *Client) SaveCheckpoint(ctx context.Context, ref perdure.StateRef, name, description string) (
	perdure.Checkpoint, error) {
	body := struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}{name, description}
	return do[perdure.Checkpoint](ctx, c, &request{op: "save checkpoint", method: http.MethodPost,
		path: "/v1/checkpoints", query: refQuery(ref), body: &body})
}

// Checkpoints lists those of a state, the oldest first.
func (c *Client) Checkpoints(ctx context.Context, ref perdure.StateRef) ([]perdure.Checkpoint, error) {
	out, err := get[struct{ Checkpoints []perdure.Checkpoint }](ctx, c, "list checkpoints", "/v1/checkpoints",
		refQuery(ref))
	return out.Checkpoints, err
}

// DeleteCheckpoint removes a checkpoint of a state, by ID or name; of several with the name the
// newest.
func (c *Client) DeleteCheckpoint(ctx context.Context, ref perdure.StateRef, name string) error {
	body := struct {
		Checkpoint string `json:"checkpoint"`
	}{name}
	_, err := do[struct{}](ctx, c, &request{op: "delete checkpoint", method: http.MethodPost,
		path: "/v1/checkpoints/delete", query: refQuery(ref), body: &body})
	return err
}

// Diff compares a state at two instants: a checkpoint by ID or name, a mutation
// (before it), or "" for now.
func (c *Client) Diff(ctx context.Context, ref perdure.StateRef, from, to string) ([]perdure.VarChange, error) {
	out, err := get[struct{ Changes []perdure.VarChange }](ctx, c, "compare state", "/v1/checkpoints/diff",
		refQuery(ref, "from", from, "to", to))
	return out.Changes, err
}

// Rollback makes a state as it was at a checkpoint (by ID or name), or before a
// mutation. It is a mutation itself: a rollback to that undoes it. Of the cause
// only Source and Reason count.
func (c *Client) Rollback(ctx context.Context, ref perdure.StateRef, to string, cause perdure.Cause) (
	perdure.RollbackReport, error) {
	body := struct {
		To     string `json:"to"`
		Source string `json:"source,omitempty"`
		Reason string `json:"reason,omitempty"`
	}{to, cause.Source, cause.Reason}
	return do[perdure.RollbackReport](ctx, c, &request{op: "roll back state", method: http.MethodPost,
		path: "/v1/checkpoints/rollback", query: refQuery(ref), body: &body})
}
