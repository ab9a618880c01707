package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/workspace"
)

// loopWorkspace is a workspace with the snapshots of a loop in a store's folder.
func loopWorkspace(store string) (*workspace.Workspace, error) {
	return workspace.Open(workspace.Config{Root: filepath.Dir(store),
		Dir: filepath.Join(store, "loops", "x", "snapshots"), Home: "/nowhere", Git: "/nowhere/git"})
}

// loopEdits are files of the workspace as the nth turn leaves them; an empty one is
// not there.
func loopEdits(n int) map[string]string {
	files := map[string]string{"same": "always the same", "changed": fmt.Sprint("turn ", n),
		"sub/folder/new": fmt.Sprint("new ", n)}
	for i := range 5 {
		files[fmt.Sprint("of", i)] = ""
	}
	files[fmt.Sprint("of", n%5)] = "of one turn"
	return files
}

// snapshotAndAcknowledge takes and restores snapshots like a loop: one after each turn,
// and a restore of an earlier one, which is not acknowledged: the model of the disk has
// no calls that are relative to a folder.
func snapshotAndAcknowledge(ctx context.Context, store string) error {
	root := filepath.Dir(store)
	if err := atomicfile.MkdirAll(root, 0o700); err != nil {
		return err
	}
	w, err := loopWorkspace(store)
	if err != nil {
		return err
	}
	var ids []workspace.ID
	for n := range 6 {
		for name, text := range loopEdits(n) {
			if err := putFile(filepath.Join(root, name), text); err != nil {
				return err
			}
		}
		id, _, err := w.Snapshot(ctx)
		if err != nil {
			return err
		}
		acknowledge("snapshot %s %d", id, n)
		if ids = append(ids, id); n%2 == 0 {
			continue
		}
		if _, err := w.Restore(ctx, ids[n/2]); err != nil {
			return err
		}
	}
	acknowledge("end")
	return nil
}

// putFile writes a file, or removes it if the text is empty.
func putFile(path, text string) error {
	if text == "" {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}
