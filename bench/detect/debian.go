package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// debianSources is where the packages come from.
const debianSources = "deb-src http://deb.debian.org/debian %s main\n"

// apt is Debian's package client with lists of its own.
type apt struct {
	dir     string
	options []string
}

func newApt(ctx context.Context, cache, suite string) (*apt, error) {
	a := &apt{dir: filepath.Join(cache, "debian", suite)}
	for _, d := range []string{"lists/partial", "cache/archives/partial", "src"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	list := filepath.Join(a.dir, "sources.list")
	if err := os.WriteFile(list, fmt.Appendf(nil, debianSources, suite), 0o600); err != nil {
		return nil, err
	}
	a.options = []string{"-qq", "-o", "APT::Sandbox::User=root", "-o", "Dir::Etc::sourcelist=" + list, "-o",
		"Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=" + filepath.Join(a.dir, "lists"), "-o",
		"Dir::Cache=" + filepath.Join(a.dir, "cache")}
	_, err := run(ctx, a.dir, "apt-get", append(slices.Clone(a.options), "update")...)
	return a, err
}

// debian gets a source package of a suite, unpacked.
func (o *releaseOptions) debian(ctx context.Context, suite, name string) (*debianPackage, error) {
	if o.suites[suite] == nil {
		a, err := newApt(ctx, o.cache, suite)
		if err != nil {
			return nil, err
		}
		if o.suites == nil {
			o.suites = make(map[string]*apt)
		}
		o.suites[suite] = a
	}
	return o.suites[suite].fetch(ctx, suite, name)
}

// debianFiles are the files of the project's release that a suite has, without what
// the packager added.
func (o *releaseOptions) debianFiles(ctx context.Context, suite, name string) (map[string]string, error) {
	p, err := o.debian(ctx, suite, name)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(filepath.Join(p.tree, "debian")); err != nil {
		return nil, err
	}
	files, err := readFolder(p.tree)
	return files, errors.Join(err, os.RemoveAll(p.tree))
}

// debianPackage is a source package, unpacked without its patches.
type debianPackage struct{ suite, name, tree string }

// fetch gets a source package, once, and unpacks it. The caller removes the tree.
func (a *apt) fetch(ctx context.Context, suite, name string) (*debianPackage, error) {
	dir := filepath.Join(a.dir, "src", name)
	p := &debianPackage{suite, name, filepath.Join(dir, "tree")}
	found, _ := filepath.Glob(filepath.Join(dir, "*.dsc"))
	if len(found) == 0 {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if _, err := run(ctx, dir, "apt-get", append(slices.Clone(a.options), "source", "--download-only",
			name)...); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", name, err)
		}
		if found, _ = filepath.Glob(filepath.Join(dir, "*.dsc")); len(found) == 0 {
			return nil, errors.New("fetch " + name + ": apt-get left no description")
		}
	}
	if err := os.RemoveAll(p.tree); err != nil {
		return nil, err
	}
	if _, err := run(ctx, dir, "dpkg-source", "--skip-patches", "--no-check", "-x", found[0], p.tree); err != nil {
		return nil, fmt.Errorf("unpack %s: %w", name, err)
	}
	return p, nil
}
