package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/handoff/ledger"
)

// Handoff returns the ledger of a reference: the open one, else the one that
// ended last.
func (c *Client) Handoff(ctx context.Context, ref ledger.Ref) (ledger.Handoff, error) {
	v := url.Values{}
	set(v, "place", ref.Place)
	set(v, "task", ref.Task)
	var h ledger.Handoff
	err := c.get(ctx, "read handoff", "/v1/handoff", v, &h)
	return h, err
}

// HandoffPage is a part of a list of ledgers.
type HandoffPage struct {
	Handoffs []ledger.Handoff `json:"handoffs"`
	// Next, when not 0, is where the list goes on.
	Next ledger.ID `json:"next"`
}

// Handoffs lists ledgers, the newest first.
func (c *Client) Handoffs(ctx context.Context, f ledger.Filter) (HandoffPage, error) {
	v := url.Values{}
	if f.Before != 0 {
		v.Set("before", f.Before.String())
	}
	setInt(v, "limit", int64(f.Limit))
	var page HandoffPage
	err := c.get(ctx, "list handoffs", "/v1/handoffs", v, &page)
	return page, err
}

// HandoffEntries lists entries of a ledger behind a number, the oldest first: at
// most limit, 0 means 1,000, which is also the most.
func (c *Client) HandoffEntries(ctx context.Context, id ledger.ID, after int64, limit int) (
	[]ledger.Entry, error) {
	v := url.Values{}
	setInt(v, "after", after)
	setInt(v, "limit", int64(limit))
	var out struct {
		Entries []ledger.Entry `json:"entries"`
	}
	err := c.get(ctx, "list entries", "/v1/handoffs/"+id.String()+"/entries", v, &out)
	return out.Entries, err
}

// WriteHandoff adds entries to a ledger, see [ledger.Store.WriteHandoff]. The
// request is sent once: when the connection breaks, read the version to know
// whether it was written.
func (c *Client) WriteHandoff(ctx context.Context, w ledger.Write) (ledger.Handoff, error) {
	var h ledger.Handoff
	err := c.do(ctx, &request{op: "write handoff", method: http.MethodPost, path: "/v1/handoff/entries", body: &w,
		out: &h})
	return h, err
}

// ClaimHandoff gives open work to one successor, see
// [ledger.Store.ClaimHandoff].
func (c *Client) ClaimHandoff(ctx context.Context, spec ledger.ClaimSpec) (ledger.Claim, error) {
	body := struct {
		ledger.ClaimSpec
		TTLSeconds float64 `json:"ttl_seconds,omitempty"`
	}{spec, spec.TTL.Seconds()}
	var claim ledger.Claim
	err := c.do(ctx, &request{op: "claim handoff", method: http.MethodPost, path: "/v1/handoff/claim", body: &body,
		out: &claim})
	return claim, err
}

// ReleaseHandoff gives a claim back.
func (c *Client) ReleaseHandoff(ctx context.Context, ref ledger.Ref, token string) error {
	body := struct {
		ledger.Ref
		Token string `json:"token"`
	}{ref, token}
	var out struct {
		Released ledger.Ref `json:"released"`
	}
	return c.do(ctx, &request{op: "release handoff", method: http.MethodPost, path: "/v1/handoff/release", body: &body,
		out: &out})
}
