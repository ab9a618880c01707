package main

import (
	"bytes"
	"context"
	_ "embed" // the list of projects
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
)

// histories lists the projects whose commits are compared.
//
//go:embed histories.txt
var histories string

// historyCommits is the number of commits of each project.
const historyCommits = 60

// historyRates compares the last commits of each project of a half with their parents.
// Protected files count, as in perdure check.
func historyRates(ctx context.Context, o releaseOptions) error {
	for _, h := range projects(o.set) {
		if !strings.Contains(h.half+" "+h.name, o.only) {
			continue
		}
		dir, err := o.clone(ctx, h.name)
		if err != nil {
			return err
		}
		h.dir = dir
		if err := o.compareHistory(ctx, h); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return printCommits(o.out, o.commits)
}

// projects returns the projects of a half; of both if half is empty.
func projects(half string) []history {
	var all []history
	for line := range strings.Lines(histories) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] != "#" && (half == "" || words[0] == half) {
			all = append(all, history{half: words[0], name: words[1], until: words[2]})
		}
	}
	return all
}

// history is a project's repository.
type history struct {
	half, name, dir, until string
}

// clone returns the folder of a repository, which it clones if the cache does not have it.
func (o *releaseOptions) clone(ctx context.Context, name string) (string, error) {
	dir := filepath.Join(o.cache, strings.ReplaceAll(name, "/", "+"))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(o.cache, 0o750); err != nil {
		return "", err
	}
	_, err := run(ctx, o.cache, "git", "clone", "--quiet", "--bare", "https://github.com/"+name, dir)
	return dir, err
}

// compareHistory compares the last commits of a project that change code or checks, those
// of its main branch: a merge with its first parent.
func (o *releaseOptions) compareHistory(ctx context.Context, h history) error {
	revs, err := run(ctx, h.dir, "git", "log", "--first-parent", "--format=%H %s", h.until, "--")
	if err != nil {
		return err
	}
	blobs, err := startBlobs(ctx, h.dir)
	if err != nil {
		return err
	}
	defer blobs.stop()
	left := historyCommits
	for line := range strings.Lines(revs) {
		rev, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		before, now, err := blobs.files(ctx, rev)
		if err != nil {
			return err
		}
		if len(before) == 0 || !concerns(before, now) {
			continue
		}
		if err := o.compareRevision(ctx, h, rev[:10]+" "+subject, before, now); err != nil {
			return err
		}
		if left--; left == 0 {
			break
		}
	}
	return nil
}

// concerns reports whether a change has a file that detection reads.
func concerns(before, now map[string]string) bool {
	for c := range changes(before, now) {
		name := c.New.Path
		if name == "" {
			name = c.Old.Path
		}
		if class := project.Classify(name).Class; class != project.Other {
			return true
		}
	}
	return false
}

// compareRevision compares a commit with its first parent.
func (o *releaseOptions) compareRevision(ctx context.Context, h history, rev string, before,
	now map[string]string) error {
	report, err := detect.Run(ctx, &detect.Input{Changes: marked(before, now)})
	if err != nil {
		return err
	}
	if o.seen != nil {
		o.seen(report, false)
	}
	all := alarms(report)
	for _, f := range all {
		if o.list {
			if _, err := fmt.Fprintf(o.out, "%s %s: %s %.2f %s:%d gone=%t %q | %s\n", h.name, rev, f.Pattern, f.Confidence,
				f.File, f.Line, f.Gone, f.Subject, f.Evidence); err != nil {
				return err
			}
		}
	}
	keys := map[string]bool{"all of " + h.half: true, h.half + " " + h.name: true}
	o.countCommit(keys, report.Verdict, len(all))
	if report.Verdict == detect.Block {
		o.countCommit(causes(h.half, all), report.Verdict, len(all))
	}
	return nil
}

// causes are the keys of the patterns that block a commit: "only" if no other one does.
func causes(half string, all []detect.Finding) map[string]bool {
	patterns := make(map[string]bool)
	for _, f := range all {
		patterns[f.Pattern] = true
	}
	keys := make(map[string]bool)
	for p := range patterns {
		keys[half+", blocked by "+p] = true
		if len(patterns) == 1 {
			keys[half+", blocked only by "+p] = true
		}
	}
	return keys
}

// maxBlob is the size from which a file is not read, in bytes.
const maxBlob = 4 << 20

// files are the files that a commit changed, before and after.
func (b *blobs) files(ctx context.Context, rev string) (before, now map[string]string, err error) {
	names, err := run(ctx, b.dir, "git", "diff-tree", "-r", "-z", "-m", "--first-parent", "--no-renames", "--no-commit-id",
		"--name-status", rev)
	if err != nil {
		return nil, nil, err
	}
	before, now = make(map[string]string), make(map[string]string)
	fields := strings.Split(names, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		kind, name := fields[i], fields[i+1]
		if kind != "A" {
			if err := b.read(before, rev+"^", name); err != nil {
				return nil, nil, err
			}
		}
		if kind != "D" {
			if err := b.read(now, rev, name); err != nil {
				return nil, nil, err
			}
		}
	}
	return before, now, nil
}

// read adds the content of a file in a revision.
func (b *blobs) read(to map[string]string, rev, name string) error {
	text, err := b.content(rev + ":" + name)
	if err == nil && text != nil {
		to[name] = string(bytes.Clone(text))
	}
	return err
}
