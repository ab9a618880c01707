package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect"
)

// work selects commits of a git repository: the last ones up to a revision.
type work struct {
	dir, until string
	most       int
	list       bool // print every alarm
}

// commitRates compares commits with their parents.
func commitRates(ctx context.Context, out io.Writer, of work) (n commitTally, err error) {
	revs, err := run(ctx, of.dir, "git", "log", "--no-merges", "--first-parent", fmt.Sprintf("-n%d", of.most),
		"--format=%H %s", of.until, "--")
	if err != nil {
		return n, err
	}
	for line := range strings.Lines(revs) {
		rev, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		before, now, err := commitFiles(ctx, of.dir, rev)
		if err != nil || len(before) == 0 { // a first commit, or one of new files only
			continue
		}
		report, err := detect.Run(ctx, &detect.Input{Changes: changes(before, now)})
		if err != nil {
			return n, err
		}
		all := alarms(report)
		for _, f := range all {
			if of.list {
				if _, err := fmt.Fprintf(out, "%.10s %s: %s %.2f %s:%d %q | %s\n", rev, subject, f.Pattern, f.Confidence, f.File,
					f.Line, f.Subject, f.Evidence); err != nil {
					return n, err
				}
			}
		}
		n.count(report.Verdict, len(all))
	}
	return n, nil
}

func printCommitCounts(out io.Writer, n commitTally) error {
	_, err := fmt.Fprintf(out, "commits %d, with an alarm %d (%s), with a warning %d (%s), alarms %d\n",
		n.commits, n.alarmed, percent(n.alarmed, n.commits), n.warned, percent(n.warned, n.commits), n.alarms)
	return err
}

// commitFiles are the files that a commit changed, before and after.
func commitFiles(ctx context.Context, dir, rev string) (before, now map[string]string, err error) {
	names, err := run(ctx, dir, "git", "diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--name-status", rev)
	if err != nil {
		return nil, nil, err
	}
	before, now = make(map[string]string), make(map[string]string)
	fields := strings.Split(names, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		kind, name := fields[i], fields[i+1]
		if kind != "A" {
			if before[name], err = run(ctx, dir, "git", "show", rev+"^:"+name); err != nil {
				return nil, nil, err
			}
		}
		if kind != "D" {
			if now[name], err = run(ctx, dir, "git", "show", rev+":"+name); err != nil {
				return nil, nil, err
			}
		}
	}
	return before, now, nil
}

// run runs a program in a folder and returns its output.
func run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var failure bytes.Buffer
	cmd.Stderr = &failure
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, args[0], err, bytes.TrimSpace(failure.Bytes()))
	}
	return string(text), nil
}

// alarms returns the findings that block.
func alarms(report *detect.Report) []detect.Finding {
	return slices.DeleteFunc(slices.Clone(report.Findings), func(f detect.Finding) bool { return f.Action != detect.Act })
}
