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
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: opFollow,
			Msg: fmt.Sprintf("%q is not a regular file", path)}
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
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: opFollow,
			Msg:  fmt.Sprintf("file %q is not JSON", path),
			Hint: "use --path to print the path"}
	}
	return content, nil
}

// inside returns a path relative to the folder.
func inside(dir, path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: opFollow, Msg: fmt.Sprintf("%q is not a path", path)}
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
	return &perdure.Error{Code: perdure.CodeInvalid, Op: opFollow,
		Msg:  fmt.Sprintf("file %q is outside the store's folder", path),
		Hint: "use --path to print the path"}
}

func fileError(op, path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist) && op != opFollow:
		return &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: fmt.Sprintf("no file %q", path)}
	case errors.Is(err, fs.ErrNotExist):
		return &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: fmt.Sprintf("no file %q", path),
			Hint: "paths are relative to the store's folder; use --path to print the path"}
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
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read value",
			Msg:  fmt.Sprintf("%s has more than %d bytes", what, limit),
			Hint: "store the path of a large file in a variable of type file_path"}
	}
	return content, nil
}
