package client

import (
	"context"
	"net/url"

	"github.com/perdure/perdure"
)

// refQuery writes which state is meant. The server finds the tree of a task that
// is named alone.
func refQuery(ref perdure.StateRef) url.Values {
	v := url.Values{}
	set(v, "scope", string(ref.Scope))
	set(v, "session", ref.Session)
	set(v, "tree", string(ref.Tree))
	if ref.Task != 0 {
		v.Set("task", ref.Task.String())
	}
	set(v, "name", ref.Name)
	return v
}

// State returns what is known of a state. One that was never written to has no
// ID and counts nothing.
func (c *Client) State(ctx context.Context, ref perdure.StateRef) (perdure.StateInfo, error) {
	var info perdure.StateInfo
	err := c.get(ctx, "read state", "/v1/state", refQuery(ref), &info)
	return info, err
}

// HistoryQuery selects mutations of a state.
type HistoryQuery struct {
	// Name, when set, selects those of one variable.
	Name string
	// Before continues behind a page; it is that page's Next.
	Before perdure.MutationID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
}

// HistoryPage is a part of a history.
type HistoryPage struct {
	Mutations []perdure.Mutation `json:"mutations"`
	// Next, when not 0, is where the history goes on.
	Next perdure.MutationID `json:"next"`
}

// History lists what was done to a state, the newest first.
func (c *Client) History(ctx context.Context, ref perdure.StateRef, q HistoryQuery) (HistoryPage, error) {
	v := refQuery(ref)
	set(v, "variable", q.Name)
	if q.Before != 0 {
		v.Set("before", q.Before.String())
	}
	setInt(v, "limit", int64(q.Limit))
	var page HistoryPage
	err := c.get(ctx, "list history", "/v1/history", v, &page)
	return page, err
}
