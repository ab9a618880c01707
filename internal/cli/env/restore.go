package env

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
)

// NoStore returns the error for a project without a store.
func (e *Env) NoStore(l *config.Loaded) error {
	hint := "`perdure run` creates one; change to the project's folder, or set PERDURE_DIR"
	if err := e.CheckRemoved(l); err != nil {
		return err
	}
	if folder, dir := e.copyOf(l); folder != "" {
		hint = fmt.Sprintf("the store was removed; `perdure restore` in %s puts its copy back", filepath.Dir(dir))
	}
	return &perdure.Error{Code: perdure.CodeNotFound, Op: "open store", Msg: "no store in " + l.Dir, Hint: hint}
}

// CheckRemoved returns an error if the store of the project was removed or replaced while a loop works
// on it, which puts it back.
func (e *Env) CheckRemoved(l *config.Loaded) error {
	for dir := range e.storeFolders(l) {
		if copies.RemovedInUse(copies.Folder(copies.Root(e.Getenv), dir), filepath.Join(dir, copies.DatabaseName)) {
			return &perdure.Error{Code: perdure.CodeUnavailable, Op: "open store",
				Msg:  "the files of the store in " + dir + " were removed or replaced while a loop works on it",
				Hint: "the loop puts them back before its next step; then repeat the command"}
		}
	}
	return nil
}

// storeFolders returns the folders in which the project's store is or was: the one found, or else the
// .perdure of the working folder and of those above it, up to the root of a repository.
func (e *Env) storeFolders(l *config.Loaded) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if l.Store != "" || !yield(l.Dir) || l.Exists {
			return
		}
		for dir := filepath.Dir(l.Dir); !config.IsRoot(dir) && filepath.Dir(dir) != dir; {
			dir = filepath.Dir(dir)
			if !yield(filepath.Join(dir, config.FolderName)) {
				return
			}
		}
	}
}

// copyOf returns the folder with the copy of the project's store, and the store's folder; "" without a
// copy.
func (e *Env) copyOf(l *config.Loaded) (folder, dir string) {
	for dir := range e.storeFolders(l) {
		folder := copies.Folder(copies.Root(e.Getenv), dir)
		if _, exists := copies.Database(folder); folder != "" && exists {
			return folder, dir
		}
	}
	return "", ""
}

// RestoreStore puts a removed store back from its copy, which is in folder or, if that is empty, in the
// user's state folder. It returns the store's folder and what is known of the copy.
func (e *Env) RestoreStore(l *config.Loaded, folder string) (dir string, r copies.Record, err error) {
	const op = "restore store"
	if err := e.CheckRemoved(l); err != nil {
		return "", r, err
	}
	dir = l.Dir
	if folder == "" {
		if folder, dir = e.copyOf(l); folder == "" {
			return "", r, &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: "there is no copy of a store of " + l.Dir,
				Hint: "change to the project's folder; --copy DIR names the folder of a copy"}
		}
	}
	if r, err = copies.Read(folder); errors.Is(err, fs.ErrNotExist) {
		return "", r, &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: folder + " has no copy of a store",
			Hint: "loops keep copies in " + copies.Root(e.Getenv)}
	} else if err != nil {
		return "", r, err
	}
	at := *l
	at.Dir = dir
	if HasStore(&at) {
		return "", r, &perdure.Error{Code: perdure.CodeConflict, Op: op, Msg: dir + " has a store",
			Hint: "move it away first, then repeat the command"}
	}
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return "", r, err
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return "", r, err
	}
	if err := copies.PutBack(folder, dir); err != nil {
		return "", r, fmt.Errorf("%s: %w", op, err)
	}
	e.trustNewStore(&at)
	return dir, r, nil
}
