package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/perdure/perdure/internal/detect"
)

// commitRates compares each of the last commits of a git repository with its
// parent: ordinary work, in the steps in which it was done.
func commitRates(ctx context.Context, out io.Writer, dir string, most int, list bool) error {
	revs, err := git(ctx, dir, "log", "--no-merges", "--first-parent", fmt.Sprintf("-n%d", most), "--format=%H %s")
	if err != nil {
		return err
	}
	var t commitTally
	for line := range strings.Lines(revs) {
		rev, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		before, now, err := commitFiles(ctx, dir, rev)
		if err != nil || len(before) == 0 { // a first commit, or one of new files only
			continue
		}
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
			if list {
				if _, err := fmt.Fprintf(out, "%.10s %s: %s %.2f %s:%d %q | %s\n", rev, subject, f.Pattern, f.Confidence, f.File,
					f.Line, f.Subject, f.Evidence); err != nil {
					return err
				}
			}
		}
		t.count(report.Verdict, alarms)
	}
	_, err = fmt.Fprintf(out, "commits %d, with an alarm %d (%s), with a warning %d (%s), alarms %d\n",
		t.commits, t.alarmed, percent(t.alarmed, t.commits), t.warned, percent(t.warned, t.commits), t.alarms)
	return err
}

// commitFiles are the files that a commit changed, before and after.
func commitFiles(ctx context.Context, dir, rev string) (before, now map[string]string, err error) {
	names, err := git(ctx, dir, "diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--name-status", rev)
	if err != nil {
		return nil, nil, err
	}
	before, now = make(map[string]string), make(map[string]string)
	fields := strings.Split(names, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		kind, name := fields[i], fields[i+1]
		if kind != "A" {
			if before[name], err = git(ctx, dir, "show", rev+"^:"+name); err != nil {
				return nil, nil, err
			}
		}
		if kind != "D" {
			if now[name], err = git(ctx, dir, "show", rev+":"+name); err != nil {
				return nil, nil, err
			}
		}
	}
	return before, now, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(text), nil
}
