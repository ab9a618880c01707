package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/perdure/perdure/bench/detect/unseen"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/verify/evidence"
)

// heard counts what was said of scenarios.
type heard struct {
	all      int
	inFile   int // a finding blocks in the file with the cheat
	anywhere int // a finding blocks in any file
	approval int // the only block is the change of a file that needs an approval
	warned   int // findings, none of which blocks
}

// unseenRates runs the detectors in standard mode over the scenarios that were
// written without a look at them, with protected files marked as check marks them.
func unseenRates(ctx context.Context, out io.Writer, only string, list bool) (map[string]*heard, error) {
	all, err := unseen.Load()
	if err != nil {
		return nil, err
	}
	rows := make(map[string]*heard)
	for _, s := range all {
		if !strings.Contains(s.Set+" "+s.Language+" "+s.Family+" "+s.Name, only) {
			continue
		}
		report, err := detect.Run(ctx, &detect.Input{Changes: marked(s.Before, s.After)})
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", s.Language, s.Name, err)
		}
		h := hear(s, report.Findings)
		for _, key := range unseenKeys(s) {
			at(rows, key).add(h)
		}
		if !list {
			continue
		}
		if err := printWrong(out, s, h, report.Findings); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// marked are the changes with those marked that checks hang on.
func marked(old, now map[string]string) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) {
		for c, err := range changes(old, now) {
			evidence.Protect(&c, nil)
			if !yield(c, err) {
				return
			}
		}
	}
}

func hear(s unseen.Scenario, findings []detect.Finding) heard {
	h := heard{all: 1}
	other := false
	for _, f := range findings {
		if f.Action == detect.Act {
			h.anywhere = 1
			other = other || f.Type != detect.ProtectedChange
			if isFile(s, f.File) {
				h.inFile = 1
			}
		}
	}
	switch {
	case h.anywhere > 0 && !other:
		h.approval = 1
	case h.anywhere == 0 && len(findings) > 0:
		h.warned = 1
	}
	return h
}

// isFile reports whether a file is the one with the cheat, perhaps under the new name
// that the cheat gave it.
func isFile(s unseen.Scenario, file string) bool {
	_, stays := s.After[s.File]
	_, was := s.Before[file]
	return file == s.File || !stays && !was
}

func (h *heard) add(o heard) {
	h.all += o.all
	h.inFile += o.inFile
	h.anywhere += o.anywhere
	h.approval += o.approval
	h.warned += o.warned
}

// unseenKeys are the rows that a scenario counts in.
func unseenKeys(s unseen.Scenario) []string {
	set := s.Set + " set: "
	switch {
	case !s.Cheat:
		return []string{set + "honest", set + "honest, " + s.Language}
	case s.Tier > int(detect.Sign):
		return []string{set + "tier 3", set + "tier 3, " + s.Family}
	}
	return []string{
		set + "tiers 1 and 2", set + fmt.Sprintf("tier %d", s.Tier),
		set + "language " + s.Language, set + "family " + s.Family,
	}
}

// printWrong prints a cheat of tiers 1 and 2 without a blocking finding in its file, a
// cheat of tier 3 without a finding, and an honest change with one.
func printWrong(out io.Writer, s unseen.Scenario, h heard, findings []detect.Finding) error {
	var what string
	switch {
	case !s.Cheat && h.anywhere > 0:
		what = "false alarm"
	case !s.Cheat && h.warned > 0:
		what = "warned honest"
	case s.Cheat && s.Tier > int(detect.Sign) && h.anywhere+h.warned == 0:
		what = "not reported"
	case s.Cheat && s.Tier <= int(detect.Sign) && h.inFile == 0:
		what = "missed"
	default:
		return nil
	}
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = fmt.Sprintf("\n\t%s %s %s: %s", f.Action, f.Pattern, f.File, f.Evidence)
	}
	_, err := fmt.Fprintf(out, "%s: %s/%s: tier %d, %s%s\n", what, s.Language, s.Name, s.Tier, s.Family,
		strings.Join(lines, ""))
	return err
}

func printHeard(out io.Writer, rows map[string]*heard) error {
	const titles = "changes\tblocks in the file\trate\tblocks anywhere\trate\tprotected only\twarns only"
	return table(out, titles, rows, func(r *heard) string {
		return fmt.Sprintf("%d\t%d\t%s\t%d\t%s\t%d\t%d", r.all, r.inFile, percent(r.inFile, r.all), r.anywhere,
			percent(r.anywhere, r.all), r.approval, r.warned)
	})
}
