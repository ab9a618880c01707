package client

import (
	"context"
	"net/url"

	"github.com/perdure/perdure"
)

// refQuery returns the parameters that name a state, and more of them. The server
// finds the tree of a task that is named alone.
func refQuery(ref perdure.StateRef, more ...any) url.Values {
	return query(append([]any{"scope", ref.Scope, "session", ref.Session, "tree", ref.Tree, "task", ref.Task,
		"name", ref.Name}, more...)...)
}

// State returns what is known of a state. One that was never written to has no
// ID and counts nothing.
func (c *Client) State(ctx context.Context, ref perdure.StateRef) (perdure.StateInfo, error) {
	return get[perdure.StateInfo](ctx, c, "read state", "/v1/state", refQuery(ref))
}

// HistoryPage is a part of a history.
type HistoryPage struct {
	Mutations []perdure.Mutation `json:"mutations"`
	// Next, when not 0, is where the history continues.
	Next perdure.MutationID `json:"next,omitempty"`
}

// History lists the mutations of a state, the newest first. Before continues behind a
// page; it is that page's Next.
func (c *Client) History(ctx context.Context, ref perdure.StateRef, f perdure.HistoryFilter) (HistoryPage, error) {
	return get[HistoryPage](ctx, c, "list history", "/v1/history",
		refQuery(ref, "variable", f.Name, "before", f.Before, "limit", f.Limit))
}
