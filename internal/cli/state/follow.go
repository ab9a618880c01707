package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

// opFollow is the operation of errors of [follow].
const opFollow = "follow file"

// follow reads the file of a variable of type file_path: a path, or file: and a path,
// relative to the store's folder. Files outside the folder, also through links and "..",
// are not read, because a variable can be set by another user than the one who reads it.
func follow(dir, path string) ([]byte, error) {
	name, err := inside(dir, strings.TrimPrefix(strings.TrimPrefix(path, "file://"), "file:"))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fileError(opFollow, path, err)
	}
	defer root.Close()
	info, err := root.Stat(name) // before opening it, which waits for a writer on a pipe
	if err != nil {
		return nil, fileError(opFollow, path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, env.UsageError("", opFollow+": %q is not a regular file", path)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fileError(opFollow, path, err)
	}
	defer f.Close()
	content, err := readUpTo(f, perdure.MaxVariableBytes, fmt.Sprintf("file %q", path))
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(name), ".json") && !json.Valid(content) {
		return nil, env.UsageError("use --path to print the path", opFollow+": file %q is not JSON", path)
	}
	return content, nil
}

// inside returns a path relative to the folder.
func inside(dir, path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", env.UsageError("", opFollow+": %q is not a path", path)
	}
	if filepath.IsAbs(path) {
		bases := []string{dir}
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			bases = append(bases, resolved)
		}
		for _, base := range bases {
			if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
				return rel, nil
			}
		}
	} else if filepath.IsLocal(path) {
		return path, nil
	}
	return "", outside(path)
}

func outside(path string) error {
	return env.UsageError("use --path to print the path", opFollow+": file %q is outside the store's folder", path)
}

func fileError(op, path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := ""
		if op == opFollow {
			hint = "paths are relative to the store's folder; use --path to print the path"
		}
		return env.NotFound(hint, "%s: no file %q", op, path)
	case errors.Is(err, fs.ErrPermission):
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: fmt.Sprintf("no permission to read file %q", path),
			Err: err}
	case strings.Contains(err.Error(), "escapes"): // the error has no name
		return outside(path)
	}
	return &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: fmt.Sprintf("cannot read file %q", path),
		Err: err}
}

// readUpTo reads everything, up to a limit.
func readUpTo(r io.Reader, limit int64, what string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "read value", Msg: "cannot read " + what, Err: err}
	}
	if int64(len(content)) > limit {
		return nil, env.UsageError("store the path of a large file in a variable of type file_path",
			"%s has more than %d bytes", what, limit)
	}
	return content, nil
}
