package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/perdure/perdure/bench/detect/unseen"
	"github.com/perdure/perdure/internal/detect"
)

// entry is what a rule is worth: changes that it blocks, and those of them that no other
// rule blocks.
type entry struct {
	cheats, ownCheats int // of the unseen sets and the mutants
	honest, ownHonest int // honest changes of the unseen sets
	stops, ownStops   int // ordinary commits
}

// A rule earns to block with so many cheats that only it finds, and so many cheats for each
// ordinary commit or honest change that it stops.
const (
	leastOwnCheats = 3
	leastPerAlarm  = 5
)

func (e *entry) earns() bool {
	return e.ownCheats >= leastOwnCheats && e.cheats >= leastPerAlarm*(e.stops+e.honest)
}

// ledger counts for each rule what it finds and stops: in the unseen sets, the mutants, and
// the histories.
func ledger(ctx context.Context, o releaseOptions) error {
	rows := make(map[string]*entry)
	for _, p := range detect.Catalog() {
		at(rows, p.ID)
	}
	if err := ledgerOfSets(ctx, rows); err != nil {
		return err
	}
	o.seen = func(report *detect.Report, cheat bool) {
		count(rows, report.Findings, func(e *entry, own int) {
			if cheat {
				e.cheats, e.ownCheats = e.cheats+1, e.ownCheats+own
			} else {
				e.stops, e.ownStops = e.stops+1, e.ownStops+own
			}
		})
	}
	out := o.out
	o.out = io.Discard
	if err := historyRates(ctx, o); err != nil {
		return err
	}
	if err := mutantRates(ctx, o); err != nil {
		return err
	}
	return printLedger(out, rows)
}

// ledgerOfSets counts the unseen sets. In a cheat only the findings in its file count.
func ledgerOfSets(ctx context.Context, rows map[string]*entry) error {
	all, err := unseen.Load()
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Cheat && s.Tier > int(detect.Sign) {
			continue
		}
		report, err := detect.Run(ctx, &detect.Input{Changes: marked(s.Before, s.After)})
		if err != nil {
			return fmt.Errorf("%s/%s: %w", s.Language, s.Name, err)
		}
		count(rows, slices.DeleteFunc(report.Findings, func(f detect.Finding) bool { return s.Cheat && !isFile(s, f.File) }),
			func(e *entry, own int) {
				if s.Cheat {
					e.cheats, e.ownCheats = e.cheats+1, e.ownCheats+own
				} else {
					e.honest, e.ownHonest = e.honest+1, e.ownHonest+own
				}
			})
	}
	return nil
}

// count calls add for each rule that blocks a change, with own 1 if it is the only one.
func count(rows map[string]*entry, findings []detect.Finding, add func(e *entry, own int)) {
	blocking := make(map[string]bool)
	for _, f := range findings {
		if f.Action == detect.Act {
			blocking[f.Pattern] = true
		}
	}
	own := 0
	if len(blocking) == 1 {
		own = 1
	}
	for id := range blocking {
		add(at(rows, id), own)
	}
}

// printLedger prints the ledger as a table of Markdown, by rule.
func printLedger(out io.Writer, rows map[string]*entry) error {
	const titles = "| Rule | Cheats | – only by it | Honest changes | – only by it | Commits | – only by it | |\n" +
		"|---|---|---|---|---|---|---|---|\n"
	if _, err := io.WriteString(out, titles); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		e := rows[id]
		verdict := "warns"
		if e.earns() {
			verdict = "blocks"
		}
		if _, err := fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %s |\n", id, e.cheats, e.ownCheats, e.honest,
			e.ownHonest, e.stops, e.ownStops, verdict); err != nil {
			return err
		}
	}
	return nil
}
