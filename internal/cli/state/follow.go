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

// follow reads the file that a variable of type file_path names: a path, or
// file: and a path, that counts from the store's folder. What is outside of it,
// also through links and "..", is not read: whoever sets a variable would
// otherwise decide what those who read it may see.
func follow(dir, path string) ([]byte, error) {
	const op = "follow file"
	name, err := inside(dir, strings.TrimPrefix(strings.TrimPrefix(path, "file://"), "file:"))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fileError(op, path, err)
	}
	defer root.Close()
	info, err := root.Stat(name) // before it is opened: a pipe would wait for a writer
	if err != nil {
		return nil, fileError(op, path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%q is not a file", path)}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fileError(op, path, err)
	}
	defer f.Close()
	content, err := readUpTo(f, perdure.MaxVariableBytes, fmt.Sprintf("the file %q", path))
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(name), ".json") && !json.Valid(content) {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op,
			Msg:  fmt.Sprintf("the file %q is not JSON, as its name says", path),
			Hint: "--path prints the path"}
	}
	return content, nil
}

// inside returns a path as it counts from the folder.
func inside(dir, path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: "follow file", Msg: fmt.Sprintf("%q is not a path", path)}
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
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "follow file",
		Msg:  fmt.Sprintf("the file %q is outside the store's folder and is not read", path),
		Hint: "--path prints the path"}
}

func fileError(op, path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: fmt.Sprintf("there is no file %q", path),
			Hint: "paths count from the store's folder; --path prints the path"}
	case errors.Is(err, fs.ErrPermission):
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: fmt.Sprintf("the file %q must not be read", path),
			Err: err}
	case strings.Contains(err.Error(), "escapes"): // the error has no name
		return outside(path)
	}
	return &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Msg: fmt.Sprintf("the file %q cannot be read", path),
		Err: err}
}

// readUpTo reads all of what is not longer than a limit.
func readUpTo(r io.Reader, limit int64, what string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "read value", Msg: what + " cannot be read", Err: err}
	}
	if int64(len(content)) > limit {
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "read value",
			Msg:  fmt.Sprintf("%s has more than %d bytes", what, limit),
			Hint: "keep large files where they are, and their path in a variable of type file_path"}
	}
	return content, nil
}
