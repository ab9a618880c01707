package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the list of packages
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/perdure/perdure/internal/detect"
)

// debianPackages lists source packages of Debian.
//
//go:embed patches.txt
var debianPackages string

// debianSources is where the packages come from.
const debianSources = "deb-src http://deb.debian.org/debian %s main\n"

// patchRates compares the patches of Debian's packages as commits: each is applied
// to the source as the ones before it left it. Only those count that come from the
// project itself (upstream says so below), because a packager may well take out a
// test that needs a network.
func patchRates(ctx context.Context, out io.Writer, o releaseOptions) error {
	o.out, o.commits = out, make(map[string]*commitTally)
	clients := make(map[string]*apt)
	for line := range strings.Lines(debianPackages) {
		suite, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || suite == "#" || !strings.Contains(line, o.only) {
			continue
		}
		if clients[suite] == nil {
			var err error
			if clients[suite], err = newApt(ctx, o.cache, suite); err != nil {
				return err
			}
		}
		p, err := clients[suite].fetch(ctx, suite, name)
		if err != nil {
			return err
		}
		if err := o.applyAll(ctx, p); err != nil {
			return err
		}
		if err := os.RemoveAll(p.tree); err != nil {
			return err
		}
	}
	return printCommits(out, o.commits)
}

// applyAll applies the patches of a package, and compares.
func (o *releaseOptions) applyAll(ctx context.Context, p *debianPackage) error {
	patches := filepath.Join(p.tree, "debian", "patches")
	series, err := os.ReadFile(filepath.Join(patches, "series"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(series)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		file := filepath.Join(patches, filepath.FromSlash(words[0]))
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		names := patched(string(text))
		before := readNamed(p.tree, names)
		cmd := exec.CommandContext(ctx, "patch", "-p1", "-s", "-f", "-N", "--no-backup-if-mismatch", "-r", "-", "-i", file)
		cmd.Dir = p.tree
		if cmd.Run() != nil {
			continue // what follows has to fit without it
		}
		now := readNamed(p.tree, names)
		if !fromProject(words[0], string(text)) || len(before) == 0 {
			continue
		}
		if err := o.compareCommit(ctx, p, words[0], before, now); err != nil {
			return err
		}
	}
	return nil
}

// fromProject tells of patches that are commits of the project: their header says
// that the origin is upstream or a backport, they are formatted by git from a
// commit, or they mend a vulnerability.
func fromProject(name, text string) bool {
	head, _, _ := strings.Cut(text, "\n--- ")
	return gitCommit.MatchString(head) || origin.MatchString(head) || strings.Contains(strings.ToUpper(name), "CVE-")
}

var (
	gitCommit = regexp.MustCompile(`(?m)^From [0-9a-f]{40} `)
	origin    = regexp.MustCompile(`(?mi)^(Origin:\s*(upstream|backport|https?://)|Applied-Upstream:\s*\S)`)
	patchPath = regexp.MustCompile(`(?m)^(?:---|\+\+\+) (?:"?)([^\t\r\n"]+)`)
)

// patched are the files that a patch names, without the first folder.
func patched(text string) []string {
	var all []string
	for _, m := range patchPath.FindAllStringSubmatch(text, -1) {
		_, name, ok := strings.Cut(strings.TrimSpace(m[1]), "/")
		if ok && m[1] != "/dev/null" && filepath.IsLocal(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func readNamed(tree string, names []string) map[string]string {
	files := make(map[string]string)
	for _, n := range names {
		if text, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(n))); err == nil {
			files[n] = string(text)
		}
	}
	return files
}

// commitTally counts commits.
type commitTally struct{ commits, alarmed, warned, alarms int }

// compareCommit counts a commit under each language that it changes.
func (o *releaseOptions) compareCommit(ctx context.Context, p *debianPackage, patch string, before, now map[string]string) error {
	keys := map[string]bool{}
	for c := range changes(before, now) {
		if l := language(cmp.Or(c.New.Path, c.Old.Path)); l != "" {
			keys[l] = true
		}
	}
	if len(keys) == 0 {
		return nil
	}
	keys["all"], keys["all of "+p.suite] = true, true
	report, err := detect.Run(ctx, &detect.Input{Changes: changes(before, now)})
	if err != nil {
		return err
	}
	alarms := 0
	for _, f := range report.Findings {
		if f.Action != detect.Act {
			continue
		}
		alarms++
		if o.list {
			if _, err := fmt.Fprintf(o.out, "%s %s %s: %s %.2f %s:%d gone=%t %q | %s\n", p.suite, p.name, patch, f.Pattern, f.Confidence, f.File, f.Line, f.Gone, f.Subject, f.Evidence); err != nil {
				return err
			}
		}
	}
	for k := range keys {
		if o.commits[k] == nil {
			o.commits[k] = &commitTally{}
		}
		t := o.commits[k]
		t.commits++
		t.alarms += alarms
		switch report.Verdict {
		case detect.Block:
			t.alarmed++
		case detect.Warns:
			t.warned++
		case detect.Allow:
		}
	}
	return nil
}

func printCommits(out io.Writer, total map[string]*commitTally) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "\tcommits\twith an alarm\t\twith a warning\t\talarms\t"); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(total)) {
		t := total[k]
		if _, err := fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%s\t%d\t\n", k, t.commits, t.alarmed, percent(t.alarmed, t.commits), t.warned, percent(t.warned, t.commits), t.alarms); err != nil {
			return err
		}
	}
	return w.Flush()
}

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
	a.options = []string{"-qq", "-o", "APT::Sandbox::User=root", "-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=" + filepath.Join(a.dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(a.dir, "cache")}
	_, err := a.run(ctx, a.dir, "apt-get", append(slices.Clone(a.options), "update")...)
	return a, err
}

func (a *apt) run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(text))
	}
	return string(text), nil
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
		if _, err := a.run(ctx, dir, "apt-get", append(slices.Clone(a.options), "source", "--download-only", name)...); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", name, err)
		}
		if found, _ = filepath.Glob(filepath.Join(dir, "*.dsc")); len(found) == 0 {
			return nil, errors.New("fetch " + name + ": apt-get left no description")
		}
	}
	if err := os.RemoveAll(p.tree); err != nil {
		return nil, err
	}
	if _, err := a.run(ctx, dir, "dpkg-source", "--skip-patches", "--no-check", "-x", found[0], p.tree); err != nil {
		return nil, fmt.Errorf("unpack %s: %w", name, err)
	}
	return p, nil
}
