package regression

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Ruled are the rules by which a change counts as a regression: the loop's configuration,
// and below it the project's settings file in the trusted snapshot. What an agent writes
// there counts only after a person approved it.
type Ruled struct {
	mode      detect.Mode
	rules     *detect.Rules
	protected []string
	waivers   []detect.Waiver
	now       time.Time
	// marked are fingerprints of false alarms.
	marked map[string]bool
}

// Read reads the configuration of a loop, the project's settings and the false alarms
// that a person marked. A settings file that cannot be read is ignored with a warning.
func Read(ctx context.Context, files *workspace.Workspace, trusted workspace.ID, cfg *config.Config,
	marks []record.FalseAlarm) (w *Ruled, warnings []string, err error) {
	set, err := rules.From(&cfg.Rules)
	if err != nil {
		return nil, nil, err
	}
	w = &Ruled{mode: detect.Mode(cfg.Detection), now: time.Now(), marked: make(map[string]bool, len(marks))}
	for _, waiver := range cfg.Waivers {
		w.waivers = append(w.waivers, detect.Waiver(waiver))
	}
	for _, glob := range cfg.Allow {
		w.waivers = append(w.waivers, detect.Waiver{Pattern: "protected-file", Path: glob, Reason: "allowed for this loop"})
	}
	for i := range marks {
		w.marked[marks[i].Fingerprint] = true
	}
	text, err := evidence.ReadTrusted(ctx, files, trusted, rules.FileName)
	if err != nil {
		return nil, nil, err
	}
	if text != nil {
		project, err := rules.Parse(rules.FileName, text)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("detection settings of the project ignored: %.500s", err))
		} else {
			set, w.waivers = set.With(&project.Settings), slices.Concat(w.waivers, project.Waivers)
		}
	}
	if w.rules, err = set.Rules(); err != nil { // each is valid, and together they are not
		warnings = append(warnings, fmt.Sprintf("detection settings ignored, because the loop's and the project's "+
			"contradict each other: %.500s",
			err))
		w.rules = nil
	}
	w.protected = set.Protected
	return w, append(warnings, rules.Ended(w.waivers, w.now)...), nil
}

// Input returns the input of detection, without the changes.
func (w *Ruled) Input() detect.Input {
	return detect.Input{Mode: w.mode, Rules: w.rules, Waivers: w.waivers, Now: w.now}
}

// Waive removes tests that a waiver covers.
func (w *Ruled) Waive(d *testreport.Diff, report *detect.Report) {
	evidence.Waive(d, report, w.waivers, w.now)
}

// Protects reports whether the settings protect a file.
func (w *Ruled) Protects(name string) bool {
	return slices.ContainsFunc(w.protected, func(g string) bool { return doublestar.MatchUnvalidated(g, name) })
}

// Waives reports whether a change of a protected file is waived.
func (w *Ruled) Waives(name string) bool {
	return evidence.Waived(&detect.Finding{Pattern: "protected-file", File: name}, w.waivers, w.now)
}

// Forget moves findings marked as false alarms to the waived ones.
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

// Settle sets the fingerprints of regressions and removes those marked as false alarms.
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
