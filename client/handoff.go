package client

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/handoff/ledger"
)

// Handoff returns the ledger of a reference: the open one, else the one that
// ended last.
func (c *Client) Handoff(ctx context.Context, ref ledger.Ref) (ledger.Handoff, error) {
	return get[ledger.Handoff](ctx, c, "read handoff", "/v1/handoff", query("place", ref.Place, "task", ref.Task))
}

// HandoffPage is a part of a list of ledgers.
type HandoffPage struct {
	Handoffs []ledger.Handoff `json:"handoffs"`
	// Next, when not 0, is where the list continues.
	Next ledger.ID `json:"next,omitempty"`
}

// Handoffs lists ledgers, the newest first.
func (c *Client) Handoffs(ctx context.Context, f ledger.Filter) (HandoffPage, error) {
	return get[HandoffPage](ctx, c, "list handoffs", "/v1/handoffs", query("before", f.Before, "limit", f.Limit))
}

// HandoffEntries lists entries of a ledger behind a number, the oldest first: at
// most limit, 0 means 1,000, which is also the most.
func (c *Client) HandoffEntries(ctx context.Context, id ledger.ID, after int64, limit int) (
	[]ledger.Entry, error) {
	out, err := get[struct{ Entries []ledger.Entry }](ctx, c, "list entries", "/v1/handoffs/"+id.String()+"/entries",
		query("after", after, "limit", limit))
	return out.Entries, err
}

// WriteHandoff adds entries to a ledger, see [ledger.Store.WriteHandoff]. The
// request is sent once: when the connection breaks, read the version to know
// whether it was written.
func (c *Client) WriteHandoff(ctx context.Context, w ledger.Write) (ledger.Handoff, error) {
	return post[ledger.Handoff](ctx, c, "write handoff", "/v1/handoff/entries", &w)
}

// ClaimHandoff gives open work to one successor, see
// [ledger.Store.ClaimHandoff].
func (c *Client) ClaimHandoff(ctx context.Context, spec ledger.ClaimSpec) (ledger.Claim, error) {
	body := struct {
		ledger.ClaimSpec
		TTLSeconds float64 `json:"ttl_seconds,omitempty"`
	}{spec, spec.TTL.Seconds()}
	return post[ledger.Claim](ctx, c, "claim handoff", "/v1/handoff/claim", &body)
}

// ReleaseHandoff gives a claim back.
func (c *Client) ReleaseHandoff(ctx context.Context, ref ledger.Ref, token string) error {
	body := struct {
		ledger.Ref
		Token string `json:"token"`
	}{ref, token}
	_, err := post[json.RawMessage](ctx, c, "release handoff", "/v1/handoff/release", &body)
	return err
}
