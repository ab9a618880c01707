package record_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/loop/record"
)

// began is when the first iteration of these tests did.
var began = time.Date(2026, 2, 2, 21, 0, 0, 0, time.UTC)

// repeated is an iteration of a minute, as an engine leaves it.
func repeated(number, quality int, status record.IterationStatus, data string) record.Iteration {
	ended := began.Add(time.Duration(number+1) * time.Minute)
	return record.Iteration{Number: number, Status: status, Quality: &quality, Data: json.RawMessage(data),
		StartedAt: ended.Add(-time.Minute), EndedAt: &ended}
}

// history are n iterations and the baseline: every tenth made two things worse and
// was reverted, every seventh passed, every ninth had a warning.
func history(n int) []record.Iteration {
	list := []record.Iteration{repeated(0, 10, record.IterationKept,
		`{"warnings":["of the baseline"],"agent_error":"none"}`)}
	for i := 1; i <= n; i++ {
		status, regressions, warnings := record.IterationKept, `[]`, `[]`
		if i%10 == 0 {
			status = record.IterationReverted
			regressions = `[{"regression_type":"test_deletion","severity":"critical","text":"gone","tests":["TestA"]},
			{"regression_type":"test_failure","severity":"high","text":"fails"}]`
		}
		if i%9 == 0 {
			warnings = `["slow","slower"]`
		}
		list = append(list, repeated(i, i*37%90, status, fmt.Sprintf(`{"iteration":%d,"snapshot_path":"s%d",
			"artifacts":["a.go"],"files_changed":1,"agent_text":"words",
			"test_results":{"command":"make test","passed":%v,"output":"a long text","failing":["TestB"],"counts":{"tests":7},
			"took_ms":5},
			"metrics":{"coverage_percentage":81.5,"coverage_profile":"blob","coverage_loss":{"still":4,"lost":1,
			"files":[{"file":"a.go"}]}},
			"regressions":%s,"recovery_history":[{"iteration":%d}],"warnings":%s,"sealed":{"state":"passed",
			"notes":["a long text"],"took_ms":7},"times":{"agent_ms":100,"check_ms":20,"metrics_ms":3,"snapshot_ms":4,
			"hooks_ms":1,"engine_ms":2}}`,
			i, i, i%7 == 0, regressions, i, warnings)))
	}
	running := record.Iteration{Number: n + 1, Status: record.IterationRunning, Data: json.RawMessage(`{}`),
		StartedAt: began.Add(time.Hour)}
	return append(list, running)
}

// begin makes a loop with iterations.
func begin(t *testing.T, s *perdure.Store, list []record.Iteration) perdure.TreeID {
	t.Helper()
	b := record.Beginning{Loop: record.Loop{Place: ":/x", Status: record.Paused, Step: "next", Iteration: len(list) - 1,
		State: json.RawMessage(`{}`)}, Iterations: list}
	tree, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: perdure.KindLoop,
		Root: perdure.TaskSpec{Prompt: "Fix it"}, InTx: b.InTx})
	if err != nil {
		t.Fatal(err)
	}
	return tree.ID
}

// looked is what can be seen of a loop by its briefs.
type looked struct {
	Briefs, Regressed, Candidates []record.Iteration
	History                       record.History
}

func look(t *testing.T, s *perdure.Store, tree perdure.TreeID) (l looked) {
	t.Helper()
	r, err := record.New(s), error(nil)
	for _, read := range []func() error{
		func() error { l.Briefs, err = r.Briefs(t.Context(), tree, 0, 10_000); return err },
		func() error { l.Regressed, err = r.Regressed(t.Context(), tree, 31, 2); return err },
		func() error { l.Candidates, err = r.Candidates(t.Context(), tree, 50); return err },
		func() error {
			l.History, err = r.LoopHistory(t.Context(), tree, record.HistoryRequest{Threshold: 50, Each: 20, Below: 35})
			return err
		},
	} {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the store: %v, %v", problems, err)
	}
	return l
}

// A brief is the iteration without what is long, and the sums are those of all.
func TestBriefs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		all := history(40)
		tree := begin(t, s, all)
		l := look(t, s, tree)
		if len(l.Briefs) != 42 {
			t.Fatalf("%d briefs", len(l.Briefs))
		}
		for i, b := range l.Briefs {
			for _, long := range []string{"a long text", "TestB", "words", "artifacts", "blob", "files\":["} {
				if strings.Contains(string(b.Data), long) {
					t.Errorf("the brief of iteration %d has %q: %s", i, long, b.Data)
				}
			}
			b.Data, b.Task = all[i].Data, all[i].Task
			if diff := cmp.Diff(all[i], b); diff != "" {
				t.Error(diff)
			}
		}
		for _, want := range []string{`"snapshot_path":"s10"`, `"tests":["TestA"]`, `"coverage_percentage":81.5`, `"lost":1`,
			`"counts":{"tests":7}`, `"agent_ms":100`} {
			if !strings.Contains(string(l.Briefs[10].Data), want) {
				t.Errorf("%s is missing: %s", want, l.Briefs[10].Data)
			}
		}
		if n := len(l.Regressed); n != 2 || l.Regressed[0].Number != 30 || l.Regressed[1].Number != 20 {
			t.Errorf("regressed %+v", l.Regressed)
		}
		var numbers []int
		for _, c := range l.Candidates {
			numbers = append(numbers, c.Number)
		}
		if want := wantCandidates(all, 50); !slices.Equal(numbers, want) {
			t.Errorf("candidates %v, want %v", numbers, want)
		}
		want := record.History{Iterations: 41, Kept: 36, Reverted: 4, Running: 1, TookMicros: 40 * 60_000_000,
			WorkMS: 40 * 123, AddedMS: 40 * 7, Recoveries: 40,
			Warnings: 8, LastWarning: 36, LastSealed: 40, Candidates: l.Candidates,
			Regressions: []record.Tally{{Type: "test_deletion", Severity: "critical", Count: 4, First: 10, Last: 40},
				{Type: "test_failure", Severity: "high", Count: 4, First: 10, Last: 40}},
			Columns: []record.Column{columnOf(all[1:21]), columnOf(all[21:35])}}
		if diff := cmp.Diff(want, l.History); diff != "" {
			t.Error(diff)
		}
	})
}

// wantCandidates finds them the long way.
func wantCandidates(all []record.Iteration, threshold int) (list []int) {
	chosen := make(map[int]bool)
	for _, passed := range []bool{true, false} {
		best, latest := 0, 0
		for i := 1; i < len(all)-1; i++ {
			if i%10 == 0 || (i%7 == 0) != passed {
				continue
			}
			if best == 0 || *all[i].Quality > *all[best].Quality {
				best = i
			}
			if *all[i].Quality >= threshold {
				latest = i
			}
		}
		chosen[best], chosen[latest] = true, true
	}
	for i := 1; i < len(all); i++ {
		if chosen[i] {
			list = append(list, i)
		}
	}
	return list
}

func columnOf(list []record.Iteration) record.Column {
	c := record.Column{From: list[0].Number, To: list[len(list)-1].Number, Lowest: 101, Highest: -1}
	for _, it := range list {
		q := *it.Quality
		c.Measured, c.Sum, c.Lowest = c.Measured+1, c.Sum+int64(q), min(c.Lowest, q)
		if q > c.Highest {
			c.Highest, c.HighestAt = q, it.Number
		}
		if it.Number%10 == 0 {
			c.Regressed, c.Reverted = c.Regressed+1, c.Reverted+1
		}
	}
	return c
}

// What is saved of an iteration again is what its brief says.
func TestBriefFollows(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, store *perdure.Store) {
		b := newBench(t, store)
		it := repeated(1, 80, record.IterationKept, `{"snapshot_path":"s","warnings":["slow"]}`)
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Iteration: &it}))
		list, err := b.records.Candidates(t.Context(), b.tree.ID, 0)
		if err != nil || len(list) != 1 {
			t.Fatalf("candidates %+v, %v", list, err)
		}
		it.Status, it.Data = record.IterationReverted,
			json.RawMessage(`{"snapshot_path":"s","regressions":[{"regression_type":"x","severity":"low"}]}`)
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Iteration: &it}))
		h, err := b.records.LoopHistory(t.Context(), b.tree.ID, record.HistoryRequest{})
		b.ok(err)
		if h.Reverted != 1 || h.Kept != 0 || h.Warnings != 0 || h.Total() != 1 || len(h.Candidates) != 0 {
			t.Errorf("history %+v", h)
		}
		it.Data = json.RawMessage(`{"warnings":7}`) // is JSON, and no record
		b.ok(b.records.Save(t.Context(), b.lease, record.Change{Loop: &b.loop, Iteration: &it}))
		if h, err = b.records.LoopHistory(t.Context(), b.tree.ID, record.HistoryRequest{}); err != nil || h.Iterations != 1 ||
			h.Total() != 0 {
			t.Errorf("history of a record that cannot be read: %+v, %v", h, err)
		}
	})
}

// An older store has no briefs: they are made at the first query, and are the
// same.
func TestOlderStore(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, err := perdure.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		tree := begin(t, s, history(450)) // several pages
		want := look(t, s, tree)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		change(t, cfg, "DROP TABLE brief", "ALTER TABLE loop DROP COLUMN briefs", "DROP TABLE gate_task",
			"DROP TABLE false_alarm", "ALTER TABLE event DROP COLUMN link",
			"ALTER TABLE tree_stat DROP COLUMN events", "ALTER TABLE tree_stat DROP COLUMN head",
			"ALTER TABLE tree_stat DROP COLUMN unchained", "ALTER TABLE seq DROP COLUMN events",
			"ALTER TABLE seq DROP COLUMN head", "ALTER TABLE seq DROP COLUMN unchained",
			"ALTER TABLE seq DROP COLUMN store", "ALTER TABLE gate DROP COLUMN approver",
			"ALTER TABLE gate DROP COLUMN token", "ALTER TABLE gate DROP COLUMN refused",
			"ALTER TABLE tree DROP COLUMN reopened", "ALTER TABLE tree DROP COLUMN reopened_at",
			"ALTER TABLE task_hot DROP COLUMN replays", "ALTER TABLE tree DROP COLUMN request",
			"DROP TABLE unused_task", "DROP TABLE repl_block", "ALTER TABLE payload DROP COLUMN packed",
			"DROP TABLE finding",
			"DELETE FROM migration WHERE number >= 8")
		s = testdb.Open(t, cfg)
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("before the first check: %v, %v", problems, err)
		}
		if diff := cmp.Diff(want, look(t, s, tree)); diff != "" {
			t.Errorf("-as written +as made from the records:\n%s", diff)
		}
		if _, err := record.New(s).Briefs(t.Context(), "tree-00000000", 0, 1); code(err) != perdure.CodeNotFound {
			t.Errorf("briefs of no loop: %v", err)
		}
	})
}

// When briefs are written anew, those iterations keep their digest in the log that another
// program changed: verify-log names them, and no others.
func TestRewrittenBriefsHideNoChange(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		s, err := perdure.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		tree := begin(t, s, history(12))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		change(t, cfg, "UPDATE iteration SET quality = 99 WHERE number = 3", "UPDATE loop SET briefs = 0")
		s = testdb.Open(t, cfg)
		if list, err := record.New(s).Briefs(t.Context(), tree, 3, 1); err != nil || *list[0].Quality != 99 {
			t.Errorf("briefs %+v, %v", list, err)
		}
		r, err := s.VerifyLog(t.Context(), tree)
		if err != nil || len(r.Trees) != 1 || len(r.Trees[0].Faults) != 1 ||
			r.Trees[0].Faults[0].Detail != "iteration 3 was changed outside of perdure" {
			t.Errorf("verified %+v, %v", r, err)
		}
	})
}

// A brief that is not that of its iteration is found.
func TestCheckFindsBriefs(t *testing.T) {
	t.Parallel()
	testdb.EachConfig(t, func(t *testing.T, cfg perdure.Config) {
		for _, wrong := range []string{"UPDATE brief SET quality = 1 WHERE number = 3",
			"UPDATE brief SET status = 'kept' WHERE number = 10", "DELETE FROM brief WHERE number = 3",
			"DELETE FROM iteration WHERE number = 3"} {
			s, err := perdure.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			tree := begin(t, s, history(12))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			change(t, cfg, wrong)
			if s, err = perdure.Open(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			problems, err := s.Check(t.Context())
			if err != nil || len(problems) != 1 || !strings.Contains(fmt.Sprint(problems), "iteration_briefs") ||
				!strings.Contains(fmt.Sprint(problems), string(tree)) {
				t.Errorf("%s: %v, %v", wrong, problems, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			change(t, cfg, "DELETE FROM loop", "DELETE FROM iteration", "DELETE FROM brief")
		}
	})
}

// change runs statements on the database of a store that is closed.
func change(t *testing.T, cfg perdure.Config, statements ...string) {
	t.Helper()
	driver, dsn := "pgx", cfg.DSN
	if dsn == "" {
		driver, dsn = "sqlite", filepath.Join(cfg.Dir, "perdure.db")
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range statements {
		if _, e := db.ExecContext(t.Context(), text); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", text, e))
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
