package server_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff/ledger"
)

// The client receives of ledgers what the store has.
func TestHandoffs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.client
		ref := ledger.Ref{Place: "docs/builder-state.json", Task: "adhoc:ä 1"}
		_, err := c.Handoff(ctx, ref)
		wantCode(t, err, perdure.CodeNotFound, "adhoc:ä 1")
		entries := []ledger.Entry{{Kind: "step", Data: json.RawMessage(`{"step":"a<b"}`), Source: "a"},
			{Kind: "next", Data: json.RawMessage(`{}`)}}
		made, err := c.WriteHandoff(ctx,
			ledger.Write{Ref: ref, Entries: entries, Projected: json.RawMessage(`{"n":9007199254740993}`)})
		must(t, err)
		want, err := ledger.NewStore(f.store).Handoff(ctx, ref)
		must(t, err)
		got, err := c.Handoff(ctx, ref)
		must(t, err)
		equalJSON(t, "ledger", got, want)
		equalJSON(t, "answer to a write", made, want)
		wantEntries, err := ledger.NewStore(f.store).HandoffEntries(ctx, made.ID, 1, 0)
		must(t, err)
		gotEntries, err := c.HandoffEntries(ctx, made.ID, 1, 0)
		if err != nil || len(gotEntries) != 1 {
			t.Errorf("%+v, %v", gotEntries, err)
		}
		equalJSON(t, "entries", gotEntries, wantEntries)

		claim, err := c.ClaimHandoff(ctx, ledger.ClaimSpec{Ref: ref, Agent: "b", TTL: 90 * time.Second})
		must(t, err)
		if d := claim.ExpiresAt.Sub(made.UpdatedAt); claim.Token == "" || d < 90*time.Second || d > time.Hour {
			t.Errorf("%+v", claim)
		}
		_, err = c.WriteHandoff(ctx, ledger.Write{Ref: ref, IfVersion: 2, Token: "other", Entries: entries})
		wantCode(t, err, perdure.CodeLeaseLost, "token")
		_, err = c.ClaimHandoff(ctx, ledger.ClaimSpec{Ref: ref})
		wantCode(t, err, perdure.CodeConflict, "claimed")
		must(t, c.ReleaseHandoff(ctx, ref, claim.Token))
		_, err = c.WriteHandoff(ctx, ledger.Write{Ref: ref, IfVersion: 2, End: true})
		must(t, err)

		next, err := c.WriteHandoff(ctx, ledger.Write{Ref: ref})
		must(t, err)
		page, err := c.Handoffs(ctx, ledger.Filter{Limit: 1})
		if err != nil || len(page.Handoffs) != 1 || page.Next != next.ID {
			t.Errorf("%+v, %v", page, err)
		}
		page, err = c.Handoffs(ctx, ledger.Filter{Before: page.Next})
		if err != nil || len(page.Handoffs) != 1 || page.Handoffs[0].ID != made.ID || page.Next != 0 ||
			page.Handoffs[0].EndedAt == nil {
			t.Errorf("%+v, %v", page, err)
		}
	})
}
