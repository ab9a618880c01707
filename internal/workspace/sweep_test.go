package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/internal/workspace"
)

func ids(t testing.TB, w *workspace.Workspace) map[workspace.ID]bool {
	t.Helper()
	list, err := w.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	set := map[workspace.ID]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
}

// diskUse returns the size of all packs.
func diskUse(t testing.TB, cfg workspace.Config) int64 {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(cfg.Dir, "packs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, name := range list {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

func TestSweepKeepsWhatIsWanted(t *testing.T) {
	t.Parallel()
	shared := strings.Repeat("s", 5000)
	root := project(t, map[string]string{"shared": shared})
	cfg := config(root)
	cfg.Grace = -1
	w := open(t, cfg)
	var all []workspace.ID
	for i := range 6 {
		write(t, root, map[string]string{"own": strings.Repeat(fmt.Sprint(i), 1000*(i+1))})
		all = append(all, take(t, w))
	}
	before := diskUse(t, cfg)
	removed, err := w.Sweep(t.Context(), workspace.Retain{Keep: all[1:2], Newest: 2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "kept", ids(t, w), map[workspace.ID]bool{all[1]: true, all[4]: true, all[5]: true})
	if after := diskUse(t, cfg); len(removed) != 3 || before-after < 7000 {
		t.Errorf("removed %v; %d bytes before and %d after", removed, before, after)
	}
	for _, id := range []workspace.ID{all[1], all[5], all[4]} {
		restore(t, w, id)
		if data, err := w.ReadFile(t.Context(), id, "shared"); err != nil || string(data) != shared {
			t.Errorf("shared: %d bytes, %v", len(data), err)
		}
	}
	if _, err := w.Sweep(t.Context(), workspace.Retain{}); err != nil {
		t.Fatal(err)
	}
	if n := diskUse(t, cfg); n != 0 || len(ids(t, w)) != 0 {
		t.Errorf("%d bytes and %d snapshots are left", n, len(ids(t, w)))
	}
	// Removed contents are stored again although the files did not change.
	id, stats := takeStats(t, w)
	if stats.Stored != 2 {
		t.Errorf("stored %d, want both files again", stats.Stored)
	}
	remove(t, root, "own", "shared")
	restore(t, w, id)
}

func TestSweepKeepsTheNewest(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1"})
	w := open(t, config(root))
	id := take(t, w)
	if _, err := w.Sweep(t.Context(), workspace.Retain{}); err != nil {
		t.Fatal(err)
	}
	if !ids(t, w)[id] {
		t.Error("a snapshot that was just taken is gone: its ID may not be written down yet")
	}
}

// The contents of a damaged snapshot are not known: nothing is removed.
func TestSweepStopsAtDamage(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1"})
	cfg := config(root)
	cfg.Grace = -1
	w := open(t, cfg)
	first := take(t, w)
	write(t, root, map[string]string{"a": "2"})
	second := take(t, w)
	if err := os.WriteFile(filepath.Join(cfg.Dir, "manifests", string(second)), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := diskUse(t, cfg)
	_, err := w.Sweep(t.Context(), workspace.Retain{Keep: []workspace.ID{second}})
	if !errors.Is(err, workspace.ErrDamaged) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
	if !ids(t, w)[first] || diskUse(t, cfg) != before {
		t.Error("something was removed")
	}
	write(t, root, map[string]string{"a": "2"})
	if take(t, w) != second { // taking the same tree again mends it
		t.Error("another ID")
	}
	if _, err := w.Sweep(t.Context(), workspace.Retain{Keep: []workspace.ID{second}}); err != nil {
		t.Error(err)
	}
}

func TestManyPacksAreJoined(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{})
	cfg := config(root)
	w := open(t, cfg)
	var last workspace.ID
	for i := range 70 {
		write(t, root, map[string]string{fmt.Sprint("f", i): fmt.Sprint("content ", i)})
		last = take(t, w)
	}
	want := tree(t, root)
	if _, err := w.Sweep(t.Context(), workspace.Retain{}); err != nil {
		t.Fatal(err)
	}
	if list, err := filepath.Glob(filepath.Join(cfg.Dir, "packs", "*")); err != nil || len(list) != 1 {
		t.Errorf("%d packs, %v", len(list), err)
	}
	remove(t, root, "f1", "f69")
	restore(t, w, last)
	same(t, "tree", tree(t, root), want)
}

// Several handles of one store, as in several processes.
func TestTogether(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1", "b": "2"})
	cfg := config(root)
	first := take(t, open(t, cfg))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			w, err := workspace.Open(cfg)
			for n := 0; n < 10 && err == nil; n++ {
				switch i {
				case 0:
					_, err = w.Sweep(t.Context(), workspace.Retain{Keep: []workspace.ID{first}})
				case 1:
					err = os.WriteFile(filepath.Join(root, "c"), []byte(fmt.Sprint(n)), 0o600)
				case 2:
					_, _, err = w.Snapshot(t.Context())
				case 3:
					_, err = w.ReadFile(t.Context(), first, "a")
				}
			}
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	restore(t, open(t, cfg), first)
}

// Waiting for another process ends with the context.
func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1"})
	cfg := config(root)
	w := open(t, cfg)
	id := take(t, w)
	lock, err := os.OpenFile(filepath.Join(cfg.Dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := filelock.Lock(lock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := w.Snapshot(ctx)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	if err := filelock.Unlock(lock); err != nil {
		t.Fatal(err)
	}
	if got := take(t, w); got != id {
		t.Error("another ID afterwards")
	}
}
