package daemon

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/model"
)

// Findings are kept for a server and a model, the last one of a part, and forgotten after a week.
func TestFindings(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		f := findings{s}
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		keep := func(server, name, part, value string) {
			t.Helper()
			ok(f.Keep(t.Context(), server, name, model.Finding{Part: part, Value: value}))
		}
		want := func(when, server, name string, list ...model.Finding) {
			t.Helper()
			if got, err := f.Recall(t.Context(), server, name); err != nil || !slices.Equal(got, list) {
				t.Errorf("%s: %s %s has %+v, %v; want %+v", when, server, name, got, err, list)
			}
		}
		keep("http://a", "m", "seed", "")
		keep("http://a", "m", "window", "8192")
		keep("http://a", "m", "window", "4096")
		keep("http://a", "n", "tools", "")
		keep("http://b", "m", "stream", "")
		want("kept", "http://a", "m", model.Finding{Part: "seed"}, model.Finding{Part: "window", Value: "4096"})
		want("kept", "http://b", "m", model.Finding{Part: "stream"})
		want("never asked", "http://b", "n")

		ok(s.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
			old := tx.Now().Add(-findingAge - time.Second).UnixMicro()
			_, err := tx.Exec(ctx, "UPDATE finding SET found_at = $1 WHERE part <> 'window'", old)
			return err
		}))
		want("a week later", "http://a", "m", model.Finding{Part: "window", Value: "4096"})
		keep("http://c", "m", "seed", "")
		rows := 0
		ok(perdure.EachRow(t.Context(), s.Reader(), func(perdure.Row) error { rows++; return nil },
			"SELECT part FROM finding"))
		if rows != 2 {
			t.Errorf("%d findings are stored, want 2: those of more than a week ago are removed", rows)
		}
	})
}
