package perdure_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/heads"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// withHeads returns the configuration with a folder for heads.
func withHeads(t *testing.T, cfg perdure.Config) perdure.Config {
	t.Helper()
	cfg.Heads = filepath.Join(t.TempDir(), "heads")
	return cfg
}

// ended creates a tree of four tasks and completes it.
func ended(t *testing.T, s *perdure.Store) perdure.Tree {
	t.Helper()
	r := leased(t, s, perdure.TreeSpec{})
	submit(t, s, r.tree.Root, 3)
	for _, l := range claim(t, r.ss, 3) {
		complete(t, l, "part")
	}
	complete(t, r.root, "whole")
	return r.tree
}

func change(t *testing.T, s *perdure.Store, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if err := s.Change(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// The chain is the documented one: SHA-256 over the previous head and the columns.
func TestChainOfEvents(t *testing.T) {
	t.Parallel()
	var h chain.Hasher
	var s chain.State
	link := h.Add(&s, &chain.Event{Seq: 1, At: 2, Tree: 3, Task: 4, Kind: "task.started", Data: `{"attempt":1}`})
	const first = "5e95a5bd"
	if got := s.Head.String()[:8]; s.Events != 1 || got != first || uint32(link) != 0x5e95a5bd {
		t.Errorf("after one event: %d events, head %s…, link %x", s.Events, got, uint32(link))
	}
	h.Add(&s, &chain.Event{Seq: 2, At: 2, Tree: 3, Kind: "task.", Data: `started`})
	var parsed chain.Head
	if err := parsed.Parse(s.Head.String()); err != nil || parsed != s.Head {
		t.Errorf("a head that was written and read: %s, %v", parsed.String(), err)
	}
	for _, text := range []string{"00", strings.Repeat("0", 63), strings.Repeat("0", 66), strings.Repeat("x", 64)} {
		if parsed.Parse(text) == nil {
			t.Errorf("%q is a head", text)
		}
	}
}

// Many goroutines and two processes write, and the chains are intact, on both databases.
func TestChainOfConcurrentWriters(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		cfg = withHeads(t, cfg)
		stores := []*perdure.Store{testdb.Open(t, cfg), testdb.Open(t, cfg)}
		shared := createTree(t, stores[0], perdure.TreeSpec{})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				s := stores[i%2]
				for range 5 {
					if _, err := s.Submit(t.Context(), shared.Root, perdure.TaskSpec{}); err != nil {
						t.Error(err)
					}
					if _, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		sound(t, stores[0])
		s := stores[0]
		perdure.RecordHeads(t.Context(), s)
		r, err := s.VerifyLog(t.Context(), shared.ID)
		if err != nil || !r.Intact || len(r.Trees) != 1 || r.Trees[0].Events != 42 || r.Trees[0].Recorded == 0 {
			t.Errorf("verified %+v, %v", r, err)
		}
		_, err = s.VerifyLog(t.Context(), "tree-00000000")
		wantCode(t, "a tree that is not there", err, perdure.CodeNotFound)
	})
}

// Each change of an event is found, and the first event that differs is named.
func TestChangedEventsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, statement, want string }{
		{"data", `UPDATE event SET data = '{"attempt":2}' WHERE seq = 4`, "event_changed 4: event 4 was changed"},
		{"kind", `UPDATE event SET kind = 'task.failed' WHERE seq = 5`, "event_changed 5: event 5 was changed"},
		{"time", `UPDATE event SET at = at + 1 WHERE seq = 1`, "event_changed 1: event 1 was changed"},
		{"deleted", `DELETE FROM event WHERE seq = 6`, "event_missing 7: 1 event is missing before event 7"},
		{"last deleted", `DELETE FROM event WHERE seq > 11`, "event_missing 11: 3 events are missing after event 11"},
		{"inserted", `INSERT INTO event (seq, at, tree, task, kind, data) SELECT 99, at, tree, task, kind, data
			FROM event WHERE seq = 3`, "event_inserted 99: event 99 was inserted, or one before it was changed"},
		{"of no tree", `INSERT INTO event (seq, at, tree, task, kind, data) VALUES (99, 1, 77, 0, 'x.y', '{}')`,
			" event_inserted 99: the event belongs to no tree of the store"},
		{"exchanged", `UPDATE event SET data = CASE seq WHEN 8 THEN (SELECT data FROM event WHERE seq = 2)
			ELSE (SELECT data FROM event WHERE seq = 8) END WHERE seq IN (2, 8)`, "event_changed 2: event 2 was changed"},
		{"head", `UPDATE tree_stat SET head = '` + strings.Repeat("0", 64) + `'`,
			"head_changed 14: event 14 is not the recorded end of the log"},
		{"tree", `DELETE FROM tree`, "tree_missing 0: the tree was removed, and not by retention"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, s *perdure.Store) {
				ended(t, s)
				sound(t, s)
				change(t, s, c.statement)
				if got := strings.Join(logFaults(t, s), "\n"); !strings.HasSuffix(got, c.want) {
					t.Errorf("%s\nfound %s\nwant  %s", c.statement, got, c.want)
				}
			})
		})
	}
}

// rechain makes the chains in the database match its events, as an attacker does who knows
// the format.
func rechain(t *testing.T, s *perdure.Store) {
	t.Helper()
	rows, err := s.Fetch(t.Context(), `SELECT seq FROM event ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	var h chain.Hasher
	states := make(map[int64]*chain.State)
	for _, row := range rows {
		var e chain.Event
		seq := strings.TrimPrefix(row, "seq=")
		if err := s.ReadEvent(t.Context(), seq, &e); err != nil {
			t.Fatal(err)
		}
		if states[e.Tree] == nil {
			states[e.Tree] = &chain.State{}
		}
		change(t, s, fmt.Sprintf(`UPDATE event SET link = %d WHERE seq = %s`, h.Add(states[e.Tree], &e), seq))
	}
	for tree, state := range states {
		change(t, s, fmt.Sprintf(`UPDATE tree_stat SET events = %d, head = '%s' WHERE tree = %d`, state.Events,
			state.Head.String(), tree))
	}
}

// recorded is a store with a tree that has ended, whose head is recorded outside.
func recorded(t *testing.T, cfg perdure.Config) (*perdure.Store, perdure.Tree) {
	t.Helper()
	s := testdb.Open(t, withHeads(t, cfg))
	tree := ended(t, s)
	perdure.RecordHeads(t.Context(), s)
	return s, tree
}

// A log that was rewritten with all its hashes differs from the head recorded outside, and so
// does an earlier copy of the database.
func TestRecordedHeads(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, tree := recorded(t, cfg)
		change(t, s, `UPDATE event SET data = '{"attempt":2}' WHERE seq = 4`)
		rechain(t, s)
		want := string(tree.ID) + " recorded_head 14: event 14 or"
		if got := logFaults(t, s); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("a rewritten log: %q", got)
		}
		change(t, s, `DELETE FROM event WHERE seq > 10`)
		change(t, s, `UPDATE event SET data = '{"attempt":1,"fence":2}' WHERE seq = 4`)
		rechain(t, s)
		got := logFaults(t, s)
		if len(got) != 4 || !strings.Contains(got[3], "log_shorter 10: the log ends with 10 events") {
			t.Errorf("a shortened log: %q", got)
		}
		rows := got[:3] // the results without an event
		change(t, s, `UPDATE seq SET store = 'another'`)
		if got := logFaults(t, s); len(got) != 4 || !strings.Contains(got[0], "store_replaced 0: the ID of the store") {
			t.Errorf("another ID: %q", got)
		}
		file, err := s.VerifyLog(t.Context())
		if err = errors.Join(err, os.Remove(file.Heads)); err != nil {
			t.Fatal(err)
		}
		if got := logFaults(t, s); !slices.Equal(got, rows) {
			t.Errorf("without the file: %q, want %q", got, rows)
		}
	})
}

// The state of a restored backup is accepted, and counts from then on; what a restore does not
// cause is not accepted.
func TestAcceptLog(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, tree := recorded(t, cfg)
		verified := func() *perdure.LogReport {
			r, err := s.VerifyLog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return &r
		}
		lines, err := heads.Read(verified().Heads)
		if err != nil || len(lines) == 0 {
			t.Fatalf("recorded %+v, %v", lines, err)
		}
		later, gone := lines[len(lines)-1], lines[len(lines)-1]
		later.Events += 5
		gone.Key, gone.Tree = 99, "tree-00000099"
		if err := heads.Append(verified().Heads, []heads.Line{later, gone}); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(logFaults(t, s), "\n")
		if !strings.HasPrefix(got, string(tree.ID)+" log_shorter") || !strings.Contains(got, "\ntree-00000099 tree_missing") {
			t.Errorf("restored: %s", got)
		}
		r := verified()
		if err := s.AcceptLog(t.Context(), r); err != nil || !r.Accepted {
			t.Errorf("accepted %v, %v", r.Accepted, err)
		}
		sound(t, s)
		if r := verified(); !r.Intact || r.Trees[len(r.Trees)-1].Recorded != later.Events-5 {
			t.Errorf("verified %+v", r)
		}
		change(t, s, `DELETE FROM tree`)
		wantCode(t, "accept a tree that was removed by hand", s.AcceptLog(t.Context(), verified()), perdure.CodeConflict)
	})
}

// A new store in the place of one with the same trees is accepted, as after an export was imported
// again; what is changed in it later is found.
func TestAcceptNewStore(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, tree := recorded(t, cfg)
		r, err := s.VerifyLog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old := heads.Line{Store: "removed", Tree: string(tree.ID), Key: 7, Events: 5, Head: "h"}
		if err := heads.Append(r.Heads, []heads.Line{old}); err != nil {
			t.Fatal(err)
		}
		if r, err = s.VerifyLog(t.Context()); err != nil || r.Intact {
			t.Fatalf("the lines of another store are no fault: %+v, %v", r, err)
		}
		if err := s.AcceptLog(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		sound(t, s)
		change(t, s, `UPDATE event SET data = '{"attempt":2}' WHERE seq = 4`)
		if got := logFaults(t, s); len(got) == 0 {
			t.Error("a later change is not found")
		}
	})
}

// Retention takes a tree with its chain, and says so in the log; a tree that is removed in
// another way is missing.
func TestChainAndRetention(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		cfg = withHeads(t, cfg)
		s := testdb.Open(t, cfg)
		first, second := ended(t, s), ended(t, s)
		perdure.RecordHeads(t.Context(), s)
		if err := perdure.ForgetTree(t.Context(), s, first.ID); err != nil { // as if it died here
			t.Fatal(err)
		}
		sound(t, s)
		prune(t, s, perdure.PruneRequest{})
		sound(t, s)
		perdure.RecordHeads(t.Context(), s)
		sound(t, s)
		change(t, s, `DELETE FROM event WHERE tree = 2`, `DELETE FROM event_block WHERE tree = 2`,
			`DELETE FROM tree_stat WHERE tree = 2`, `DELETE FROM tree WHERE id = 2`)
		if got := logFaults(t, s); len(got) != 1 || !strings.HasPrefix(got[0], string(second.ID)+" tree_missing") {
			t.Errorf("a tree that was removed by hand: %q", got)
		}
	})
}

// The chain of a store of an earlier version begins with the upgrade.
func TestChainBeginsAtTheUpgrade(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		change(t, s, `UPDATE event SET link = NULL`, `UPDATE tree_stat SET events = 0, head = '', unchained = 3`)
		perdure.ForgetCache(t.Context(), s)
		complete(t, r.root, "done")
		v, err := s.VerifyLog(t.Context())
		if err != nil || !v.Intact || len(v.Trees) != 1 || v.Trees[0].Unchained != 3 || v.Trees[0].First != 4 ||
			v.Trees[0].Events != 2 {
			t.Errorf("verified %+v, %v", v, err)
		}
	})
}

// Each change of a row whose digest is in the log is found, and the row is named.
func TestChangedRowsAreFound(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree, _, _ := waiting(t, s, 1)
		_, err := s.AnswerGate(t.Context(), tree.ID, 1, perdure.GateDecision{Answer: perdure.AnswerManual, Text: "written",
			By: "user"})
		if err != nil {
			t.Fatal(err)
		}
		r := leased(t, s, perdure.TreeSpec{})
		call := begin(t, r.root, 0, "hash")
		err = r.root.SettleCall(t.Context(), call.ID, perdure.CallResult{Response: "answer", Tries: 1, InputTokens: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range []perdure.StateRef{{Scope: perdure.ScopeGlobal}, {Scope: perdure.ScopeTree, Tree: r.tree.ID}} {
			if _, err := s.SetVar(t.Context(), ref, perdure.VarSpec{Name: "v", Value: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		complete(t, r.root, strings.Repeat("long ", 4000))
		sound(t, s)
		known := 0
		for _, c := range []struct{ statement, want string }{
			{`UPDATE gate_task SET text = 'another'`, string(tree.ID) + " row_changed 0: gate answer of task-0002 was changed"},
			{`UPDATE task SET prompt = 'another' WHERE id = 2`, string(tree.ID) + " row_changed 0: prompt of task-0002 was changed"},
			{`UPDATE call SET response = 'another'`, "row_changed 0: call-0001 was changed"},
			{`INSERT INTO call (id, tree, task, attempt, position, fence, state, model, request_hash, open_tokens,
				open_cost_micros, started_at, response, data, error_kind, error, tries, input_tokens, output_tokens,
				cached_tokens, estimated) SELECT 99, tree, task, attempt, 1, fence, state, model, request_hash, open_tokens,
				open_cost_micros, started_at, response, data, error_kind, error, tries, input_tokens, output_tokens,
				cached_tokens, estimated FROM call WHERE id = 1`, "row_changed 0: call-0099 was inserted"},
			{`UPDATE payload SET text = 'another'`, "row_changed 0: the long value "},
			{`UPDATE task_end SET result = 'another'`, string(r.tree.ID) + " row_changed 0: result of task-0003 was changed"},
			{`INSERT INTO task_end SELECT 1, 1, result, data, error_kind, error, ended_at FROM task_end`,
				string(tree.ID) + " row_changed 0: result of task-0001 was inserted"},
			{`UPDATE variable SET value = '2' WHERE name = 'v' AND state = (SELECT id FROM state WHERE tree = 0)`,
				` row_changed 0: variable "v" of state-`},
			{`DELETE FROM variable WHERE name = 'v' AND state = (SELECT MAX(id) FROM state WHERE tree > 0)`,
				string(r.tree.ID) + ` row_changed 0: variable "v" of state-`},
		} {
			change(t, s, c.statement)
			got := logFaults(t, s)
			if known++; len(got) != known || !strings.Contains(strings.Join(got, "\n"), c.want) {
				t.Errorf("%s\nfound %s\nwant  %s", c.statement, strings.Join(got, "\n"), c.want)
			}
		}
	})
}

// Rows that an earlier version wrote have no digests in the log, which is no fault.
func TestRowsWithoutDigests(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		r := leased(t, s, perdure.TreeSpec{})
		ref := perdure.StateRef{Scope: perdure.ScopeGlobal}
		if _, err := s.SetVar(t.Context(), ref, perdure.VarSpec{Name: "v", Value: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		complete(t, r.root, "done")
		change(t, s, `UPDATE event SET data = '{}' WHERE kind LIKE 'task.%'`,
			`UPDATE event SET data = '{"name":"v","state_id":"state-00000005"}' WHERE kind = 'variable.set'`,
			`UPDATE task_end SET result = 'of an earlier version'`)
		rechain(t, s)
		for _, fault := range logFaults(t, s) {
			if strings.Contains(fault, "row_changed") {
				t.Error(fault)
			}
		}
	})
}
