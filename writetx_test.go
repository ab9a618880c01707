package perdure_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// notes is how a test keeps rows of its own in a store.
const (
	createNotes = `CREATE TABLE test_note (tree BIGINT NOT NULL, text TEXT NOT NULL)`
	insertNote  = `INSERT INTO test_note (tree, text) VALUES ($1, $2)`
	countNotes  = `SELECT COUNT(*) FROM test_note WHERE tree = $1`
	listNotes   = `SELECT text FROM test_note WHERE tree = $1 ORDER BY text`
)

func countOf(t *testing.T, q perdure.Querier, key int64) (n int) {
	t.Helper()
	if err := q.QueryRow(t.Context(), countNotes, key).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Rows of another package change together with events, or not at all.
func TestWriteTx(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree := createTree(t, s, perdure.TreeSpec{})
		before := len(allEvents(t, s))
		var key int64
		write := func(fail error) error {
			return s.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) (err error) {
				if key, err = tx.TreeKey(ctx, tree.ID); err != nil {
					return err
				}
				if n, err := tx.Exec(ctx, insertNote, key, "a"); err != nil || n != 1 {
					return fmt.Errorf("inserted %d: %w", n, err)
				}
				if err := tx.AppendEvent(key, tree.Root, "test.note", map[string]int{"n": 1}); err != nil {
					return err
				}
				return fail
			})
		}
		err := s.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
			_, err := tx.Exec(ctx, createNotes)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		own := errors.New("own reason")
		for _, refusal := range []error{own, &perdure.Error{Code: perdure.CodeConflict},
			fmt.Errorf("wrapped: %w", perdure.ErrNotFound)} {
			if err := write(refusal); !errors.Is(err, refusal) {
				t.Errorf("refused with %v, want %v", err, refusal)
			}
			if n, events := countOf(t, s.Reader(), key), len(allEvents(t, s)); n != 0 || events != before {
				t.Errorf("after %v there are %d rows and %d events more", refusal, n, events-before)
			}
		}
		if err := write(nil); err != nil {
			t.Fatal(err)
		}
		if n, events := countOf(t, s.Reader(), key), len(allEvents(t, s)); n != 1 || events != before+1 {
			t.Errorf("there are %d rows and %d events more, want one of each", n, events-before)
		}
		err = s.Reader().QueryRow(t.Context(), listNotes, key+1).Scan(new(string))
		if !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("a row that is not there: %v", err)
		}
	})
}

// What is committed while a ReadTx runs is not seen in it.
func TestReadTx(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree := createTree(t, s, perdure.TreeSpec{})
		insert := func() {
			t.Helper()
			err := s.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
				key, err := tx.TreeKey(ctx, tree.ID)
				if err == nil {
					_, err = tx.Exec(ctx, insertNote, key, "a")
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := s.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
			_, err := tx.Exec(ctx, createNotes)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		insert()
		err = s.ReadTx(t.Context(), func(ctx context.Context, tx *perdure.ReadTx) error {
			key, err := tx.TreeKey(ctx, tree.ID)
			if err != nil {
				return err
			}
			first := countOf(t, tx, key)
			insert()
			if again, now := countOf(t, tx, key), countOf(t, s.Reader(), key); first != 1 || again != 1 || now != 2 {
				t.Errorf("the snapshot has %d and then %d rows, the store %d", first, again, now)
			}
			if since := time.Since(tx.Now()); since < 0 || since > time.Hour {
				t.Errorf("the transaction began %s ago", since)
			}
			_, err = tx.TreeKey(ctx, "tree-00000000")
			return err
		})
		if !errors.Is(err, perdure.ErrNotFound) || perdure.HintOf(err) == "" {
			t.Errorf("a tree that is not there: %v", err)
		}
	})
}

// Variables that a transaction sets are there after the task is run again, unlike those of
// Lease.SetVar; nothing of a refused transaction is.
func TestSetVarsIsNotUndone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		tree := createTree(t, s, perdure.TreeSpec{Root: perdure.TaskSpec{Prompt: "p"}})
		l := claimOne(t, openSession(t, s))
		set := func(gone []string, names ...string) error {
			specs := make([]perdure.VarSpec, len(names))
			for i, name := range names {
				specs[i] = perdure.VarSpec{Name: name, Value: json.RawMessage(`[1]`)}
			}
			return s.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
				return tx.SetVars(ctx, l, specs, gone)
			})
		}
		if err := set(nil, "kept", "gone"); err != nil {
			t.Fatal(err)
		}
		if err := set([]string{"gone", "never"}, "other"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{perdure.VarFinal, perdure.VarPrompt, "no name"} {
			if err := set(nil, "refused", name); perdure.CodeOf(err) != perdure.CodeInvalid {
				t.Errorf("variable %q: %v", name, err)
			}
		}
		fixed := perdure.VarSpec{Name: "fixed", Value: json.RawMessage(`2`), ReadOnly: true}
		if _, err := s.SetVar(t.Context(), treeState(tree), fixed); err != nil {
			t.Fatal(err)
		}
		if err := set([]string{"fixed"}, "fixed", "later"); err != nil {
			t.Errorf("a read-only variable: %v", err)
		}
		if v, err := s.Var(t.Context(), treeState(tree), "fixed"); err != nil || string(v.Value) != "2" {
			t.Errorf("the read-only variable is %s, %v", v.Value, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := set(nil, "late"); !errors.Is(err, perdure.ErrLeaseLost) {
			t.Errorf("after the lease: %v", err)
		}
		l = claimOne(t, openSession(t, s))
		vars, err := s.Vars(t.Context(), treeState(tree), perdure.VarFilter{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range vars {
			names = append(names, v.Name)
		}
		if want := []string{"Final", "fixed", "kept", "later", "other", "prompt"}; !slices.Equal(names, want) {
			t.Errorf("variables %q, want %q", names, want)
		}
		many := make([]string, perdure.MaxVariables+1)
		for i := range many {
			many[i] = fmt.Sprintf("v%d", i)
		}
		if err := set(nil, many...); err != nil {
			t.Errorf("too many variables: %v", err)
		}
	})
}
