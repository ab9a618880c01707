package regression

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	ruleset "github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Ruled is what counts as a regression: by the loop's configuration, and below it
// by the project's file as the trusted snapshot has it. What an agent writes there
// counts only once a person has approved it.
type Ruled struct {
	mode      detect.Mode
	rules     *detect.Rules
	protected []string
	waivers   []detect.Waiver
	now       time.Time
	// marked are fingerprints of what a person marked as false alarms.
	marked map[string]bool
}

// Read reads what the configuration of a loop and the project set, and what a person
// marked. A file of the project that cannot be read sets nothing;
// that is among the warnings.
func Read(ctx context.Context, files *workspace.Workspace, trusted workspace.ID, cfg *config.Config,
	marks []record.FalseAlarm) (w *Ruled, warnings []string, err error) {
	set, err := ruleset.From(&cfg.Rules)
	if err != nil {
		return nil, nil, err
	}
	w = &Ruled{mode: detect.Mode(cfg.Detection), now: time.Now(), marked: make(map[string]bool, len(marks))}
	for _, waiver := range cfg.Waivers {
		w.waivers = append(w.waivers, detect.Waiver(waiver))
	}
	for i := range marks {
		w.marked[marks[i].Fingerprint] = true
	}
	text, err := evidence.ReadTrusted(ctx, files, trusted, ruleset.FileName)
	if err != nil {
		return nil, nil, err
	}
	if text != nil {
		project, err := ruleset.Parse(ruleset.FileName, text)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the project's settings of detection do not count: %.500s", err))
		} else {
			set, w.waivers = set.With(&project.Settings), slices.Concat(w.waivers, project.Waivers)
		}
	}
	if w.rules, err = set.Rules(); err != nil { // both are right, and together they are not
		warnings = append(warnings, fmt.Sprintf("the settings of detection do not fit together, and do not count: %.500s",
			err))
		w.rules = nil
	}
	w.protected = set.Protected
	return w, append(warnings, ruleset.Ended(w.waivers, w.now)...), nil
}

// Input is what the detectors are given, but for the changes.
func (w *Ruled) Input() detect.Input {
	return detect.Input{Mode: w.mode, Rules: w.rules, Waivers: w.waivers, Now: w.now}
}

// Waive takes tests out of those that are worse which a waiver is about.
func (w *Ruled) Waive(d *testreport.Diff, report *detect.Report) {
	evidence.Waive(d, report, w.waivers, w.now)
}

// Protects tells whether the settings protect a file.
func (w *Ruled) Protects(name string) bool {
	return slices.ContainsFunc(w.protected, func(g string) bool { return doublestar.MatchUnvalidated(g, name) })
}

// Waives tells whether a change of a protected file is waived.
func (w *Ruled) Waives(name string) bool {
	return evidence.Waived(&detect.Finding{Pattern: "protected-file", File: name}, w.waivers, w.now)
}

// Forget takes findings away that are marked as false alarms.
func (w *Ruled) Forget(report *detect.Report) {
	report.Findings = slices.DeleteFunc(report.Findings, func(f detect.Finding) bool {
		marked := w.marked[f.Fingerprint()]
		if marked {
			report.Waived = append(report.Waived,
				detect.Waived{Finding: f, Waiver: detect.Waiver{Pattern: f.Pattern, Path: f.File,
					Reason: "marked as a false alarm"}})
		}
		return marked
	})
}

// Settle names regressions so that they are known again, and leaves out what is
// marked as a false alarm.
func (w *Ruled) Settle(all []Regression) []Regression {
	all = slices.DeleteFunc(all, func(g Regression) bool { return len(g.unmarked(w.marked)) == 0 })
	for i := range all {
		g := &all[i]
		left := g.unmarked(w.marked)
		if len(g.Tests) > 0 && len(g.Tests) < Most {
			g.Tests = slices.DeleteFunc(slices.Clone(g.Tests), func(id string) bool { return w.marked[factName(g.Type, id)] })
		}
		g.Fingerprints = left
	}
	return all
}
