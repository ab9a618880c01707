package loop

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/record"
)

// checkHome notices that the folder of the store was removed or replaced, which
// only shows in its inode: writes continue into files without a name. What
// is known of the loop is then kept in a file elsewhere, and the loop stops.
func (r *run) checkHome(ctx context.Context) error {
	e := r.e
	dir := filepath.Dir(e.cfg.Dir)
	now, err := os.Stat(dir)
	if e.home == nil || err == nil && os.SameFile(e.home, now) {
		return nil
	}
	e.lost.Lock()
	defer e.lost.Unlock()
	if known := e.lost.loops[r.l.Tree.ID]; known != nil { // by another task of the loop
		return known
	}
	copied, err := r.rescue(ctx)
	where := "the loop's data is kept in " + copied
	if err != nil {
		where = "the loop's data could not be kept: " + err.Error()
	}
	failure := fail("store_removed", "the folder %s was removed or replaced while the loop ran; the loop stops, and %s",
		dir, where)
	e.cfg.Logger.Error("loop stopped", "tree_id", string(r.l.Tree.ID), "code", string(perdure.CodeUnavailable), "error",
		failure)
	e.lost.loops[r.l.Tree.ID] = failure
	return failure
}

// lostLoops are those whose store was removed, and what became of them.
type lostLoops struct {
	sync.Mutex // guards loops
	loops      map[perdure.TreeID]error
}

// rescue writes the records of the loop into a file outside of the workspace, as
// far as they can still be read.
func (r *run) rescue(ctx context.Context) (string, error) {
	list, gates, err := r.e.records.Salvage(ctx, r.l.Tree.ID)
	missing := ""
	if err != nil {
		missing = err.Error()
	}
	f, err := os.CreateTemp("", "perdure-"+ID(&r.l.Tree)+"-*.json")
	if err != nil {
		return "", err
	}
	err = json.NewEncoder(f).Encode(struct {
		Tree       perdure.Tree       `json:"tree"`
		Loop       record.Loop        `json:"loop"`
		Iterations []record.Iteration `json:"iterations"`
		Gates      []perdure.Gate     `json:"gates"`
		State      *state.State       `json:"state"`
		Missing    string             `json:"missing,omitempty"`
	}{r.l.Tree, r.loop, list, gates, &r.state, missing})
	return f.Name(), errors.Join(err, f.Close())
}
