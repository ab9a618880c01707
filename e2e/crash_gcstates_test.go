package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff/ledger"
)

// living and dead name the entries that retention keeps and removes in
// TestKillDuringGCOfStates.
const (
	livingSession = "login-1"
	deadTemporary = "scratch"
)

// fillStates creates a store with entries of every kind to remove and to keep.
func fillStates(t *testing.T, s *perdure.Store) {
	t.Helper()
	ctx := t.Context()
	set := func(ref perdure.StateRef, name, value string, ttl time.Duration) {
		t.Helper()
		if _, err := s.SetVar(ctx, ref, perdure.VarSpec{Name: name, Value: json.RawMessage(value), TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}
	long := `"` + strings.Repeat("long ", 3000) + `"`
	session := perdure.StateRef{Scope: perdure.ScopeSession, Session: livingSession}
	for i := range 14 {
		set(session, "kept", fmt.Sprintf(`%d`, i), 0)
		if _, err := s.SaveCheckpoint(ctx, session, fmt.Sprintf("at %d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	set(session, "expired", long, time.Microsecond)
	scratch := perdure.StateRef{Scope: perdure.ScopeTemporary, Name: deadTemporary}
	set(scratch, "gone", long, time.Microsecond)
	for i := range 2 {
		tree, err := s.CreateTree(ctx, perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}})
		if err != nil {
			t.Fatal(err)
		}
		ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}
		set(ref, "notes", long, 0)
		set(ref, "count", fmt.Sprintf(`%d`, i), 0)
		if i == 0 {
			set(ref, perdure.VarFinal, `"done"`, 0)
		}
	}
	for _, task := range []string{"prd:done", "prd:open"} {
		entries := make([]ledger.Entry, 20)
		for i := range entries {
			entries[i] = ledger.Entry{Kind: "step", Data: json.RawMessage(`{"step":"x"}`)}
		}
		_, err := ledger.NewStore(s).WriteHandoff(ctx, ledger.Write{Ref: ledger.Ref{Place: "builder-state.json", Task: task},
			Entries: entries, End: task == "prd:done"})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkLiving checks that the store has all entries that retention keeps.
func checkLiving(t *testing.T, s *perdure.Store) {
	t.Helper()
	ctx := t.Context()
	v, err := s.Var(ctx, perdure.StateRef{Scope: perdure.ScopeSession, Session: livingSession}, "kept")
	if err != nil || string(v.Value) != "13" {
		t.Errorf("kept is %s, %v", v.Value, err)
	}
	list, err := s.Checkpoints(ctx, perdure.StateRef{Scope: perdure.ScopeSession, Session: livingSession})
	if err != nil || len(list) < 10 || list[len(list)-1].Name != "at 13" {
		t.Errorf("checkpoints %v, %v", list, err)
	}
	trees, err := s.Trees(ctx, perdure.TreeFilter{})
	if err != nil || len(trees) == 0 || trees[len(trees)-1].State.Terminal() && trees[0].State.Terminal() {
		t.Fatalf("trees %v, %v", trees, err)
	}
	for _, tree := range trees {
		v, err := s.Var(ctx, perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID}, "notes")
		if err != nil || len(v.Value) < 15_000 {
			t.Errorf("notes of %s: %d bytes, %v", tree.ID, len(v.Value), err)
		}
	}
	handoffs, err := ledger.NewStore(s).Handoffs(ctx, ledger.Filter{})
	if err != nil || len(handoffs) == 0 || handoffs[0].Task != "prd:open" {
		t.Fatalf("handoffs %v, %v", handoffs, err)
	}
	for _, h := range handoffs {
		if entries, err := ledger.NewStore(s).HandoffEntries(ctx, h.ID, 0, 0); err != nil || len(entries) != 20 {
			t.Errorf("%s has %d entries, %v", h.Task, len(entries), err)
		}
	}
}

// TestKillDuringGCOfStates kills retention at each of its transactions in the
// midst of removing states, checkpoints, trees with variables and ledgers: what
// is left is sound and has all that is to be kept, and the next run finishes.
func TestKillDuringGCOfStates(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"tx.before_commit", "tx.after_commit", "prune.after_step"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				b := newBed(t, "hash")
				s := b.open()
				fillStates(t, s)
				gc := []string{"gc", "--retention-completed", "1us", "--retention-handoffs", "1us"}
				out, err := b.command([]string{fmt.Sprintf("PERDURE_FAILPOINT=%s:%d", point, n)}, gc...).CombinedOutput()
				if err != nil && !killed(err) {
					t.Fatalf("%v\n%s", err, out)
				}
				sound(t, s)
				checkLiving(t, s)
				if again, err := b.command(nil, gc...).CombinedOutput(); err != nil {
					t.Fatalf("gc again: %v\n%s", err, again)
				}
				sound(t, s)
				checkLiving(t, s)
				checkGone(t, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if !killed(err) {
					if n < 4 {
						t.Errorf("%s is passed %d times only", point, n-1)
					}
					return
				}
			}
		})
	}
}

func checkGone(t *testing.T, s *perdure.Store) {
	t.Helper()
	ctx := t.Context()
	trees, errTrees := s.Trees(ctx, perdure.TreeFilter{})
	handoffs, errHandoffs := ledger.NewStore(s).Handoffs(ctx, ledger.Filter{})
	list, errChecks := s.Checkpoints(ctx, perdure.StateRef{Scope: perdure.ScopeSession, Session: livingSession})
	info, errState := s.State(ctx, perdure.StateRef{Scope: perdure.ScopeSession, Session: livingSession})
	for _, err := range []error{errTrees, errHandoffs, errChecks, errState} {
		if err != nil {
			t.Error(err)
		}
	}
	if len(trees) != 1 || len(handoffs) != 1 || len(list) != 10 || info.Variables != 1 {
		t.Errorf("left are %d trees, %d ledgers, %d checkpoints and %d variables of the session", len(trees), len(handoffs),
			len(list), info.Variables)
	}
}
