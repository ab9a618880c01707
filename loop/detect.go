package loop

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/testreport"
	"github.com/perdure/perdure/internal/toolcall"
)

const (
	maxFindings = 50 // that a record keeps
	maxUnseen   = 10 // files that a warning names
)

// detected looks for signs of regressions in the files that changed since the
// trusted snapshot: nil where nobody looks, or where there is too much to look at,
// which is told as a warning.
func (r *run) detected(ctx context.Context, out *Outcome, since *inspect.Between, by *ruled) (*detect.Report, error) {
	if r.cfg.Plain || r.cfg.Detection == detect.Off {
		return nil, nil
	}
	report, err := inspect.Run(ctx, r.files, since, detect.Input{Mode: r.cfg.Detection, Rules: by.rules, Waivers: by.waivers, Now: by.now})
	var limit *detect.LimitError
	if errors.As(err, &limit) {
		out.Warnings = append(out.Warnings, "the changed files were not looked at for signs of regressions: "+limit.Error())
		return nil, nil
	}
	if unseen := inspect.Unseen(report, maxUnseen); unseen != "" {
		out.Warnings = append(out.Warnings, unseen)
	}
	return report, refusal(err)
}

// signs are the regressions that the files show and the results of the tests do
// not, one for each type.
func signs(report *detect.Report, baseline, now *testreport.Report) []Regression {
	var all []Regression
	for _, f := range inspect.Acting(report, baseline, now) {
		at := slices.IndexFunc(all, func(g Regression) bool { return g.Type == string(f.Type) })
		if at < 0 {
			all = append(all, Regression{Type: string(f.Type), Severity: string(f.Severity), Text: toolcall.Told(&f)})
			at = len(all) - 1
		} else if g := &all[at]; len(g.Text) < 1000 {
			g.Text += "; " + toolcall.Told(&f)
		}
		g := &all[at]
		g.Severity = worst([]Regression{*g, {Severity: string(f.Severity)}}).Severity
		if f.File != "" && !slices.Contains(g.Files, f.File) && len(g.Files) < maxFailing {
			g.Files = append(g.Files, f.File)
		}
	}
	return all
}
