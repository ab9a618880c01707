package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure/internal/workspace"
)

// exchanging exchanges two paths without a pause, until stop is called, which returns how many
// times it did.
func exchanging(t *testing.T, a, b string) (stop func() int) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Skipf("paths cannot be exchanged here: %v", err)
	}
	ended, times := make(chan struct{}), 1
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				times++
			}
		}
	})
	return func() int {
		close(ended)
		wg.Wait()
		return times
	}
}

// swapped is a project with a folder that can be exchanged for a link to a folder outside,
// which has files of the same names.
func swapped(t *testing.T) (root, outside, link string) {
	t.Helper()
	files, theirs := map[string]string{"top": "1"}, map[string]string{"secret": "of the user"}
	for i := range 30 {
		files[fmt.Sprintf("dir/sub/%d", i)] = fmt.Sprint("of the project ", i)
		theirs[fmt.Sprintf("sub/%d", i)] = fmt.Sprint("of the user ", i)
	}
	root, outside = project(t, files), project(t, theirs)
	link = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	return root, outside, link
}

// TestRestoreWhileFolderIsSwapped: a folder that another process exchanges for a link to a folder
// outside, again and again, while restores write, change and remove files in it. Nothing outside
// changes.
func TestRestoreWhileFolderIsSwapped(t *testing.T) {
	t.Parallel()
	root, outside, link := swapped(t)
	w := open(t, config(root))
	full := take(t, w)
	for i := range 30 {
		write(t, root, map[string]string{fmt.Sprintf("dir/sub/%d", i): "changed"})
		if i%3 == 0 {
			remove(t, root, fmt.Sprintf("dir/sub/%d", i))
		}
	}
	write(t, root, map[string]string{"dir/sub/new/x": "1", "dir/more@": "sub"})
	if err := os.Chmod(filepath.Join(root, "dir", "sub"), 0o750); err != nil {
		t.Fatal(err)
	}
	changed := take(t, w)
	want := tree(t, outside)
	stop := exchanging(t, filepath.Join(root, "dir"), link)
	done, refused := 0, 0
	for range 40 {
		for _, id := range []workspace.ID{full, changed} {
			if _, err := w.Restore(t.Context(), id); err == nil {
				done++
			} else {
				refused++
			}
		}
	}
	times := stop()
	t.Logf("%d exchanges, %d restores succeeded, %d failed", times, done, refused)
	same(t, "outside", tree(t, outside), want)
}

// TestSnapshotWhileFolderIsSwapped: snapshots that are taken meanwhile contain no file from
// outside.
func TestSnapshotWhileFolderIsSwapped(t *testing.T) {
	t.Parallel()
	root, outside, link := swapped(t)
	w := open(t, config(root))
	stop := exchanging(t, filepath.Join(root, "dir"), link)
	var ids []workspace.ID
	for range 60 {
		if id, _, err := w.Snapshot(t.Context()); err == nil {
			ids = append(ids, id)
		}
	}
	times := stop()
	t.Logf("%d exchanges, %d snapshots", times, len(ids))
	theirs := tree(t, outside)
	for _, id := range ids {
		to := filepath.Join(t.TempDir(), "work")
		other := config(to)
		other.Dir = filepath.Join(root, ".perdure", "snapshots")
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		restore(t, open(t, other), id)
		for name, entry := range tree(t, to) {
			for outer, secret := range theirs {
				if entry == secret && filepath.Base(name) == filepath.Base(outer) && entry[0] == '-' {
					t.Errorf("snapshot %s has %s of the folder outside", id, name)
				}
			}
		}
	}
}
