package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is where a tree of questions comes from: a folder of a released package.
type source struct {
	module, npm string // one of them
	folder      string
}

// sources are the trees that the questions are about, by name, without the Go toolchain.
func sources() map[string]source {
	return map[string]source{
		"pgx":             {module: "github.com/jackc/pgx/v5@v5.12.0"},
		"npm-docs":        {npm: "npm@10.9.2", folder: "docs/content"},
		"webpack":         {npm: "webpack@5.97.1", folder: "lib"},
		"nats":            {module: "github.com/nats-io/nats-server/v2@v2.10.22", folder: "server"},
		"prometheus-docs": {module: "github.com/prometheus/prometheus@v0.300.1", folder: "docs"},
		"mongodb":         {npm: "mongodb@6.12.0", folder: "src"},
	}
}

// fetchTrees returns the folders of the trees by their names. What is not in the module
// cache or the user's cache folder is fetched with go and npm.
func fetchTrees(ctx context.Context) (map[string]string, error) {
	root, err := output(ctx, "", "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	trees := map[string]string{"go": filepath.Join(strings.TrimSpace(root), "src")}
	for name, s := range sources() {
		fetch, of := fetchModule, s.module
		if s.npm != "" {
			fetch, of = fetchPackage, s.npm
		}
		dir, err := fetch(ctx, of)
		if err != nil {
			return nil, err
		}
		trees[name] = filepath.Join(dir, s.folder)
	}
	for name, dir := range trees {
		if trees[name], err = filepath.EvalSymlinks(dir); err != nil {
			return nil, fmt.Errorf("find tree %s: %w", name, err)
		}
	}
	return trees, nil
}

// fetchModule returns the folder of a Go module.
func fetchModule(ctx context.Context, name string) (string, error) {
	raw, err := output(ctx, "", "go", "mod", "download", "-json", name)
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(raw), &module); err != nil {
		return "", fmt.Errorf("read go mod download: %w", err)
	}
	return module.Dir, nil
}

// fetchPackage returns the folder of a package of npm.
func fetchPackage(ctx context.Context, name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "perdure-bench-retrieve", strings.ReplaceAll(name, "@", "-"))
	if _, err := os.Stat(filepath.Join(dir, "package")); err == nil {
		return filepath.Join(dir, "package"), nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	packed, err := output(ctx, dir, "npm", "pack", "--silent", name)
	if err != nil {
		return "", err
	}
	if _, err := output(ctx, dir, "tar", "xzf", strings.TrimSpace(packed)); err != nil {
		return "", err
	}
	return filepath.Join(dir, "package"), nil
}

func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, complaint.String())
	}
	return string(out), nil
}
