package main

import (
	"cmp"
	"context"
	_ "embed" // the list of packages
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"

	"github.com/perdure/perdure/internal/detect"
)

// debianPackages lists source packages of Debian.
//
//go:embed patches.txt
var debianPackages string

// patchRates compares the patches of Debian's packages as commits: each is applied
// to the source as the ones before it left it. Only those count that come from the
// project itself (upstream says so below), because a packager may well take out a
// test that needs a network.
func patchRates(ctx context.Context, o releaseOptions) error {
	for line := range strings.Lines(debianPackages) {
		suite, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || suite == "#" || !strings.Contains(line, o.only) {
			continue
		}
		p, err := o.debian(ctx, suite, name)
		if err != nil { // the archive may have the package no more
			if _, err := fmt.Fprintf(o.out, "left out: %s %s: %.200s\n", suite, name, err); err != nil {
				return err
			}
			continue
		}
		if err := o.applyAll(ctx, p); err != nil {
			return err
		}
		if err := os.RemoveAll(p.tree); err != nil {
			return err
		}
	}
	return printCommits(o.out, o.commits)
}

// applyAll applies the patches of a package, and compares.
func (o *releaseOptions) applyAll(ctx context.Context, p *debianPackage) error {
	patches := filepath.Join(p.tree, "debian", "patches")
	series, err := os.ReadFile(filepath.Join(patches, "series"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a package may have none
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

// fromProject reports whether a patch is a commit of the project: their header says
// that the origin is upstream or a backport, they are formatted by git from a
// commit, or they mend a vulnerability.
func fromProject(name, text string) bool {
	head, _, _ := strings.Cut(text, "\n--- ")
	return gitCommit().MatchString(head) || origin().MatchString(head) || strings.Contains(strings.ToUpper(name), "CVE-")
}

var (
	gitCommit = lazyregexp.New(`(?m)^From [0-9a-f]{40} `)
	origin    = lazyregexp.New(`(?mi)^(Origin:\s*(upstream|backport|https?://)|Applied-Upstream:\s*\S)`)
	patchPath = lazyregexp.New(`(?m)^(?:---|\+\+\+) (?:"?)([^\t\r\n"]+)`)
)

// patched are the files that a patch names, without the first folder.
func patched(text string) []string {
	var all []string
	for _, m := range patchPath().FindAllStringSubmatch(text, -1) {
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

type commitTally struct{ commits, alarmed, warned, alarms int }

// compareCommit counts a commit under each language that it changes.
func (o *releaseOptions) compareCommit(ctx context.Context, p *debianPackage, patch string, before,
	now map[string]string) error {
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
	all := alarms(report)
	for _, f := range all {
		if o.list {
			if _, err := fmt.Fprintf(o.out, "%s %s %s: %s %.2f %s:%d gone=%t %q | %s\n", p.suite, p.name, patch, f.Pattern,
				f.Confidence, f.File, f.Line, f.Gone, f.Subject, f.Evidence); err != nil {
				return err
			}
		}
	}
	o.countCommit(keys, report.Verdict, len(all))
	return nil
}

// countCommit counts what came of a commit, under each of the keys.
func (o *releaseOptions) countCommit(keys map[string]bool, verdict detect.Verdict, alarms int) {
	for k := range keys {
		at(o.commits, k).count(verdict, alarms)
	}
}

func (t *commitTally) count(verdict detect.Verdict, alarms int) {
	t.commits++
	t.alarms += alarms
	switch verdict {
	case detect.Block:
		t.alarmed++
	case detect.Warns:
		t.warned++
	case detect.Allow:
	}
}

func printCommits(out io.Writer, total map[string]*commitTally) error {
	return table(out, "commits\twith an alarm\t\twith a warning\t\talarms", total, func(t *commitTally) string {
		return fmt.Sprintf("%d\t%d\t%s\t%d\t%s\t%d", t.commits, t.alarmed, percent(t.alarmed, t.commits), t.warned,
			percent(t.warned, t.commits), t.alarms)
	})
}
