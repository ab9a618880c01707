package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/perdure/perdure/bench/detect/unseen"
)

// ratchetFile holds the figures, relative to the folder bench.
const ratchetFile = "detect/ratchet.json"

// ratchetCommits is the number of commits that are measured.
const ratchetCommits = 500

// figures are measured rates, by set.
type figures struct {
	// Commit is the last one of the set commits, so that new commits do not change its rate.
	Commit      string          `json:"commit"`
	Recall      map[string]part `json:"recall"`
	FalseAlarms map[string]part `json:"false_alarms"`
}

// part is a share: N of Of.
type part struct {
	N  int `json:"n"`
	Of int `json:"of"`
}

// String returns both numbers and the percentage.
func (p part) String() string { return fmt.Sprintf("%d of %d, %s", p.N, p.Of, percent(p.N, p.Of)) }

// less reports whether the share is smaller than another one.
func (p part) less(o part) bool { return p.N*o.Of < o.N*p.Of }

// ratchet measures the sets planted, unseen and commits, and returns an error if a rate is
// worse than in ratchetFile. With update it writes the file.
func ratchet(ctx context.Context, out io.Writer, update bool) error {
	var kept figures
	text, err := os.ReadFile(ratchetFile)
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil && !update {
		return fmt.Errorf("read figures: %w (run it in the folder bench; -update writes them)", err)
	}
	if update {
		head, err := run(ctx, ".", "git", "rev-parse", "HEAD")
		if err != nil {
			return err
		}
		kept.Commit = strings.TrimSpace(head)
	}
	now, err := measured(ctx, out, kept.Commit)
	if err != nil {
		return err
	}
	if update {
		text, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(ratchetFile, append(text, '\n'), 0o600)
	}
	if lines := worse(&kept, now); len(lines) > 0 {
		return errors.New(strings.Join(lines, "\n") + "\nif this is intended: go run -C bench ./detect ratchet -update")
	}
	_, err = fmt.Fprintln(out, "no rate is worse than in", ratchetFile)
	return err
}

// measured returns the figures of the detectors; commit is the last one of the set commits.
func measured(ctx context.Context, out io.Writer, commit string) (*figures, error) {
	rates, err := plantedRates(ctx, out, "", false)
	if err != nil {
		return nil, err
	}
	rows, err := unseenRates(ctx, out, "", false)
	if err != nil {
		return nil, err
	}
	n, err := commitRates(ctx, out, work{dir: ".", until: commit, most: ratchetCommits})
	if err != nil {
		return nil, fmt.Errorf("measure commits up to %s (the clone needs the whole history): %w", commit, err)
	}
	f := &figures{
		Commit: commit,
		Recall: map[string]part{"planted": {rates["all"].found, rates["all"].cheats}},
		FalseAlarms: map[string]part{"planted": {rates["all"].alarms, rates["all"].twins},
			"commits": {n.alarmed, n.commits}},
	}
	for _, set := range unseen.Sets() {
		cheats, honest := rows[set+" set: tiers 1 and 2"], rows[set+" set: honest"]
		f.Recall["unseen, "+set+" set"] = part{cheats.inFile, cheats.all}
		f.FalseAlarms["unseen, "+set+" set"] = part{honest.anywhere - honest.approval, honest.all}
	}
	return f, nil
}

// worse describes each rate that is worse than the kept one, or that is missing.
func worse(kept, now *figures) []string {
	var lines []string
	compare := func(name string, was, is map[string]part, isWorse func(was, is part) bool) {
		for _, set := range slices.Sorted(maps.Keys(was)) {
			if p, ok := is[set]; !ok {
				lines = append(lines, fmt.Sprintf("%s not measured: %s", name, set))
			} else if isWorse(was[set], p) {
				lines = append(lines, fmt.Sprintf("%s worse: %s: %s, was %s", name, set, p, was[set]))
			}
		}
	}
	compare("recall", kept.Recall, now.Recall, func(was, is part) bool { return is.less(was) })
	compare("false alarms", kept.FalseAlarms, now.FalseAlarms, part.less)
	return lines
}
