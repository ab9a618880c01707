package loop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/ruleset"
	"github.com/perdure/perdure/internal/workspace"
)

// ruled is what counts as a regression: by the loop's configuration, and below it
// by the project's file as the trusted snapshot has it. What an agent writes there
// counts only once a person has approved it.
type ruled struct {
	rules     *detect.Rules
	protected []string
	waivers   []detect.Waiver
	now       time.Time
}

// ruledBy reads what is set. A file of the project that cannot be read sets nothing,
// which is told.
func (r *run) ruledBy(ctx context.Context, out *Outcome, trusted workspace.ID) (*ruled, error) {
	set, w := r.cfg.Rules, &ruled{waivers: r.cfg.Waivers, now: time.Now()}
	if r.cfg.Plain {
		return w, nil
	}
	text, err := inspect.ReadTrusted(ctx, r.files, trusted, ruleset.FileName)
	if err != nil {
		return nil, refusal(err)
	}
	if text != nil {
		project, err := ruleset.Parse(ruleset.FileName, text)
		if err != nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("the project's settings of detection do not count: %.500s", err))
		} else {
			set, w.waivers = set.With(&project.Settings), slices.Concat(w.waivers, project.Waivers)
		}
	}
	if w.rules, err = set.Rules(); err != nil { // both are right, and together they are not
		out.Warnings = append(out.Warnings, fmt.Sprintf("the settings of detection do not fit together, and do not count: %.500s", err))
		w.rules = nil
	}
	w.protected = set.Protected
	out.Warnings = append(out.Warnings, ruleset.Ended(w.waivers, w.now)...)
	return w, nil
}

// protects tells whether the settings protect a file.
func (w *ruled) protects(name string) bool {
	return slices.ContainsFunc(w.protected, func(g string) bool { return doublestar.MatchUnvalidated(g, name) })
}

// waives tells whether a change of a protected file is waived.
func (w *ruled) waives(name string) bool {
	return inspect.Waived(&detect.Finding{Pattern: "protected-file", File: name}, w.waivers, w.now)
}
