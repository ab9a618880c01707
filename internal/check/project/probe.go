package project

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A command whose runners its text does not show (a script that calls scripts, workspaces, a
// task runner) is run with probes: what the runners themselves read at any depth makes them
// keep their results. Programs of the same names come first in PATH and pass the arguments on;
// NODE_OPTIONS, PYTHONPATH, PYTEST_ADDOPTS and SPEC_OPTS reach runners that do not come from
// PATH. A runner that another runner starts keeps no results.
//
//go:embed probes
var probes embed.FS

// probePrograms are the programs that tests are run with, of which those in PATH get a probe.
func probePrograms() []string {
	return []string{"go", "cargo", "bats", "pytest", "py.test", "python", "python3", "node", "bun", "deno", "phpunit",
		"pest", "php", "rspec"}
}

// Names in the folder of the probes.
const (
	probeFiles   = "probes"
	probeShims   = "shims"
	probeResults = "runs"
)

// WithProbes makes the probes of a command that needs them, removes the results of an earlier
// run, and returns the environment in which it has to run. root is the absolute path of the
// workspace.
func (c *Command) WithProbes(root string, env []string) ([]string, error) {
	if c.Probe == "" {
		return env, nil
	}
	made, err := c.makeProbes(root, env)
	if err != nil {
		return nil, fmt.Errorf("make probes for test runners: %w", err)
	}
	return made, nil
}

func (c *Command) makeProbes(root string, env []string) ([]string, error) {
	if err := os.RemoveAll(c.Probe); err != nil {
		return nil, err
	}
	if err := os.CopyFS(c.Probe, probes); err != nil {
		return nil, err
	}
	files, shims := filepath.Join(c.Probe, probeFiles), filepath.Join(c.Probe, probeShims)
	runs := filepath.Join(c.Probe, probeResults)
	if err := errors.Join(os.Mkdir(shims, 0o700), os.Mkdir(runs, 0o700)); err != nil {
		return nil, err
	}
	shim, err := probes.ReadFile(probeFiles + "/shim.sh")
	if err != nil {
		return nil, err
	}
	path := variable(env, "PATH")
	for _, name := range probePrograms() {
		if !isIn(path, name) && !isIn(filepath.Join(root, "node_modules", ".bin"), name) {
			continue // a script may ask whether it is installed
		}
		if err := os.WriteFile(filepath.Join(shims, name), shim, 0o700); err != nil { //nolint:gosec // a program
			return nil, err
		}
	}
	word := func(text string) string {
		if strings.Contains(text, " ") {
			return `"` + text + `"`
		}
		return text
	}
	join := func(sep string, parts ...string) string {
		return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
	}
	return append(slices.Clip(env),
		"PERDURE_ROOT="+root, "PERDURE_PROBES="+files, "PERDURE_RESULTS="+runs, "PERDURE_IN_RUNNER=",
		"PATH="+join(string(filepath.ListSeparator), shims, path),
		"NODE_OPTIONS="+join(" ", variable(env, "NODE_OPTIONS"), "--require="+word(filepath.Join(files, "preload.cjs"))),
		"PYTHONPATH="+join(string(filepath.ListSeparator), filepath.Join(files, "python"), variable(env, "PYTHONPATH")),
		"PYTEST_ADDOPTS="+join(" ", variable(env, "PYTEST_ADDOPTS"), word("--junitxml="+runs+"/pytest-in/$PWD.xml"),
			"-o junit_family=xunit1"),
		"PERDURE_ADDOPTS="+variable(env, "PYTEST_ADDOPTS"),
		"SPEC_OPTS="+join(" ", "--require "+word(filepath.Join(files, "rspec.rb")), variable(env, "SPEC_OPTS"))), nil
}

// variable returns the last value of a variable in an environment.
func variable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// isIn reports whether a program is in a folder of PATH.
func isIn(path, name string) bool {
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

// Run is a test runner that ran in a command with probes.
type Run struct {
	// Kind is the runner, Format the format of its results; empty if it is to be detected.
	Kind, Format string
	// File has the results; empty if the runner did not end.
	File string
}

// Runs returns the test runners that ran in a command with probes, in an order that is the
// same in each run.
func (c *Command) Runs() ([]Run, error) {
	if c.Probe == "" {
		return nil, nil
	}
	dir := filepath.Join(c.Probe, probeResults)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list results of test runners: %w", err)
	}
	var runs []Run
	for _, e := range entries {
		kind, _, ok := strings.Cut(e.Name(), "@")
		if !ok {
			continue
		}
		run := Run{Kind: kind, Format: probeFormat(kind), File: filepath.Join(dir, e.Name(), "result")}
		if info, err := os.Lstat(run.File); err != nil || !info.Mode().IsRegular() {
			run.File = ""
		}
		runs = append(runs, run)
	}
	more, err := nestedPytest(filepath.Join(dir, "pytest-in"))
	return append(runs, more...), err
}

// nestedPytest returns the results of pytest by PYTEST_ADDOPTS, which are named by folder.
func nestedPytest(dir string) ([]Run, error) {
	var runs []Run
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			runs = append(runs, Run{Kind: "pytest", Format: FormatJUnit, File: name})
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return runs, err
}

// probeFormat returns the format of the results of a runner.
func probeFormat(kind string) string {
	switch kind {
	case "go":
		return FormatGo
	case "cargo":
		return FormatCargo
	case "jest":
		return FormatJest
	case "rspec":
		return FormatRSpec
	case "bats":
		return "" // TAP, or what its arguments say
	}
	return FormatJUnit
}
