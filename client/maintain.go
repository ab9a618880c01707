package client

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

// CollectRequest says what to remove. Zero times mean the server's defaults,
// negative ones at once.
type CollectRequest struct {
	// Completed and Failed are how long trees are kept after their end; trees
	// that completed or were cancelled, and those that failed.
	Completed time.Duration
	Failed    time.Duration
	// IncludeFailed removes failed trees too.
	IncludeFailed bool
	// Checkpoints is how many of a state are kept, Handoffs how long finished
	// ledgers are; 0 means the store's default.
	Checkpoints int
	Handoffs    time.Duration
	// DryRun removes nothing and reports what would go.
	DryRun bool
}

// Collect removes terminal trees that are old enough, and what only they used.
func (c *Client) Collect(ctx context.Context, req CollectRequest) (perdure.PruneReport, error) {
	body := struct {
		Completed     *float64 `json:"completed,omitempty"`
		Failed        *float64 `json:"failed,omitempty"`
		IncludeFailed bool     `json:"include_failed,omitempty"`
		Checkpoints   int      `json:"checkpoints,omitempty"`
		Handoffs      *float64 `json:"handoffs,omitempty"`
		DryRun        bool     `json:"dry_run,omitempty"`
	}{seconds(req.Completed), seconds(req.Failed), req.IncludeFailed, req.Checkpoints, seconds(req.Handoffs), req.DryRun}
	return post[perdure.PruneReport](ctx, c, "collect garbage", "/v1/gc", &body)
}

// CheckReport reports whether the store is sound.
type CheckReport struct {
	OK       bool              `json:"ok"`
	Problems []perdure.Problem `json:"problems"`
}

// Check looks through the whole store for what must not be.
func (c *Client) Check(ctx context.Context) (CheckReport, error) {
	return get[CheckReport](ctx, c, "check store", "/v1/check", nil)
}

func seconds(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	s := max(0, d).Seconds()
	return &s
}
