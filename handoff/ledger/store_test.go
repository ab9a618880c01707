package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/testing/testdb"
)

func workRef() ledger.Ref {
	return ledger.Ref{Place: "builder-state.json", Task: "prd:US-003"}
}

func steps(from, n int) []ledger.Entry {
	list := make([]ledger.Entry, n)
	for i := range list {
		list[i] = ledger.Entry{Kind: "step", Data: json.RawMessage(fmt.Sprintf(`{"step":%d}`, from+i)), Source: "agent-a"}
	}
	return list
}

func writeHandoff(t *testing.T, s *ledger.Store, w ledger.Write) ledger.Handoff {
	t.Helper()
	h, err := s.WriteHandoff(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A ledger keeps what was written to it, in order, until it ends; then a new
// one begins and the old one stays to be read.
func TestHandoffLedger(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		s := ledger.NewStore(store)
		ref := workRef()
		if _, err := s.Handoff(t.Context(), ref); !errors.Is(err, perdure.ErrNotFound) {
			t.Errorf("before: %v", err)
		}
		h := writeHandoff(t, s, ledger.Write{Ref: ref, Entries: steps(1, 2), Projected: json.RawMessage(`{"a":1}`)})
		h = writeHandoff(t, s, ledger.Write{Ref: ref, IfVersion: h.Version, Entries: steps(3, 1),
			Projected: json.RawMessage(`{"a":2}`), Previous: json.RawMessage(`{"a":1}`)})
		got, err := s.Handoff(t.Context(), ref)
		if diff := cmp.Diff(h, got); diff != "" || err != nil || h.Version != 3 {
			t.Errorf("%v %s", err, diff)
		}
		entries, err := s.HandoffEntries(t.Context(), h.ID, 1, 0)
		if err != nil || len(entries) != 2 || string(entries[1].Data) != `{"step":3}` || entries[0].Number != 2 ||
			entries[0].Source != "agent-a" {
			t.Errorf("%+v, %v", entries, err)
		}
		ended := writeHandoff(t, s, ledger.Write{Ref: ref, IfVersion: 3, End: true, Projected: json.RawMessage("null")})
		if ended.EndedAt == nil || ended.ID != h.ID {
			t.Errorf("%+v", ended)
		}
		next := writeHandoff(t, s, ledger.Write{Ref: ref, Entries: steps(1, 1)})
		if next.ID == h.ID || next.Version != 1 || len(next.Projected) > 0 {
			t.Errorf("%+v", next)
		}
		list, err := s.Handoffs(t.Context(), ledger.Filter{})
		if err != nil || len(list) != 2 || list[0].ID != next.ID {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err = s.Handoffs(t.Context(), ledger.Filter{Before: next.ID}); err != nil || len(list) != 1 ||
			list[0].ID != h.ID {
			t.Errorf("%+v, %v", list, err)
		}
		kinds := ""
		page, err := store.Events(t.Context(), perdure.EventFilter{})
		for _, e := range page {
			if e.Kind != perdure.EventLogRows {
				kinds += string(e.Kind) + " "
			}
		}
		if want := "handoff.started handoff.updated handoff.ended handoff.started "; kinds != want || err != nil {
			t.Errorf("%q, %v", kinds, err)
		}
	})
}

// Writers that have not seen the last entry are refused, so that of many none
// loses another's.
func TestHandoffWritersDoNotLoseEntries(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		s := ledger.NewStore(store)
		ref := workRef()
		writeHandoff(t, s, ledger.Write{Ref: ref})
		const writers, each = 4, 25
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for done := 0; done < each; {
					h, err := s.Handoff(t.Context(), ref)
					if err == nil {
						_, err = s.WriteHandoff(t.Context(), ledger.Write{Ref: ref, IfVersion: h.Version, Entries: steps(done, 1)})
					}
					switch {
					case err == nil:
						done++
					case !errors.Is(err, perdure.ErrConflict):
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		h, err := s.Handoff(t.Context(), ref)
		if err != nil || h.Version != writers*each {
			t.Fatalf("%+v, %v", h, err)
		}
		entries, err := s.HandoffEntries(t.Context(), h.ID, 0, 0)
		counts := make(map[string]int)
		for i, e := range entries {
			if counts[string(e.Data)]++; e.Number != int64(i)+1 {
				t.Errorf("entry %d has the number %d", i, e.Number)
			}
		}
		for i := range each {
			if got := counts[fmt.Sprintf(`{"step":%d}`, i)]; got != writers || err != nil {
				t.Errorf("step %d: %d times, %v", i, got, err)
			}
		}
	})
}

// A claim keeps two successors from continuing the same work.
func TestHandoffClaim(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		s := ledger.NewStore(store)
		ref := workRef()
		if _, err := s.ClaimHandoff(t.Context(), ledger.ClaimSpec{Ref: ref}); !errors.Is(err, perdure.ErrNotFound) {
			t.Errorf("claim of nothing: %v", err)
		}
		writeHandoff(t, s, ledger.Write{Ref: ref, Entries: steps(1, 1)})
		b, err := s.ClaimHandoff(t.Context(), ledger.ClaimSpec{Ref: ref, Agent: "b"})
		if err != nil || b.Fence != 1 || b.Agent != "b" {
			t.Fatalf("%+v, %v", b, err)
		}
		write := func(token string, version int64) error {
			_, err := s.WriteHandoff(t.Context(), ledger.Write{Ref: ref, IfVersion: version, Token: token, Entries: steps(2, 1)})
			return err
		}
		if err := write("", 1); !errors.Is(err, perdure.ErrConflict) || perdure.HintOf(err) == "" ||
			!strings.Contains(err.Error(), `"b"`) {
			t.Errorf("write of who was before: %v", err)
		}
		if _, err := s.ClaimHandoff(t.Context(), ledger.ClaimSpec{Ref: ref, Agent: "c"}); !errors.Is(err,
			perdure.ErrConflict) {
			t.Errorf("second claim: %v", err)
		}
		if err := write(b.Token, 1); err != nil {
			t.Errorf("write under the claim: %v", err)
		}
		c, err := s.ClaimHandoff(t.Context(), ledger.ClaimSpec{Ref: ref, Agent: "c", TakeOver: true})
		if err != nil || c.Fence != 2 || c.Token == b.Token {
			t.Errorf("%+v, %v", c, err)
		}
		if err := write(b.Token, 2); !errors.Is(err, perdure.ErrLeaseLost) {
			t.Errorf("write with an old token: %v", err)
		}
		if err := s.ReleaseHandoff(t.Context(), ref, b.Token); !errors.Is(err, perdure.ErrLeaseLost) {
			t.Errorf("release with an old token: %v", err)
		}
		if err := s.ReleaseHandoff(t.Context(), ref, c.Token); err != nil {
			t.Error(err)
		}
		if err := write("", 2); err != nil {
			t.Errorf("write without a claim: %v", err)
		}
	})
}

// A write under a claim renews it, and the end of the work ends it.
func TestHandoffClaimIsRenewed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		s := ledger.NewStore(store)
		writeHandoff(t, s, ledger.Write{Ref: workRef()})
		claim, err := s.ClaimHandoff(t.Context(), ledger.ClaimSpec{Ref: workRef(), TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		h := writeHandoff(t, s, ledger.Write{Ref: workRef(), Token: claim.Token, Entries: steps(1, 1)})
		if h.ExpiresAt == nil || !h.ExpiresAt.After(*claim.ExpiresAt) || h.ExpiresAt.Sub(h.UpdatedAt) != time.Hour {
			t.Errorf("expires at %v, was %v; written at %v", h.ExpiresAt, claim.ExpiresAt, h.UpdatedAt)
		}
		writeHandoff(t, s, ledger.Write{Ref: workRef(), IfVersion: h.Version, Token: claim.Token, End: true})
		if h, err = s.Handoff(t.Context(), workRef()); err != nil || h.EndedAt == nil || h.ExpiresAt != nil {
			t.Errorf("after the end: %+v, %v", h, err)
		}
	})
}

// An agent whose claim has expired loses it when another agent claims, not before.
func TestHandoffClaimExpires(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		s := ledger.NewStore(store)
		ref := workRef()
		writeHandoff(t, s, ledger.Write{Ref: ref})
		b, err := s.ClaimHandoff(t.Context(), ledger.ClaimSpec{Ref: ref, TTL: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		h := writeHandoff(t, s, ledger.Write{Ref: ref, Token: b.Token, Entries: steps(1, 1)})
		c, err := s.ClaimHandoff(t.Context(), ledger.ClaimSpec{Ref: ref, Agent: "c"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.WriteHandoff(t.Context(), ledger.Write{Ref: ref, IfVersion: h.Version, Token: b.Token})
		if !errors.Is(err, perdure.ErrLeaseLost) {
			t.Errorf("%v after %+v", err, c)
		}
	})
}

func TestHandoffRefusals(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		s := ledger.NewStore(store)
		good := ledger.Write{Ref: workRef(), Entries: steps(1, 1)}
		for name, spoil := range map[string]func(w *ledger.Write){
			"no place":  func(w *ledger.Write) { w.Place = "" },
			"no task":   func(w *ledger.Write) { w.Task = "" },
			"a NUL":     func(w *ledger.Write) { w.Task = "a\x00" },
			"no kind":   func(w *ledger.Write) { w.Entries[0].Kind = "" },
			"no object": func(w *ledger.Write) { w.Entries[0].Data = json.RawMessage(`[1]`) },
			"long data": func(w *ledger.Write) {
				w.Entries[0].Data = json.RawMessage(`{"a":"` + strings.Repeat("x", ledger.MaxEntryBytes) + `"}`)
			},
			"broken file":      func(w *ledger.Write) { w.Projected = json.RawMessage(`{`) },
			"too many":         func(w *ledger.Write) { w.Entries = steps(1, ledger.MaxBatch+1) },
			"a version":        func(w *ledger.Write) { w.IfVersion = 7 },
			"a token of old":   func(w *ledger.Write) { w.Token = "none" },
			"a source of more": func(w *ledger.Write) { w.Entries[0].Source = strings.Repeat("x", 5000) },
		} {
			w := good
			w.Entries = steps(1, 1)
			spoil(&w)
			_, err := s.WriteHandoff(t.Context(), w)
			if code := perdure.CodeOf(err); code != perdure.CodeInvalid && code != perdure.CodeConflict &&
				code != perdure.CodeLeaseLost {
				t.Errorf("%s: %v", name, err)
			}
		}
		if list, err := s.Handoffs(t.Context(), ledger.Filter{}); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// Retention removes ledgers some time after their end, and no others.
func TestHandoffRetention(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		s := ledger.NewStore(store)
		ended, open := workRef(), ledger.Ref{Place: "builder-state.json", Task: "adhoc:a1"}
		h := writeHandoff(t, s, ledger.Write{Ref: ended, Entries: steps(1, 3), End: true})
		writeHandoff(t, s, ledger.Write{Ref: open, Entries: steps(1, 3)})
		prune := func(keep time.Duration, dry bool) perdure.PruneReport {
			t.Helper()
			report, err := store.Prune(t.Context(), perdure.PruneRequest{Policy: perdure.RetentionPolicy{Handoffs: keep},
				DryRun: dry})
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
		if report := prune(0, false); report.Handoffs != 0 {
			t.Errorf("%+v", report)
		}
		for _, dry := range []bool{true, false} {
			if report := prune(time.Nanosecond, dry); report.Handoffs != 1 || report.Bytes != 30 {
				t.Errorf("dry %v: %+v", dry, report)
			}
		}
		if entries, err := s.HandoffEntries(t.Context(), h.ID, 0, 0); err != nil || len(entries) != 0 {
			t.Errorf("%+v, %v", entries, err)
		}
		if list, err := s.Handoffs(t.Context(), ledger.Filter{}); err != nil || len(list) != 1 || list[0].Task != open.Task {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
