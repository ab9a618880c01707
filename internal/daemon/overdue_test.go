package daemon_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/rlm"
)

// A tree that waits at a gate ends at its time limit.
func TestWorkEndsWhatWaitsTooLong(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	d := open(t, daemon.Config{Dir: dir, Session: "run"})
	c := local(t, d)
	store, err := perdure.Open(t.Context(), perdure.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	work(t, d)
	cfg := json.RawMessage(`{"model":"mock:status=500,mock:status=500","timeout":"1h","call_retries":0,"max_attempts":1}`)
	tree, err := c.CreateTree(t.Context(), client.TreeRequest{Prompt: "x", Config: cfg, Owner: d.SessionID()})
	if err != nil {
		t.Fatal(err)
	}
	d.Own(tree.ID)
	for gates := []perdure.Gate(nil); len(gates) == 0; {
		changed := store.Changed()
		if gates, err = store.OpenGates(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(gates) == 0 {
			<-changed
		}
	}
	err = store.WriteTx(t.Context(), func(ctx context.Context, tx *perdure.WriteTx) error {
		key, err := tx.TreeKey(ctx, tree.ID)
		if err != nil {
			return err
		}
		return tx.SetLimits(ctx, key, perdure.Limits{WallTime: time.Nanosecond})
	})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := c.WaitTree(t.Context(), tree.ID)
	if err != nil || ended.State != perdure.Failed {
		t.Fatalf("the tree is %s, %v", ended.State, err)
	}
	if root, err := store.Task(t.Context(), tree.Root); err != nil || root.Error == nil ||
		root.Error.Kind != rlm.KindBudget {
		t.Errorf("the root ended with %+v, %v", root.Error, err)
	}
}
